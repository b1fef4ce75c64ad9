"""One-player games with rewards of any scale, and what a tree looks like without its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LEVELS = 64
"""Rewards are multiples of 1 / LEVELS, so that sums and the constants added to them are exact."""


@dataclass(frozen=True)
class Rescaled:
    """A game with rewards multiplied by `scale`, every end of which pays `constant` to each player in addition."""

    inside: Any
    scale: float = 1.0
    constant: float = 0.0
    exact: bool = True
    """Whether rewards are rounded to multiples of 1 / LEVELS before they are scaled."""

    @property
    def to_play(self) -> int:
        return int(self.inside.to_play)

    @property
    def is_terminal(self) -> bool:
        return bool(self.inside.is_terminal)

    @property
    def num_actions(self) -> int:
        return int(self.inside.num_actions)

    @property
    def num_players(self) -> int:
        return int(self.inside.num_players)

    def legal_actions(self) -> list[int]:
        return list(self.inside.legal_actions())

    def play(self, action: int) -> Rescaled:
        return type(self)(self.inside.play(action), self.scale, self.constant, self.exact)

    def rewards(self) -> list[float]:
        rewards = [round(r * LEVELS) / LEVELS if self.exact else r for r in self.inside.rewards()]
        return [self.scale * (reward + self.constant * self.is_terminal) for reward in rewards]

    def returns(self) -> list[float]:
        return [0.0] * self.num_players

    def observation(self) -> Any:
        return self.inside.observation()


class RescaledWithChance(Rescaled):
    """The same of a game with chance."""

    def chance_outcomes(self) -> list[tuple[int, float]]:
        outcomes: list[tuple[int, float]] = self.inside.chance_outcomes()
        return outcomes


def rescaled(state: Any, scale: float = 1.0, constant: float = 0.0, exact: bool = True) -> Rescaled:
    """Returns a state on another scale."""
    kind = RescaledWithChance if hasattr(state, "chance_outcomes") else Rescaled
    return kind(state, scale, constant, exact)


@dataclass(frozen=True)
class ScaledTable:
    """An evaluator whose values are on the scale of a `Rescaled` game."""

    inside: Any
    scale: float = 1.0
    constant: float = 0.0
    exact: bool = True

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        policy, values = self.inside.evaluate_states(states)
        values = np.round(np.asarray(values) * LEVELS) / LEVELS if self.exact else np.asarray(values)
        return policy, self.scale * (values + self.constant)


def visits_of_tree(result: Any) -> list[Any]:
    """Returns the actions, visits and children of every node."""
    view = result._view
    columns = [view.edges(index) for index in range(view.num_nodes)]
    return [(actions.tolist(), visits.tolist(), children.tolist()) for actions, visits, _, _, children, *_ in columns]


@dataclass(frozen=True)
class Treasure:
    """A road of `length` steps to a treasure of 20; who leaves it at once gets 4, and later nothing."""

    length: int = 3
    scale: float = 1.0
    steps: int = 0
    left: bool = False
    num_players = 1
    num_actions = 2
    to_play = 0

    @property
    def is_terminal(self) -> bool:
        return self.left or self.steps == self.length

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Treasure:
        return Treasure(self.length, self.scale, self.steps + action, action == 0)

    def rewards(self) -> list[float]:
        if self.left:
            return [4.0 * self.scale if self.steps == 0 else 0.0]
        return [20.0 * self.scale if self.steps == self.length else 0.0]

    def returns(self) -> list[float]:
        return [0.0]
