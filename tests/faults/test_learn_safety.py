"""The state of a run folder after refusal, kills during checkpoints, damage and changed settings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.learning import digest, small

import pondertree
from pondertree.errors import InvalidArgumentError, MissingExtraError, StorageError, TrainingError

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.cli import main
from pondertree.learn import train
from pondertree.learn.data import checkpoint, run_folder
from pondertree.learn.data.shards import list_shards, read_shard, write_shard
from pondertree.learn.evaluation.metrics import read_metrics
from pondertree.learn.report.progress import Watcher


class Notes(Watcher):
    """Records notes."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.parametrize("instant", [1, 2])
def test_kill_while_checkpoint_is_rewritten_leaves_an_intact_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instant: int
) -> None:
    """Before, between and after the two renames an intact checkpoint of the round is listed."""
    train(small(tmp_path, steps=5, keep_checkpoints=1))
    before, count, rename = digest(tmp_path), 0, os.replace

    class KilledError(BaseException):
        pass

    def killed(one: str, other: str) -> None:
        nonlocal count
        if "round-" in str(other):
            count += 1
            if count == instant:
                raise KilledError
        rename(one, other)

    monkeypatch.setattr(checkpoint.os, "replace", killed)
    with pytest.raises(KilledError):
        train(small(tmp_path, steps=5, keep_checkpoints=1), resume=True)
    monkeypatch.undo()
    assert pondertree.load(tmp_path).about["step"] == 5
    result = train(small(tmp_path, steps=6, keep_checkpoints=1), resume=True)
    assert result.steps == 6
    assert digest(tmp_path) != before
    assert not list((tmp_path / "checkpoints").glob("*.old"))


def test_modified_player_is_detected(tmp_path: Path) -> None:
    train(small(tmp_path, steps=12))
    paths = checkpoint.list_checkpoints(tmp_path / "checkpoints")
    whole = pondertree.load(paths[-2]).about
    file = paths[-1] / "player.safetensors"
    content = bytearray(file.read_bytes())
    content[-40] ^= 0x20
    file.write_bytes(content)
    with pytest.warns(UserWarning, match="is damaged: using the previous checkpoint"):
        assert pondertree.load(tmp_path).about == whole
    with pytest.raises(StorageError, match="checksum differs"):
        pondertree.load(file)
    for path in paths[:-1]:
        (path / "player.safetensors").write_bytes(b"cut")
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(StorageError, match="is intact"):
        pondertree.load(tmp_path)
    for path in paths[1:]:
        shutil.rmtree(path)
    # There is no earlier checkpoint, hence no warning (an error in tests) about using one.
    with pytest.raises(StorageError, match="is intact"):
        pondertree.load(tmp_path)
    with pytest.raises(InvalidArgumentError, match="path is empty"):
        pondertree.load("")


def test_refused_run_leaves_folder_unchanged(tmp_path: Path) -> None:
    for wrong in (None, {}, "connect4"):
        with pytest.raises(InvalidArgumentError, match="config must be a Config"):
            train(wrong)  # type: ignore[arg-type]
    train(small(tmp_path, steps=5))
    before = (tmp_path / "config.toml").read_bytes()
    with pytest.raises(InvalidArgumentError, match=r"network\.blocks is 1 in this run and cannot become 2"):
        train(small(tmp_path, steps=7).with_values(network={"blocks": 2}), resume=True)
    assert (tmp_path / "config.toml").read_bytes() == before
    # An older folder with an alias of the game's name.
    about = (tmp_path / "run.json").read_text().replace("tic-tac-toe", "tictactoe")
    (tmp_path / "run.json").write_text(about)
    assert train(small(tmp_path, "tictactoe", steps=7), resume=True).steps == 7


@pytest.mark.parametrize("resume", [False, True])
def test_refused_start_in_run_folder_leaves_no_lock(tmp_path: Path, resume: bool) -> None:
    train(small(tmp_path, steps=5))
    (tmp_path / "lock").unlink()
    before = entries(tmp_path)
    game, message = ("connect4", "is a run of") if resume else ("tic-tac-toe", "already has a run")
    with pytest.raises(InvalidArgumentError, match=message):
        train(small(tmp_path, game, steps=7), resume=resume)
    assert entries(tmp_path) == before
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(StorageError, match=r"run\.json"):
        train(small(tmp_path, steps=7), resume=True)
    assert not (tmp_path / "lock").exists()


def test_start_is_decided_under_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    train(small(tmp_path, steps=5))
    read, locked = run_folder.read_about, []

    def read_about(path: Path) -> dict[str, Any]:
        with open(path / "lock", "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked.append(False)
            except OSError:
                locked.append(True)
        return read(path)

    monkeypatch.setattr(run_folder, "read_about", read_about)
    train(small(tmp_path, steps=6), resume=True)
    assert locked == [True]


@pytest.mark.parametrize("name", ["SelfPlay.restore", "Trainer.restore", "ReplayBuffer.add"])
def test_errors_of_game_or_device_on_resuming_are_not_reported_as_checkpoint_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    train(small(tmp_path, steps=5))

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("device lost")

    points = {
        "SelfPlay.restore": "pondertree.learn.self_play.episode.Episode.of_record",
        "Trainer.restore": "torch.optim.Optimizer.load_state_dict",
        "ReplayBuffer.add": "pondertree.learn.data.replay.ReplayBuffer.add",
    }
    monkeypatch.setattr(points[name], fail)
    with pytest.raises(RuntimeError, match=r"^device lost$"):
        train(small(tmp_path, steps=6), resume=True)
    monkeypatch.undo()
    assert train(small(tmp_path, steps=6), resume=True).steps == 6


def entries(folder: Path) -> dict[str, bytes]:
    """Returns the content of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


#: Where a start fails: name -> patched function, in order of execution.
POINTS = {
    "session": "pondertree.learn.loop.run.Session",
    "begin": "pondertree.learn.loop.session.Session.begin",
    "write_header": "pondertree.learn.data.run_folder.RunFolder.write_header",
    "after run.json": "pondertree.learn.loop.run.TrainingRun",
    "metrics": "pondertree.learn.loop.run.Metrics",
    "watcher": "pondertree.learn.report.progress.Watcher.__enter__",
    "first round": "pondertree.learn.actors.self_play_actor.SelfPlayActor.play_move",
}


@pytest.mark.parametrize("error", [MemoryError, TrainingError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("point", POINTS)
def test_failed_start_leaves_folder_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, error: type[BaseException]
) -> None:
    if point == "first round" and error is KeyboardInterrupt:
        pytest.skip("Ctrl-C in a round saves, by design")

    def fail(*_: object, **__: object) -> None:
        raise error

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    monkeypatch.setattr(POINTS[point], fail)
    for out in (tmp_path / "a" / "b" / "new", tmp_path / "mine"):
        for _ in range(2):  # a second start fails for the same reason, not because of the first
            with pytest.raises(error):
                train(small(out, steps=5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    monkeypatch.undo()
    assert train(small(tmp_path / "mine", steps=5)).steps == 5


def test_start_without_package_or_device_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match="tensorboard"):
        train(small(tmp_path / "new", steps=5), tensorboard=True)
    with pytest.raises(InvalidArgumentError, match="device"):
        train(small(tmp_path / "new", steps=5, device="cuda:77"))
    assert not (tmp_path / "new").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.support.learning import small
from pondertree.learn import train
from pondertree.learn.report.progress import Watcher

class Killing(Watcher):
    def __enter__(self):
        os.kill(os.getpid(), signal.SIGKILL)

train(small(Path(sys.argv[1]), "connect4", steps=5), watcher=Killing())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_killed_start_can_be_repeated_without_resume(tmp_path: Path) -> None:
    out = tmp_path / "new"
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out)], env={**os.environ, "PYTHONPATH": paths})
    assert killed.returncode == -signal.SIGKILL
    assert (out / "run.json").exists()
    # Even for another game: the first left no data.
    assert train(small(out, steps=5)).steps == 5
    with pytest.raises(InvalidArgumentError, match="already has a run"):
        train(small(out, steps=6))
    assert train(small(out, steps=6), resume=True).steps == 6


def test_failed_run_keeps_stored_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TrainingError("no memory")

    monkeypatch.setattr("pondertree.learn.loop.session.Session.learn_step", fail)
    with pytest.raises(TrainingError, match="no memory"):
        train(small(tmp_path, steps=5, checkpoint_minutes=60.0))
    monkeypatch.undo()
    games = {name: content for name, content in entries(tmp_path).items() if name.startswith("games")}
    assert games
    with pytest.raises(InvalidArgumentError, match="already has a run"):
        train(small(tmp_path, steps=5))
    train(small(tmp_path, steps=5), resume=True)
    assert entries(tmp_path).items() >= games.items()


def test_shard_with_illegal_games_is_refused_by_name(tmp_path: Path) -> None:
    """Shards with valid checksums but an unknown action or an illegal move."""
    train(small(tmp_path, steps=5))
    for change in ({"moves": 0}, {"actions": 60000}, {"policy": -1.0}):
        folder = tmp_path / "-".join(change)
        shutil.copytree(tmp_path / "games", folder / "games")
        shutil.copytree(tmp_path / "checkpoints", folder / "checkpoints")
        shutil.copy(tmp_path / "run.json", folder)
        first = list_shards(folder / "games")[0]
        games = read_shard(first)
        for name, value in change.items():
            array = getattr(games[0], name).copy()
            array[:] = value
            games[0] = replace(games[0], **{name: array})
        first.path.unlink()
        forged = write_shard(folder / "games", 0, games)
        with pytest.raises(StorageError, match=f"{forged.path.name}.*game {games[0].number}"):
            train(small(folder, steps=9), resume=True)


def test_resuming_empty_folder_is_reported(tmp_path: Path) -> None:
    notes = Notes()
    train(small(tmp_path, steps=5), resume=True, watcher=notes)
    assert any("starting anew" in text for text in notes.texts)
    notes = Notes()
    assert train(small(tmp_path, steps=3), resume=True, watcher=notes).steps == 5
    assert any("is already reached" in text for text in notes.texts)


def test_resumed_run_accepts_fewer_concurrent_games(tmp_path: Path) -> None:
    """The remedy of an out-of-memory message."""
    train(small(tmp_path, steps=5))
    train(small(tmp_path, steps=8).with_values(self_play={"games_at_once": 3}), resume=True)
    newest = checkpoint.list_checkpoints(tmp_path / "checkpoints")[-1]
    assert len(checkpoint.load_checkpoint(newest).games) == 3


def test_metrics_include_last_steps(tmp_path: Path) -> None:
    result = train(small(tmp_path, steps=7))
    last = [line for line in read_metrics(tmp_path / "metrics.jsonl") if line["kind"] == "round"][-1]
    assert (last["step"], last["games"], last["positions"]) == (7, result.games, result.positions)


def test_missing_pyarrow_is_not_reported_as_shard_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    train(small(tmp_path / "run", steps=5))
    games = read_shard(list_shards(tmp_path / "run" / "games")[0])
    shard = write_shard(tmp_path, 0, games, kind="parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="pyarrow"):
        read_shard(shard)


def test_search_command_with_player_prints_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(small(tmp_path, steps=5))
    assert main(["search", "tic-tac-toe", "--player", str(tmp_path), "--simulations", "20", "--seed", "1"]) == 0
    assert "AlphaZero, trained player" in capsys.readouterr().out


def test_lost_config_is_read_from_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(small(tmp_path, steps=5))
    before = (tmp_path / "config.toml").read_text(encoding="utf-8")
    (tmp_path / "config.toml").unlink()
    assert main(["train", "tic-tac-toe", "--out", str(tmp_path), "--steps", "6", "--resume", "--json"]) == 0
    capsys.readouterr()
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == before.replace("steps = 5", "steps = 6")
