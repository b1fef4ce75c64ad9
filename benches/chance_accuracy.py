"""Errors of searches in games of chance against exact values, as two tables in Markdown.

    PYTHONPATH=. python benches/chance_accuracy.py [--positions 40] [--simulations 1000 10000 100000]

Near the end: positions of Pig, backgammon (all checkers home) and 2048 in which play is over within ten plies, moves
and outcomes counted (`tests/support/near_ends.py`): in backgammon and 2048 whatever happens, in Pig, where a 1 may
follow a 1, with a probability of at least 95 % by best play. Values are scaled to [-1, 1]. "value" is `result.value`,
the mean over the visits of the root, which exploration lowers; "move" is Q of the chosen move.

Random games: the 200 games of `tests/oracle/test_engine_chance.py`, with 1,000 and 10,000 simulations of UCT. Rewards
are divided by the largest number of plies, so that payoffs are in [-1, 1], and on their own scale once more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.support.near_ends import bear_off, errors, full_boards, pig
from tests.support.random_games import GAMES, distances

from pondertree import UCT, AlphaZero
from pondertree.evaluators import Rollout, Uniform

SEARCHES: dict[str, Callable[..., Any]] = {
    "UCT": UCT,
    "AlphaZero, playouts": lambda simulations, **options: AlphaZero(Rollout(), simulations, **options),
    "AlphaZero, value 0": lambda simulations, **options: AlphaZero(Uniform(), simulations, **options),
}


def near_ends(positions: int, simulations: list[int]) -> None:
    """Prints the errors in positions near the end."""
    print("| game | positions | search | simulations | value | move | largest |\n|---|---:|---|---:|---:|---:|---:|")
    for name, draw in (("Pig", pig), ("backgammon", bear_off), ("2048", full_boards)):
        found = draw(positions)
        options = {"normalize": "tree"} if name == "2048" else {}
        for search, make in SEARCHES.items():
            for count in simulations:
                of = errors(make(count, **options), found)
                row = f"| {name} | {len(found)} | {search} | {count:,} "
                print(f"{row}| {of.of_value:.4f} | {of.of_move:.4f} | {of.largest:.3f} |", flush=True)


def random_games() -> None:
    """Prints the errors of UCT in random games by class."""
    print("\n| games | | value: 1,000 | 10,000 | rewards not divided: 1,000 | 10,000 |\n|---|---:|---:|---:|---:|---:|")
    columns = [[distances(simulations, scaled=scaled) for simulations in (1_000, 10_000)] for scaled in (True, False)]
    kinds = [(game.players, game.rewards) for game in GAMES]
    for kind in [*sorted(set(kinds)), None]:
        rows = [row for row, each in enumerate(kinds) if kind in (None, each)]
        cells = [np.mean([column[row] for row in rows]) for pair in columns for column in pair]
        name = "all" if kind is None else f"{kind[0]} players, {'rewards' if kind[1] else 'results'}"
        print(f"| {name} | {len(rows)} | {' | '.join(f'{cell:.3f}' for cell in cells)} |", flush=True)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=40, help="positions near the end of each game")
    parser.add_argument("--simulations", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments = parser.parse_args()
    began = time.monotonic()
    near_ends(arguments.positions, arguments.simulations)
    random_games()
    print(f"\n{time.monotonic() - began:.0f} seconds")


if __name__ == "__main__":
    main()
