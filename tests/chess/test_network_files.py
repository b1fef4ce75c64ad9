"""Files of `ChessNN`: .safetensors and .keras, ours and third-party networks."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
from tests.support.chess_networks import assert_same, needs_files, needs_keras, needs_torch, observations, small

from pondertree.chess import MCTS, ChessNN
from pondertree.chess.config import ChessNetworkConfig
from pondertree.errors import InvalidArgumentError, UsageError

pytestmark = pytest.mark.usefixtures("one_thread")


def test_unknown_file_suffix_raises(tmp_path: Path) -> None:
    for name in ("model.pt", "model.h5", "model.pkl", "model"):
        with pytest.raises(InvalidArgumentError, match=r"\.safetensors or \.keras"):
            ChessNN().load_model(tmp_path / name)
    for name in ("model.safetensors", "model.keras"):
        with pytest.raises(FileNotFoundError, match=name):
            ChessNN().load_model(tmp_path / name)


@needs_files
def test_safetensors_round_trip(tmp_path: Path) -> None:
    nn, path = small(), tmp_path / "net.safetensors"
    nn.save_model(path)
    other = ChessNN()
    assert other.load_model(str(path)) is other
    assert other.config == nn.config == ChessNetworkConfig(2, 12, 3, 10)
    assert_same(nn, other)
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]
    other.module.train()  # trainable
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
    assert_same(nn, small())  # unchanged


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
    assert "third party" in repr(nn)
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
    with pytest.raises(UsageError, match="third-party network"):
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
    # A Lambda layer contains code, which safe mode rejects.
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
