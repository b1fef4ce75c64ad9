"""Random games with chance: one to four players, with and without rewards, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.support.planning import rescaled
from tests.support.solvers import best_play

from pondertree import UCT
from pondertree.testing.tabular import TabularGame

PLAYERS = (1, 2, 2, 2, 3, 4)
TURNS: tuple[Any, ...] = ("alternate", "random", "double")


def game(number: int) -> TabularGame:
    """Returns one of the random games with chance: also before ends, and several chance nodes in a row."""
    return TabularGame(
        seed=number,
        players=PLAYERS[number % len(PLAYERS)],
        turn_order=TURNS[number // 2 % len(TURNS)],
        rewards=number % 5 in (1, 4),
        zero_sum=number % 7 != 3,
        depth=((2, 6), (3, 9), (1, 4))[number % 3],
        branching=((1, 4), (2, 3))[number % 2],
        chance=(0.3, 0.6)[number // 3 % 2],
        outcomes=((1, 4), (2, 7))[number // 5 % 2],
    )


GAMES = [game(number) for number in range(200)]


@cache
def exact(number: int) -> float:
    """Returns what the start of a game is worth to the player to move if everyone maximises their own payoff."""
    start = GAMES[number].start()
    return best_play(start)[start.to_play]


def distances(
    simulations: int, numbers: Sequence[int] = range(len(GAMES)), *, scaled: bool = True, **options: Any
) -> list[float]:
    """Returns the distance of UCT's root value from the exact one in each game.

    If `scaled`, rewards are divided by the largest number of plies, so that payoffs are in [-1, 1] as results are.
    """
    found = []
    for number in numbers:
        rules = GAMES[number]
        scale = 1.0 / rules.depth[1] if scaled and rules.rewards else 1.0
        start = rescaled(rules.start(), scale, exact=False) if scale != 1.0 else rules.start()
        result = UCT(simulations, seed=1, **options).run(start)
        found.append(abs(result.value - scale * exact(number)))
    return found
