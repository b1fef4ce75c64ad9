"""PyTorch modules as models: outputs, dtypes, compilation and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.precision import need_cpu_precision

import pondertree
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.models import (
    ComposedModel,
    Inference,
    SpecificationModel,
    TorchModel,
    as_model,
    min_max,
)
from pondertree.models.responses import check_step
from pondertree.models.torch_model import torch_modules

torch = pytest.importorskip("torch")

from tests.support.torch_models import ACTIONS, CHOSEN, DEVICES, OBSERVATIONS, SIZE, Net, net, play, same  # noqa: E402 (after the package it needs)

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


class UnbatchedNet(Net):
    """The MuZero specification's interface, for one row at a time."""

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


def plain() -> list[np.ndarray]:
    """The outputs without an adapter."""
    module = net().eval()
    with torch.no_grad():
        hidden, logits, value = module.initial_inference(torch.from_numpy(OBSERVATIONS))
        after, reward, policy, worth = module.recurrent_inference(hidden, torch.from_numpy(CHOSEN))
        rows = torch.stack([after[2], hidden[0], after[2]])
        last = module.recurrent_inference(rows, torch.from_numpy(CHOSEN[:3]))
    seen = [logits, value[:, 0], reward[:, 0], policy, worth[:, 0], last[1][:, 0], last[2], last[3][:, 0]]
    return [tensor.numpy() for tensor in seen]


def test_torch_model_matches_network(device: str) -> None:
    module = net()
    model = TorchModel(module, device=device)
    assert same(play(model), plain())
    hidden = model.initial_inference(OBSERVATIONS)[0]
    assert hidden.device.type == device
    assert module.training
    assert module.body[1].training


def test_as_model_wraps_modules() -> None:
    assert isinstance(as_model(net()), TorchModel)
    assert same(play(as_model(net())), plain())
    model = TorchModel(net())
    assert as_model(model) is model


def test_observations_of_other_types_are_accepted(device: str) -> None:
    model = TorchModel(net(), device=device)
    assert same(play(model, torch.from_numpy(OBSERVATIONS)), plain())
    assert same(play(model, OBSERVATIONS.astype(np.float64)), plain())
    readonly = OBSERVATIONS.copy()
    readonly.flags.writeable = False
    assert same(play(model, readonly), plain())


def test_composed_model_of_modules(device: str) -> None:
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
    """A policy and value head."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Any) -> tuple[Any, Any]:
        out = self.head(hidden)
        return out[:, :ACTIONS], out[:, ACTIONS]


@pytest.mark.parametrize("settled", [None, False])
def test_specification_form_of_modules(device: str, settled: bool | None) -> None:
    module = net(UnbatchedNet)
    model: Any = as_model(module) if settled is None else TorchModel(SpecificationModel(module.eval(), settled))
    if settled is None:
        model = TorchModel(module, device=device)
        assert isinstance(model._methods, SpecificationModel)
    found = play(model)
    with torch.no_grad():
        rows = torch.from_numpy(OBSERVATIONS).flatten(1)
        hidden = torch.tanh(module.cpu().eval().body(rows))
        assert np.allclose(found[0], module.head(hidden)[:, :ACTIONS].numpy(), atol=1e-5)


def test_object_that_takes_numpy_arrays() -> None:
    """It converts arrays to tensors itself, and fails on tensors."""

    class Own:
        def __init__(self) -> None:
            self.module = net()

        def initial_inference(self, observations: Any) -> Any:
            return self.module.initial_inference(torch.from_numpy(observations))

        def recurrent_inference(self, hidden: Any, actions: Any) -> Any:
            return self.module.recurrent_inference(hidden, actions)

    model: Any = as_model(Own())
    assert same(play(model), plain())
    assert model._takes_tensors is False  # the probe is not repeated
    assert same(play(model), plain())


def test_plain_object_with_tensor_hidden_states() -> None:
    """An object without modules, whose hidden states are tensors; actions are passed as tensors."""
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
def test_outputs_of_every_dtype_are_read(device: str, dtype: str) -> None:
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
def test_autocast_computes_in_reduced_precision(device: str, dtype: str) -> None:
    need_cpu_precision(dtype, device)
    module = net()
    module.step.register_forward_hook(lambda m, i, out: seen.append(out.dtype))
    seen: list[Any] = []
    assert same(play(TorchModel(module, device=device, dtype=dtype)), plain(), 0.05)
    assert set(seen) == {getattr(torch, dtype)}
    assert next(module.parameters()).dtype == torch.float32


def test_reduced_precision_weights(device: str) -> None:
    need_cpu_precision("bfloat16", device)
    module = net().to(torch.bfloat16)
    model = TorchModel(module, device=device)
    assert same(play(model), plain(), 0.1)
    assert model.initial_inference(OBSERVATIONS)[0].dtype == torch.bfloat16
    with pytest.raises(InvalidArgumentError, match="the weights are bfloat16: leave it out"):
        TorchModel(module, dtype="float16")


def test_compile_wraps_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def mark(function: Any) -> Any:
        compiled.append(function.__name__)
        return function

    monkeypatch.setattr(torch, "compile", mark)
    assert same(play(TorchModel(net(), compile=True)), plain())
    assert compiled == ["initial_inference", "recurrent_inference"]
    compiled.clear()
    play(TorchModel(net(UnbatchedNet), compile=True))
    assert compiled == ["initial_inference", "recurrent_inference", "prediction"]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TensorFloat32:UserWarning")
def test_compiled_model_matches_network(device: str) -> None:
    if device == "cpu":
        pytest.skip("needs a compiler of C++")
    module = net().eval()
    assert same(play(TorchModel(module, device=device, compile=True)), plain(), 1e-4)


def test_trained_weights_take_effect() -> None:
    module = net()
    model = TorchModel(module)
    before = play(model)
    with torch.no_grad():
        module.head.bias += 1
    assert np.allclose(play(model)[0], before[0] + 1, atol=1e-5)


class Spoiled(Net):
    """A network with one output replaced."""

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
    "other device": (0, lambda tensor: tensor.to("meta"), "given torch float32 \\[6\\] a row on meta"),
    "raises": (0, fail, "RuntimeError in recurrent_inference: fell over"),
}


@pytest.mark.parametrize(("place", "change", "words"), WRONG.values(), ids=WRONG)
def test_invalid_outputs_raise_named_errors(device: str, place: int, change: Any, words: str) -> None:
    module = Spoiled(place, change)
    inference = Inference(TorchModel(module, device=device))
    root = inference.initial(OBSERVATIONS)
    with pytest.raises(EvaluationError, match=words):
        inference.recurrent(root.hidden, CHOSEN)
    assert all(part.training for part in module.modules())
    module.change = lambda tensor: tensor
    inference.recurrent(root.hidden, CHOSEN)


def test_invalid_arguments_raise() -> None:
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


@pytest.mark.parametrize("limits", [{}, {"max_memory": 1e6}], ids=["lanes", "batch by batch"])
def test_error_in_recurrent_inference_is_attributed(device: str, limits: dict[str, Any]) -> None:
    model = TorchModel(Spoiled(0, fail), device=device)
    with pytest.raises(
        EvaluationError, match=r"^the model raised RuntimeError in recurrent_inference: fell over$"
    ) as e:
        pondertree.MuZero(model, 5, **limits).run(observation=list(OBSERVATIONS))
    assert isinstance(e.value.__cause__, RuntimeError)


@pytest.mark.parametrize("limits", [{}, {"max_memory": 1e6}], ids=["lanes", "batch by batch"])
def test_widened_hidden_states_are_reported(device: str, limits: dict[str, Any]) -> None:
    model = TorchModel(Spoiled(0, lambda tensor: tensor.double()), device=device)
    words = (
        "RuntimeError in recurrent_inference: .*"
        r"\(hidden_state has changed its shape or type: expected torch float32 .*, given torch float64"
    )
    for _ in range(2):
        with pytest.raises(EvaluationError, match=words):
            pondertree.MuZero(model, 20, seed=1, **limits).run(observation=list(OBSERVATIONS))
