"""The model that all sides of `muzero.py` search: values over [-1, 1], peaked policies, unbalanced trees.

NumPy only, since it also runs in the environments of peers. `peer_mctx.py` implements `Sines` in JAX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: float32 numbers per hidden state.
HIDDEN = 64


def prepared(batch: int, actions: int, sims: int) -> tuple[Any, Any]:
    """Returns precomputed model outputs per simulation: values [S, B] and logits [S, B, A]."""
    draw = np.random.default_rng(1)
    values = draw.uniform(-1, 1, (sims, batch))
    angles = draw.uniform(0, 2 * np.pi, (sims, batch, 1))
    return values.astype(np.float32), (2 * np.sin(1.3 * angles * np.arange(1, actions + 1))).astype(np.float32)


class Sines:
    """A model whose hidden state is an angle, rotated by every action, and padding.

    Written for few NumPy calls, whose overhead exceeds the arithmetic on 64 rows.
    """

    def __init__(self, batch: int, actions: int) -> None:
        self.actions = actions
        self._turns = (0.37 * np.arange(actions) + 0.11).astype(np.float32)
        # Logits, then the value.
        self._factors = np.append(1.3 * np.arange(1, actions + 1), 7.0).astype(np.float32)
        self._round, self._twice = np.float32(2 * np.pi), np.float32(2)
        self._root_logits, self._nothing = np.zeros((batch, actions), np.float32), np.zeros(batch, np.float32)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        """Returns the observation as hidden state, with zero logits and values."""
        rows = len(observations)
        return observations, self._root_logits[:rows], self._nothing[:rows]

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        """Returns sines of the angle as logits and value; rewards are 0."""
        angle = hidden[:, 0]  # in place: the pool returns copies
        angle *= 1.7
        angle += self._turns.take(actions)
        angle %= self._round
        sines = np.multiply.outer(angle, self._factors)
        np.sin(sines, sines)
        return hidden, self._nothing[: len(actions)], self._twice * sines[:, :-1], sines[:, -1]


class RecordedModel:
    """A model with precomputed outputs that copies hidden states: the minimal cost of a network."""

    def __init__(self, batch: int, actions: int, sims: int) -> None:
        self._values, self._logits = prepared(batch, actions, sims)
        self._rewards = np.zeros(batch, np.float32)
        self._root = np.zeros((batch, actions), np.float32)
        self._next = 0

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        """Restarts the precomputed outputs."""
        self._next = 0
        return observations, self._root, self._rewards

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        """Returns the next precomputed outputs."""
        number = self._next
        self._next += 1
        return hidden + 0, self._rewards, self._logits[number], self._values[number]
