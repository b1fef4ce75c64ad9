"""Chance nodes: states whose next state is drawn instead of chosen.

A state with `to_play == CHANCE` has `chance_outcomes()`, pairs of an outcome and its probability. `legal_actions()`
lists the same outcomes in any order, and `play(outcome)` returns the state after it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, NoReturn

from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.game import CHANCE, perspective
from pondertree.random import Random, draw
from pondertree.validation import shown

#: Outcomes are ints from 0 to this one, and a chance node has at most as many.
LARGEST_OUTCOME: Final = 65535
#: Greatest distance of the sum of the probabilities from 1.
SUM_TOLERANCE: Final = 1e-9
#: The most chance nodes that may follow each other without a decision or an end.
MAX_CHANCE_IN_A_ROW: Final = 1000


__all__ = [
    "CHANCE",
    "LARGEST_OUTCOME",
    "EqualOutcomes",
    "Outcomes",
    "check_chance_ends",
    "check_same_outcomes",
    "draw_outcome",
    "is_chance",
    "perspective",
    "read_outcomes",
]


class Outcomes(NamedTuple):
    """The outcomes of a chance node, in the order of `chance_outcomes()`."""

    actions: list[int]
    """The outcomes, as `play` takes them."""
    probabilities: list[float]
    """Their probabilities: positive, with sum 1."""


class EqualOutcomes(tuple[tuple[int, float], ...]):
    """`chance_outcomes()` of equally likely outcomes from 0, which are not checked again at every chance node."""

    checked: Outcomes

    @classmethod
    def of(cls, count: int) -> EqualOutcomes:
        """Returns `count` outcomes."""
        new = cls((outcome, 1.0 / count) for outcome in range(count))
        new.checked = Outcomes(list(range(count)), [1.0 / count] * count)
        return new


def is_chance(state: Any) -> bool:
    """Whether a state is a chance node; `to_play` is arbitrary at an end."""
    return bool(state.to_play == CHANCE and not state.is_terminal)


def refuse_chance(state: Any, what: str = "this state") -> None:
    """Raises `InvalidArgumentError` if a state is a chance node: searches start at decisions."""
    try:
        found = is_chance(state)
    except Exception as error:
        name = type(state).__name__
        raise GameContractError(f"{name} raised {type(error).__name__} while reading to_play: {error}") from error
    if found:
        raise waits_for_outcome(what)


def waits_for_outcome(what: str) -> InvalidArgumentError:
    """Returns the error for a search of a chance node."""
    return InvalidArgumentError(
        f"{what} is a chance node (to_play is pondertree.CHANCE), where there is nothing to choose: "
        "play one of its chance_outcomes() first"
    )


def read_outcomes(state: Any) -> Outcomes:
    """Returns the outcomes of a chance node, checked; any violation raises `GameContractError`."""
    name = type(state).__name__
    if not callable(getattr(state, "chance_outcomes", None)):
        raise GameContractError(
            f"{name}.to_play is {CHANCE}, a chance node, but {name} has no method chance_outcomes(); players are "
            "numbered from 0"
        )
    try:
        given = state.chance_outcomes()
    except Exception as error:
        raise GameContractError(f"{name}.chance_outcomes() raised {type(error).__name__}: {error}") from error
    if type(given) is EqualOutcomes:
        return given.checked
    actions, probabilities = _pairs(given, state)
    if not actions:
        _refuse(state, "is empty: a chance node has at least one outcome")
    if len(actions) > LARGEST_OUTCOME:
        _refuse(state, f"has {len(actions)} outcomes: at most {LARGEST_OUTCOME} are possible")
    if not (min(actions) >= 0 and max(actions) <= LARGEST_OUTCOME):
        wrong = next(action for action in actions if not 0 <= action <= LARGEST_OUTCOME)
        _refuse(state, f"has the outcome {shown(wrong)}: outcomes are ints from 0 to {LARGEST_OUTCOME}")
    if len(set(actions)) < len(actions):
        twice = next(action for action in actions if actions.count(action) > 1)
        _refuse(state, f"has the outcome {twice} more than once")
    for action, probability in zip(actions, probabilities, strict=True):
        if not 0.0 < probability < math.inf:  # also True for NaN
            _refuse(
                state, f"gives the outcome {action} the probability {probability}: probabilities are positive numbers"
            )
    total = math.fsum(probabilities)
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        _refuse(state, f"has probabilities that sum to {total!r}: they must sum to 1 within {SUM_TOLERANCE:g}")
    return Outcomes(actions, probabilities)


def _pairs(given: Any, state: Any) -> tuple[list[int], list[float]]:
    if isinstance(given, (str, bytes, Mapping, Set)) or not isinstance(given, Iterable):
        _refuse(state, f"is a {type(given).__name__}: it must be a list of pairs (outcome, probability)")
    actions: list[int] = []
    probabilities: list[float] = []
    for pair in given:
        try:
            outcome, probability = pair
        except (TypeError, ValueError):
            _refuse(state, f"has {shown(pair)}: it must be a list of pairs (outcome, probability)")
        try:
            actions.append(operator.index(outcome))
        except TypeError:
            _refuse(state, f"has the outcome {shown(outcome)}: outcomes are ints from 0 to {LARGEST_OUTCOME}")
        if isinstance(probability, (str, bytes)):
            _refuse(
                state, f"gives the outcome {outcome} the probability {shown(probability)}, a text: it must be a number"
            )
        try:
            probabilities.append(float(probability))
        except (TypeError, ValueError):
            _refuse(state, f"gives the outcome {outcome} the probability {shown(probability)}: it must be a number")
    return actions, probabilities


def _refuse(state: Any, what: str) -> NoReturn:
    raise GameContractError(f"{type(state).__name__}.chance_outcomes() {what} (the state is {shown(state)})")


def draw_outcome(state: Any, random: Random) -> int:
    """Returns an outcome of a chance node, drawn by the probabilities in their order."""
    actions, probabilities = read_outcomes(state)
    return actions[draw(probabilities, random)]


def check_chance_ends(state: Any, in_a_row: int) -> None:
    """Raises `GameContractError` if `state` is the end of too many chance nodes in a row."""
    if in_a_row > MAX_CHANCE_IN_A_ROW:
        raise GameContractError(
            f"{type(state).__name__}: {MAX_CHANCE_IN_A_ROW} chance nodes follow each other without a decision or an "
            f"end; play() of outcomes must lead to one (the state is {shown(state)})"
        )


def check_same_outcomes(state: Any, outcomes: Sequence[int], legal: Sequence[int]) -> None:
    """Raises `GameContractError` unless `legal_actions()` of a chance node lists its outcomes, in any order."""
    if sorted(outcomes) != sorted(legal):
        name = type(state).__name__
        raise GameContractError(
            f"{name}.legal_actions() at a chance node is {shown(list(legal))}, but {name}.chance_outcomes() has the "
            f"outcomes {shown(list(outcomes))}: both list the same ones (the state is {shown(state)})"
        )
