"""Adapters for models of other forms: plain functions, three functions, and the MuZero specification's interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.errors import EvaluationError, PondertreeError
from pondertree.models.arrays import library_of, namespace_of, number_array
from pondertree.models.hidden import Layout, flatten, holds_arrays, unflatten
from pondertree.models.protocol import check_model
from pondertree.models.responses import check_column, check_logits, root_parts, step_parts


class FunctionModel:
    """Two functions, of NumPy or of any other library, as a `Model`.

    `initial(observations [B, ...]) -> (hidden_state [B, ...], policy_logits [B, num_actions], value [B])` and
    `recurrent(hidden_states [B, ...], actions [B]) -> (hidden_state, reward [B], policy_logits, value[, discount])`.
    """

    def __init__(
        self, initial: Callable[[Any], tuple[Any, Any, Any]], recurrent: Callable[[Any, Any], tuple[Any, ...]]
    ) -> None:
        for name, function in (("initial", initial), ("recurrent", recurrent)):
            validation.function(function, name)
        self.initial = initial
        self.recurrent = recurrent

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Calls `initial`."""
        return self.initial(observations)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Calls `recurrent`."""
        return self.recurrent(hidden_states, actions)

    def __repr__(self) -> str:
        names = [getattr(function, "__name__", repr(function)) for function in (self.initial, self.recurrent)]
        return f"FunctionModel({', '.join(names)})"


class ComposedModel:
    """Representation, dynamics and prediction functions (MuZero, appendix B), of any library, as a `Model`.

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
            validation.function(part, name)
        # Private: an object with `prediction` is taken for one with the specification's interface.
        self._representation = representation
        self._dynamics = dynamics
        self._prediction = prediction

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """(hidden_state, policy_logits, value)."""
        hidden = self._representation(observations)
        return (hidden, *_of(self._prediction(hidden), "prediction", 2))

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden_state, reward, policy_logits, value), and discount if the dynamics return one."""
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


class SpecificationModel:
    """A model with the interface of the MuZero specification: `initial_inference(observation) -> (hidden_state, policy,
    value)`, `recurrent_inference(hidden_state, action) -> (hidden_state, reward)` and `prediction(hidden_state) ->
    (policy, value)`, where a policy is logits.

    The specification passes one observation and one action at a time; most such networks take batches as well. The
    first call probes it: the first observation is passed twice, as a batch of two, through all three functions. If the
    outputs are valid for two rows, the model is called with batches from then on; if not, or after an exception, row by
    row, with hidden states unchanged and actions as ints. `batched` skips the probe. A `recurrent_inference` that
    returns policy and value itself, as `Model` does, is valid; `prediction` is not called then.

    Row by row, a policy may have any shape, and a value or reward must be one number. Hidden states may be any objects.
    """

    def __init__(self, model: Any, batched: bool | None = None) -> None:
        check_model(model)
        self.model = model
        self.batched = batched
        """Whether the model is called with batches; None before the first call."""

    def initial_inference(self, observations: Any) -> Any:
        """(hidden_state, policy_logits, value) of a batch."""
        if self.batched is not None:
            return self._initial(observations, self.batched)
        refused = self._try_two(observations)
        if refused is None:
            answer = self._initial(observations, batched=True)
        else:
            try:
                answer = self._initial(observations, batched=False)
            except EvaluationError as error:
                raise EvaluationError(f"{error} (and as a batch of two rows: {refused})") from error
        self.batched = refused is None
        return answer

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden_state, reward, policy_logits, value) of a batch, and discount if the model returns one."""
        if self.batched is False:
            return self._recurrent_rows(hidden_states, actions)
        return self._step(hidden_states, actions)

    def _initial(self, observations: Any, batched: bool) -> Any:
        return self.model.initial_inference(observations) if batched else self._initial_rows(observations)

    def _step(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        """Returns the outputs of a step, of a batch or of one row; calls `prediction` if there are two."""
        answer = self.model.recurrent_inference(hidden, action)
        if isinstance(answer, (tuple, list)) and len(answer) == 2:
            after, reward = answer
            return after, reward, *_of(self.model.prediction(after), "prediction", 2)
        return step_parts(answer)

    def _try_two(self, observations: Any) -> str | None:
        """Probes a batch of two; returns None if its outputs are valid, otherwise the error."""
        try:
            two = namespace_of(observations).stack([observations[0], observations[0]])
            hidden, policy, value = root_parts(self.model.initial_inference(two))
            after, reward, next_policy, *rest = self._step(hidden, _zeros(hidden))
            for policies in (policy, next_policy):
                check_logits(policies, 2, None)
            for numbers in (value, reward, *rest):
                check_column(numbers, 2, "value or reward")
            for states in (hidden, after):
                Layout.of(*flatten(states), rows=2)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return None

    def _initial_rows(self, observations: Any) -> tuple[Any, Any, Any]:
        rows = [
            _row(lambda observation: root_parts(self.model.initial_inference(observation)), row, observation)
            for row, observation in enumerate(observations)
        ]
        hidden, policies, values = zip(*rows, strict=True)
        return _joined(hidden), _policies(policies), _numbers(values, "value")

    def _recurrent_rows(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        leaves, structure = flatten(hidden_states)
        rows = [
            _row(self._step, row, unflatten(structure, iter([leaf[row] for leaf in leaves])), int(action))
            for row, action in enumerate(actions)
        ]
        if len({len(row) for row in rows}) != 1:
            raise EvaluationError("recurrent_inference returned a discount for some rows and none for others")
        hidden, rewards, policies, values, *discounts = zip(*rows, strict=True)
        return (
            _joined(hidden),
            _numbers(rewards, "reward"),
            _policies(policies),
            _numbers(values, "value"),
            *(_numbers(each, "discount") for each in discounts),
        )

    def __repr__(self) -> str:
        return f"SpecificationModel({type(self.model).__name__}, batched={self.batched})"


def _row(function: Callable[..., Any], row: int, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except PondertreeError as error:
        raise type(error)(f"row {row}: {error}") from error
    except Exception as error:
        raise EvaluationError(f"the model raised {type(error).__name__} at row {row}: {error}") from error


def _zeros(hidden: Any) -> Any:
    """Two actions, as an array of the hidden states' library on their device."""
    actions = np.zeros(2, dtype=np.int64)
    leaves = flatten(hidden)[0]
    if not leaves or library_of(leaves[0]) != "torch":
        return actions
    return namespace_of(leaves[0]).asarray(actions, device=leaves[0].device)


def _joined(rows: tuple[Any, ...]) -> Any:
    """Stacks hidden states of single rows; other objects than arrays go into an array of objects."""
    if not holds_arrays(rows[0]):
        objects = np.empty(len(rows), dtype=object)
        objects[:] = rows
        return objects
    flat = [flatten(row) for row in rows]
    if any(structure != flat[0][1] for _, structure in flat):
        raise EvaluationError("hidden_state has not the same structure in all rows")
    try:
        stacked = [
            namespace_of(leaves[0]).stack(leaves) for leaves in zip(*(leaves for leaves, _ in flat), strict=True)
        ]
    except Exception as error:
        raise EvaluationError(f"hidden_state has not the same shape in all rows: {error}") from error
    return unflatten(flat[0][1], iter(stacked))


def _policies(rows: tuple[Any, ...]) -> Any:
    flat = [number_array(row, f"policy_logits of row {place}").reshape(-1) for place, row in enumerate(rows)]
    lengths = {len(row) for row in flat}
    if len(lengths) != 1:
        raise EvaluationError(f"policy_logits has rows of different lengths: {sorted(lengths)}")
    return np.stack(flat)


def _numbers(rows: tuple[Any, ...], name: str) -> Any:
    read = [number_array(row, f"{name} of row {place}") for place, row in enumerate(rows)]
    for place, number in enumerate(read):
        if number.size != 1:
            raise EvaluationError(f"{name} of row {place} has shape {number.shape}: it must be one number")
    return np.array([number.reshape(()) for number in read], dtype=np.float64)
