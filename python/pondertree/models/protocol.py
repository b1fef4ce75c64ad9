"""What a learned model has to offer, and how it is recognised."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pondertree.errors import InvalidArgumentError


@runtime_checkable
class Model(Protocol):
    """A learned model, asked in batches. Arrays may be of NumPy, PyTorch or JAX; logits are not yet a softmax.

    Hidden states belong to the model: an array [B, ...] of any library on any device, or nested tuples and dicts of
    such arrays. The search keeps them where they are and hands them back row by row, in other batches.
    """

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """(hidden_state [B, ...], policy_logits [B, num_actions], value [B]) of observations [B, ...].

        A value is for the player to move.
        """
        ...

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden_state [B, ...], reward [B], policy_logits [B, num_actions], value [B]) after actions [B].

        A reward is for the player who chose the action, a value for the player to move after it. A fifth array,
        discount [B], may follow, from -1 to 1: 0 ends an episode, a negative sign changes the player. Without it the
        discount of the search holds, and two players alternate.
        """
        ...


METHODS = ("initial_inference", "recurrent_inference")


def check_model(model: Any) -> None:
    """Refuses what has none of the forms: ours (`Model`), or that of the seed, which has `prediction` beside it."""
    if isinstance(model, type):
        raise InvalidArgumentError(f"model is the class {model.__name__}: make an object of it")
    missing = [name for name in METHODS if not callable(getattr(model, name, None))]
    if missing:
        raise InvalidArgumentError(
            f"model is a {type(model).__name__} without {' and '.join(missing)}: it must have "
            "initial_inference(observations) and recurrent_inference(hidden_states, actions); see pondertree.models"
        )


def is_seed_form(model: Any) -> bool:
    """It has a `prediction` of its own, so `recurrent_inference` may leave policy and value to that."""
    return callable(getattr(model, "prediction", None))
