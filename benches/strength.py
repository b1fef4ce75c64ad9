"""Playing strength of the hybrid search, and the gain of each change. `python benches/strength.py --record`.

Each step is a match of the search with one change against the search without it, at equal time. With `--stockfish` the
default also plays against Stockfish at several `UCI_Elo` levels that bracket its strength. Results are stored in
strength.json and shown in RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondertree.match import Adjudication, play_match

FILE = Path(__file__).parent / "strength.json"

#: Random plies before each pair of games.
PLIES = 6

#: The baseline: move categories alone, with the published PeSTO weights.
FIRST = {"move_scores": "none", "evaluator": "pesto:published"}
SCORED = {"move_scores": "learned", "evaluator": "pesto:published"}

#: Changes in order: name, parameters with it, parameters without it, whether it is now the default.
STEPS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("scores of moves", SCORED, FIRST, True),
    ("then exploration_constant=1.0", {**SCORED, "exploration_constant": 1.0}, SCORED, False),
    ("then exploration_constant=2.2", {**SCORED, "exploration_constant": 2.2}, SCORED, False),
    ("then fpu=('parent', 0.2)", {**SCORED, "fpu": "('parent',0.2)"}, SCORED, False),
    (
        "then killers and history with half the weight",
        {**SCORED, "category_weights": "(32,12,8,2,1.5,3,2,1.2,1,0.5)"},
        SCORED,
        False,
    ),
    ("then threats and kings in the evaluation, tuned", {"move_scores": "learned"}, SCORED, True),
]


def player(seconds: float, settings: dict[str, Any]) -> str:
    """Returns the match specification of a player."""
    return ",".join([f"hybrid:time_limit={seconds}", *(f"{name}={value}" for name, value in settings.items())])


def rating(levels: Sequence[float], scores: Sequence[float], games: Sequence[int]) -> tuple[float, float]:
    """Returns (maximum-likelihood Elo against opponents of known levels, 1.96 standard errors).

    The error assumes independent games without draws, which overestimates it.
    """

    def expected(own: float) -> list[float]:
        return [1.0 / (1.0 + 10.0 ** ((level - own) / 400.0)) for level in levels]

    low, high = min(levels) - 2000.0, max(levels) + 2000.0
    for _ in range(60):
        middle = (low + high) / 2.0
        short = sum(n * share for n, share in zip(games, expected(middle), strict=True)) < sum(scores)
        low, high = (middle, high) if short else (low, middle)
    information = sum(n * share * (1.0 - share) for n, share in zip(games, expected(low), strict=True))
    return low, 1.96 * 400.0 / math.log(10.0) / math.sqrt(information)


def main() -> int:
    """Plays the steps, or matches against Stockfish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="the steps whose name has this in it")
    parser.add_argument("--seconds", type=float, default=0.02, help="a move (default: 0.02)")
    parser.add_argument("--games", type=int, default=400, help="a match (default: 400)")
    parser.add_argument("--stockfish", metavar="PROGRAM", help="play against this Stockfish instead")
    parser.add_argument("--elo", type=int, nargs="+", default=[1700, 1900, 2100], help="its strengths")
    parser.add_argument("--concurrency", type=int, default=os.cpu_count(), help="games at a time")
    parser.add_argument("--record", action="store_true", help="write the results into strength.json")
    parser.add_argument("--out", type=Path, default=FILE, help="another file than strength.json")
    given = parser.parse_args()
    known = json.loads(given.out.read_text(encoding="utf-8")) if given.record and given.out.exists() else []
    limit = f"time_limit={given.seconds}"
    matches: list[tuple[dict[str, Any], str, str]] = []
    if given.stockfish:
        for elo in given.elo:
            limits = f"option.UCI_LimitStrength=true,option.UCI_Elo={elo},option.Hash=16,option.Threads=1"
            program = f"uci:{given.stockfish},movetime={given.seconds},{limits}"
            matches.append(({"against": elo, "limit": limit, "default": "now"}, player(given.seconds, {}), program))
    else:
        for name, first, second, retained in STEPS:
            if given.only in name:
                about = {"step": name, "limit": limit, "kept": retained}
                matches.append((about, player(given.seconds, first), player(given.seconds, second)))
    for about, one, other in matches:
        result = play_match(
            one,
            other,
            "chess",
            num_games=given.games,
            plies=PLIES,
            seed=7,
            adjudication=Adjudication(
                resign=0.95 if given.stockfish else 0.9, resign_moves=3 if given.stockfish else 4, max_plies=300
            ),
            on_failure="loss" if given.stockfish else "error",
            concurrency=given.concurrency,
        )
        summary = result.as_json()
        row = about | {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"}
        row |= {name: summary[name] for name in ("games", "wins", "draws", "losses", "pentanomial", "elo", "interval")}
        print(f"{about}\n{result}\n", flush=True)
        if given.record:
            known = [old for old in known if not about.items() <= old.items()] + [row]
            given.out.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
