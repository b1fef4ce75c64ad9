"""PyTorch modules as evaluators, in both forms."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.networks import (
    NONSENSE,
    ObservationsOnly,
    Switch,
    assert_no_entry,
    assert_refused,
    assert_same_search,
    table,
)
from tests.support.precision import need_cpu_precision
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Packed, Symmetric, Torch, symmetries_of
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, TicTacToe

torch = pytest.importorskip("torch")

torch.set_num_threads(1)  # the networks are tiny, and other work on the machine is not

GAMES = list(COMPILED)


class Net(torch.nn.Module):  # type: ignore[misc]
    """A small network with batch normalisation and dropout."""

    def __init__(self, state: Any, planes_of_policy: bool = False) -> None:
        super().__init__()
        channels, height, width = state.observation().shape
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(channels, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5)
        )
        self.head = torch.nn.Linear(8 * height * width, state.num_actions)
        self.value = torch.nn.Linear(8 * height * width, 1)
        self.planes_of_policy = planes_of_policy

    def forward(self, observations: Any) -> tuple[Any, Any]:
        assert not torch.is_grad_enabled()
        assert not self.training
        flat = self.body(observations).flatten(1)
        logits = self.head(flat)
        return logits.reshape(len(logits), -1, 1) if self.planes_of_policy else logits, torch.tanh(self.value(flat))


def net(state: Any, seed: int = 0, **settings: Any) -> Net:
    torch.manual_seed(seed)
    return Net(state, **settings)


class Wrapped(torch.nn.Module):  # type: ignore[misc]
    """NumPy code as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, observations: Any) -> Any:
        answer = self.function(observations.numpy())
        return tuple(map(torch.from_numpy, answer)) if isinstance(answer, tuple) else answer


@pytest.mark.parametrize("start", GAMES)
@pytest.mark.parametrize("batch_size", [None, 2])
def test_packed_form_matches_observations(start: Any, batch_size: int | None) -> None:
    # Kernels round differently for other batch sizes, so that an exact network is used for partial batches.
    module = net(start()) if batch_size is None else Wrapped(lambda seen: table(seen, start().num_actions))
    evaluator = Torch(module, batch_size=batch_size)
    assert_same_search(evaluator, ObservationsOnly(evaluator), start(), 40, in_flight=4)


@pytest.mark.parametrize("start", GAMES)
def test_unpacking_is_exact(start: Any) -> None:
    """Unpacked planes and scalars are equal to the observations."""
    seen: list[np.ndarray] = []

    def record(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(observations.copy())
        return table(observations, start().num_actions)

    states = [random_position(start, plies, 5) for plies in (0, 3, 4, 8, 30)]
    pondertree.AlphaZero(Torch(Wrapped(record)), 1, seed=1).run(states)
    assert np.array_equal(seen[0], np.stack([state.observation() for state in states]))


def test_highest_bit_and_highest_action() -> None:
    """Bit 63 is the sign of a signed number, and actions above 32767 are negative int16."""
    planes = np.array([[1 << 63, (1 << 63) | 1]], dtype=np.uint64)
    legal = np.array([0, 40_000, 65_534], dtype=np.uint16)
    packed = Packed(planes, np.array([[0.25]], dtype=np.float32), 8, 8, np.array([0, 3]), legal, 65_535)
    seen: list[np.ndarray] = []

    def record(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(observations.copy())
        return np.arange(65_535, dtype=np.float32)[None], np.zeros(1, dtype=np.float32)

    logits, _ = Torch(Wrapped(record)).evaluate_packed(packed)
    assert np.array_equal(seen[0], packed.unpack())
    assert logits.tolist() == [0.0, 40_000.0, 65_534.0]


def test_torch_matches_module() -> None:
    module = net(ConnectFour()).eval()
    boards = np.stack([random_position(ConnectFour, plies, 1).observation() for plies in range(6)])
    logits, values = Torch(module).evaluate(boards)
    with torch.inference_mode():
        expected = module(torch.from_numpy(boards))
    assert logits.dtype == values.dtype == np.float32
    assert np.array_equal(logits, expected[0].numpy())
    assert np.array_equal(values, expected[1].numpy())


def test_python_games_and_wrappers() -> None:
    evaluator = Torch(Wrapped(table))
    assert_same_search(evaluator, table, PythonGame(ConnectFour()))
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())
    symmetries = symmetries_of("connect4")
    assert_same_search(Symmetric(evaluator, symmetries), Symmetric(table, symmetries), ConnectFour())


def test_policy_with_extra_axis() -> None:
    assert_same_search(Torch(net(ConnectFour())), Torch(net(ConnectFour(), planes_of_policy=True)), ConnectFour())


@pytest.mark.parametrize("form", ["packed", "observations"])
@pytest.mark.parametrize("planes_first", [True, False])
@pytest.mark.parametrize("batch_size", [None, 2])
def test_torch_flattens_policy_planes(form: str, planes_first: bool, batch_size: int | None) -> None:
    """AlphaZero's head, 73 planes of 8 x 8: the order of the moves is square * 73 + plane."""

    def flat(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return table(observations, 4672)

    def planes(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = flat(observations)
        squares = logits.reshape(-1, 8, 8, 73)
        return np.ascontiguousarray(squares.transpose(0, 3, 1, 2)) if planes_first else squares, values

    one, other = (Torch(Wrapped(function), batch_size=batch_size) for function in (flat, planes))
    if form == "observations":
        one, other = ObservationsOnly(one), ObservationsOnly(other)  # type: ignore[assignment]
    assert_same_search(one, other, Chess(), 20, in_flight=2)


@pytest.mark.parametrize("form", ["packed", "observations"])
def test_other_policy_shapes_raise(form: str) -> None:
    evaluator: Any = Torch(Wrapped(lambda o: (np.zeros((len(o), 9, 3, 3), dtype=np.float32), table(o)[1])))
    with pytest.raises(pondertree.EvaluationError, match=r"shape \(1, 9, 3, 3\).*num_actions"):
        pondertree.AlphaZero(evaluator if form == "packed" else ObservationsOnly(evaluator), 5).run(TicTacToe())
    flat: Any = Torch(Wrapped(lambda o: (np.zeros(len(o), dtype=np.float32), table(o)[1])))
    with pytest.raises(pondertree.EvaluationError, match=r"shape \(1,\): it must be \(1, 9\)"):
        pondertree.AlphaZero(flat if form == "packed" else ObservationsOnly(flat), 5).run(TicTacToe())


@pytest.mark.parametrize("form", ["packed", "observations"])
@pytest.mark.parametrize("number", [1e39, -1e39])
def test_numbers_beyond_float32_raise(form: str, number: float) -> None:
    def large(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((len(observations), 7))
        logits[-1, 3] = number
        return logits, np.zeros(len(observations))

    evaluator: Any = Torch(Wrapped(large))
    with pytest.raises(pondertree.EvaluationError, match=r"row 1 has .*too large for float32"):
        pondertree.AlphaZero(evaluator if form == "packed" else ObservationsOnly(evaluator), 5).run([ConnectFour()] * 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda evaluator: pickle.loads(pickle.dumps(evaluator))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_evaluator_can_be_copied_and_pickled(copied: Any, dtype: str) -> None:
    need_cpu_precision(dtype)
    evaluator = Torch(net(ConnectFour()), dtype=dtype, policy="probabilities", batch_size=3)
    evaluator.version = 4
    other = copied(evaluator)
    assert repr(other) == repr(evaluator)
    assert (other.batch_size, other.version, other.policy) == (3, 4, "probabilities")
    assert other.module is not evaluator.module
    boards = np.stack([random_position(ConnectFour, plies, 1).observation() for plies in range(6)])
    for one, two in zip(evaluator.evaluate(boards), other.evaluate(boards), strict=True):
        assert np.array_equal(one, two)
    plain = Torch(net(ConnectFour()))
    assert_same_search(plain, copied(plain), ConnectFour(), 20)
    assert np.array_equal(copied(Cached(plain)).evaluate(boards)[0], plain.evaluate(boards)[0])


def change(module: Any, how: str) -> None:
    """Changes the weights in one of several common ways."""
    weights = list(module.parameters())
    if how == "no_grad":
        with torch.no_grad():
            weights[-1].add_(0.5)
    elif how == "load_state_dict":
        module.load_state_dict(net(ConnectFour(), seed=5).state_dict())
    elif how == "assigned":
        module.load_state_dict(net(ConnectFour(), seed=5).state_dict(), assign=True)
    elif how == "statistics":
        next(part for part in module.modules() if hasattr(part, "running_mean")).running_mean.add_(1.0)
    else:
        kind, _, setting = how.partition(" ")
        optimizer = getattr(torch.optim, kind)(weights, lr=0.5, **({setting: True} if setting else {}))
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer.step()


WAYS = ["no_grad", "load_state_dict", "assigned", "statistics", "SGD", "Adam", "AdamW", "Adam foreach", "Adam fused"]


@pytest.mark.parametrize("how", WAYS)
def test_weights_version_changes_with_weights(how: str) -> None:
    evaluator = Torch(net(ConnectFour()))
    before = evaluator.weights_version()
    pondertree.AlphaZero(evaluator, 10).run(ConnectFour())
    assert evaluator.weights_version() == before, "to evaluate changes nothing"
    change(evaluator.module, how)
    assert evaluator.weights_version() != before


def test_values_for_each_player() -> None:
    def per_player(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = table(observations)
        first = np.where(observations[:, 2, 0, 0] == 1, values, -values)
        return logits, np.stack([first, -first], axis=1)

    assert_same_search(Torch(Wrapped(per_player)), Torch(Wrapped(table)), ConnectFour())


def test_probabilities_match_logits() -> None:
    module = Wrapped(lambda observations: (np.exp(table(observations)[0]), table(observations)[1]))
    one = pondertree.AlphaZero(Torch(module, policy="probabilities"), 80, seed=1).run(ConnectFour())
    other = pondertree.AlphaZero(Torch(Wrapped(table)), 80, seed=1).run(ConnectFour())
    assert one.visits.tolist() == other.visits.tolist()


def test_module_modes_are_restored() -> None:
    module = net(ConnectFour())
    module.body[1].eval()  # a frozen submodule
    modes = [part.training for part in module.modules()]
    assert True in modes
    assert False in modes
    statistics = module.body[1].running_mean.clone()
    pondertree.AlphaZero(Torch(module), 20).run(ConnectFour())
    assert [part.training for part in module.modules()] == modes
    assert torch.equal(module.body[1].running_mean, statistics)

    switch = Switch(broken=NONSENSE["failure"][0])
    failing = Wrapped(switch).train()
    with pytest.raises(pondertree.EvaluationError):
        pondertree.AlphaZero(Torch(failing), 5).run(ConnectFour())
    assert failing.training


def test_module_is_used_in_place() -> None:
    """Weights trained later take effect."""
    module = net(ConnectFour())
    evaluator = Torch(module)
    board = ConnectFour().observation()[None]
    before, _ = evaluator.evaluate(board)
    with torch.no_grad():
        module.head.bias.add_(1.0)
    after, _ = evaluator.evaluate(board)
    assert np.allclose(after, before + 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("start", [ConnectFour, Chess])
def test_autocast_in_reduced_precision(dtype: str, start: Any) -> None:
    need_cpu_precision(dtype)
    full, half = Torch(net(start())), Torch(net(start()), dtype=dtype)
    boards = np.stack([random_position(start, plies, 1).observation() for plies in range(6)])
    logits, values = half.evaluate(boards)
    assert logits.dtype == values.dtype == np.float32
    assert np.allclose(logits, full.evaluate(boards)[0], atol=0.05)
    assert not np.array_equal(logits, full.evaluate(boards)[0])
    assert half.module.head.weight.dtype == torch.float32
    assert_same_search(half, ObservationsOnly(half), start(), 20)


def test_reduced_precision_weights() -> None:
    need_cpu_precision("bfloat16")
    evaluator = Torch(net(ConnectFour()).to(torch.bfloat16))
    assert_same_search(evaluator, ObservationsOnly(evaluator), ConnectFour(), 20)
    Torch(net(ConnectFour()).to(torch.bfloat16), dtype="bfloat16")
    with pytest.raises(pondertree.InvalidArgumentError, match="weights are bfloat16"):
        Torch(net(ConnectFour()).to(torch.bfloat16), dtype="float32")


def test_uct_uses_values() -> None:
    assert pondertree.UCT(20, evaluator=Torch(net(ConnectFour())), seed=1).run(ConnectFour()).simulations == 20


@pytest.mark.parametrize("form", ["packed", "observations"])
@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str, form: str) -> None:
    switch = Switch()
    evaluator = Torch(Wrapped(switch))
    broken, message = NONSENSE[name]
    assert_refused(evaluator if form == "packed" else ObservationsOnly(evaluator), switch, broken, message)


MODULES: dict[str, tuple[Any, str]] = {
    "dict": (lambda o: {"policy": 1, "value": 2}, "'policy', 'value'"),
    "strings": (lambda o: ["a", "b"], "policy_logits is a str"),
    "complex": (lambda o: [torch.zeros(len(o), 7, dtype=torch.complex64), torch.zeros(len(o))], "complex64"),
    "no rows": (lambda o: [torch.tensor(1.0), torch.zeros(len(o))], "policy_logits has shape"),
}


@pytest.mark.parametrize("name", MODULES)
def test_outputs_of_wrong_structure_raise(name: str) -> None:
    function, message = MODULES[name]
    with pytest.raises(pondertree.EvaluationError, match=message):
        pondertree.AlphaZero(Torch(Wrapped(function)), 5).run(ConnectFour())


def test_integer_outputs_are_accepted() -> None:
    module = Wrapped(lambda o: [torch.zeros(len(o), 7, dtype=torch.int32), torch.zeros(len(o), dtype=torch.int64)])
    assert pondertree.AlphaZero(Torch(module), 5).run(ConnectFour()).simulations == 5


def test_reentrant_search_is_refused() -> None:
    switch = Switch()
    assert_no_entry(Torch(Wrapped(switch)), switch)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"module": 3}, "module"),
    ({"module": table}, "module"),
    ({"device": "gpu"}, "device"),
    ({"device": 1.5}, "device"),
    ({"dtype": "int8"}, "dtype"),
    ({"dtype": "float64"}, "dtype"),
    ({"policy": "odds"}, "policy"),
    ({"batch_size": 0}, "batch_size"),
    ({"batch_size": 1.5}, "batch_size"),
]


@pytest.mark.parametrize(("given", "match"), WRONG)
def test_invalid_arguments_raise(given: dict[str, Any], match: str) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=match):
        Torch(**{"module": net(ConnectFour()), **given})


def test_missing_device_raises() -> None:
    if torch.cuda.is_available():
        pytest.skip("it is there")
    with pytest.raises(pondertree.InvalidArgumentError, match="cuda"):
        Torch(net(ConnectFour()), device="cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("start", GAMES)
@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_cuda_matches_cpu(start: Any, dtype: str | None) -> None:
    evaluator = Torch(net(start()), device="cuda", dtype=dtype)
    assert_same_search(evaluator, ObservationsOnly(evaluator), start(), 40)
    on_cpu = Torch(net(start()))
    boards = np.stack([random_position(start, plies, 1).observation() for plies in range(6)])
    assert np.allclose(evaluator.evaluate(boards)[0], on_cpu.evaluate(boards)[0], atol=0.05)


def test_repr_names_module_device_and_policy() -> None:
    assert repr(Torch(net(ConnectFour()))) == "Torch(Net, device='cpu', policy='logits')"
