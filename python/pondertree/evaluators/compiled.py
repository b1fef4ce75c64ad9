"""Evaluators that run inside the engine, without Python. On games written in Python they do the same work in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree.reference.playout import simulate_leaves
from pondertree.reference.random import fold


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every move is as good as any other, every position worth 0."""

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Zeros."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        return logits, np.zeros((len(states), states[0].num_players if states else 0))


@dataclass(frozen=True, slots=True)
class Rollout:
    """Every move is as good as any other; a position is worth what a random playout says."""

    seed: int = 0

    def evaluate_states(self, states: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """One playout each: values per player."""
        logits = np.zeros((len(states), states[0].num_actions if states else 0), dtype=np.float32)
        leaves = [(state, 0, fold(fold(0, self.seed), row)) for row, state in enumerate(states)]
        return logits, np.array(simulate_leaves(leaves))
