"""Calls of a learned model, with exceptions attributed to it and all outputs validated."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError, PondertreeError
from pondertree.evaluators.awaiting import awaited
from pondertree.models.hidden import LEAF, Layout, flatten, unflatten
from pondertree.models.protocol import check_model
from pondertree.models.responses import InitialOutput, RecurrentOutput, check_root, check_step


class Inference:
    """Calls a `Model` and validates its outputs against the number of actions and the layout of its first outputs.

    An invalid output leaves the state unchanged.
    """

    __slots__ = ("first", "layout", "model", "num_actions")

    def __init__(self, model: Any, num_actions: int | None = None) -> None:
        check_model(model)
        self.model = model
        self.num_actions = num_actions
        """None before the first output, if not given."""
        self.layout: Layout | None = None
        """Layout of hidden states; None before the first."""
        self.first: Layout | None = None
        """Layout of the first hidden states."""

    def initial(self, observations: Any) -> InitialOutput:
        """Returns hidden states, logits and values of observations [B, ...], which the model gets unchanged."""
        rows = len(observations)
        try:
            output = awaited(self.model.initial_inference, observations)
        except PondertreeError:
            raise
        except Exception as error:
            raise EvaluationError(f"the model raised {type(error).__name__} in initial_inference: {error}") from error
        answer = check_root(output, rows, self.num_actions)
        hidden = self._admit(answer.hidden, rows)
        if self.first is None:
            self.first = self.layout
        self.num_actions = answer.logits.shape[1]
        return answer if hidden is answer.hidden else replace(answer, hidden=hidden)

    def restore(self, hidden: Any, rows: int, num_actions: int) -> None:
        """Continues after outputs with such hidden states and this number of actions."""
        self._admit(hidden, rows)
        self.first, self.num_actions = self.layout, num_actions

    def recurrent(self, hidden: Any, actions: NDArray[np.int64]) -> RecurrentOutput:
        """Returns the step from hidden states [B, ...] by actions [B].

        Actions are int64, in the library of the hidden states on their device: PyTorch does not mix tensors with NumPy
        arrays.
        """
        return self.check(self.call_recurrent(hidden, np.ascontiguousarray(actions, dtype=np.int64)), len(actions))

    def call_recurrent(self, hidden: Any, actions: NDArray[np.int64]) -> Any:
        """Calls the model; returns its unchecked output, which `check` validates."""
        try:
            return awaited(self.model.recurrent_inference, hidden, self._send(actions))
        except PondertreeError:
            raise
        except Exception as error:
            raise self.step_failed(error, self.layout) from error

    def step_failed(self, error: BaseException, now: Layout | None) -> EvaluationError:
        """The error for what the model raised in a step from hidden states of the layout `now`.

        If their layout has changed since the first, that is the most likely reason, so it is reported.
        """
        message = f"the model raised {type(error).__name__} in recurrent_inference: {error}"
        first = () if self.first is None else self.first.leaves
        for before, after in zip(first, () if now is None else now.leaves, strict=False):
            if before != after:
                message += f" (hidden_state has changed its shape or type: expected {before}, given {after})"
                break
        return EvaluationError(message)

    def check(self, output: Any, rows: int) -> RecurrentOutput:
        """Validates the output of `call_recurrent` for `rows` rows."""
        answer = check_step(output, rows, self.num_actions)
        hidden = self._admit(answer.hidden, rows)
        self.num_actions = answer.logits.shape[1]
        return answer if hidden is answer.hidden else replace(answer, hidden=hidden)

    def _admit(self, hidden: Any, rows: int) -> Any:
        """Validates the layout of hidden states; returns them with lists converted to arrays."""
        arrays, structure = flatten(hidden)
        layout = self.layout
        self.layout = Layout.of(arrays, structure, rows) if layout is None else layout.admit(arrays, structure, rows)
        return arrays[0] if structure is LEAF else unflatten(structure, iter(arrays))

    def _send(self, actions: NDArray[np.int64]) -> Any:
        leaves = () if self.layout is None else self.layout.leaves
        # Adapters move actions to the device themselves.
        if not leaves or leaves[0].library != "torch" or getattr(self.model, "sends_actions", False):
            return actions
        return sys.modules["torch"].from_numpy(actions).to(leaves[0].device)
