"""The matches that judge the hybrid search of chess. `python benches/matches.py --record`.

Each part is switched off, or set differently, and plays against the search with its defaults; and the search with its
defaults plays against the same engine without mate search and categories: plain PUCT with PeSTO's values. Every opening
is played with both sides; moves are limited by time, or where that is said by simulations, so that a part pays for what
it costs. Results go to matches.json, and from there into RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pondertree.match import Adjudication, play_match

FILE = Path(__file__).parent / "matches.json"

#: Both sides agree that a game is over at this value for some moves in a row; longer games are draws.
ADJUDICATION = Adjudication(resign=0.9, resign_moves=3, max_plies=300)

PLAIN = {"priority": "none", "mate_search_depth": 0}

#: What is asked: the name, the settings of the first player, those of the second, games at most, the sequential test.
QUESTIONS: list[tuple[str, dict[str, Any], dict[str, Any], int, tuple[float, float] | None]] = [
    ("Hybrid against plain PUCT with PeSTO", {}, PLAIN, 2000, (0, 20)),
    ('priority="strict" against the default', {"priority": "strict"}, {}, 400, None),
    ('priority="tactical" against the default', {"priority": "tactical"}, {}, 400, None),
    ("no categories against the default", {"priority": "none"}, {}, 400, None),
    ("no scores of moves against the default", {"move_scores": "none"}, {}, 400, None),
    ("the published weights against the default", {"evaluator": "pesto:published"}, {}, 400, None),
    *(
        (f"mate search {depth} moves deep against the default", {"mate_search_depth": depth}, {}, 400, None)
        for depth in (0, 1, 2, 4)
    ),
    ("no quiescence against the default", {"quiescence": "false"}, {}, 400, None),
    ("exchanges even within a pawn against the default", {"see_threshold": 100}, {}, 400, None),
    ("nothing proven against the default", {"solve": "false"}, {}, 400, None),
    ("the tree kept from move to move against the default", {"reuse": "true"}, {}, 400, None),
    (
        'priority="strict" against plain PUCT with PeSTO',
        {"priority": "strict", "mate_search_depth": 0},
        PLAIN,
        400,
        None,
    ),
    (
        'priority="tactical" against plain PUCT with PeSTO',
        {"priority": "tactical", "mate_search_depth": 0},
        PLAIN,
        400,
        None,
    ),
    ('priority="prior" against plain PUCT with PeSTO', {"priority": "prior", "mate_search_depth": 0}, PLAIN, 400, None),
    ("mate search alone against plain PUCT with PeSTO", {"priority": "none"}, PLAIN, 400, None),
]


def player(limit: str, settings: dict[str, Any]) -> str:
    """A player in words."""
    return ",".join([f"hybrid:{limit}", *(f"{name}={value}" for name, value in settings.items())])


def main() -> int:
    """Plays what was asked for, as far as the time goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="the questions whose name has this in it")
    parser.add_argument("--seconds", type=float, default=0.05, help="a move (default: 0.05)")
    parser.add_argument("--simulations", type=int, help="a move, instead of a time")
    parser.add_argument("--games", type=int, help="at most, instead of what each question wants")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no match after so long")
    parser.add_argument("--concurrency", type=int, default=os.cpu_count(), help="games at a time")
    parser.add_argument("--record", action="store_true", help="write the results into matches.json")
    parser.add_argument("--out", type=Path, default=FILE, help="another file than matches.json")
    given = parser.parse_args()
    limit = f"time_limit={given.seconds}" if given.simulations is None else f"num_simulations={given.simulations}"
    known = json.loads(given.out.read_text(encoding="utf-8")) if given.record and given.out.exists() else []
    begun = time.monotonic()
    for name, first, second, games, sprt in QUESTIONS:
        if given.only not in name:
            continue
        if time.monotonic() - begun > 60 * given.minutes:
            print("The time is up: the rest was not played.", file=sys.stderr)
            break
        result = play_match(
            player(limit, first),
            player(limit, second),
            "chess",
            num_games=given.games or games,
            sprt=sprt,
            seed=1,
            adjudication=ADJUDICATION,
            on_failure="error",
            concurrency=given.concurrency,
        )
        row = {"question": name, "limit": limit, "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"}
        row |= result.as_json()
        print(f"{name} ({limit})\n{result}\n", flush=True)
        if given.record:
            known = [old for old in known if (old["question"], old["limit"]) != (name, limit)] + [row]
            given.out.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
