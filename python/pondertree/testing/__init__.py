"""Checks of the contract that all games fulfil, compiled or written in Python.

from pondertree.testing import check_game

check_game(MyGame)  # raises GameContractError on the first violated rule
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pondertree import validation
from pondertree.random import PLAYOUT, Random, fold
from pondertree.testing.game_contract import RULES, GameChecker

__all__ = ["RULES", "GameReport", "check_game"]


@dataclass(frozen=True, slots=True)
class GameReport:
    """The report of `check_game` for a game that fulfils the contract."""

    name: str
    """The class of the states."""
    games: int
    """Games played."""
    plies: int
    """Total number of moves."""
    shortest: int
    """Moves of the shortest game."""
    longest: int
    """Moves of the longest game."""
    unfinished: int
    """Games that were truncated after `max_moves` moves."""
    most_legal: int
    """The largest number of legal actions."""
    observation_shape: tuple[int, ...] | None
    """The shape of an observation; None if the game has none."""


def check_game(factory: Callable[[], Any], *, games: int = 20, seed: int = 0, max_moves: int = 1000) -> GameReport:
    """Plays random games from `factory()` and checks every state against the contract (`RULES`).

    The first violation raises `GameContractError`, which names the rule, the state and the actions that lead there.
    A game is truncated after `max_moves` moves, which violates the contract only if all games are.
    """
    validation.function(factory, "factory", "function that returns a starting state, such as the class itself")
    games, max_moves = validation.count(games, "games"), validation.count(max_moves, "max_moves")
    key = fold(0, validation.whole_number(seed, "seed"))
    checker = GameChecker(factory)
    lengths = [checker.play_game(Random(fold(key, number), PLAYOUT), max_moves) for number in range(games)]
    if checker.unfinished == games:
        checker.fail(
            "end",
            f"none of {games} random games was over after {max_moves} moves: if they are longer, raise max_moves; if "
            "they need not end, truncate playouts by UCT(max_depth=...), or value positions by an evaluator",
        )
    return GameReport(
        name=checker.info.name,
        games=games,
        plies=sum(lengths),
        shortest=min(lengths),
        longest=max(lengths),
        unfinished=checker.unfinished,
        most_legal=checker.most_legal,
        observation_shape=checker.shape,
    )
