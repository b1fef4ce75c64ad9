"""PyTorch: modules as models, hidden states that stay tensors, the pool and the helpers on tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.precision import need_cpu_precision

import pondertree
from pondertree.config import threads_with_network
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.models import (
    ComposedModel,
    HiddenPool,
    Inference,
    SpecificationModel,
    Support,
    TorchModel,
    as_model,
    min_max,
)
from pondertree.models.responses import check_step
from pondertree.models.torch_model import torch_modules

torch = pytest.importorskip("torch")

from pondertree.models.torch_context import TorchLatentContext  # noqa: E402 (after the package it needs)

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The networks are tiny, and other work on the machine is not."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SIZE, ACTIONS = 6, 5
OBSERVATIONS = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
CHOSEN = np.array([4, 0, 1, 2])


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no accelerator")
    return str(request.param)


class Net(torch.nn.Module):  # type: ignore[misc]
    """A small model with something that behaves differently in training."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, SIZE), torch.nn.Dropout(0.5))
        self.step = torch.nn.Linear(SIZE + ACTIONS, SIZE + 1)
        self.head = torch.nn.Linear(SIZE, ACTIONS + 1)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        assert not torch.is_grad_enabled()
        assert not self.training
        hidden = min_max(self.body(observations.flatten(1)))
        return (hidden, *self.see(hidden))

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        assert actions.dtype == torch.int64
        assert actions.device == hidden.device
        coded = torch.nn.functional.one_hot(actions, ACTIONS).to(hidden.dtype)
        out = self.step(torch.cat([hidden, coded], dim=1))
        after = torch.tanh(out[:, :SIZE])
        return (after, out[:, SIZE:], *self.see(after))

    def see(self, hidden: Any) -> tuple[Any, Any]:
        out = self.head(hidden)
        return out[:, :ACTIONS], out[:, ACTIONS:]


class SeedNet(Net):
    """The seed's form, of one row at a time."""

    def initial_inference(self, observation: Any) -> tuple[Any, ...]:
        hidden = torch.tanh(self.body(observation.flatten()))
        return (hidden, *self.prediction(hidden))

    def recurrent_inference(self, hidden: Any, action: Any) -> tuple[Any, ...]:
        coded = torch.nn.functional.one_hot(torch.tensor(action, device=hidden.device), ACTIONS).to(hidden.dtype)
        out = self.step(torch.cat([hidden, coded]))
        return torch.tanh(out[:SIZE]), out[SIZE]

    def prediction(self, hidden: Any) -> tuple[Any, Any]:
        out = self.head(hidden)
        return out[:ACTIONS], out[ACTIONS]


def net(kind: type = Net) -> Any:
    torch.manual_seed(0)
    return kind()


def play(model: Any, observations: Any = OBSERVATIONS) -> list[np.ndarray]:
    """Two steps with a pool, and what was seen."""
    asked, pool = Inference(model), HiddenPool(2)
    root = asked.initial(observations)
    pool.scatter(np.arange(4), root.hidden)
    one = asked.recurrent(pool.gather(np.arange(4)), CHOSEN)
    pool.scatter(np.arange(4, 8), one.hidden)
    two = asked.recurrent(pool.gather(np.array([6, 0, 6])), CHOSEN[:3])
    return [root.logits, root.values, one.rewards, one.logits, one.values, two.rewards, two.logits, two.values]


def same(one: list[np.ndarray], other: list[np.ndarray], tolerance: float = 1e-5) -> bool:
    return all(np.allclose(a, b, atol=tolerance, rtol=tolerance) for a, b in zip(one, other, strict=True))


def plain() -> list[np.ndarray]:
    """What the network says without an adapter."""
    module = net().eval()
    with torch.no_grad():
        hidden, logits, value = module.initial_inference(torch.from_numpy(OBSERVATIONS))
        after, reward, policy, worth = module.recurrent_inference(hidden, torch.from_numpy(CHOSEN))
        rows = torch.stack([after[2], hidden[0], after[2]])
        last = module.recurrent_inference(rows, torch.from_numpy(CHOSEN[:3]))
    seen = [logits, value[:, 0], reward[:, 0], policy, worth[:, 0], last[1][:, 0], last[2], last[3][:, 0]]
    return [tensor.numpy() for tensor in seen]


def test_it_says_what_the_network_says(device: str) -> None:
    module = net()
    model = TorchModel(module, device=device)
    assert same(play(model), plain())
    hidden = model.initial_inference(OBSERVATIONS)[0]
    assert hidden.device.type == device
    assert module.training
    assert module.body[1].training


def test_modules_are_adapted_by_themselves() -> None:
    assert isinstance(as_model(net()), TorchModel)
    assert same(play(as_model(net())), plain())
    model = TorchModel(net())
    assert as_model(model) is model


def test_tensors_and_other_types_are_taken(device: str) -> None:
    model = TorchModel(net(), device=device)
    assert same(play(model, torch.from_numpy(OBSERVATIONS)), plain())
    assert same(play(model, OBSERVATIONS.astype(np.float64)), plain())
    readonly = OBSERVATIONS.copy()
    readonly.flags.writeable = False
    assert same(play(model, readonly), plain())


def test_parts(device: str) -> None:
    module = net()
    parts = ComposedModel(
        lambda observations: min_max(module.body(observations.flatten(1))),
        lambda hidden, actions: module.recurrent_inference(hidden, actions)[:2],
        torch.nn.Sequential(Split(module.head)),
    )
    assert len(torch_modules(parts)) == 1
    module.eval().to(device)
    assert same(play(TorchModel(parts, device=device)), plain())


class Split(torch.nn.Module):  # type: ignore[misc]
    """A head of two."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Any) -> tuple[Any, Any]:
        out = self.head(hidden)
        return out[:, :ACTIONS], out[:, ACTIONS]


@pytest.mark.parametrize("settled", [None, False])
def test_the_seeds_form(device: str, settled: bool | None) -> None:
    module = net(SeedNet)
    model: Any = as_model(module) if settled is None else TorchModel(SpecificationModel(module.eval(), settled))
    if settled is None:
        model = TorchModel(module, device=device)
        assert isinstance(model._methods, SpecificationModel)
    found = play(model)
    with torch.no_grad():
        rows = torch.from_numpy(OBSERVATIONS).flatten(1)
        hidden = torch.tanh(module.cpu().eval().body(rows))
        assert np.allclose(found[0], module.head(hidden)[:, :ACTIONS].numpy(), atol=1e-5)


def test_an_object_that_takes_arrays_of_numpy() -> None:
    """It turns them into tensors itself, and cannot do that twice."""

    class Own:
        def __init__(self) -> None:
            self.module = net()

        def initial_inference(self, observations: Any) -> Any:
            return self.module.initial_inference(torch.from_numpy(observations))

        def recurrent_inference(self, hidden: Any, actions: Any) -> Any:
            return self.module.recurrent_inference(hidden, actions)

    model: Any = as_model(Own())
    assert same(play(model), plain())
    assert model._takes_tensors is False  # it is not tried again
    assert same(play(model), plain())


def test_a_plain_object_with_tensors() -> None:
    """No module to be found in it: hidden states are tensors all the same, and actions come as such."""
    module = net().eval()

    class Plain:
        __slots__ = ()

        def initial_inference(self, observations: Any) -> Any:
            with torch.no_grad():
                return module.initial_inference(torch.as_tensor(observations))

        def recurrent_inference(self, hidden: Any, actions: Any) -> Any:
            return module.recurrent_inference(hidden, actions)  # with gradients

    model = Plain()
    assert as_model(model) is model
    assert same(play(model), plain())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int64"])
def test_numbers_of_every_type_are_read(device: str, dtype: str) -> None:
    reward = torch.arange(4, device=device).to(getattr(torch, dtype))
    logits = torch.ones(4, ACTIONS, device=device).to(getattr(torch, dtype))
    if dtype != "int64":
        logits.requires_grad_()
    step = check_step((None, reward, logits, reward[:, None], -reward / 4), 4)
    assert step.rewards.tolist() == step.values.tolist() == [0, 1, 2, 3]
    assert (step.logits == 1).all()
    assert step.discounts is not None
    assert step.discounts.tolist() == [0, -0.25, -0.5, -0.75]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast(device: str, dtype: str) -> None:
    need_cpu_precision(dtype, device)
    module = net()
    module.step.register_forward_hook(lambda m, i, out: seen.append(out.dtype))
    seen: list[Any] = []
    assert same(play(TorchModel(module, device=device, dtype=dtype)), plain(), 0.05)
    assert set(seen) == {getattr(torch, dtype)}
    assert next(module.parameters()).dtype == torch.float32


def test_weights_of_half_precision(device: str) -> None:
    need_cpu_precision("bfloat16", device)
    module = net().to(torch.bfloat16)
    model = TorchModel(module, device=device)
    assert same(play(model), plain(), 0.1)
    assert model.initial_inference(OBSERVATIONS)[0].dtype == torch.bfloat16
    with pytest.raises(InvalidArgumentError, match="the weights are bfloat16: leave it out"):
        TorchModel(module, dtype="float16")


def test_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def mark(function: Any) -> Any:
        compiled.append(function.__name__)
        return function

    monkeypatch.setattr(torch, "compile", mark)
    assert same(play(TorchModel(net(), compile=True)), plain())
    assert compiled == ["initial_inference", "recurrent_inference"]
    compiled.clear()
    play(TorchModel(net(SeedNet), compile=True))
    assert compiled == ["initial_inference", "recurrent_inference", "prediction"]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TensorFloat32:UserWarning")
def test_compile_for_real(device: str) -> None:
    if device == "cpu":
        pytest.skip("needs a compiler of C++")
    module = net().eval()
    assert same(play(TorchModel(module, device=device, compile=True)), plain(), 1e-4)


def test_weights_trained_meanwhile_count() -> None:
    module = net()
    model = TorchModel(module)
    before = play(model)
    with torch.no_grad():
        module.head.bias += 1
    assert np.allclose(play(model)[0], before[0] + 1, atol=1e-5)


class Spoiled(Net):
    """One part of the answer replaced."""

    def __init__(self, place: int, change: Any) -> None:
        super().__init__()
        self.place, self.change = place, change

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        parts = list(super().recurrent_inference(hidden, actions))
        parts[self.place] = self.change(parts[self.place])
        return tuple(parts)


def nan_at(row: int) -> Any:
    def change(tensor: Any) -> Any:
        tensor[row] = torch.nan
        return tensor

    return change


def fail(tensor: Any) -> Any:
    raise RuntimeError("fell over")


WRONG = {
    "nan reward": (1, nan_at(3), "reward of row 3 is nan"),
    "nan logits": (2, nan_at(1), "policy_logits of row 1, action 0 is nan"),
    "a reward per batch": (1, lambda tensor: tensor.mean(), "reward is one number for the whole batch"),
    "no tensor": (3, lambda tensor: None, "value cannot be read as numbers"),
    "complex": (3, lambda tensor: tensor.to(torch.complex64), "value cannot be read as numbers"),
    "longer rows": (0, lambda tensor: tensor.repeat(1, 2), "expected torch float32 \\[6\\].*given .*\\[12\\]"),
    "too few rows": (0, lambda tensor: tensor[:2], "hidden_state has shape \\(2, 6\\): it must have 4 rows"),
    "an array": (0, lambda tensor: tensor.cpu().numpy(), "expected torch float32 .*, given numpy float32"),
    "integers": (0, lambda tensor: tensor.long(), "expected torch float32 .*, given torch int64"),
    "elsewhere": (0, lambda tensor: tensor.to("meta"), "given torch float32 \\[6\\] a row on meta"),
    "raises": (0, fail, "RuntimeError in recurrent_inference: fell over"),
}


@pytest.mark.parametrize(("place", "change", "words"), WRONG.values(), ids=WRONG)
def test_mistakes_are_named(device: str, place: int, change: Any, words: str) -> None:
    module = Spoiled(place, change)
    asked = Inference(TorchModel(module, device=device))
    root = asked.initial(OBSERVATIONS)
    with pytest.raises(EvaluationError, match=words):
        asked.recurrent(root.hidden, CHOSEN)
    assert all(part.training for part in module.modules())
    module.change = lambda tensor: tensor
    asked.recurrent(root.hidden, CHOSEN)


def test_wrong_arguments_are_named() -> None:
    for arguments, words in (
        ({"device": "nowhere"}, "device 'nowhere' cannot be used"),
        ({"dtype": "int8"}, "dtype must be float32, bfloat16, float16 or None, not 'int8'"),
        ({"compile": 3}, "compile"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            TorchModel(net(), **arguments)
    with pytest.raises(InvalidArgumentError, match="a Linear without initial_inference"):
        TorchModel(torch.nn.Linear(2, 2))
    assert repr(TorchModel(net())) == "TorchModel(Net, device='cpu')"


class Embedded(Net):
    """Its observations are words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(300, SIZE)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = self.words(observations).sum(1)
        return (hidden, *self.see(hidden))


class Coded(Net):
    """Its observations are whole numbers, and become rows of ones and noughts."""

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        return super().initial_inference(torch.nn.functional.one_hot(observations, 2).float())


@pytest.mark.parametrize("weights", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.int32, bool])
def test_whole_numbers_arrive_in_the_type_of_the_weights(device: str, dtype: Any, weights: str) -> None:
    need_cpu_precision(weights, device)
    pixels = np.arange(24).reshape(4, 2, 3).astype(dtype)
    model = TorchModel(net().to(getattr(torch, weights)), device=device)
    assert same(play(model, pixels), play(model, pixels.astype(np.float32)))
    result = pondertree.MuZero(model, 5, seed=1).run(observation=list(pixels))
    assert [each.simulations for each in result] == [5] * 4


@pytest.mark.parametrize("kind", [Embedded, Coded])
def test_whole_numbers_stay_where_the_model_wants_them(device: str, kind: Any) -> None:
    words = np.arange(12).reshape(4, 3) % 2
    module = net(kind)
    model = TorchModel(module, device=device)
    found = play(model, words)
    assert model._casts is False  # it is not tried again
    assert same(play(model, torch.from_numpy(words)), found)
    with torch.no_grad():
        expected = module.eval().initial_inference(torch.from_numpy(words).to(device))[1]
    assert np.allclose(found[0], expected.cpu().numpy(), atol=1e-5)


def test_an_error_of_a_model_that_had_whole_numbers_is_not_asked_again() -> None:
    module = net()
    model = TorchModel(module)
    model.initial_inference(OBSERVATIONS.astype(np.uint8))
    asked: list[Any] = []

    def broken(observations: Any) -> Any:
        asked.append(observations)
        raise RuntimeError("mine")

    module.initial_inference = broken
    with pytest.raises(RuntimeError, match="mine"):
        model.initial_inference(OBSERVATIONS.astype(np.uint8))
    assert len(asked) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("kind", [TypeError, RuntimeError])
def test_the_first_error_is_told(kind: Any, dtype: Any) -> None:
    """Asked once more in another form, it raises something else, which nobody wants to know."""

    class Mistaken(Net):
        def initial_inference(self, observations: Any) -> Any:
            if isinstance(observations, torch.Tensor) and observations.dtype == torch.float32:
                raise kind("mine")
            raise ValueError("of another form")

    with pytest.raises(EvaluationError, match=f"the model raised {kind.__name__} in initial_inference: mine"):
        pondertree.MuZero(Mistaken(), 5).run(observation=OBSERVATIONS[0].astype(dtype))


@pytest.mark.parametrize("limits", [{}, {"max_memory": 1e6}], ids=["lanes", "batch by batch"])
def test_an_error_in_a_step_of_a_search(device: str, limits: dict[str, Any]) -> None:
    model = TorchModel(Spoiled(0, fail), device=device)
    with pytest.raises(
        EvaluationError, match=r"^the model raised RuntimeError in recurrent_inference: fell over$"
    ) as e:
        pondertree.MuZero(model, 5, **limits).run(observation=list(OBSERVATIONS))
    assert isinstance(e.value.__cause__, RuntimeError)


@pytest.mark.parametrize("limits", [{}, {"max_memory": 1e6}], ids=["lanes", "batch by batch"])
def test_hidden_states_that_grow_and_no_longer_fit(device: str, limits: dict[str, Any]) -> None:
    model = TorchModel(Spoiled(0, lambda tensor: tensor.double()), device=device)
    words = (
        "RuntimeError in recurrent_inference: .*"
        r"\(hidden_state has changed its shape or type: expected torch float32 .*, given torch float64"
    )
    for _ in range(2):
        with pytest.raises(EvaluationError, match=words):
            pondertree.MuZero(model, 20, seed=1, **limits).run(observation=list(OBSERVATIONS))


def test_rows_that_were_meant_to_be_several_observations() -> None:
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
    """It wants rows of six numbers, and nothing else."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        if self.error is not None:
            raise self.error
        hidden = torch.addmm(torch.zeros(SIZE), observations, self.body[0].weight.T)
        return (hidden, *self.see(hidden))


# --- the pool -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_the_pool_keeps_tensors_where_they_are(device: str, dtype: str) -> None:
    rows = torch.arange(24, device=device).reshape(8, 3).remainder(5).to(getattr(torch, dtype))
    pool = HiddenPool(2, maximum=100)
    pool.scatter(np.array([9, 0, 4], dtype=np.uint32), (rows[:3], {"a": rows[:3, 0]}))
    pool.scatter(np.array([0], dtype=np.uint32), (rows[7:], {"a": rows[7:, 0]}))
    assert (pool.capacity, pool.bytes_per_slot) == (16, 4 * rows.element_size())
    long, more = pool.gather(np.array([4, 9, 0, 4], dtype=np.uint32))
    assert (long.device, long.dtype) == (rows.device, rows.dtype)
    assert torch.equal(long, rows[[2, 0, 7, 2]])
    assert torch.equal(more["a"], rows[[2, 0, 7, 2], 0])


def test_what_the_pool_gives_can_be_used_anywhere() -> None:
    """With gradients, without, in inference mode: whatever the tensors that were written came from."""
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


def test_the_pool_widens() -> None:
    pool = HiddenPool(2)
    pool.scatter(np.array([0]), torch.ones(1, 2, dtype=torch.bfloat16))
    pool.scatter(np.array([1]), torch.full((1, 2), 1 + 2**-20))
    assert pool.gather(np.array([0, 1])).tolist() == [[1, 1], [1 + 2**-20] * 2]
    with pytest.raises(EvaluationError, match="expected torch float32"):
        pool.scatter(np.array([1]), torch.ones(1, 2, dtype=torch.int32))


# --- helpers ------------------------------------------------------------------------------------------------------


def test_the_support_on_tensors(device: str) -> None:
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


def test_the_scale_on_tensors(device: str) -> None:
    rows = torch.randn(3, 4, 5, device=device, requires_grad=True)
    scaled = min_max(rows)
    assert np.allclose(scaled.detach().cpu().numpy(), min_max(rows.detach().cpu().numpy()), atol=1e-6)
    scaled.sum().backward()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_buffers_wait_for_work_of_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hidden states of roots may still be on their way when a search begins on a stream of its own."""
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


def test_a_forest_takes_a_tensor_of_observations() -> None:
    """In any order of memory; it is not changed, and gives what the list of its rows gives."""

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
def test_threads_beside_an_accelerator(cores: int, rows: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.config.usable_cpus", lambda: cores)
    assert threads_with_network(SimpleNamespace(device=torch.device("cuda")), rows) == threads
    assert threads_with_network(SimpleNamespace(device=torch.device("cpu")), rows) == 1
