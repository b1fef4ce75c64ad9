"""Files written before the package was renamed still load."""

import json
from pathlib import Path

import numpy as np
import pytest

import pondertree
from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.files import current_format
from pondertree.match.record import read_record, write_line
from pondertree.networks.numpy_player import load_numpy_player
from pondertree.tune.positions import Positions, collect

FORMER = "ponderosa"
PLAYER = Path(pondertree.__file__).parent / "networks" / "pretrained" / "connect4.safetensors"


def renamed(content: bytes) -> bytes:
    """Returns a safetensors file in the former package's format name."""
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip().replace(b"pondertree", FORMER.encode())
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def test_current_format_translates_former_names_alone() -> None:
    assert current_format(f"{FORMER}-player") == "pondertree-player"
    assert current_format("pondertree-player") == "pondertree-player"
    assert current_format("leela-player") == "leela-player"
    assert current_format(None) is None


def test_player_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    path.write_bytes(renamed(PLAYER.read_bytes()))
    assert FORMER.encode() in path.read_bytes()[:400]
    assert b"pondertree" not in path.read_bytes()[:400]
    observation = np.random.default_rng(1).random((1, 3, 6, 7), dtype=np.float32)
    # `load` uses PyTorch where it is installed.
    for load in (load_numpy_player, pondertree.load):
        old, new = load(path), load(PLAYER)
        assert old is not None and new is not None  # noqa: PT018
        for before, after in zip(old.evaluate(observation), new.evaluate(observation), strict=True):
            np.testing.assert_array_equal(np.asarray(before), np.asarray(after))


def test_run_folder_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose run.json, checkpoints, shards and players have the former name resumes."""
    pytest.importorskip("torch")
    from tests.support.learning import small

    from pondertree.learn import train
    from pondertree.learn.data import checkpoint, shards
    from pondertree.networks import run_files, weights_file

    for module in (checkpoint, weights_file, run_files, shards):
        monkeypatch.setattr(module, "FORMAT", module.FORMAT.replace("pondertree", FORMER))
    assert train(small(tmp_path, steps=5)).steps == 5
    monkeypatch.undo()
    assert json.loads((tmp_path / "run.json").read_text())["format"] == f"{FORMER}-training"
    assert pondertree.load(tmp_path).about["step"] == 5
    assert train(small(tmp_path, steps=8), resume=True).steps == 8


def test_weights_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    Pesto().to_file(path)
    path.write_text(path.read_text().replace("pondertree", FORMER))
    assert Pesto.from_file(path) == Pesto()


def test_match_record_loads(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    path.write_bytes(write_line({"format": f"{FORMER} match", "version": 1, "settings": {"game": "chess"}}))
    assert read_record(path) == ({"game": "chess"}, [])


def test_positions_load(tmp_path: Path) -> None:
    positions = collect([(["8/8/8/8/8/5k2/7p/7K w - - 0 1"], 0.0)])
    path = tmp_path / "positions.npz"
    positions.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    np.savez(path, header=np.array(json.dumps({**header, "format": f"{FORMER}-positions"})), **arrays)
    assert list(Positions.load(path).fens) == list(positions.fens)
    np.savez(path, header=np.array(json.dumps({**header, "format": "other-positions"})), **arrays)
    with pytest.raises(InvalidArgumentError, match="format must be 'pondertree-positions'"):
        Positions.load(path)
