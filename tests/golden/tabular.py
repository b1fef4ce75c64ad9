"""The models of the golden trees: float32 tables generated from a seed, identical on every platform.

A hidden state is a row index. NumPy guarantees the raw bits of `numpy.random.PCG64`, but not its distributions, so none
is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NEVER = np.float32(-1e9)


@dataclass(frozen=True)
class Tabular:
    """A batched learned model. The fields are stored in the files of trees."""

    seed: int
    states: int
    actions: int
    reward_scale: float = 0.0
    value_scale: float = 1.0
    logit_scale: float = 2.0
    levels: int = 0
    """If not 0, the number of distinct logits, which makes ties."""
    ruled_out: float = 0.0
    """The share of actions, other than the first, with logit -1e9."""
    discounts: tuple[float, ...] | None = None
    """The values that discounts are drawn from; None for a model without discounts."""

    def __post_init__(self) -> None:
        bits = np.random.PCG64(self.seed)

        def unit(*shape: int) -> Any:
            """Returns numbers in [0, 1), multiples of 2^-24, exact in float32."""
            raw = bits.random_raw(int(np.prod(shape))) >> np.uint64(40)
            return raw.astype(np.float32).reshape(shape) * np.float32(2.0**-24)

        def spread(scale: float, *shape: int) -> Any:
            return (unit(*shape) * np.float32(2.0) - np.float32(1.0)) * np.float32(scale)

        shape = (self.states, self.actions)
        following = (unit(*shape) * np.float32(self.states)).astype(np.int32)
        reward = spread(self.reward_scale, *shape)
        value = spread(self.value_scale, self.states)
        logits = spread(self.logit_scale, *shape)
        if self.levels:
            logits = np.round(logits / np.float32(self.logit_scale) * np.float32(self.levels // 2))
        out = unit(*shape) < np.float32(self.ruled_out)
        out[:, 0] = False
        logits = np.where(out, NEVER, logits).astype(np.float32)
        kinds = np.array(self.discounts or (0.0,), dtype=np.float32)
        discount = kinds[(unit(*shape) * np.float32(len(kinds))).astype(np.int32)]
        for name, table in (
            ("following", following),
            ("reward", reward),
            ("value", value),
            ("logits", logits),
            ("discount", discount),
        ):
            object.__setattr__(self, name, table)

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Returns the output for a row index as observation."""
        rows = np.asarray(observations).reshape(-1).astype(np.int32)
        return rows, self.logits[rows], self.value[rows]  # type: ignore[attr-defined]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Returns (hidden_state, reward, policy_logits, value), and the discount if the model has one."""
        at = (np.asarray(hidden_states), np.asarray(actions))
        rows = self.following[at]  # type: ignore[attr-defined]
        answer = (rows, self.reward[at], self.logits[rows], self.value[rows])  # type: ignore[attr-defined]
        return answer if self.discounts is None else (*answer, self.discount[at])  # type: ignore[attr-defined]
