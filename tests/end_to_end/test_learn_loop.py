"""Complete small runs: bit-for-bit resuming, and no loss when killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import Killed, Stopper, digest, numbers_of, small

import pondertree
from pondertree.errors import InvalidArgumentError, StorageError, TrainingError, UsageError
from pondertree.learn.data.shards import list_shards, read_shard

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import train  # noqa: E402 (after the packages it needs)
from pondertree.learn.data.checkpoint import list_checkpoints, load_checkpoint, newest_intact  # noqa: E402
from pondertree.learn.evaluation.metrics import read_metrics  # noqa: E402
from pondertree.learn.report.progress import Status, Watcher  # noqa: E402


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run of 40 steps."""
    out = tmp_path_factory.mktemp("whole")
    result = train(small(out, steps=40))
    assert (result.steps, result.finished) == (40, True)
    return out


@pytest.mark.parametrize("error", [KeyboardInterrupt, Killed])
@pytest.mark.parametrize("rounds", [1, 4, 7])
def test_interrupted_run_resumes_bit_for_bit(
    error: type[BaseException], rounds: int, whole: Path, tmp_path: Path
) -> None:
    config = small(tmp_path, steps=40)
    stopper = Stopper(rounds, error)
    if error is KeyboardInterrupt:
        assert not train(config, watcher=stopper).finished
    else:
        # Rare checkpoints: the disk has games that the last one does not count.
        with pytest.raises(Killed):
            train(config.with_values(checkpoint_minutes=0.0 if rounds == 4 else 60.0), watcher=stopper)
    before = numbers_of(tmp_path)
    assert train(config, resume=True).steps == 40
    assert digest(tmp_path) == digest(whole)
    assert digest(tmp_path, "games.npz") == digest(whole, "games.npz")
    after = numbers_of(tmp_path)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
    assert after == numbers_of(whole)
    retained = ("round", "step", "games", "positions", "policy_loss", "value_loss")
    lines = [
        [{name: line.get(name) for name in retained} for line in read_metrics(out / "metrics.jsonl")]
        for out in (tmp_path, whole)
    ]
    assert lines[0] == lines[1]


def test_run_folder_has_documented_content(whole: Path) -> None:
    assert json.loads((whole / "run.json").read_text())["game"] == "tic-tac-toe"
    assert len(list_checkpoints(whole / "checkpoints")) == 3
    assert "simulations = 8" in (whole / "config.toml").read_text()
    newest = list_checkpoints(whole / "checkpoints")[-1]
    assert "simulations = 8" in (newest / "config.toml").read_text()
    assert not list(whole.rglob("*.part"))
    checkpoint = load_checkpoint(newest)
    assert checkpoint.state["counters"]["step"] == 40
    found = newest_intact(whole / "checkpoints")
    assert found is not None
    assert found[0] == newest


def test_damaged_checkpoint_is_skipped_and_reported(whole: Path, tmp_path: Path) -> None:
    import shutil

    numbers = np.random.default_rng(0)
    for number, name in enumerate(
        ("training.safetensors", "player.safetensors", "games.npz", "state.json", "config.toml")
    ):
        out = tmp_path / str(number)
        shutil.copytree(whole, out)
        newest = list_checkpoints(out / "checkpoints")[-1]
        content = bytearray((newest / name).read_bytes())
        if number % 2:
            del content[len(content) // 2 :]
        else:
            content[int(numbers.integers(len(content)))] ^= 4
        (newest / name).write_bytes(bytes(content))
        with pytest.raises(StorageError, match=f"{newest.name}.*{name}.* is damaged"):
            load_checkpoint(newest)
        stopper = Stopper(10**9)
        train(small(out, steps=40), resume=True, watcher=stopper)
        assert name in stopper.notes[0]
        assert digest(out) == digest(whole)


def test_run_without_intact_checkpoint_or_of_other_version_is_refused(whole: Path, tmp_path: Path) -> None:
    import shutil

    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for path in list_checkpoints(out / "checkpoints"):
        (path / "state.json").unlink()
    with pytest.raises(StorageError, match=r"no checkpoint in .* is intact"):
        train(small(out, steps=40), resume=True)
    about = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**about, "version": 2}))
    with pytest.raises(StorageError, match="of version 2; this version reads pondertree-training 1"):
        train(small(out, steps=40), resume=True)
    (out / "run.json").write_text("{")
    with pytest.raises(StorageError, match=r"run\.json.* is damaged"):
        train(small(out, steps=40), resume=True)
    with pytest.raises(InvalidArgumentError, match="already has a run"):
        train(small(whole, steps=50))
    with pytest.raises(InvalidArgumentError, match="is a run of tic-tac-toe, not connect4"):
        train(small(whole, "connect4", steps=50), resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(StorageError, match="is not a run folder"):
        train(small(tmp_path / "other", steps=1), resume=True)


def test_invalid_arguments_are_reported_before_training(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="out must be the run folder"):
        train(small(tmp_path).with_values(out="", steps=1))
    with pytest.raises(InvalidArgumentError, match="minutes, games or steps must be given"):
        train(small(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="cannot be made"):
        train(small(tmp_path / "file" / "run", steps=1))
    if os.geteuid() != 0:
        os.chmod(tmp_path, 0o500)
        with pytest.raises(InvalidArgumentError, match="cannot be"):
            train(small(tmp_path / "run", steps=1))
        os.chmod(tmp_path, 0o700)


def test_run_stopped_by_full_disk_resumes(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.fsync, 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device"):
            train(small(tmp_path, steps=40))
    train(small(tmp_path, steps=40), resume=True)
    assert digest(tmp_path) == digest(whole)
    assert numbers_of(tmp_path) == numbers_of(whole)


def test_broken_network_stops_run_and_stores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.actors import SelfPlayActor

    load, loaded = SelfPlayActor.load, 0

    def spoil(self: Any, weights: Any) -> None:
        nonlocal loaded
        load(self, weights)
        loaded += 1
        if loaded > 1:
            with torch.no_grad():
                self.player.value_out.bias.fill_(torch.nan)

    monkeypatch.setattr(SelfPlayActor, "load", spoil)
    with pytest.raises(TrainingError, match=r"self-play stopped at step \d+, after \d+ moves: .*nothing of this batch"):
        train(small(tmp_path, steps=40))
    for shard in list_shards(tmp_path / "games"):
        assert all(np.isfinite(game.values).all() for game in read_shard(shard))


def test_second_process_in_run_folder_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")

    class Second(Watcher):
        def show(self, status: Status) -> None:
            with pytest.raises(UsageError, match="another process is training in"):
                train(small(tmp_path, steps=1), resume=True)
            raise KeyboardInterrupt

    train(small(tmp_path, steps=40), watcher=Second())


@pytest.mark.parametrize("game", ["connect4", "examples.games.nim:Nim"])
@pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
def test_other_games_and_algorithms_train(game: str, algorithm: str, tmp_path: Path) -> None:
    from tests.support.learning import SMALL

    from pondertree.learn import Config

    config = Config(game=game, algorithm=algorithm, out=str(tmp_path), steps=6).with_values(**SMALL)
    config = config.with_values(
        self_play={"full_share": 0.6}, evaluation={"games": 2, "uct_simulations": (5,), "simulations": 4}
    )
    result = train(config)
    assert result.steps == 6
    [line] = result.evaluations
    assert set(line["scores"]) == {"UCT 5"}
    player = pondertree.load(tmp_path)
    from pondertree.learn.config.game_spec import game_spec

    assert pondertree.AlphaZero(player, 10, seed=1).run(game_spec(game).factory()).simulations > 0


def test_concurrent_run_loses_and_repeats_no_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after resuming."""
    from pondertree.learn.loop import actor_learner

    for name in ("SHARD_SECONDS", "ROUND_SECONDS", "PUBLISH_SECONDS"):
        monkeypatch.setattr(actor_learner, name, 0.0)
    config = small(tmp_path, steps=60, side_by_side=True)
    assert not train(config, watcher=Stopper(2)).finished
    before = numbers_of(tmp_path)
    with pytest.raises(Killed):
        train(config, resume=True, watcher=Stopper(6, Killed))
    result = train(config, resume=True)
    assert (result.finished, result.steps) == (True, 60)
    numbers = numbers_of(tmp_path)
    assert numbers[: len(before)] == before
    assert len(set(numbers)) == len(numbers) == result.games


SCRIPT = """
import sys
from pathlib import Path
from tests.support.learning import small
from pondertree.learn import train
train(small(Path(sys.argv[1]), steps=40), resume=True)
"""


@pytest.mark.slow
def test_run_killed_repeatedly_resumes_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    """Repeated `kill -9` gives the weights of an uninterrupted run."""
    numbers = np.random.default_rng(5)
    acknowledged: list[int] = []
    for attempt in range(60):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        # Kills are timed from the first file, so that most hit training instead of Python's start.
        while not (tmp_path / "lock").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if attempt < 6:
            time.sleep(float(numbers.uniform(0.0, 4.0)))
            process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        stored = numbers_of(tmp_path)
        assert stored[: len(acknowledged)] == acknowledged
        assert len(set(stored)) == len(stored)
        acknowledged = stored
        if process.returncode == 0:
            break
    assert digest(tmp_path) == digest(whole)
    assert acknowledged == numbers_of(whole)
