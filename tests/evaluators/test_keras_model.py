"""Keras 3, on the installed backend; files are loaded in safe mode only."""

from __future__ import annotations

import importlib.util
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.networks import NONSENSE, Switch, assert_no_entry, assert_refused, assert_same_search, table
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.evaluators import Cached, Keras
from pondertree.games import Chess, ConnectFour

if "KERAS_BACKEND" not in os.environ:
    installed = [name for name in ("torch", "jax", "tensorflow") if importlib.util.find_spec(name)]
    os.environ["KERAS_BACKEND"] = installed[0] if installed else "numpy"
keras = pytest.importorskip("keras")
layers = keras.layers

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")


def build(*, last: bool = False, named: bool = False, middle: Any = None) -> Any:
    """A small network with batch normalisation and dropout, which behave differently in training."""
    keras.utils.set_random_seed(1)
    board = layers.Input((6, 7, 3) if last else (3, 6, 7))
    hidden = layers.Flatten()(board)
    hidden = layers.Dense(16, activation="relu")(hidden)
    hidden = layers.Dropout(0.5)(layers.BatchNormalization()(hidden))
    if middle is not None:
        hidden = middle(hidden)
    policy, value = layers.Dense(7)(hidden), layers.Dense(1, activation="tanh")(hidden)
    return keras.Model(board, {"policy": policy, "value": value} if named else [policy, value], name="small")


class Wrapped(keras.Model):  # type: ignore[misc]
    """NumPy code as a model."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def call(self, observations: Any, training: bool = False) -> Any:
        answer = self.function(keras.ops.convert_to_numpy(observations))
        return tuple(map(keras.ops.convert_to_tensor, answer)) if isinstance(answer, tuple) else answer


def wrapped(function: Any) -> Any:
    model = Wrapped(function)
    model.compile(run_eagerly=True)
    model.built = True
    return model


def boards(number: int) -> np.ndarray:
    return np.stack([random_position(ConnectFour, plies, 1).observation() for plies in range(number)])


@pytest.mark.parametrize("named", [False, True])
def test_keras_matches_model(named: bool) -> None:
    model = build(named=named)
    logits, values = Keras(model).evaluate(boards(5))
    expected = model(boards(5), training=False)
    policy, value = (expected["policy"], expected["value"]) if named else expected
    assert logits.dtype == values.dtype == np.float32
    assert np.allclose(logits, keras.ops.convert_to_numpy(policy), atol=1e-5)
    assert np.allclose(values, keras.ops.convert_to_numpy(value), atol=1e-5)
    assert (logits.shape, values.shape) == ((5, 7), (5, 1))


def test_search_with_keras_model() -> None:
    one, other = (pondertree.AlphaZero(Keras(build()), 30, seed=1).run(ConnectFour()) for _ in range(2))
    assert one.simulations == 30
    assert one.visits.tolist() == other.visits.tolist()


def test_search_matches_same_network_in_numpy() -> None:
    evaluator = Keras(wrapped(table))
    if evaluator._pads:
        pytest.skip("JAX traces, and NumPy code cannot be traced")
    assert_same_search(evaluator, table, ConnectFour())
    assert_same_search(evaluator, table, PythonGame(ConnectFour()), 20)
    assert_same_search(evaluator, Cached(evaluator), ConnectFour())


def test_channels_last_matches_channels_first() -> None:
    """The flattening order differs, so weights are permuted accordingly."""
    first, last = build(), build(last=True)
    kernel, *others = first.get_weights()
    moved = kernel.reshape(3, 6, 7, 16).transpose(1, 2, 0, 3).reshape(126, 16)
    last.set_weights([moved, *others])
    one, other = Keras(first).evaluate(boards(5)), Keras(last, channels_last=True).evaluate(boards(5))
    assert np.allclose(one[0], other[0], atol=1e-5)
    assert np.allclose(one[1], other[1], atol=1e-5)


def test_probabilities_match_logits() -> None:
    model = build(middle=None)
    board = keras.Input((3, 6, 7))
    policy, value = model(board)
    soft = keras.Model(board, [layers.Softmax()(policy), value])
    one = pondertree.AlphaZero(Keras(model), 30, seed=1).run(ConnectFour())
    other = pondertree.AlphaZero(Keras(soft, policy="probabilities"), 30, seed=1).run(ConnectFour())
    assert one.visits.tolist() == other.visits.tolist()


@pytest.mark.parametrize("shape", [(73, 8, 8), (8, 8, 73), (73, 64)])
def test_keras_flattens_policy_planes(shape: tuple[int, ...]) -> None:
    """The order of the moves is square * 73 + plane, planes first or last."""
    board = keras.Input((119, 8, 8))
    flat = layers.Dense(2)(layers.Flatten()(board))
    model = keras.Model(board, [layers.Reshape(shape)(layers.Dense(4672)(flat)), layers.Dense(1)(flat)])
    given = Chess().observation()[None]
    logits, _ = Keras(model).evaluate(given)
    raw = keras.ops.convert_to_numpy(model(given)[0])
    if shape[0] == 73:
        raw = raw.reshape(1, 73, 64).transpose(0, 2, 1)
    assert np.allclose(logits, raw.reshape(1, 4672), atol=1e-5)


def test_other_policy_shapes_raise() -> None:
    board = keras.Input((3, 6, 7))
    flat = layers.Flatten()(board)
    model = keras.Model(board, [layers.Reshape((7, 6))(layers.Dense(42)(flat)), layers.Dense(1)(flat)])
    with pytest.raises(pondertree.EvaluationError, match=r"7, 6\).*num_actions"):
        pondertree.AlphaZero(Keras(model), 5).run(ConnectFour())


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_outputs_are_refused(name: str) -> None:
    switch = Switch()
    evaluator = Keras(wrapped(switch))
    if evaluator._pads:
        pytest.skip("JAX traces, and NumPy code cannot be traced")
    assert_refused(evaluator, switch, *NONSENSE[name])


def test_nan_weights_are_reported() -> None:
    model = build()
    model.set_weights([np.full_like(array, np.nan) for array in model.get_weights()])
    with pytest.raises(pondertree.EvaluationError, match="row 0"):
        pondertree.AlphaZero(Keras(model), 5).run(ConnectFour())


def test_model_of_another_game_raises() -> None:
    with pytest.raises(pondertree.EvaluationError, match="raised"):
        pondertree.AlphaZero(Keras(build()), 5).run(pondertree.games.TicTacToe())


def test_reentrant_search_is_refused() -> None:
    switch = Switch()
    evaluator = Keras(wrapped(switch))
    if evaluator._pads:
        pytest.skip("JAX traces, and NumPy code cannot be traced")
    assert_no_entry(evaluator, switch)


# --- Files --------------------------------------------------------------------------------------------------------


def test_keras_file_matches_model(tmp_path: Path) -> None:
    model = build()
    model.save(tmp_path / "small.keras")
    for path in (tmp_path / "small.keras", str(tmp_path / "small.keras")):
        loaded = Keras(path)
        assert np.allclose(loaded.evaluate(boards(3))[0], Keras(model).evaluate(boards(3))[0], atol=1e-6)


@pytest.fixture
def _unsafe_allowed() -> Any:
    """Disables Keras's safe mode globally."""
    library = pytest.importorskip("keras.src.saving.serialization_lib")
    before = library.in_safe_mode()
    keras.config.enable_unsafe_deserialization()
    yield
    library.global_state.set_global_attribute("safe_mode_saving", before)


def lambda_file(tmp_path: Path) -> Path:
    path = tmp_path / "lambda.keras"
    build(middle=layers.Lambda(lambda hidden: hidden * 2, output_shape=(16,))).save(path)
    return path


def test_lambda_layer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=r"lambda.keras is refused.*Lambda.*run.*ONNX") as caught:
        Keras(lambda_file(tmp_path))
    assert isinstance(caught.value, ValueError)


@pytest.mark.usefixtures("_unsafe_allowed")
def test_lambda_layer_is_refused_after_unsafe_deserialization_is_enabled(tmp_path: Path) -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="refused"):
        Keras(lambda_file(tmp_path))


@pytest.mark.usefixtures("_unsafe_allowed")
def test_keras_loads_in_safe_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keras refuses what the inspection of the file might miss."""
    monkeypatch.setattr("pondertree.evaluators.keras_model._refuse_code", lambda *_: None)
    with pytest.raises(pondertree.InvalidArgumentError, match=r"cannot be loaded in safe mode.*(?i:lambda)"):
        Keras(lambda_file(tmp_path))


def test_model_object_with_lambda_layer_is_accepted() -> None:
    model = build(middle=layers.Lambda(lambda hidden: hidden * 2, output_shape=(16,)))
    assert pondertree.AlphaZero(Keras(model), 5).run(ConnectFour()).simulations == 5


def tampered(tmp_path: Path, change: Any) -> Path:
    """A saved model with one layer's configuration replaced."""
    build().save(tmp_path / "honest.keras")
    path = tmp_path / "tampered.keras"
    with zipfile.ZipFile(tmp_path / "honest.keras") as honest, zipfile.ZipFile(path, "w") as out:
        for name in honest.namelist():
            data = honest.read(name)
            if name == "config.json":
                config = json.loads(data)
                change(next(layer for layer in config["config"]["layers"] if layer["class_name"] == "Dense"))
                data = json.dumps(config).encode()
            out.writestr(name, data)
    return path


def test_foreign_module_is_refused_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap_of_keras.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    path = tampered(tmp_path, lambda layer: layer.update(module="trap_of_keras", registered_name="Trap"))
    with pytest.raises(pondertree.InvalidArgumentError, match=r"module trap_of_keras.*not registered"):
        Keras(path)


def test_serialized_function_is_refused(tmp_path: Path) -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["config"]["activation"] = {"module": "os", "class_name": "function", "config": "system"}

    with pytest.raises(pondertree.InvalidArgumentError, match="module os"):
        Keras(tampered(tmp_path, change))


def test_nested_lambda_layer_is_refused(tmp_path: Path) -> None:
    def change(layer: dict[str, Any]) -> None:
        layer["config"]["activation"] = {"class_name": "__lambda__", "config": {"value": ["4wAAAA==", None, None]}}

    with pytest.raises(pondertree.InvalidArgumentError, match="__lambda__"):
        Keras(tampered(tmp_path, change))


def test_registered_layer_is_accepted(tmp_path: Path) -> None:
    @keras.saving.register_keras_serializable("pondertree_tests")
    class Double(layers.Layer):  # type: ignore[misc,name-defined]
        def call(self, hidden: Any) -> Any:
            return hidden * 2

    model = build(middle=Double())
    model.save(tmp_path / "double.keras")
    assert np.allclose(
        Keras(tmp_path / "double.keras").evaluate(boards(2))[0], Keras(model).evaluate(boards(2))[0], atol=1e-6
    )


def test_old_keras_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build().save(tmp_path / "small.keras")
    monkeypatch.setattr(keras, "__version__", "3.9.2")
    with pytest.raises(pondertree.InvalidArgumentError, match=r"Keras 3\.9\.2.*3\.12"):
        Keras(tmp_path / "small.keras")


@pytest.mark.parametrize(
    ("name", "data", "match"),
    [
        ("model.h5", b"", "no .keras file"),
        ("saved_model.pb", b"", "no .keras file"),
        ("missing.keras", None, "no file"),
        ("empty.keras", b"", "is not a .keras file"),
        ("noise.keras", b"PK\x03\x04 nonsense", "is not a .keras file"),
    ],
)
def test_other_files_raise(tmp_path: Path, name: str, data: bytes | None, match: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(pondertree.InvalidArgumentError, match=match):
        Keras(tmp_path / name)


def test_other_archives_raise(tmp_path: Path) -> None:
    for name, content in (("config.json", "{"), ("config.json", "{}"), ("other.json", "{}")):
        path = tmp_path / "other.keras"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, content)
        with pytest.raises(
            pondertree.InvalidArgumentError, match=r"other.keras' is not a .keras file|other.keras cannot be loaded"
        ):
            Keras(path)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=r"keras\.Model"):
        Keras(3)
    with pytest.raises(pondertree.InvalidArgumentError, match="policy"):
        Keras(build(), policy="odds")
    with pytest.raises(pondertree.InvalidArgumentError, match="channels_last"):
        Keras(build(), channels_last="yes")  # type: ignore[arg-type]
    assert repr(Keras(build())) == "Keras(small, policy='logits')"
