"""Plain functions as a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pondertree.check import shown
from pondertree.errors import InvalidArgumentError


class FunctionModel:
    """Two functions, of NumPy or of anything else, in the form of `Model`.

    `initial(observations [B, ...]) -> (hidden_state [B, ...], policy_logits [B, num_actions], value [B])` and
    `recurrent(hidden_states [B, ...], actions [B]) -> (hidden_state, reward [B], policy_logits, value[, discount])`.
    """

    def __init__(
        self, initial: Callable[[Any], tuple[Any, Any, Any]], recurrent: Callable[[Any, Any], tuple[Any, ...]]
    ) -> None:
        for name, function in (("initial", initial), ("recurrent", recurrent)):
            if not callable(function):
                raise InvalidArgumentError(f"{name} must be a function, not {shown(function)}")
        self.initial = initial
        self.recurrent = recurrent

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """What `initial` says."""
        return self.initial(observations)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """What `recurrent` says."""
        return self.recurrent(hidden_states, actions)

    def __repr__(self) -> str:
        names = [getattr(function, "__name__", repr(function)) for function in (self.initial, self.recurrent)]
        return f"FunctionModel({', '.join(names)})"
