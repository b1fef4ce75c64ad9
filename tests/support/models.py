"""Learned models for tests, whose outputs are functions of an integer hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TableModel:
    """With few `levels`, many numbers are equal, so that tie-breaking is tested."""

    num_actions: int = 5
    levels: int = 1001
    seed: int = 0
    largest_reward: float = 0.0
    discounts: tuple[float, ...] = ()
    """Values of discounts; if empty, the model returns none."""
    ruled_out: float = 0.0
    """The share of actions with logit -inf; the first action never has it."""

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        """The first number of an observation is the hidden state."""
        hidden = np.asarray(observations).reshape(len(observations), -1)[:, :1].astype(np.int64)
        _, logits, values, _ = self.rows(hidden)
        return hidden, logits, values

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Returns a hash of parent and action."""
        hidden = (np.asarray(hidden_states) * 31 + np.asarray(actions).reshape(-1, 1) + 7) % 1_000_003
        rewards, logits, values, discounts = self.rows(hidden)
        return (hidden, rewards, logits, values, discounts) if self.discounts else (hidden, rewards, logits, values)

    def rows(self, hidden: Any) -> tuple[Any, ...]:
        """(rewards, logits, values, discounts)."""
        rows = [self.row(int(key)) for key in hidden[:, 0]]
        return tuple(np.array(column) for column in zip(*rows, strict=True))

    def row(self, key: int) -> tuple[float, Any, float, float]:
        """The outputs for one hidden state."""
        numbers = np.random.default_rng([self.seed, key])
        logits = (4.0 * self.level(numbers, self.num_actions) - 2.0).astype(np.float32)
        logits[1:][numbers.random(self.num_actions - 1) < self.ruled_out] = -np.inf
        value, reward = 2.0 * self.level(numbers, 2) - 1.0
        discount = float(numbers.choice(self.discounts or (1.0,)))
        return reward * self.largest_reward, logits, value, discount

    def level(self, numbers: np.random.Generator, count: int) -> Any:
        return numbers.integers(self.levels, size=count) / (self.levels - 1)
