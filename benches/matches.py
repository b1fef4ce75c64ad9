"""Ablation matches of the hybrid chess search. `python benches/matches.py --record`.

Each component is switched off, or changed, and plays against the defaults; the defaults also play against the same
engine without mate search and categories (PUCT with PeSTO values). Every opening is played from both sides. Moves are
limited by time, so that a component pays for its cost, or by simulations where noted. Results are stored in
matches.json and shown in RESULTS.md.
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

#: Adjudication: a win at this value for both sides over several moves; longer games are draws.
ADJUDICATION = Adjudication(resign=0.9, resign_moves=3, max_plies=300)

PLAIN = {"priority": "none", "mate_search_depth": 0}

#: Name, parameters of both players, maximum number of games, sequential test.
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
    """Returns the match specification of a player."""
    return ",".join([f"hybrid:{limit}", *(f"{name}={value}" for name, value in settings.items())])


def main() -> int:
    """Plays the requested matches within the time."""
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
