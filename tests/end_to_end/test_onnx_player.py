"""ONNX files in every command that takes a player."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.networks.test_numpy_player import written

import pondertree
from pondertree import cli
from pondertree.errors import InvalidArgumentError, MissingExtraError, StorageError
from pondertree.games import Chess, TicTacToe
from pondertree.match import play_match
from pondertree.match.spec import read_evaluator
from pondertree.uci.options import open_network

pytest.importorskip("torch")
pytest.importorskip("safetensors")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from pondertree.networks.loading import export_onnx, find_player  # noqa: E402

SIZE = {"blocks": 1, "channels": 4}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """ONNX players of tic-tac-toe and chess with random weights, as exported and without metadata."""
    folder = tmp_path_factory.mktemp("onnx")
    found = {}
    for name, state in (("tic-tac-toe", TicTacToe()), ("chess", Chess())):
        planes = 73 if name == "chess" else 0
        content = written(tuple(state.observation().shape), state.num_actions, planes, SIZE, game=name)
        found[f"{name} weights"] = folder / f"{name}.safetensors"
        found[f"{name} weights"].write_bytes(content)
        found[name] = folder / f"{name}.onnx"
        export_onnx(found[f"{name} weights"], found[name])
        model = onnx.load(str(found[name]))
        del model.metadata_props[:]
        found[f"{name} bare"] = folder / f"{name}-bare.onnx"
        onnx.save(model, str(found[f"{name} bare"]))
    return found


def test_loaded_onnx_file_matches_weights(files: dict[str, Path]) -> None:
    weights, player = pondertree.load(files["tic-tac-toe weights"]), pondertree.load(files["tic-tac-toe"])
    observations = np.stack([TicTacToe().observation(), TicTacToe().play(4).observation()])
    for one, two in zip(weights.evaluate(observations), player.evaluate(observations), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
    assert player.about == weights.about
    assert pondertree.load(files["tic-tac-toe bare"]).about == {"network": {"shape": [3, 3, 3], "num_actions": 9}}


@pytest.mark.parametrize("which", ["tic-tac-toe", "tic-tac-toe bare", "tic-tac-toe weights"])
def test_search_command_accepts_onnx_file(
    files: dict[str, Path], which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["search", "tic-tac-toe", "--player", str(files[which]), "--simulations", "20", "--seed", "1", "--json"]
    assert cli.main(given) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["algorithm"], found["simulations"]) == ("alphazero", 20)


@pytest.mark.parametrize("which", ["tic-tac-toe", "tic-tac-toe weights"])
def test_play_command_accepts_onnx_file(
    files: dict[str, Path], which: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    given = ["play", "tic-tac-toe", "--player", str(files[which]), "--simulations", "20", "--side", "none"]
    assert cli.main(given) == 0
    assert "X plays" in capsys.readouterr().out


@pytest.mark.parametrize("named", ["onnx:{}", "player:{}"])
def test_match_command_accepts_onnx_file(
    files: dict[str, Path], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    player = f"alphazero:evaluator={named.format(files['tic-tac-toe'])},num_simulations=8"
    assert cli.main(["match", player, "random", "--game", "tic-tac-toe", "--games", "2", "--concurrency", "1"]) == 0
    assert "games 2" in capsys.readouterr().out


@pytest.mark.parametrize("which", ["chess", "chess bare", "chess weights"])
def test_uci_command_accepts_onnx_file(files: dict[str, Path], which: str) -> None:
    network = open_network(str(files[which]), 2)
    assert pondertree.AlphaZero(network, 8, seed=1).run(Chess()).simulations == 8


def test_every_command_refuses_player_of_another_game(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    learned, shapes = "this is a player of tic-tac-toe, not of", r"this player is not one of {}: it has 9 actions and "
    for command in ("search", "play"):
        assert cli.main([command, "othello", "--player", str(files["tic-tac-toe"])]) == 2
        assert f"{learned} othello" in capsys.readouterr().err
        assert cli.main([command, "othello", "--player", str(files["tic-tac-toe bare"])]) == 2
        told = capsys.readouterr().err
        assert shapes.format("othello") + "observations of shape [3, 3, 3], the game 65 and [" in told
    for form in ("onnx", "player"):
        player = f"alphazero:evaluator={form}:{files['tic-tac-toe']},num_simulations=8"
        with pytest.raises(InvalidArgumentError, match=f"player1: {learned} othello"):
            play_match(player, "random", game="othello", num_games=2)
    with pytest.raises(InvalidArgumentError, match=f"{learned} chess"):
        open_network(str(files["tic-tac-toe"]), 1)
    with pytest.raises(InvalidArgumentError, match=shapes.format("chess")):
        open_network(str(files["tic-tac-toe bare"]), 1)


def test_other_observation_shape_with_equal_actions_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, path = tmp_path / "player.safetensors", tmp_path / "player.onnx"
    weights.write_bytes(written((2, 3, 3), 9, 0, SIZE, game=""))
    export_onnx(weights, path)
    for given in (weights, path):
        assert cli.main(["search", "tic-tac-toe", "--player", str(given)]) == 2
        told = capsys.readouterr().err
        assert "9 actions and observations of shape [2, 3, 3], the game 9 and [3, 3, 3]" in told


def test_every_command_names_install_command_without_onnxruntime(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    path = str(files["chess"])
    missing = r"needs onnxruntime: .*pip install .*\[onnx\]"
    calls: list[Any] = [
        pondertree.load,
        lambda path: open_network(path, 1),
        lambda path: read_evaluator(f"onnx:{path}"),
    ]
    for call in calls:
        with pytest.raises(MissingExtraError, match=missing):
            call(path)
    for command in (["search", "chess", "--player", path], ["play", "chess", "--player", path]):
        assert cli.main(command) == 2
        assert "needs onnxruntime: " in capsys.readouterr().err


def test_other_files_are_refused(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "noise.onnx").write_bytes(b"\x08\x08\x12\x07pytorch" * 100)
    assert cli.main(["search", "chess", "--player", str(tmp_path / "noise.onnx")]) == 2
    assert "ONNX Runtime cannot load this model" in capsys.readouterr().err
    assert cli.main(["search", "chess", "--player", str(tmp_path / "none.onnx")]) == 2
    assert f"'{tmp_path / 'none.onnx'}' cannot be read: No such file" in capsys.readouterr().err
    with pytest.raises(StorageError, match="is an ONNX file already"):
        export_onnx(files["chess"], tmp_path / "again.onnx")
    with pytest.raises(InvalidArgumentError, match="device must be cpu for an ONNX file, not 'cuda'"):
        pondertree.load(files["chess"], device="cuda")


def test_missing_file_is_reported_before_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnxruntime", "torch", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(pondertree.MissingFileError, match=r"missing\.onnx"):
        pondertree.load(tmp_path / "missing.onnx")
    with pytest.raises(InvalidArgumentError, match="neither a run folder"):
        export_onnx(tmp_path / "missing", tmp_path / "out.onnx")


def test_folder_named_like_bundled_player_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "connect4").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_player("connect4").suffix == ".safetensors"
    (tmp_path / "connect4" / "run.json").write_text("{}")
    with pytest.raises(StorageError, match="is not the header of a run"):
        find_player("connect4")
