"""Adapters: the MuZero specification's interface, batched or row by row; the paper's functions; `as_model`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.models import ComposedModel, FunctionModel, Inference, SpecificationModel, as_model

ACTIONS = 3
OBSERVATIONS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
CHOSEN = np.array([2, 0, 1, 2])


class Batched:
    """The specification's interface for batches."""

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        hidden = observation.reshape(len(observation), -1)[:, :2] * 0.5
        return (hidden, *self.prediction(hidden))

    def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        return hidden + action[:, None], action * 0.25

    def prediction(self, hidden: Any) -> tuple[Any, Any]:
        return hidden[:, :1] * np.arange(ACTIONS), hidden[:, 1:]


class Single:
    """The same for one row at a time, as in the specification."""

    def __init__(self, action: type = int) -> None:
        self.action = action

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        assert observation.shape == (2, 3)
        hidden = observation.reshape(-1)[:2] * 0.5
        return (hidden, *self.prediction(hidden))

    def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        assert type(action) is self.action
        assert hidden.shape == (2,)
        return hidden + action, action * 0.25

    def prediction(self, hidden: Any) -> tuple[Any, Any]:
        return hidden[0] * np.arange(ACTIONS), hidden[1]


class Lenient(Single):
    """Accepts a batch of observations but returns one row."""

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        return Single.initial_inference(self, observation.reshape(-1)[:6].reshape(2, 3))


class HalfBatched(Single):
    """Accepts any observation shape: only its dynamics reveal that it takes single rows."""

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        hidden = observation.reshape(*observation.shape[:-2], -1)[..., :2] * 0.5
        return (hidden, *self.prediction(hidden))

    def prediction(self, hidden: Any) -> tuple[Any, Any]:
        return hidden[..., :1] * np.arange(ACTIONS), hidden[..., 1]


class Complete(Batched):
    """Has `prediction`, but its dynamics return four outputs."""

    def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        after, reward = Batched.recurrent_inference(self, hidden, action)
        return (after, reward, *self.prediction(after), np.full(len(action), 0.5))


class WithAxis(Single):
    """One row at a time, with an axis of length 1 for its layers."""

    def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
        hidden, policy, value = Single.initial_inference(self, observation)
        return hidden[None], policy[None], np.array([[value]])

    def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        assert hidden.shape == (1, 2)
        after, reward = Single.recurrent_inference(self, hidden[0], action)
        return after[None], np.array([[reward]])

    def prediction(self, hidden: Any) -> tuple[Any, Any]:
        return hidden.reshape(-1)[0] * np.arange(ACTIONS)[None], hidden.reshape(-1)[1:]


def play(model: Any) -> list[Any]:
    """The outputs of two steps."""
    inference = Inference(model)
    root = inference.initial(OBSERVATIONS)
    one = inference.recurrent(root.hidden, CHOSEN)
    two = inference.recurrent(one.hidden[1:3], CHOSEN[:2])
    seen = [root.logits, root.values]
    for step in (one, two):
        seen += [step.rewards, step.logits, step.values]
    return [array.tolist() for array in seen]


@pytest.mark.parametrize(
    ("model", "batched"),
    [
        (Batched(), True),
        (Complete(), True),
        (Single(), False),
        (Lenient(), False),
        (HalfBatched(), False),
        (WithAxis(), False),
    ],
    ids=lambda given: type(given).__name__,
)
def test_specification_model_matches_model_in_every_form(model: Any, batched: bool) -> None:
    wrapped = as_model(model)
    assert isinstance(wrapped, SpecificationModel)
    assert wrapped.batched is None
    assert play(wrapped) == play(SpecificationModel(Batched(), batched=True))
    assert wrapped.batched is batched


def test_specification_model_passes_discount() -> None:
    inference = Inference(as_model(Complete()))
    step = inference.recurrent(inference.initial(OBSERVATIONS).hidden, CHOSEN)
    assert step.discounts is not None
    assert step.discounts.tolist() == [0.5] * 4
    assert Inference(as_model(Single())).initial(OBSERVATIONS).values.shape == (4,)


def test_batched_argument_skips_probe() -> None:
    inference = Inference(SpecificationModel(Single(), batched=False))
    assert inference.initial(OBSERVATIONS[:1]).hidden.shape == (1, 2)
    with pytest.raises(EvaluationError, match="in initial_inference"):
        Inference(SpecificationModel(Single(), batched=True)).initial(OBSERVATIONS)


@pytest.mark.parametrize(
    "make", [lambda n: (n, n + 1), lambda n: {"at": int(n)}, int, str, lambda n: (np.array([n]), {"b": np.zeros(2)})]
)
def test_unbatched_hidden_states_may_be_any_objects(make: Any) -> None:
    """Positions of a game, for example, are stored unchanged."""
    seen: list[Any] = []

    class Objects:
        def initial_inference(self, observation: Any) -> tuple[Any, Any, Any]:
            return make(float(observation.sum())), [0.0] * ACTIONS, 0.0

        def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, Any]:
            seen.append(hidden)
            return hidden, 0

        def prediction(self, hidden: Any) -> tuple[Any, Any]:
            return [0.0] * ACTIONS, 0.0

    inference = Inference(SpecificationModel(Objects(), batched=False))
    root = inference.initial(OBSERVATIONS)
    inference.recurrent(root.hidden, CHOSEN)
    assert repr(seen[-1]) == repr(make(float(OBSERVATIONS[3].sum())))


def spoiled(**changed: Any) -> Any:
    return type("Spoiled", (Single,), changed)()


def fall(self: Any, *arguments: Any) -> Any:
    raise RuntimeError("fell over")


WRONG = {
    "raises": (spoiled(prediction=fall), "RuntimeError at row 0: fell over \\(and as a batch of two rows: "),
    "two values": (spoiled(prediction=lambda self, h: (h, h)), "value of row 0 has shape \\(2,\\): .* one number"),
    "three parts": (spoiled(prediction=lambda self, h: (h, 0, 0)), "row 0: initial_inference returned a tuple of 4"),
    "one reward": (spoiled(recurrent_inference=lambda self, h, a: h), "row 0: recurrent_inference returned a ndarray"),
    "nan": (spoiled(recurrent_inference=lambda self, h, a: (h, [0, 1, np.nan][a])), "reward of row 0 is nan"),
    "other shapes": (
        spoiled(recurrent_inference=lambda self, h, a: (np.repeat(h, a + 1), 0.0)),
        "hidden_state has not the same shape in all rows",
    ),
    "other structures": (
        spoiled(
            recurrent_inference=lambda self, h, a: (h if a else (h, h), 0.0), prediction=lambda self, h: ([0.0], 0)
        ),
        "hidden_state has not the same structure",
    ),
}


@pytest.mark.parametrize(("model", "words"), WRONG.values(), ids=WRONG)
def test_invalid_outputs_raise_named_errors(model: Any, words: str) -> None:
    with pytest.raises(EvaluationError, match=words):
        play(as_model(model))


def test_failed_probe_is_repeated() -> None:
    model: Any = Batched()
    wrapped = SpecificationModel(model)
    model.prediction = lambda hidden: fall(None)
    with pytest.raises(EvaluationError, match="fell over"):
        Inference(wrapped).initial(OBSERVATIONS)
    assert wrapped.batched is None
    del model.prediction
    assert play(wrapped) == play(SpecificationModel(Batched(), batched=True))
    assert wrapped.batched is True


# --- the three functions of the paper -----------------------------------------------------------------------------


def test_composed_model_matches_model() -> None:
    batched = Batched()
    parts = ComposedModel(
        lambda observations: batched.initial_inference(observations)[0],
        batched.recurrent_inference,
        batched.prediction,
    )
    assert as_model(parts) is parts
    assert play(parts) == play(SpecificationModel(Batched(), batched=True))


def test_composed_model_passes_discount() -> None:
    batched = Batched()
    parts = ComposedModel(
        lambda observations: batched.initial_inference(observations)[0],
        lambda hidden, actions: (*batched.recurrent_inference(hidden, actions), actions * 0.5),
        batched.prediction,
    )
    inference = Inference(parts)
    step = inference.recurrent(inference.initial(OBSERVATIONS).hidden, CHOSEN)
    assert step.discounts is not None
    assert step.discounts.tolist() == (CHOSEN * 0.5).tolist()


def test_composed_model_names_invalid_functions_and_outputs() -> None:
    with pytest.raises(InvalidArgumentError, match="dynamics must be a function, not 3"):
        ComposedModel(len, 3, len)  # type: ignore[arg-type]
    with pytest.raises(
        EvaluationError, match="prediction returned a ndarray: it must return \\(policy_logits, value\\)"
    ):
        Inference(ComposedModel(lambda o: o, lambda h, a: (h, a), lambda h: h)).initial(OBSERVATIONS)
    with pytest.raises(EvaluationError, match="dynamics returned a tuple of 4"):
        Inference(ComposedModel(lambda o: o, lambda h, a: (h,) * 4, lambda h: h)).recurrent(OBSERVATIONS, CHOSEN)


# --- as_model ------------------------------------------------------------------------------------------------


def test_as_model_returns_models_unchanged() -> None:
    model = FunctionModel(lambda o: (o, o, o), lambda h, a: (h, a, h, a))
    assert as_model(model) is model
    wrapped = as_model(Single())
    assert as_model(wrapped) is wrapped
    with pytest.raises(InvalidArgumentError, match="model is a str without"):
        as_model("muzero")
    assert repr(wrapped) == "SpecificationModel(Single, batched=None)"
