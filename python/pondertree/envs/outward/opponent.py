"""Opponents of an environment: searches, functions, and uniformly random moves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pondertree.envs.outward.hosted_game import Turn
from pondertree.errors import InvalidArgumentError, PlayerError, PondertreeError
from pondertree.validation import shown

Opponent = Callable[[Turn, np.random.Generator], int]
"""A function that returns a legal action; random numbers come from the environment's generator."""


def as_opponent(given: Any) -> Opponent:
    """Returns the opponent for "random", a search, or a function `state -> action`."""
    if isinstance(given, str) and given == "random":
        return _random
    if callable(getattr(given, "run", None)) and not isinstance(given, type):
        return _checked(lambda turn, generator: given.run(turn.state, seeds=int(generator.integers(1 << 62))).action)
    if callable(given) and not isinstance(given, type):
        return _checked(lambda turn, generator: given(turn.state))
    raise InvalidArgumentError(
        f"opponent must be 'random', a search such as pondertree.UCT(100) or a function state -> action, "
        f"not {shown(given)}"
    )


def _random(turn: Turn, generator: np.random.Generator) -> int:
    legal = turn.position.legal
    return legal[int(generator.integers(len(legal)))]


def _checked(choose: Callable[[Turn, np.random.Generator], Any]) -> Opponent:
    """Returns the opponent whose answers are checked; its exceptions become `PlayerError`."""

    def opponent(turn: Turn, generator: np.random.Generator) -> int:
        try:
            given = choose(turn, generator)
        except PondertreeError:
            raise
        except Exception as error:
            raise PlayerError(f"the opponent raised {type(error).__name__}: {error}") from error
        try:
            action = operator.index(given.item() if isinstance(given, np.ndarray) and given.size == 1 else given)
        except TypeError:
            raise PlayerError(f"the opponent returned {shown(given)}: it must be an action, an int") from None
        if action not in turn.position.legal:
            raise PlayerError(f"the opponent returned {action}, which is illegal: legal are {turn.position.legal}")
        return action

    return opponent
