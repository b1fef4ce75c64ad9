"""Changes of a PyTorch network between searches are detected: modules, hooks, attributes and dtypes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.precision import need_cpu_precision

import pondertree
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators import Cached, Torch
from pondertree.games import ConnectFour, TicTacToe
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

from pondertree.gpu.cuda_graph import GraphCache  # noqa: E402
from pondertree.gpu.torch_fusion import fused  # noqa: E402
from pondertree.gpu.torch_network import all_modules, fingerprint_of  # noqa: E402

# Models without num_players are searched for one player, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

nn = torch.nn
torch.set_num_threads(1)
BOARDS = np.stack([ConnectFour().observation(), ConnectFour().play(3).observation()])
ROWS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


class Net(nn.Module):  # type: ignore[misc]
    """A network with attributes of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 42, 8))
        self.act: Any = nn.ReLU()
        self.squash = torch.tanh
        self.scale = 1.0
        self.shift = torch.zeros(1)  # no buffer
        self.policy, self.value = nn.Linear(8, 7), nn.Linear(8, 1)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        seen = self.act(self.body(observations))
        return self.scale * self.policy(seen) + self.shift.to(seen.dtype), self.squash(self.value(seen))[:, 0]


class Step(nn.Module):  # type: ignore[misc]
    """A learned model of rows of four numbers and three actions."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Any = nn.Linear(4, 4)
        self.act: Any = nn.Tanh()
        self.scale = 1.0
        self.head = nn.Linear(4, 5)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = self.act(self.seen(observations))
        out = self.head(hidden)
        return hidden, self.scale * out[:, :3], out[:, 3]

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        after = self.act(hidden + actions[:, None].to(hidden.dtype) / 4)
        out = self.head(after)
        return after, out[:, 4], self.scale * out[:, :3], out[:, 3]


class Owner:
    """A plain object with a module as attribute."""

    def __init__(self) -> None:
        self.part = Step()
        self.factor = 1.0

    def initial_inference(self, observations: Any) -> Any:
        return self.part.initial_inference(observations * self.factor)

    def recurrent_inference(self, hidden: Any, actions: Any) -> Any:
        return self.part.recurrent_inference(hidden, actions)


def made(kind: Any) -> Any:
    torch.manual_seed(0)
    return kind()


def set_to(name: str, make: Any) -> Any:
    return lambda net: setattr(net, name, make())


def without_hook(net: Any) -> None:
    net.handle.remove()


CHANGES: dict[str, Any] = {
    "a part without weights": set_to("act", nn.Sigmoid),
    "the same kind of part": set_to("act", nn.ReLU),
    "a part with weights": lambda net: setattr(net, "body", nn.Sequential(nn.Flatten(), nn.Linear(126, 8))),
    "a part within": lambda net: net.body.append(nn.Identity()),
    "weights": lambda net: setattr(net.policy, "weight", nn.Parameter(torch.ones(7, 8))),
    "a number": set_to("scale", lambda: 5.0),
    "a function": set_to("squash", lambda: torch.sin),
    "a tensor": set_to("shift", lambda: torch.ones(1)),
    "a number within": lambda net: setattr(net.body[0], "start_dim", 2),
    "a new attribute": set_to("more", lambda: True),
    "a hook": lambda net: net.body.register_forward_hook(lambda *_: None),
    "a hook before": lambda net: net.act.register_forward_pre_hook(lambda *_: None),
    "a hook taken away": without_hook,
    "another type": lambda net: net.double(),
    "another method": set_to("forward", lambda: lambda observations: None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_fingerprint_changes_with_network(change: Any) -> None:
    net = made(Net)
    net.handle = net.value.register_forward_hook(lambda *_: None)
    before = fingerprint_of(all_modules([net]))
    net.train(not net.training)
    with torch.no_grad():
        net.value.bias += 1
    assert fingerprint_of(all_modules([net])) == before, "modes and weights trained in place are not part of it"
    modules = list(net.modules())  # so that no new module reuses the memory of an old one
    change(net)
    assert fingerprint_of(all_modules([net])) != before
    assert modules


def test_all_modules_matches_pytorch() -> None:
    net = made(Net)
    net.again, net.nothing = net.body, None
    net.register_module("empty", None)
    assert list(map(id, all_modules([net]))) == list(map(id, net.modules()))


@pytest.mark.filterwarnings("ignore:Lazy modules:UserWarning")
def test_lazy_module_can_be_searched() -> None:
    net = made(Net)
    net.body[1] = nn.LazyLinear(8)
    assert pondertree.AlphaZero(Torch(net), 8).run(ConnectFour()).simulations == 8


@pytest.mark.parametrize("kind", [Net, Step, Owner])
def test_graphs_are_cleared_after_network_changes(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[Any] = []
    clear = GraphCache.clear
    monkeypatch.setattr(GraphCache, "clear", lambda graphs: (cleared.append(graphs), clear(graphs)))
    net = made(kind)
    if kind is Net:
        alphazero = pondertree.AlphaZero(Torch(net), 8, seed=1)
        runs: Any = lambda: alphazero.run(ConnectFour())  # noqa: E731
    else:
        muzero = pondertree.MuZero(TorchModel(net), 8, seed=1)
        forest = muzero.forest(observation=list(ROWS))
        runs = lambda: forest.simulate(8)  # noqa: E731
    runs()
    runs()
    cleared.clear()
    runs()
    assert not cleared
    part = net.part if kind is Owner else net
    for change in (set_to("act", nn.Sigmoid), set_to("scale", lambda: 2.0)):
        change(part)
        runs()
        assert cleared
        cleared.clear()
    if kind is Owner:
        net.factor = 3.0
        runs()
        assert cleared


@pytest.mark.parametrize("limits", [{}, {"max_memory": 1e6}], ids=["pipelined", "batched"])
@pytest.mark.parametrize("kind", [Step, Owner])
def test_replaced_modules_run_in_eval_mode(kind: Any, limits: dict[str, Any]) -> None:
    modes: list[bool] = []

    class Watch(nn.Module):  # type: ignore[misc]
        def forward(self, numbers: Any) -> Any:
            modes.append(self.training)
            return torch.tanh(numbers)

    model = made(kind)
    search = pondertree.MuZero(TorchModel(model), 5, seed=1, **limits)
    forest = search.forest(observation=list(ROWS))
    forest.simulate(5)
    watch = Watch()
    if kind is Owner:
        model.part = made(Step)
        model.part.act = watch
    else:
        model.act = watch
    forest.simulate(5)
    assert modes
    assert not any(modes)
    search.run(observation=ROWS[0])
    assert not any(modes)
    assert watch.training


class Moved(nn.Module):  # type: ignore[misc]
    """Counts its moves: there is only one device here."""

    times = 0

    def _apply(self, *arguments: Any, **options: Any) -> Any:
        self.__class__.times += 1
        return super()._apply(*arguments, **options)


@pytest.mark.parametrize(("adapter", "kind"), [(Torch, Net), (TorchModel, Step), (TorchModel, Owner)])
def test_replaced_modules_are_moved_to_device_once(adapter: Any, kind: Any) -> None:
    net = made(kind)
    adapted = adapter(net)
    net.extra = Moved()
    before = Moved.times
    for _ in range(2):
        adapted._refresh()
        assert Moved.times == before + 1, "once, not at every search"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtype_follows_weights(dtype: Any) -> None:
    need_cpu_precision(dtype)
    net, model = made(Net), made(Step)
    evaluator, adapted = Torch(net), TorchModel(model)
    alphazero, muzero = pondertree.AlphaZero(evaluator, 8, seed=1), pondertree.MuZero(adapted, 8, seed=1)
    alphazero.run(ConnectFour())
    muzero.run(observation=ROWS[0])
    expected = evaluator.evaluate(BOARDS)[0]
    for there in (dtype, torch.float32):
        net.to(there)
        model.to(there)
        assert alphazero.run(ConnectFour()).simulations == 8
        assert alphazero.run(ConnectFour()).simulations == 8
        assert muzero.run(observation=ROWS[0]).simulations == 8
        assert np.allclose(evaluator.evaluate(BOARDS)[0], expected, atol=0.05)
        assert adapted.initial_inference(ROWS)[0].dtype == there


def test_autocast_dtype_conflicting_with_new_weights_raises() -> None:
    need_cpu_precision("bfloat16")
    evaluator, model = Torch(made(Net), dtype="bfloat16"), TorchModel(made(Step), dtype="bfloat16")
    evaluator.module.double()
    model.model.double()
    with pytest.raises(InvalidArgumentError, match="the weights are float64: leave it out"):
        pondertree.AlphaZero(evaluator, 5).run(ConnectFour())
    with pytest.raises(InvalidArgumentError, match="the weights are float64: leave it out"):
        pondertree.MuZero(model, 5).run(observation=ROWS[0])


@pytest.mark.parametrize(("adapter", "kind"), [(Torch, Net), (TorchModel, Step)])
def test_dtype_accepts_torch_dtypes(adapter: Any, kind: Any) -> None:
    for wrong in (torch.int8, torch.float64, torch):
        with pytest.raises(InvalidArgumentError, match="dtype must be float32, bfloat16, float16 or None"):
            adapter(made(kind), dtype=wrong)
    assert adapter(made(kind), dtype=torch.float32)._autocast_dtype is None
    need_cpu_precision(torch.bfloat16)
    assert adapter(made(kind), dtype=torch.bfloat16)._autocast_dtype == torch.bfloat16


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_compiled_models_can_be_copied_and_pickled(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def compiling(method: Any) -> Any:
        compiled.append(method.__self__)
        return lambda *arguments: method(*arguments)  # as unpicklable as a compiled one

    monkeypatch.setattr(torch, "compile", compiling)
    model = TorchModel(made(Step), compile=True)
    compiled.clear()
    other = copied(model)
    assert all(one is other.model for one in compiled)
    assert len(compiled) == 2
    assert np.array_equal(other.initial_inference(ROWS)[1], model.initial_inference(ROWS)[1])


# --- bare modules ---------------------------------------------------------------------------------------------------


def test_bare_module_is_wrapped() -> None:
    expected = pondertree.AlphaZero(Torch(made(Net)), 20, seed=1).run(ConnectFour()).visits.tolist()
    search = pondertree.AlphaZero(made(Net), 20, seed=1)
    assert isinstance(search.evaluator, Torch)
    assert search.run(ConnectFour()).visits.tolist() == expected
    assert pondertree.AlphaZero(Cached(made(Net)), 20, seed=1).run(ConnectFour()).visits.tolist() == expected
    for other in (pondertree.Gumbel(made(Net), 8), pondertree.UCT(8, evaluator=made(Net))):
        assert isinstance(other.evaluator, Torch)


def test_module_with_evaluate_is_not_wrapped() -> None:
    class Own(Net):
        def evaluate(self, observations: Any) -> Any:
            return np.zeros((len(observations), 9)), np.zeros(len(observations))

        policy: Any = "logits"

        def __init__(self) -> None:
            nn.Module.__init__(self)

    own = Own()
    search = pondertree.AlphaZero(own, 8)
    assert search.evaluator is own
    assert search.run(TicTacToe()).simulations == 8


# --- kernel fusion --------------------------------------------------------------------------------------------------


class Answers(nn.Module):  # type: ignore[misc]
    """A network with a fusible convolution, and any structure of outputs."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.conv, self.answer = nn.Conv2d(3, 4, 3, padding=1), answer

    def forward(self, observations: Any) -> Any:
        seen = torch.relu(self.conv(observations)).flatten(1)
        return self.answer(seen[:, :7], seen[:, 0])


STRUCTURES: dict[str, tuple[Any, str]] = {
    "dict": (lambda p, v: {"policy": p, "value": v}, "must return"),
    "pair within": (lambda p, v: (p, (v, v)), "values is a tuple"),
    "three": (lambda p, v: (p, v, None), "must return"),
    "number": (lambda p, v: (p, 1.0), "values is a float"),
}


def kernel(numbers: Any, weight: Any, bias: Any, *shape: Any) -> Any:
    """The fused kernel, unfused."""
    return torch.relu(nn.functional.conv2d(numbers, weight, bias, *shape))


@pytest.mark.parametrize("name", ["pair", *STRUCTURES])
def test_network_that_cannot_be_traced_is_not_fused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cudnn_convolution_relu", kernel)
    example = torch.from_numpy(BOARDS)
    if name == "pair":
        with torch.inference_mode():
            assert fused(Answers(lambda p, v: (p, v)), example) is not None
        return
    answer, words = STRUCTURES[name]
    with torch.inference_mode():
        assert fused(Answers(answer), example) is None
    with pytest.raises(EvaluationError, match=words):
        pondertree.AlphaZero(Torch(Answers(answer)), 5).run(ConnectFour())
