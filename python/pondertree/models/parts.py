"""A model made of the paper's three functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pondertree.check import shown
from pondertree.errors import EvaluationError, InvalidArgumentError


class Parts:
    """Representation, dynamics and prediction (MuZero, appendix B), of any library, put together into a `Model`.

    `representation(observations) -> hidden_state`, `dynamics(hidden_states, actions) -> (hidden_state, reward)` (or
    three, with `discount`) and `prediction(hidden_state) -> (policy_logits, value)`, all for whole batches.
    """

    def __init__(
        self,
        representation: Callable[[Any], Any],
        dynamics: Callable[[Any, Any], tuple[Any, ...]],
        prediction: Callable[[Any], tuple[Any, Any]],
    ) -> None:
        for name, part in (("representation", representation), ("dynamics", dynamics), ("prediction", prediction)):
            if not callable(part):
                raise InvalidArgumentError(f"{name} must be a function, not {shown(part)}")
        # Not by their own names: an object with `prediction` is taken for one in the seed's form.
        self._representation = representation
        self._dynamics = dynamics
        self._prediction = prediction

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """(hidden_state, policy_logits, value)."""
        hidden = self._representation(observations)
        return (hidden, *_of(self._prediction(hidden), "prediction", 2))

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden_state, reward, policy_logits, value), and discount if the dynamics give one."""
        hidden, reward, *discount = _of(self._dynamics(hidden_states, actions), "dynamics", 2, 3)
        return (hidden, reward, *_of(self._prediction(hidden), "prediction", 2), *discount)


def _of(answer: Any, name: str, *sizes: int) -> Any:
    if not isinstance(answer, (tuple, list)) or len(answer) not in sizes:
        given = (
            f"{type(answer).__name__} of {len(answer)}" if isinstance(answer, (tuple, list)) else type(answer).__name__
        )
        wanted = "(policy_logits, value)" if name == "prediction" else "(hidden_state, reward[, discount])"
        raise EvaluationError(f"{name} returned a {given}: it must return {wanted}")
    return answer
