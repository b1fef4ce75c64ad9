"""A model being asked: what it raises is named, and what it answers is checked before anything is made of it."""

from __future__ import annotations

import sys
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError, InvalidArgumentError, PondertreeError
from pondertree.models.hidden import LEAF, Layout, flatten, unflatten
from pondertree.models.responses import RootAnswer, StepAnswer, check_root, check_step


class Inference:
    """Asks a model in our form. It remembers how many actions there are and what hidden states look like, and refuses
    an answer that differs; after a refusal it is as it was before.
    """

    __slots__ = ("first", "layout", "model", "num_actions")

    def __init__(self, model: Any, num_actions: int | None = None) -> None:
        check_model(model)
        self.model = model
        self.num_actions = num_actions
        """None until the first answer, if not given."""
        self.layout: Layout | None = None
        """What hidden states look like; None until the first answer."""
        self.first: Layout | None = None
        """What they looked like when the model saw its first observations."""

    def initial(self, observations: Any) -> RootAnswer:
        """Hidden states, logits and values of observations [B, ...], handed to the model as they are."""
        rows = len(observations)
        try:
            said = self.model.initial_inference(observations)
        except PondertreeError:
            raise
        except Exception as error:
            raise EvaluationError(f"the model raised {type(error).__name__} in initial_inference: {error}") from error
        answer = check_root(said, rows, self.num_actions)
        hidden = self._admit(answer.hidden, rows)
        if self.first is None:
            self.first = self.layout
        self.num_actions = answer.logits.shape[1]
        return answer if hidden is answer.hidden else RootAnswer(hidden, answer.logits, answer.values)

    def recurrent(self, hidden: Any, actions: NDArray[np.int64]) -> StepAnswer:
        """The step from hidden states [B, ...] by actions [B].

        The model gets the actions as int64, in the library of its hidden states and on their device: PyTorch does not
        mix its tensors with arrays of NumPy.
        """
        return self.check(self.ask(hidden, np.ascontiguousarray(actions, dtype=np.int64)), len(actions))

    def ask(self, hidden: Any, actions: NDArray[np.int64]) -> Any:
        """The first half of `recurrent`: what the model says, as it says it."""
        try:
            return self.model.recurrent_inference(hidden, self._send(actions))
        except PondertreeError:
            raise
        except Exception as error:
            raise self.step_failed(error, self.layout) from error

    def step_failed(self, error: BaseException, now: Layout | None) -> EvaluationError:
        """What the model raised in a step from hidden states that `now` look like this.

        They may have grown on the way, and that is then the likeliest reason: the model gets what it gave.
        """
        told = f"the model raised {type(error).__name__} in recurrent_inference: {error}"
        first = () if self.first is None else self.first.leaves
        for before, after in zip(first, () if now is None else now.leaves, strict=False):
            if before != after:
                told += f" (hidden_state has changed its shape or type: expected {before}, given {after})"
                break
        return EvaluationError(told)

    def check(self, said: Any, rows: int) -> StepAnswer:
        """The second half: the answer to `rows` rows, once it has been found right."""
        answer = check_step(said, rows, self.num_actions)
        kept = self._admit(answer.hidden, rows)
        self.num_actions = answer.logits.shape[1]
        if kept is answer.hidden:
            return answer
        return StepAnswer(kept, answer.rewards, answer.logits, answer.values, answer.discounts)

    def _admit(self, hidden: Any, rows: int) -> Any:
        """The hidden states with lists made arrays; their layout is now known, or was the one expected."""
        arrays, structure = flatten(hidden)
        layout = self.layout
        self.layout = Layout.of(arrays, structure, rows) if layout is None else layout.admit(arrays, structure, rows)
        return arrays[0] if structure is LEAF else unflatten(structure, iter(arrays))

    def _send(self, actions: NDArray[np.int64]) -> Any:
        leaves = () if self.layout is None else self.layout.leaves
        # The adapters send actions themselves, in whichever way is fastest for them.
        if not leaves or leaves[0].library != "torch" or getattr(self.model, "sends_actions", False):
            return actions
        return sys.modules["torch"].from_numpy(actions).to(leaves[0].device)


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
