"""Small games with chance, in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pondertree


@dataclass(frozen=True)
class Race:
    """Two players in turn move one step, or roll a die of three sides: a 1 is no step. Who is at `goal` first wins."""

    places: tuple[int, int] = (0, 0)
    turn: int = 0
    rolling: bool = False
    goal: int = 6
    num_players, num_actions, zero_sum = 2, 2, True

    @property
    def to_play(self) -> int:
        return pondertree.CHANCE if self.rolling else self.turn

    @property
    def is_terminal(self) -> bool:
        return max(self.places) >= self.goal

    def legal_actions(self) -> list[int]:
        if self.is_terminal:
            return []
        return [outcome for outcome, _ in self.chance_outcomes()] if self.rolling else [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(1, 0.5), (2, 0.25), (7, 0.25)]

    def play(self, action: int) -> Race:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} in {self}")
        if not self.rolling and action == 1:
            return replace(self, rolling=True)
        steps = {0: 1, 1: 0, 2: 2, 7: 3}[action]
        places = list(self.places)
        places[self.turn] += steps
        return replace(self, places=(places[0], places[1]), turn=1 - self.turn, rolling=False)

    def returns(self) -> list[float]:
        won = 1.0 if self.places[0] >= self.goal else -1.0
        return [won, -won] if self.is_terminal else [0.0, 0.0]

    def observation(self) -> Any:
        assert not self.rolling, "evaluators never see a chance node"
        return np.array([*self.places, self.turn], dtype=np.float32)

    def action_to_string(self, action: int) -> str:
        return {1: "rolled 1", 2: "rolled 2", 7: "rolled 3"}[action] if self.rolling else ("step", "roll")[action]


class Certain(Race):
    """A race whose dice are loaded: the outcomes are proven to be equal."""

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(2, 0.5), (7, 0.5)]


@dataclass(frozen=True)
class Wide:
    """Bets on a wheel with many numbers: the action is to spin (1) or not (0)."""

    outcomes: int = 1000
    spinning: bool = False
    result: float | None = None
    num_players, num_actions = 1, 2

    @property
    def to_play(self) -> int:
        return pondertree.CHANCE if self.spinning else 0

    @property
    def is_terminal(self) -> bool:
        return self.result is not None

    def legal_actions(self) -> list[int]:
        if self.is_terminal:
            return []
        return list(range(self.outcomes)) if self.spinning else [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(outcome, 1.0 / self.outcomes) for outcome in range(self.outcomes)]

    def play(self, action: int) -> Wide:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} in {self}")
        if self.spinning:
            return Wide(self.outcomes, False, 1.0 if 2 * action < self.outcomes else 0.0)
        return Wide(self.outcomes, action == 1, None if action == 1 else 0.25)

    def returns(self) -> list[float]:
        return [self.result or 0.0]


class HalfOutcomes(Race):
    """A race whose outcomes have probabilities that sum to 1/2."""

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(outcome, probability / 2) for outcome, probability in super().chance_outcomes()]


def with_outcomes(answer: Callable[[], Any]) -> Any:
    """A race whose chance nodes after the first plies have other `chance_outcomes()`."""

    class Broken(Race):
        def chance_outcomes(self) -> list[tuple[int, float]]:
            if self.places != (0, 0):
                found: list[tuple[int, float]] = answer()
                return found
            return super().chance_outcomes()

        def legal_actions(self) -> list[int]:
            return [] if self.is_terminal else [1, 2, 7] if self.rolling else [0, 1]

    return Broken()


@dataclass(frozen=True)
class Reroll:
    """A die of three sides, thrown again after a 0, the most probable and lowest outcome; or 0.25 without a throw.

    With `ends=False` every outcome is a throw again, so that chance goes on for ever.
    """

    throwing: bool = False
    result: float | None = None
    throws: int = 0
    ends: bool = True
    num_players, num_actions = 1, 2

    @property
    def to_play(self) -> int:
        return pondertree.CHANCE if self.throwing else 0

    @property
    def is_terminal(self) -> bool:
        return self.result is not None

    def legal_actions(self) -> list[int]:
        if self.is_terminal:
            return []
        return [0, 1, 2] if self.throwing else [0, 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.5), (1, 0.25), (2, 0.25)]

    def play(self, action: int) -> Reroll:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} in {self}")
        if not self.throwing and action == 0:
            return replace(self, result=0.25)
        again = not self.throwing or action == 0 or not self.ends
        return replace(self, throwing=True, throws=self.throws + 1, result=None if again else action - 1.0)

    def returns(self) -> list[float]:
        return [self.result or 0.0]

    def observation(self) -> Any:
        assert not self.throwing, "evaluators never see a chance node"
        return np.array([float(self.throws)], dtype=np.float32)
