"""Validation of model outputs: valid forms are equivalent, and errors name output and row."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.models import FunctionModel, Inference, Model, check_model
from pondertree.models.responses import check_root, check_step

ROWS, ACTIONS = 4, 3

HIDDEN = np.arange(8, dtype=np.float32).reshape(ROWS, 2)
REWARD = np.array([0.5, -1.0, 0.0, 2.0], dtype=np.float32)
LOGITS = np.arange(12, dtype=np.float32).reshape(ROWS, ACTIONS)
VALUE = np.array([1.0, 0.25, -0.5, 0.0], dtype=np.float32)
DISCOUNT = np.array([1.0, -1.0, 0.0, 0.997], dtype=np.float32)


def answer(**changed: Any) -> tuple[Any, ...]:
    """Valid outputs of `recurrent_inference`, except for the arguments."""
    parts = {"hidden": HIDDEN, "reward": REWARD, "logits": LOGITS, "value": VALUE, **changed}
    return tuple(parts.values())


def with_row(array: np.ndarray, where: Any, number: float) -> np.ndarray:
    changed = array.astype(np.float64)
    changed[where] = number
    return changed


def numbers(seen: Any) -> tuple[list[float], list[list[float]], list[float]]:
    return seen.rewards.tolist(), seen.logits.tolist(), seen.values.tolist()


FORMS = {
    "float32": lambda array: array,
    "float64": lambda array: array.astype(np.float64),
    "lists": lambda array: array.tolist(),
    "objects": lambda array: array.astype(object),
    "column": lambda array: array[:, None] if array.ndim == 1 else array,
    "every second": lambda array: np.repeat(array, 2, axis=0)[::2],
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_outputs_of_every_form_are_equal(form: Any) -> None:
    seen = check_step((HIDDEN, *map(form, (REWARD, LOGITS, VALUE, DISCOUNT))), ROWS, ACTIONS)
    assert numbers(seen) == (REWARD.tolist(), LOGITS.tolist(), VALUE.tolist())
    assert seen.hidden is HIDDEN
    assert seen.discounts is not None
    assert seen.discounts.tolist() == DISCOUNT.tolist()
    assert (seen.rewards.dtype, seen.logits.dtype, seen.values.dtype) == (np.float64, np.float32, np.float64)
    assert all(array.flags.c_contiguous for array in (seen.rewards, seen.logits, seen.values, seen.discounts))
    root = check_root((HIDDEN, form(LOGITS), form(VALUE)), ROWS)
    assert (root.logits.tolist(), root.values.tolist()) == (LOGITS.tolist(), VALUE.tolist())


def test_discount_is_optional() -> None:
    assert check_step(answer(), ROWS).discounts is None
    assert check_step(answer(discount=None), ROWS).discounts is None
    assert check_step(list(answer()), ROWS).discounts is None


def test_named_tuples_are_read_by_name() -> None:
    """The paper's pseudocode returns another order."""
    output = collections.namedtuple("output", "value, reward, policy_logits, hidden_state")
    seen = check_step(output(VALUE, REWARD, LOGITS, HIDDEN), ROWS, ACTIONS)
    assert numbers(seen) == numbers(check_step(answer(), ROWS, ACTIONS))
    root = check_root(output(VALUE, REWARD, LOGITS, HIDDEN), ROWS, ACTIONS)
    assert root.hidden is HIDDEN
    assert root.values.tolist() == VALUE.tolist()
    longer = collections.namedtuple("longer", "discount, value, reward, policy_logits, hidden_state")
    assert check_step(longer(DISCOUNT, VALUE, REWARD, LOGITS, HIDDEN), ROWS).discounts is not None


WRONG = {
    "nan reward": (answer(reward=with_row(REWARD, 3, np.nan)), "reward of row 3 is nan"),
    "inf reward": (answer(reward=with_row(REWARD, 1, np.inf)), "reward of row 1 is inf"),
    "both infinities": (answer(reward=np.array([0, np.inf, -np.inf, 0])), "reward of row 1 is inf"),
    "nan value": (answer(value=with_row(VALUE, 2, np.nan)), "value of row 2 is nan"),
    "-inf value": (answer(value=with_row(VALUE, 0, -np.inf)), "value of row 0 is -inf"),
    "nan logit": (answer(logits=with_row(LOGITS, (1, 2), np.nan)), "policy_logits of row 1, action 2 is nan"),
    "inf logit": (answer(logits=with_row(LOGITS, (3, 0), np.inf)), "policy_logits of row 3, action 0 is inf"),
    "a huge logit": (answer(logits=with_row(LOGITS, (3, 0), 1e39)), "row 3, action 0 is 1e\\+39: as float32"),
    "a huge reward": (
        answer(reward=np.array([0, 1e300, -1e308, 0])),
        "reward of row 1 is 1e\\+300: .* at most 1e\\+12",
    ),
    "a large value": (answer(value=with_row(VALUE, 2, -1.1e12)), "value of row 2 is -1100000000000.0: .* at most"),
    "a reward per batch": (answer(reward=0.5), "reward is one number for the whole batch.*each row.*\\(4,\\)"),
    "an array of one": (answer(reward=np.zeros(1)), "reward is one number for the whole batch"),
    "a value per batch": (answer(value=np.float32(0)), "value is one number for the whole batch"),
    "too few rewards": (answer(reward=REWARD[:3]), "reward has shape \\(3,\\): it must be \\(4,\\)"),
    "a row of rewards": (answer(reward=REWARD[None]), "reward has shape \\(1, 4\\)"),
    "three values": (answer(value=np.zeros((ROWS, 3))), "value has shape \\(4, 3\\)"),
    "too few actions": (answer(logits=LOGITS[:, :2]), "policy_logits has shape \\(4, 2\\): it must be \\(4, 3\\)"),
    "too few rows": (answer(logits=LOGITS[:2]), "policy_logits has shape \\(2, 3\\)"),
    "flat logits": (answer(logits=LOGITS[0]), "policy_logits has shape \\(3,\\)"),
    "text": (answer(reward=["a", "b", "c", "d"]), "reward cannot be read as numbers"),
    "ragged": (answer(value=[[1.0], [1.0, 2.0]]), "value cannot be read as numbers"),
    "complex": (answer(value=VALUE.astype(complex)), "value cannot be read as numbers"),
    "no value": (answer(value=None), "value cannot be read as numbers"),
    "discount above 1": (answer(discount=with_row(DISCOUNT, 2, 1.01)), "discount of row 2 is 1.01: .* from -1 to 1"),
    "discount below -1": (answer(discount=with_row(DISCOUNT, 0, -1.5)), "discount of row 0 is -1.5"),
    "nan discount": (answer(discount=with_row(DISCOUNT, 1, np.nan)), "discount of row 1 is nan"),
    "three parts": (answer()[:3], "recurrent_inference returned a tuple of 3: it must return \\(hidden_state, reward,"),
    "six parts": ((*answer(), None, None), "a tuple of 6"),
    "an array": (LOGITS, "returned a ndarray"),
    "nothing": (None, "returned a NoneType"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=WRONG)
def test_invalid_step_outputs_raise_named_errors(given: Any, words: str) -> None:
    with pytest.raises(EvaluationError, match=words):
        check_step(given, ROWS, ACTIONS)


def test_invalid_root_outputs_raise_named_errors() -> None:
    with pytest.raises(EvaluationError, match="initial_inference returned a tuple of 4: it must return"):
        check_root(answer(), ROWS)
    with pytest.raises(EvaluationError, match="policy_logits has shape \\(4, 0\\): it must be \\(4, num_actions\\)"):
        check_root((HIDDEN, LOGITS[:, :0], VALUE), ROWS)
    with pytest.raises(EvaluationError, match="value of row 1 is nan"):
        check_root((HIDDEN, LOGITS, with_row(VALUE, 1, np.nan)), ROWS)


def test_large_numbers_and_minus_infinity_are_accepted() -> None:
    """The exact check decides where the fast one is inconclusive."""
    large = np.array([1e12, -1e12, 1e12, 0])
    assert check_step(answer(reward=large), ROWS).rewards.tolist() == large.tolist()
    masked = LOGITS.copy()
    masked[:, 0], masked[:, 1] = -np.inf, np.finfo(np.float32).min
    assert check_step(answer(logits=masked), ROWS).logits.tolist() == masked.tolist()
    masked = LOGITS.astype(np.float64)
    masked[:, 2] = -1e300
    assert check_step(answer(logits=masked), ROWS).logits[:, 2].tolist() == [-np.inf] * ROWS


# --- Inference -------------------------------------------------------------------------------------------------------


def recurrent(hidden: Any, actions: Any) -> tuple[Any, ...]:
    return hidden + 1, actions * 0.5, np.zeros((len(actions), ACTIONS)), actions * 1.0


def initial(observations: Any) -> tuple[Any, Any, Any]:
    return observations * 2, np.zeros((len(observations), ACTIONS)), np.zeros(len(observations))


def model(start: Any = initial, step: Any = recurrent) -> FunctionModel:
    return FunctionModel(start, step)


def test_inference_returns_validated_outputs() -> None:
    inference = Inference(model())
    assert (inference.num_actions, inference.layout) == (None, None)
    root = inference.initial(HIDDEN)
    assert inference.num_actions == ACTIONS
    assert root.hidden.tolist() == (HIDDEN * 2).tolist()
    step = inference.recurrent(root.hidden[:2], np.array([2, 1], dtype=np.uint16))
    assert step.hidden.tolist() == (HIDDEN * 2 + 1)[:2].tolist()
    assert step.rewards.tolist() == [1.0, 0.5]


def test_actions_are_passed_as_int64() -> None:
    seen: list[Any] = []
    inference = Inference(model(step=lambda hidden, actions: (seen.append(actions), recurrent(hidden, actions))[1]))
    inference.initial(HIDDEN)
    inference.recurrent(HIDDEN, np.arange(4, dtype=np.uint16))
    assert seen[0].dtype == np.int64


def fail(*arguments: Any) -> Any:
    raise RuntimeError("the model fell over")


@pytest.mark.parametrize("method", ["initial_inference", "recurrent_inference"])
def test_exceptions_of_models_are_chained(method: str) -> None:
    inference = Inference(model(fail, fail))
    with pytest.raises(EvaluationError, match=f"RuntimeError in {method}: the model fell over") as caught:
        inference.initial(HIDDEN) if method == "initial_inference" else inference.recurrent(
            HIDDEN, np.zeros(4, np.int64)
        )
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_changed_number_of_actions_raises() -> None:
    inference = Inference(model(step=lambda hidden, actions: (hidden, VALUE, np.zeros((ROWS, 5)), VALUE)))
    inference.initial(HIDDEN)
    with pytest.raises(EvaluationError, match="policy_logits has shape \\(4, 5\\): it must be \\(4, 3\\)"):
        inference.recurrent(HIDDEN, np.zeros(4, np.int64))
    with pytest.raises(EvaluationError, match="must be \\(4, 9\\)"):
        Inference(model(), num_actions=9).initial(HIDDEN)


CHANGED = {
    "longer rows": (lambda hidden: np.zeros((ROWS, 3), np.float32), "expected numpy float32 \\[2\\].*given.*\\[3\\]"),
    "another axis": (lambda hidden: hidden[:, :, None], "expected .*\\[2\\] a row, given .*\\[2, 1\\] a row"),
    "integers": (lambda hidden: hidden.astype(int), "expected numpy float32 .*, given numpy int64"),
    "complex": (lambda hidden: hidden.astype(complex), "given numpy complex128"),
    "too few rows": (lambda hidden: hidden[:3], "hidden_state has shape \\(3, 2\\): it must have 4 rows"),
    "no rows": (lambda hidden: np.float32(1) + np.zeros(()), "hidden_state is a float64|whole batch"),
    "a tuple": (lambda hidden: (hidden, hidden), "expected an array, given a tuple of 2"),
    "a dict": (lambda hidden: {"a": hidden}, "expected an array, given a dict with the keys 'a'"),
    "nothing": (lambda hidden: None, "expected an array, given nothing"),
    "a number": (lambda hidden: 1.5, "hidden_state is a float: it must be an array"),
    "text": (lambda hidden: ("x", hidden), "hidden_state\\[0\\] is a str"),
}


@pytest.mark.parametrize(("change", "words"), CHANGED.values(), ids=CHANGED)
def test_changed_hidden_state_layout_raises(change: Any, words: str) -> None:
    inference = Inference(model(step=lambda hidden, actions: (change(hidden), *recurrent(hidden, actions)[1:])))
    inference.initial(HIDDEN)
    layout = inference.layout
    with pytest.raises(EvaluationError, match=words):
        inference.recurrent(HIDDEN, np.zeros(4, np.int64))
    assert inference.layout is layout


def test_hidden_state_dtype_may_widen() -> None:
    """float32 + int64 is float64 in NumPy, a common case in first models."""
    inference = Inference(
        model(step=lambda hidden, actions: (hidden + actions[:, None], *recurrent(hidden, actions)[1:]))
    )
    first = inference.initial(HIDDEN)
    assert inference.recurrent(first.hidden, np.ones(4, np.int64)).hidden.dtype == np.float64
    assert inference.layout is not None
    assert inference.layout.leaves[0].dtype == np.float64


def test_check_model_names_missing_methods() -> None:
    check_model(model())
    assert isinstance(model(), Model)
    with pytest.raises(InvalidArgumentError, match="model is a int without initial_inference and recurrent_inference"):
        check_model(7)
    with pytest.raises(InvalidArgumentError, match="the class FunctionModel: make an object"):
        check_model(FunctionModel)
    with pytest.raises(InvalidArgumentError, match="initial must be a function, not 3"):
        FunctionModel(3, recurrent)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="recurrent must be a function"):
        FunctionModel(initial, None)  # type: ignore[arg-type]
    assert repr(model()) == "FunctionModel(initial, recurrent)"
