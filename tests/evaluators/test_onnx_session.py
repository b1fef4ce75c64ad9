"""ONNX Runtime, with models built node by node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.networks import assert_same_search
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Onnx
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
helper, numpy_helper, FLOAT = onnx.helper, onnx.numpy_helper, onnx.TensorProto.FLOAT

TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.float16): 10, np.dtype(np.float64): 11, np.dtype(np.int64): 7}


def weights_of(state: Any, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Random weights with few bits, so that all sums are exact."""
    numbers = np.random.default_rng(1)
    inputs = state.observation().size
    policy = numbers.integers(-8, 8, (inputs, state.num_actions)) / 8
    return policy.astype(dtype), (numbers.integers(-8, 8, (inputs, 1)) / 1024).astype(dtype)


def build(
    state: Any,
    *,
    names: tuple[str, ...] = ("policy", "value"),
    batch: Any = "batch",
    dtype: Any = np.float32,
    bias: np.ndarray | None = None,
    value_bias: float = 0.0,
    extra_input: bool = False,
    head: tuple[int, ...] | None = None,
) -> bytes:
    """A linear network: (observations @ weights + bias) for both outputs, in the order of `names`."""
    policy, value = weights_of(state, dtype)
    bias = np.zeros(state.num_actions, dtype=dtype) if bias is None else bias.astype(dtype)
    constants = {"W": policy, "V": value, "b": bias, "c": np.array([value_bias], dtype=dtype)}
    nodes = [
        helper.make_node("Flatten", ["board"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "W"], ["raw_policy"]),
        helper.make_node("Add", ["raw_policy", "b"], ["policy" if head is None else "flat_policy"]),
        helper.make_node("MatMul", ["flat", "V"], ["raw_value"]),
        helper.make_node("Add", ["raw_value", "c"], ["value"]),
    ]
    if head is not None:
        constants["head"] = np.array([-1, *head], dtype=np.int64)
        nodes.append(helper.make_node("Reshape", ["flat_policy", "head"], ["policy"]))
    kinds = {"policy": "policy", "value": "value"}
    for name in names:
        if name not in kinds:  # an alias of whichever output is missing
            kinds[name] = "value" if "v" in name.lower() else "policy"
            nodes.append(helper.make_node("Identity", [kinds[name]], [name]))
    kind = TYPES[np.dtype(dtype)]
    inputs = [helper.make_tensor_value_info("board", kind, [batch, *state.observation().shape])]
    if extra_input:
        inputs.append(helper.make_tensor_value_info("other", kind, [batch, 1]))
    shapes = {"value": [batch, 1], "policy": [batch, *(head or [state.num_actions])]}
    outputs = [helper.make_tensor_value_info(n, kind, shapes[kinds[n]]) for n in names]
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "linear", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def plain(state: Any) -> Any:
    """The same network in NumPy."""
    policy, value = weights_of(state)

    def evaluate(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = observations.reshape(len(observations), -1)
        return flat @ policy, flat @ value

    return evaluate


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello])
@pytest.mark.parametrize("batch", ["batch", None, 1, 2, 4])
def test_search_matches_same_network_in_numpy(start: Any, batch: Any) -> None:
    """A fixed batch size is met by splitting and padding."""
    assert_same_search(Onnx(build(start(), batch=batch)), plain(start()), start(), in_flight=2)


def test_python_games_and_cache() -> None:
    evaluator = Onnx(build(ConnectFour()))
    assert_same_search(evaluator, plain(ConnectFour()), PythonGame(ConnectFour()))
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())


def test_path_bytes_and_session_are_equivalent(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(build(ConnectFour()))
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    board = random_position(ConnectFour, 5, 1).observation()[None]
    outputs = [Onnx(model).evaluate(board)[0].tolist() for model in (path, str(path), path.read_bytes(), session)]
    assert outputs == [plain(ConnectFour())(board)[0].tolist()] * 4


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (("policy", "value"), None, ("policy", "value")),
        (("value", "policy"), None, ("policy", "value")),
        (("value", "policy_logits"), None, ("policy_logits", "value")),
        (("Values", "logits"), None, ("logits", "Values")),
        (("p", "v"), None, ("p", "v")),
        (("v", "p"), ("p", "v"), ("p", "v")),
        (("v", "p"), ["p", "v"], ("p", "v")),
    ],
)
def test_outputs_are_found_by_name_or_order(names: tuple[str, str], wanted: Any, found: tuple[str, str]) -> None:
    evaluator = Onnx(build(ConnectFour(), names=names), outputs=wanted, input="board")
    assert evaluator.outputs == found
    assert_same_search(evaluator, plain(ConnectFour()), ConnectFour(), 20)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_input_dtypes(dtype: Any) -> None:
    evaluator = Onnx(build(ConnectFour(), dtype=dtype))
    board = random_position(ConnectFour, 5, 1).observation()[None]
    logits, values = evaluator.evaluate(board)
    assert logits.dtype == values.dtype == np.float32
    assert np.allclose(logits, plain(ConnectFour())(board)[0], atol=1e-2)


@pytest.mark.parametrize("batch", ["batch", 2])
def test_onnx_flattens_policy_planes(batch: Any) -> None:
    """AlphaZero's head, 73 planes of 8 x 8: the order of the moves is square * 73 + plane."""
    boards = np.stack([random_position(Chess, plies, 1).observation() for plies in range(3)])
    logits, _ = Onnx(build(Chess(), head=(73, 8, 8), batch=batch)).evaluate(boards)
    raw = plain(Chess())(boards)[0]
    assert np.allclose(logits, raw.reshape(3, 73, 64).transpose(0, 2, 1).reshape(3, 4672), atol=1e-3)
    with pytest.raises(pondertree.EvaluationError, match=r"3, 3\).*num_actions"):
        pondertree.AlphaZero(Onnx(build(TicTacToe(), head=(3, 3))), 5).run(TicTacToe())


def test_numbers_beyond_float32_raise() -> None:
    for number in (1e39, -1e39):
        evaluator = Onnx(build(ConnectFour(), dtype=np.float64, bias=one(number)))
        with pytest.raises(pondertree.EvaluationError, match=r"policy_logits of row 0 has .*too large for float32"):
            pondertree.AlphaZero(evaluator, 5).run(ConnectFour())
    with pytest.raises(pondertree.EvaluationError, match=r"values of row 0 has .*too large for float32"):
        pondertree.AlphaZero(Onnx(build(ConnectFour(), dtype=np.float64, value_bias=1e39)), 5).run(ConnectFour())


def test_probabilities_match_logits() -> None:
    assert Onnx(build(ConnectFour()), policy="probabilities").policy == "probabilities"
    even = Onnx(build(ConnectFour(), bias=np.full(7, -1e9)), policy="probabilities")
    with pytest.raises(pondertree.EvaluationError, match="row 0"):  # negative probability
        pondertree.AlphaZero(even, 5).run(ConnectFour())


def test_threads_and_providers_are_passed_on() -> None:
    options = Onnx(build(ConnectFour())).session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    evaluator = Onnx(build(ConnectFour()), threads=2, providers=["CPUExecutionProvider"])
    assert evaluator.session.get_session_options().intra_op_num_threads == 2
    assert evaluator.session.get_providers() == ["CPUExecutionProvider"]


def one(value: float) -> np.ndarray:
    return np.where(np.arange(7) == 2, value, 0.0)


NONSENSE: dict[str, tuple[Any, str]] = {
    "nan logit": (lambda: build(ConnectFour(), bias=one(np.nan)), "row 0"),
    "inf logit": (lambda: build(ConnectFour(), bias=one(np.inf)), "row 0"),
    "no move": (lambda: build(ConnectFour(), bias=np.full(7, -np.inf)), "row 0.*every legal move"),
    "nan value": (lambda: build(ConnectFour(), value_bias=np.nan), "row 0"),
    "another game": (lambda: build(TicTacToe()), "raised InvalidArgument"),
    "both the policy": (lambda: build(ConnectFour(), names=("policy", "p")), "values has shape"),
    "both the value": (lambda: build(ConnectFour(), names=("value", "v")), "policy_logits has shape"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str) -> None:
    model, message = NONSENSE[name]
    tree = pondertree.AlphaZero(Onnx(model()), seed=1).tree(ConnectFour())
    with pytest.raises(pondertree.EvaluationError, match=message):
        tree.simulate(5)
    assert tree.result().simulations == 0


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (3, {}, "model"),
    (None, {}, "model"),
    ("nowhere.onnx", {}, "no file"),
    (b"nonsense", {}, "cannot load"),
    (b"", {}, "cannot load"),
    (lambda: build(ConnectFour()), {"policy": "odds"}, "policy"),
    (lambda: build(ConnectFour()), {"threads": 0}, "threads"),
    (lambda: build(ConnectFour()), {"threads": "2"}, "threads"),
    (lambda: build(ConnectFour()), {"input": "boards"}, "input 'boards'.*board"),
    (lambda: build(ConnectFour()), {"outputs": ("policy", "wdl")}, "outputs"),
    (lambda: build(ConnectFour()), {"outputs": "policy"}, "outputs"),
    (lambda: build(ConnectFour()), {"providers": ["NoSuchProvider"]}, "NoSuchProvider.*CPUExecutionProvider"),
    (lambda: build(ConnectFour()), {"providers": [("NoSuchProvider", {})]}, "NoSuchProvider"),
    (lambda: build(ConnectFour(), names=("policy",)), {}, "only the output policy"),
    (lambda: build(ConnectFour(), dtype=np.int64), {}, "int64"),
    (lambda: build(ConnectFour(), extra_input=True), {}, "2 inputs"),
]


@pytest.mark.parametrize(("model", "settings", "match"), WRONG)
def test_invalid_arguments_raise(model: Any, settings: dict[str, Any], match: str) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=match):
        Onnx(model() if callable(model) else model, **settings)


def test_errors_name_model_file(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    contents = (b"nonsense", build(ConnectFour(), names=("policy",)), build(ConnectFour(), extra_input=True))
    for content, message in zip(contents, ("cannot load", "only the output policy", "2 inputs"), strict=True):
        path.write_bytes(content)
        with pytest.raises(pondertree.InvalidArgumentError, match=rf"network\.onnx.*{message}"):
            Onnx(path)
    with pytest.raises(pondertree.errors.MissingFileError, match=r"there is no file '.*none\.onnx'"):
        Onnx(tmp_path / "none.onnx")


def test_repr_names_input_outputs_and_policy() -> None:
    assert repr(Onnx(build(ConnectFour()))) == "Onnx(input='board', outputs=('policy', 'value'), policy='logits')"
