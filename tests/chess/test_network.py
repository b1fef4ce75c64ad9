"""`ChessNN`: built, asked, saved and loaded."""

from __future__ import annotations

import copy
import json
import pickle
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest

from pondertree import AlphaZero, evaluators
from pondertree.chess import MCTS, ChessGame, ChessNN
from pondertree.chess.config import ChessNetworkConfig
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.evaluators.batch import Packed
from pondertree.games import Chess

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
needs_files = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("safetensors") is None, reason="needs PyTorch and safetensors"
)
needs_keras = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("keras") is None, reason="needs PyTorch and Keras"
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small networks on a machine that may be busy."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(seed: int = 1) -> ChessNN:
    """A small network whose normalisations have something to do."""
    import torch

    nn = ChessNN(blocks=2, channels=12, value_channels=3, value_hidden=10, device="cpu").build(seed=seed)
    numbers = torch.Generator().manual_seed(seed)
    for name, buffer in nn.module.named_buffers():
        if "running" in name:
            buffer.copy_(0.5 + torch.rand(buffer.shape, generator=numbers))
    return nn


def observations() -> Any:
    boards = [
        chess.Board(),
        chess.Board("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"),
        chess.Board("8/P6k/8/8/8/8/8/K7 w - -"),
    ]
    return np.stack([ChessGame(board).observation() for board in boards])


def assert_same(one: ChessNN, other: ChessNN, tolerance: float = 0.0) -> None:
    for a, b in zip(one.evaluate(observations()), other.evaluate(observations()), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def test_unbuilt_network_raises_usage_error() -> None:
    nn = ChessNN()
    assert not nn.is_built
    assert repr(nn) == "ChessNN(blocks=6, channels=64, not built)"
    uses: list[Any] = [
        lambda: nn.predict(Chess()),
        lambda: nn.evaluate(Chess().observation()[None]),
        lambda: nn.save_model("x.safetensors"),
        lambda: nn.module,
    ]
    for use in uses:
        with pytest.raises(UsageError, match=r"call build\(\) or load_model\(\) first"):
            use()


@pytest.mark.parametrize(
    "arguments", [{"blocks": -1}, {"channels": 0}, {"channels": 1.5}, {"value_hidden": "8"}, {"blocks": 10**9}]
)
def test_invalid_shapes_raise(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        ChessNN(**arguments)


def test_unknown_file_suffix_raises(tmp_path: Path) -> None:
    for name in ("model.pt", "model.h5", "model.pkl", "model"):
        with pytest.raises(InvalidArgumentError, match=r"\.safetensors or \.keras"):
            ChessNN().load_model(tmp_path / name)
    for name in ("model.safetensors", "model.keras"):
        with pytest.raises(FileNotFoundError, match=name):
            ChessNN().load_model(tmp_path / name)


@needs_torch
def test_predict_accepts_every_position_type() -> None:
    nn = small()
    game = ChessGame()
    game.make_move("e4")
    policy, value = nn.predict(game)
    assert policy.shape == (4672,)
    assert policy.sum() == pytest.approx(1, abs=1e-5)
    assert (policy >= 0).all()
    assert isinstance(value, float)
    assert -1 <= value <= 1
    for same in (game.board, game.state, game.observation()):
        assert np.array_equal(nn.predict(same)[0], policy)
    policies, values = nn.predict([game, ChessGame()])
    assert policies.shape == (2, 4672)
    assert values.shape == (2,)
    np.testing.assert_allclose(policies[0], policy, atol=1e-6)
    assert nn.predict(observations())[0].shape == (3, 4672)
    for wrong in ([], np.zeros((8, 8, 119)), np.zeros((1, 8, 8, 119)), 3):
        with pytest.raises(InvalidArgumentError):
            nn.predict(wrong)
    with pytest.raises(InvalidArgumentError, match="observations"):
        nn.evaluate(game.observation())
    logits, values = nn.evaluate(np.zeros((0, 119, 8, 8)))
    assert (logits.shape, values.shape) == ((0, 4672), (0,))


@needs_torch
def test_policy_index_matches_move_index() -> None:
    """Number square * 73 + plane: a bias on one plane, and a feature on one square, move the right logits."""
    import torch

    nn = small()
    with torch.no_grad():
        nn.module.policy_out.weight.zero_()
        nn.module.policy_out.bias.copy_(torch.arange(73.0))
    logits, _ = nn.evaluate(observations())
    assert np.array_equal(logits[0], np.tile(np.arange(73, dtype=np.float32), 64))

    nn = ChessNN(blocks=0, channels=1, device="cpu").build(seed=0)
    with torch.no_grad():
        for conv in (nn.module.stem_conv, nn.module.policy_conv):
            conv.weight.zero_()
            conv.weight[0, 0, 1, 1] = 1.0
        nn.module.policy_out.weight.zero_()
        nn.module.policy_out.weight[5] = 1.0
        nn.module.policy_out.bias.zero_()
    planes = np.zeros((1, 119, 8, 8), dtype=np.float32)
    planes[0, 0, 1, 4] = 1.0  # e2, square 12
    logits, _ = nn.evaluate(planes)
    assert np.flatnonzero(logits[0]).tolist() == [12 * 73 + 5]


@needs_torch
def test_build_is_reproducible_by_seed() -> None:
    import torch

    before = torch.random.get_rng_state()
    assert_same(small(3), small(3))
    assert not np.array_equal(small(3).evaluate(observations())[0], small(4).evaluate(observations())[0])
    fresh = [ChessNN(1, 4).build().evaluate(observations())[0] for _ in range(2)]
    assert not np.array_equal(*fresh)
    assert torch.equal(before, torch.random.get_rng_state()), "other people's random numbers are left alone"
    nn = ChessNN(1, 4)
    assert nn.build() is nn
    built = nn.version
    assert nn.build().version != built
    assert repr(nn) == "ChessNN(blocks=1, channels=4)"


@needs_torch
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_in_place_training_changes_version(kind: str) -> None:
    """Otherwise a `Cached` around it would go on with the answers of the old weights."""
    import torch

    nn = small()
    cached = evaluators.Cached(nn)
    first = MCTS(cached, 30, seed=1).run(Chess())
    version = nn.version
    assert MCTS(cached, 30, seed=1).run(Chess()).value == first.value
    assert nn.version == version, "to evaluate changes nothing"
    optimizer = getattr(torch.optim, kind)(nn.module.parameters(), lr=0.5)
    logits, values = nn.module(torch.from_numpy(observations()))
    (logits.square().mean() + (values - 1).square().mean()).backward()
    optimizer.step()
    assert nn.version != version
    again = MCTS(cached, 30, seed=1).run(Chess())
    assert again.value == MCTS(nn, 30, seed=1).run(Chess()).value != first.value


@needs_torch
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda nn: pickle.loads(pickle.dumps(nn))])
def test_network_copies_and_pickles(copied: Any) -> None:
    nn = small()
    other = copied(nn)
    assert_same(nn, other)
    assert other.module is not nn.module
    assert repr(other) == repr(nn)
    assert_same(nn, copied(evaluators.Cached(nn)).evaluator)
    assert not copied(ChessNN(1, 4)).is_built


@needs_torch
def test_every_search_accepts_network() -> None:
    nn = small()
    assert isinstance(nn, evaluators.Evaluator)
    board = chess.Board()
    packed = MCTS(nn, 40, seed=1).run(board)
    unpacked = AlphaZero(nn.evaluate, 40, seed=1).run(board)
    assert packed.visits.sum() == 40
    assert packed.value == pytest.approx(unpacked.value, abs=0.02)  # rounding may tip a choice
    assert len(MCTS(nn, 8, seed=1, in_flight=4).run([board] * 3)) == 3
    nn.module.train()
    MCTS(nn, 8, seed=1).run(board)
    assert nn.module.training, "who trains the network goes on training it"


@needs_torch
def test_evaluate_packed_matches_evaluate() -> None:
    nn = small()
    states = [Chess(), Chess("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 9")]
    legal = [state.legal_actions() for state in states]
    array = np.stack([state.observation() for state in states])
    bits = array[:, :112].reshape(2, 112, 64).astype(np.uint64) << np.arange(64, dtype=np.uint64)
    packed = Packed(
        np.bitwise_or.reduce(bits, axis=2),
        np.ascontiguousarray(array[:, 112:, 0, 0]),
        8,
        8,
        np.array([0, len(legal[0]), len(legal[0]) + len(legal[1])]),
        np.array([action for actions in legal for action in actions], dtype=np.uint16),
        4672,
    )
    assert np.array_equal(packed.unpack(), array)
    logits, values = nn.evaluate(array)
    wanted = np.concatenate([logits[row, actions] for row, actions in enumerate(legal)])
    got, got_values = nn.evaluate_packed(packed)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    np.testing.assert_allclose(got_values, values, atol=1e-6)


@needs_files
def test_safetensors_round_trip(tmp_path: Path) -> None:
    nn, path = small(), tmp_path / "net.safetensors"
    nn.save_model(path)
    other = ChessNN()
    assert other.load_model(str(path)) is other
    assert other.config == nn.config == ChessNetworkConfig(2, 12, 3, 10)
    assert_same(nn, other)
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]
    other.module.train()  # it can be trained on
    assert all(parameter.requires_grad for parameter in other.module.parameters())


@needs_torch
@pytest.mark.parametrize("kind", ["safetensors", "keras"])
def test_save_to_missing_folder_raises(tmp_path: Path, kind: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*nodir.* to save a\."):
        small().save_model(tmp_path / "nodir" / f"a.{kind}")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no folder .*file.*"):
        small().save_model(tmp_path / "file" / f"a.{kind}")


@needs_files
def test_broken_safetensors_raise_and_change_nothing(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "net.safetensors"
    small().save_model(path)
    tensors = load_file(path)
    config = {"blocks": 2, "channels": 12, "value_channels": 3, "value_hidden": 10}
    good = {"format": "pondertree.chess.ChessNN", "version": "1", "config": json.dumps(config)}
    save_file(tensors, path, metadata=good)
    nn = ChessNN().load_model(path)
    fewer = {name: tensor for name, tensor in tensors.items() if name != "value_out.bias"}
    wrong: list[tuple[dict[str, Any], dict[str, str] | None]] = [
        (tensors, None),
        (tensors, {**good, "format": "another"}),
        (tensors, {**good, "version": "2"}),
        (tensors, {**good, "config": "{"}),
        (tensors, {**good, "config": json.dumps({**config, "channels": 16})}),
        (tensors, {**good, "config": json.dumps({**config, "channels": 10**6})}),
        (tensors, {**good, "config": json.dumps({"blocks": 256, "channels": 4096})}),
        (tensors, {**good, "config": json.dumps({**config, "code": "import os"})}),
        (fewer, good),
        ({**tensors, "more": tensors["value_out.bias"]}, good),
        ({**tensors, "value_out.bias": tensors["value_out.bias"].double()}, good),
    ]
    for contents, metadata in wrong:
        save_file({name: tensor.clone() for name, tensor in contents.items()}, path, metadata=metadata)
        with pytest.raises(InvalidArgumentError, match=r"net\.safetensors"):
            nn.load_model(path)
    for raw in (b"", b"nonsense", b"\x80\x04\x95pickle"):
        path.write_bytes(raw)
        with pytest.raises(InvalidArgumentError, match=r"net\.safetensors"):
            nn.load_model(path)
    assert_same(nn, small())  # it still has what it had


@needs_keras
def test_keras_round_trip(tmp_path: Path) -> None:
    nn, path = small(), tmp_path / "net.keras"
    nn.save_model(path)
    assert [file.name for file in tmp_path.iterdir()] == ["net.keras"]
    other = ChessNN().load_model(path)
    assert other.config == nn.config
    assert type(other.module) is type(nn.module)
    assert_same(nn, other)
    other.save_model(tmp_path / "again.keras")
    assert_same(nn, ChessNN().load_model(tmp_path / "again.keras"))


@needs_keras
def test_keras_outputs_match_torch(tmp_path: Path) -> None:
    from pondertree.chess import residual_keras

    nn, path = small(), tmp_path / "net.keras"
    nn.save_model(path)
    network = residual_keras.KerasNetwork(residual_keras.load(path))
    assert not network.gives_probabilities
    for ours, theirs in zip(nn.evaluate(observations()), network.evaluate(observations()), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@needs_keras
def test_keras_file_runs_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nn, path = small(), tmp_path / "net.keras"
    nn.save_model(path)
    monkeypatch.setattr("pondertree.chess.network.find_spec", lambda name: None)
    other = ChessNN().load_model(path)
    assert other.config == nn.config
    assert type(other.module) is not type(nn.module)
    assert_same(nn, other, 1e-5)
    other.save_model(path)
    assert_same(nn, ChessNN().load_model(path), 1e-5)


@needs_keras
@pytest.mark.parametrize("planes_last", [True, False])
@pytest.mark.parametrize("softmax", [True, False])
def test_third_party_keras_network_is_used(tmp_path: Path, planes_last: bool, softmax: bool) -> None:
    from pondertree.optional import keras as keras_module

    keras = keras_module()
    layers = keras.layers
    planes = keras.Input((8, 8, 119) if planes_last else (119, 8, 8))
    flat = layers.Dense(8, activation="relu")(layers.Flatten()(planes))
    value = layers.Dense(1, activation="tanh", name="value")(flat)
    policy = layers.Dense(4672, activation="softmax" if softmax else None, name="policy")(flat)
    model = keras.Model(planes, [value, policy])
    path = tmp_path / "other.keras"
    model.save(path)
    nn = ChessNN().load_model(path)
    assert nn.config is None
    assert "another make" in repr(nn)
    given = observations()
    values, raw = model.predict_on_batch(given.transpose(0, 2, 3, 1) if planes_last else given)
    logits, got = nn.evaluate(given)
    np.testing.assert_allclose(got, values[:, 0], atol=1e-6)
    np.testing.assert_allclose(np.exp(logits) if softmax else logits, raw, atol=1e-6)
    board = chess.Board()
    assert MCTS(nn, 20, seed=1).search(board) in board.legal_moves
    nn.save_model(tmp_path / "copy.keras")
    assert_same(nn, ChessNN().load_model(tmp_path / "copy.keras"))
    with pytest.raises(InvalidArgumentError, match=r"only be saved as a \.keras"):
        nn.save_model(tmp_path / "copy.safetensors")
    with pytest.raises(UsageError, match="another make"):
        nn.build()


@needs_keras
def test_keras_network_with_named_outputs_and_policy_planes_is_used(tmp_path: Path) -> None:
    from pondertree.optional import keras as keras_module

    keras = keras_module()
    layers = keras.layers
    planes = keras.Input((119, 8, 8))
    flat = layers.Dense(4, activation="relu")(layers.Flatten()(planes))
    policy = layers.Reshape((73, 8, 8))(layers.Dense(4672)(flat))
    model = keras.Model(planes, {"z": policy, "a": layers.Dense(1, activation="tanh")(flat)})
    model.save(tmp_path / "named.keras")
    logits, values = ChessNN().load_model(tmp_path / "named.keras").evaluate(observations())
    answer = model.predict_on_batch(observations())
    np.testing.assert_allclose(values, answer["a"][:, 0], atol=1e-6)
    assert logits[1, 12 * 73 + 5] == pytest.approx(answer["z"][1, 5, 1, 4], abs=1e-6)


@needs_keras
@pytest.mark.parametrize("shape", [(8, 8, 73), (73, 64), (64, 73), (4672, 1)])
def test_keras_network_with_other_chess_heads_is_used(tmp_path: Path, shape: tuple[int, ...]) -> None:
    from pondertree.optional import keras as keras_module

    keras = keras_module()
    layers = keras.layers
    planes = keras.Input((119, 8, 8))
    flat = layers.Dense(4, activation="relu")(layers.Flatten()(planes))
    policy = layers.Reshape(shape)(layers.Dense(4672)(flat))
    model = keras.Model(planes, [policy, layers.Dense(1, activation="tanh")(flat)])
    model.save(tmp_path / "head.keras")
    logits, _ = ChessNN().load_model(tmp_path / "head.keras").evaluate(observations())
    raw = model.predict_on_batch(observations())[0].reshape(3, -1)
    expected = raw.reshape(3, 73, 64).transpose(0, 2, 1).reshape(3, 4672) if shape == (73, 64) else raw
    np.testing.assert_allclose(logits, expected, atol=1e-6)


@needs_keras
def test_unusable_keras_files_raise(tmp_path: Path) -> None:
    from pondertree.optional import keras as keras_module

    keras = keras_module()
    layers = keras.layers
    path = tmp_path / "net.keras"
    planes = keras.Input((119, 8, 8))
    flat = layers.Flatten()(planes)
    two, one = layers.Dense(4672)(flat), layers.Dense(1)(flat)
    other = keras.Input((3,))
    # A Lambda carries code, which safe mode does not read.
    code = layers.Lambda(lambda x: x)(two)
    for model, words in (
        (keras.Model(planes, two), "one value"),
        (keras.Model(planes, [two, two, one]), "one value"),
        (keras.Model(other, [layers.Dense(4672)(other), layers.Dense(1)(other)]), "119"),
        (keras.Model(planes, [code, one]), "Lambda"),
        (keras.Model(planes, [layers.Reshape((8, 73, 8))(two), one]), r"8, 73, 8\).*73, 8, 8"),
    ):
        model.save(path)
        nn = ChessNN()
        with pytest.raises(InvalidArgumentError, match=words):
            nn.load_model(path)
        assert not nn.is_built
    path.write_bytes(b"nonsense")
    with pytest.raises(InvalidArgumentError, match=r"cannot be (read|loaded)"):
        ChessNN().load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(InvalidArgumentError, match=r"cannot be (read|loaded)"):
        ChessNN().load_model(path)


def test_missing_framework_error_names_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for name in ("torch", "keras"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install .*\[torch\]"):
        ChessNN().build()
    for kind in ("safetensors", "keras"):
        path = tmp_path / f"net.{kind}"
        path.write_bytes(b"")
        with pytest.raises(ImportError, match=r"pip install .*\[(torch|keras)\]"):
            ChessNN().load_model(path)
