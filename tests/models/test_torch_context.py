"""PyTorch: the hidden-state pool, helpers on tensors, and contexts of `TorchModel`."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pondertree
from pondertree.config import threads_with_network
from pondertree.errors import EvaluationError
from pondertree.models import HiddenPool, Support, TorchModel, min_max

torch = pytest.importorskip("torch")

from tests.support.torch_models import DEVICES, OBSERVATIONS, Net  # noqa: E402 (after the package it needs)

from pondertree.models.torch_context import TorchLatentContext  # noqa: E402

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

torch.set_num_threads(1)  # the networks are tiny, and other work on the machine is not


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no accelerator")
    return str(request.param)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_pool_keeps_tensors_on_device(device: str, dtype: str) -> None:
    rows = torch.arange(24, device=device).reshape(8, 3).remainder(5).to(getattr(torch, dtype))
    pool = HiddenPool(2, maximum=100)
    pool.scatter(np.array([9, 0, 4], dtype=np.uint32), (rows[:3], {"a": rows[:3, 0]}))
    pool.scatter(np.array([0], dtype=np.uint32), (rows[7:], {"a": rows[7:, 0]}))
    assert (pool.capacity, pool.nbytes // pool.capacity) == (16, 4 * rows.element_size())
    long, more = pool.gather(np.array([4, 9, 0, 4], dtype=np.uint32))
    assert (long.device, long.dtype) == (rows.device, rows.dtype)
    assert torch.equal(long, rows[[2, 0, 7, 2]])
    assert torch.equal(more["a"], rows[[2, 0, 7, 2], 0])


def test_pool_rows_work_with_gradients_and_inference_mode() -> None:
    """With gradients, without, and in inference mode, for rows written in any of these."""
    layer = torch.nn.Linear(3, 3)
    pool = HiddenPool(1)
    with torch.inference_mode():
        pool.scatter(np.array([0, 1]), layer(torch.ones(2, 3)))
    pool.scatter(np.array([1, 2]), layer(torch.ones(2, 3)))
    read = pool.gather(np.array([0, 1, 2]))
    assert not read.requires_grad
    layer(read).sum().backward()
    with torch.inference_mode():
        pool.scatter(np.array([5]), layer(read[:1]))
    assert torch.equal(pool.gather(np.array([5])), layer(read[:1]))


def test_pool_widens_dtype() -> None:
    pool = HiddenPool(2)
    pool.scatter(np.array([0]), torch.ones(1, 2, dtype=torch.bfloat16))
    pool.scatter(np.array([1]), torch.full((1, 2), 1 + 2**-20))
    assert pool.gather(np.array([0, 1])).tolist() == [[1, 1], [1 + 2**-20] * 2]
    with pytest.raises(EvaluationError, match="expected torch float32"):
        pool.scatter(np.array([1]), torch.ones(1, 2, dtype=torch.int32))


def test_support_on_tensors(device: str) -> None:
    support, numbers = Support(40), np.linspace(-900, 900, 37).astype(np.float32)
    tensor = torch.from_numpy(numbers).to(device).requires_grad_()
    shares = support.to_categorical(tensor)
    assert shares.device.type == device
    assert np.allclose(shares.detach().cpu().numpy(), support.to_categorical(numbers), atol=1e-5)
    assert torch.allclose(support.to_scalar(torch.log(shares)), tensor, rtol=1e-4)
    logits = torch.zeros(2, 81, device=device, requires_grad=True)
    support.to_scalar(logits).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert support.transform(torch.tensor([3])).tolist() == pytest.approx([1.003])


def test_min_max_on_tensors(device: str) -> None:
    rows = torch.randn(3, 4, 5, device=device, requires_grad=True)
    scaled = min_max(rows)
    assert np.allclose(scaled.detach().cpu().numpy(), min_max(rows.detach().cpu().numpy()), atol=1e-6)
    scaled.sum().backward()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_buffers_wait_for_work_of_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots' hidden states may still be in flight when a search starts on its own stream."""
    search = pondertree.MuZero(model=TorchModel(Net(), "cuda"), num_simulations=30, seed=1)

    def visits(observations: Any) -> Any:
        return search.forest(observation=list(observations)).simulate().visits()

    expected, _ = visits(-OBSERVATIONS), visits(OBSERVATIONS)
    at_once = HiddenPool.scatter

    def late(*arguments: Any, **options: Any) -> None:
        torch.cuda._sleep(200_000_000)
        at_once(*arguments, **options)

    monkeypatch.setattr(HiddenPool, "scatter", late)
    assert (visits(-OBSERVATIONS) == expected).all()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_pinned_observations_are_reused_after_release() -> None:
    model = TorchModel(Net(), "cuda")
    search = pondertree.MuZero(model=model, num_simulations=5, seed=1)
    few, many = list(OBSERVATIONS), [*OBSERVATIONS, *-OBSERVATIONS]
    priors = [
        [result.root.children[0].prior for result in search.forest(observation=seen, seeds=1).simulate().results()]
        for seen in (few, many, few, many)
    ]
    assert priors[0] == priors[2]
    assert priors[1] == priors[3]
    assert len(model._pinned) == 1
    array = model.observation_array((2, 3), np.dtype(np.float32))
    array[:] = 7
    assert len(model._pinned) == 0
    other = model.observation_array((2, 3), np.dtype(np.float32))
    other[:] = 8
    assert (array == 7).all()
    assert model.observation_array((0, 3), np.dtype(np.float32)) is None
    assert TorchModel(Net(), "cuda").observation_array((2, 3), np.dtype(np.float32)) is None


def test_forest_takes_tensor_of_observations() -> None:
    """In any memory format; it is not modified and equals the list of its rows."""

    class Picky(Net):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            seen = observations.view(len(observations), -1)
            answer = super().initial_inference(seen.clone())
            seen.zero_()
            return answer

    torch.manual_seed(3)
    search = pondertree.MuZero(TorchModel(Picky()), 20)
    tensor = torch.rand(2, 3, 3).permute(1, 0, 2).requires_grad_()
    before = tensor.detach().clone()
    both = [search.forest(observation=given, seeds=[1, 2, 3]).simulate().visits() for given in (tensor, list(tensor))]
    assert torch.equal(tensor.detach(), before)
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize("place", ["reward", "logits"])
def test_buffer_refuses_output_on_another_device(place: str) -> None:
    """A kernel would read any address."""

    class MetaOutput:
        def __call__(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            outputs = {"reward": torch.zeros(1), "logits": torch.zeros(1, 4), "value": torch.zeros(1)}
            outputs[place] = outputs[place].to("meta")
            return hidden, outputs["reward"], outputs["logits"], outputs["value"]

    context = TorchLatentContext(None, 1, torch.device("cpu"), MetaOutput(), contextlib.nullcontext)
    context.pool.scatter(np.array([0]), torch.zeros(1, 3))
    [buffer] = context.buffers([1], 5)
    support = buffer.submit(1)
    assert not support.ok
    assert "must be on its device" in support.reason


@pytest.mark.parametrize(("cores", "rows", "threads"), [(16, 4096, 8), (16, 64, 2), (2, 4096, 1), (1, 4096, 1)])
def test_threads_with_an_accelerator(cores: int, rows: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.config.usable_cpus", lambda: cores)
    assert threads_with_network(SimpleNamespace(device=torch.device("cuda")), rows) == threads
    assert threads_with_network(SimpleNamespace(device=torch.device("cpu")), rows) == 1
