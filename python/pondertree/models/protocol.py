"""The protocol of learned models."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pondertree.errors import InvalidArgumentError


@runtime_checkable
class Model(Protocol):
    """A learned model for batches. Arrays may be of NumPy, PyTorch or JAX; policies are logits before softmax.

    Hidden states are opaque to the search: an array [B, ...] of any library on any device, or nested tuples and dicts
    of such arrays. The search stores them on their device and passes their rows back in other batches.
    """

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """(hidden_state [B, ...], policy_logits [B, num_actions], value [B]) of observations [B, ...].

        A value is for the player to move.
        """
        ...

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden_state [B, ...], reward [B], policy_logits [B, num_actions], value [B]) after actions [B].

        Rewards are for the player who chose the action, values for the player to move after it. An optional fifth
        array, discount [B] in [-1, 1], ends an episode by 0 and changes the player by a negative sign. Without it, the
        search's discount applies and two players alternate.
        """
        ...


METHODS = ("initial_inference", "recurrent_inference")


def check_model(model: Any) -> None:
    """Raises `InvalidArgumentError` for an object without the methods of `Model`."""
    if isinstance(model, type):
        raise InvalidArgumentError(f"model is the class {model.__name__}: make an object of it")
    missing = [name for name in METHODS if not callable(getattr(model, name, None))]
    if missing:
        raise InvalidArgumentError(
            f"model is a {type(model).__name__} without {' and '.join(missing)}: it must have "
            "initial_inference(observations) and recurrent_inference(hidden_states, actions); see pondertree.models"
        )


def is_specification_form(model: Any) -> bool:
    """Whether a model has the MuZero specification's `prediction`, which gives policy and value after a step."""
    return callable(getattr(model, "prediction", None))
