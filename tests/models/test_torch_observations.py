"""PyTorch models and the forms of their observations: integers, embeddings, batches given as one observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.precision import need_cpu_precision

import pondertree
from pondertree.errors import EvaluationError
from pondertree.models import (
    TorchModel,
)

torch = pytest.importorskip("torch")

from tests.support.torch_models import DEVICES, OBSERVATIONS, SIZE, Net, net, play, same  # noqa: E402 (after the package it needs)

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """One thread: the networks are tiny."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no accelerator")
    return str(request.param)


class Embedded(Net):
    """Takes token indices."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(300, SIZE)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = self.words(observations).sum(1)
        return (hidden, *self.see(hidden))


class Coded(Net):
    """Takes integers, which it one-hot encodes."""

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        return super().initial_inference(torch.nn.functional.one_hot(observations, 2).float())


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.int32, bool])
def test_integer_observations_are_cast_to_weights_dtype(device: str, dtype: Any, weights: str) -> None:
    need_cpu_precision(weights, device)
    pixels = np.arange(24).reshape(4, 2, 3).astype(dtype)
    model = TorchModel(net().to(getattr(torch, weights)), device=device)
    assert same(play(model, pixels), play(model, pixels.astype(np.float32)))
    result = pondertree.MuZero(model, 5, seed=1).run(observation=list(pixels))
    assert [each.simulations for each in result] == [5] * 4


@pytest.mark.parametrize("kind", [Embedded, Coded])
def test_integer_observations_stay_uncast_for_embeddings(device: str, kind: Any) -> None:
    words = np.arange(12).reshape(4, 3) % 2
    module = net(kind)
    model = TorchModel(module, device=device)
    found = play(model, words)
    assert model._casts is False  # the probe is not repeated
    assert same(play(model, torch.from_numpy(words)), found)
    with torch.no_grad():
        expected = module.eval().initial_inference(torch.from_numpy(words).to(device))[1]
    assert np.allclose(found[0], expected.cpu().numpy(), atol=1e-5)


def test_error_after_integer_observations_is_not_retried() -> None:
    module = net()
    model = TorchModel(module)
    model.initial_inference(OBSERVATIONS.astype(np.uint8))
    calls: list[Any] = []

    def broken(observations: Any) -> Any:
        calls.append(observations)
        raise RuntimeError("mine")

    module.initial_inference = broken
    with pytest.raises(RuntimeError, match="mine"):
        model.initial_inference(OBSERVATIONS.astype(np.uint8))
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("kind", [TypeError, RuntimeError])
def test_first_error_is_reported(kind: Any, dtype: Any) -> None:
    """The error of the retry in another form is not reported."""

    class Mistaken(Net):
        def initial_inference(self, observations: Any) -> Any:
            if isinstance(observations, torch.Tensor) and observations.dtype == torch.float32:
                raise kind("mine")
            raise ValueError("of another form")

    with pytest.raises(EvaluationError, match=f"the model raised {kind.__name__} in initial_inference: mine"):
        pondertree.MuZero(Mistaken(), 5).run(observation=OBSERVATIONS[0].astype(dtype))


def test_batch_given_as_one_observation_raises_with_hint() -> None:
    search = pondertree.MuZero(Rows(), 5, seed=1)
    assert len(search.run(observation=list(OBSERVATIONS.reshape(4, 6)))) == 4
    words = r"in initial_inference: .*\(one observation was given, of shape \(4, 6\); give a list for several\)"
    for given in (OBSERVATIONS.reshape(4, 6), torch.from_numpy(OBSERVATIONS).reshape(4, 6)):
        assert len(search.run(observation=given)) == 4
        fresh = pondertree.MuZero(Rows(), 5, seed=1)
        with pytest.raises(pondertree.InvalidArgumentError, match="legal_actions has 1 entries for 4 observations"):
            fresh.run(observation=given, legal_actions=[0])
        with pytest.raises(EvaluationError, match=words):
            pondertree.MuZero(Rows(), 5, seed=1).search(observation=given, legal_actions=[0])
        assert len(fresh.run(observation=given)) == 4
    for other in ([OBSERVATIONS.reshape(4, 6)], OBSERVATIONS[0, 0]):
        with pytest.raises(EvaluationError) as error:
            search.run(observation=other)
        assert "give a list" not in str(error.value)
    with pytest.raises(EvaluationError, match=r"mine$"):
        pondertree.MuZero(Rows(RuntimeError("mine")), 5).run(observation=OBSERVATIONS[0])


class Rows(Net):
    """Takes rows of six numbers only."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        if self.error is not None:
            raise self.error
        hidden = torch.addmm(torch.zeros(SIZE), observations, self.body[0].weight.T)
        return (hidden, *self.see(hidden))
