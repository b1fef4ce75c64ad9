"""`pondertree train`: output and printed commands."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")

import numpy as np
from tests.support.learning import SMALL

import pondertree
from pondertree import cli
from pondertree.cli import train as command
from pondertree.cli.arguments import resume_command, shell_line
from pondertree.learn import Executor, ProcessExecutor, RayExecutor, text_of_config
from pondertree.learn.config.defaults import default_config
from pondertree.learn.report.progress import Status, Watcher

ROOT = Path(__file__).parents[2]
TINY = """
device = "cpu"
network = { blocks = 1, channels = 8 }
self_play = { games_at_once = 4, simulations = 2 }
replay = { learned_first = 20 }
learner = { batch_size = 8 }
evaluation = { games = 0 }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A configuration file of a short training run."""
    path = tmp_path / "tiny.toml"
    text = text_of_config(default_config("tic-tac-toe").with_values(**SMALL))
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith(("game ", "out "))))
    return path


def run_in_shell(line: str, folder: Path, typed: str) -> subprocess.CompletedProcess[str]:
    """Runs a command line in a shell with `pondertree` on its path."""
    program = folder / "bin" / "pondertree"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pondertree "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        line, shell=True, input=typed, capture_output=True, text=True, env=environment, timeout=120, check=False
    )


@pytest.mark.skipif(os.name != "posix", reason="runs a POSIX shell")
@pytest.mark.parametrize("folder", ["run", "it's $HOME & more"])
def test_train_prints_the_command_that_plays_against_the_result(
    tmp_path: Path, tiny: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / folder
    arguments = ["train", "tictactoe", "--out", str(out), "--steps", "4", "--config", str(tiny)]
    assert cli.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == f"report: {out / 'report.html'}"
    label, line = lines[-1].split(": ", 1)
    assert label == "play against it"
    assert shlex.split(line) == ["pondertree", "play", "tic-tac-toe", "--player", str(out)]
    moves = "".join(f"{column}{row}\n" for column in "abc" for row in "123")
    played = run_in_shell(f"{line} --simulations 8 --seed 1", tmp_path, moves)
    assert played.returncode == 0, played.stderr
    assert "wins" in played.stdout or "draw" in played.stdout


def test_train_prints_commands_as_json(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    assert cli.main(["train", "tic-tac-toe", "--out", out, "--steps", "2", "--config", str(tiny), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["play"] == ["pondertree", "play", "tic-tac-toe", "--player", out]
    assert (summary["report"], summary["resume"]) == (str(Path(out) / "report.html"), None)
    state = pondertree.games.TicTacToe()
    assert eval(summary["python"], {"pondertree": pondertree, "state": state}) in state.legal_actions()


class Interrupting(Watcher):
    """Ctrl-C after the first round."""

    def show(self, status: Status) -> None:
        raise KeyboardInterrupt


def test_interrupted_train_prints_resume_command_first(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "a run")
    typed = ["train", "tic-tac-toe", "--out", out, "--steps", "4", "--config", str(tiny)]
    with monkeypatch.context() as patch:
        patch.setattr(command, "watcher", lambda _: Interrupting())
        assert cli.main(typed) == 130
        printed = capsys.readouterr()
        [line] = [line for line in printed.err.splitlines() if line.startswith("interrupted")]
        assert printed.out.splitlines()[
            -1
        ] == f"play against it: {shlex.join(['pondertree', 'play', 'tic-tac-toe'])}" + (f" --player {shlex.quote(out)}")
        assert cli.main([*typed, "--resume", "--json"]) == 130
        assert json.loads(capsys.readouterr().out)["resume"] == ["pondertree", *typed, "--resume", "--json"]
    said, resume = line.split("; to go on: ")
    assert said == "interrupted and saved"
    assert shlex.split(resume) == ["pondertree", *typed, "--resume"]
    assert cli.main(shlex.split(resume)[1:]) == 0
    assert "4 steps" in capsys.readouterr().out


def test_train_interrupted_at_start_prints_one_line(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "make_config", interrupted)
    typed = ["train", "tic-tac-toe", "--out", str(tmp_path / "run"), "--steps", "4"]
    assert cli.main(typed) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"interrupted; to go on: {shlex.join(['pondertree', *typed, '--resume'])}\n"


def test_train_of_python_game_prints_module_and_class(
    tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    out = str(tmp_path / "nim")
    nim = "examples.games.nim:Nim"
    config = tmp_path / "nim.toml"
    config.write_text(tiny.read_text().replace('game = "tic-tac-toe"', f'game = "{nim}"'))
    assert cli.main(["train", nim, "--out", out, "--steps", "2", "--config", str(config)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == f"play against it: {shlex.join(['pondertree', 'play', nim, '--player', out])}"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert cli.main([*shlex.split(line.split(": ", 1)[1])[1:], "--simulations", "4"]) == 0
    assert "Stopped" in capsys.readouterr().out


ONE_PLAYER = """
import numpy as np

class Walk:
    num_players, num_actions, to_play, zero_sum = 1, 2, 0, False

    def __init__(self, place=0, moves=0):
        self.place, self.moves, self.is_terminal = place, moves, moves == 4

    def legal_actions(self):
        return [] if self.is_terminal else [0, 1]

    def play(self, action):
        return type(self)(self.place + action, self.moves + 1)

    def returns(self):
        return [self.place / 4]

    def observation(self):
        return np.array([self.place, self.moves], np.float32)

class Paid(Walk):
    def rewards(self):
        return [float(self.place)]
"""


@pytest.mark.parametrize(("game", "algorithm"), [("Walk", "alphazero"), ("Paid", "muzero")])
def test_train_of_single_player_game_prints_watch_command(
    tmp_path: Path,
    game: str,
    algorithm: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "one_player_game.py").write_text(ONE_PLAYER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tiny.toml").write_text(TINY)
    typed = ["train", f"one_player_game:{game}", "--out", "run", "--steps", "2", "--config", "tiny.toml"]
    assert cli.main([*typed, "--algorithm", algorithm]) == 0
    label, line = capsys.readouterr().out.splitlines()[-1].split(": ", 1)
    assert label == "watch it play"
    assert line == f"pondertree play one_player_game:{game} --player run --side none"
    assert cli.main([*shlex.split(line)[1:], "--simulations", "4"]) == 0
    assert "The game is over" in capsys.readouterr().out


def test_printed_python_expression_of_model_runs_search(tmp_path: Path) -> None:
    from pondertree.learn import train

    out = str(tmp_path)
    config = default_config("tic-tac-toe", algorithm="muzero").with_values(**SMALL).with_values(out=out, steps=1)
    train(config)
    state = pondertree.games.TicTacToe()
    _, python = command.next_step(config, out, pondertree.games.TicTacToe)
    assert eval(python, {"pondertree": pondertree, "state": state}) in state.legal_actions()


def test_train_of_environment_prints_python_expression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    config = tmp_path / "tiny.toml"
    config.write_text(TINY)
    out = str(tmp_path / "cart's pole")
    assert cli.main(["train", "gym:CartPole-v1", "--out", out, "--steps", "2", "--config", str(config)]) == 0
    label, line = capsys.readouterr().out.splitlines()[-1].split(": ", 1)
    assert label == "in Python"
    observation = np.zeros(4, dtype=np.float32)
    assert eval(line, {"pondertree": pondertree, "observation": observation}) in (0, 1)


def test_commands_are_quoted_for_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell_line(["pondertree", "play", "a b"]) == "pondertree play 'a b'"
    assert resume_command(["match", "a", "--", "-b"]) == ["pondertree", "match", "a", "--resume", "--", "-b"]
    assert resume_command(["train", "--resume", "chess"]) == ["pondertree", "train", "--resume", "chess"]
    play, _ = command.next_step(default_config("chess"), "-run", pondertree.games.Chess)
    assert play == ["pondertree", "play", "chess", "--player=-run"]
    monkeypatch.setattr("pondertree.cli.arguments.os.name", "nt")
    assert shell_line(["pondertree", "play", "a b"]) == 'pondertree play "a b"'


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_configuration_may_come_from_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = 'algorithm = "alphazero"\n[self_play]\nsimulations = 7\n'
    writer = threading.Thread(target=pipe.write_text, args=[text], daemon=True)
    writer.start()
    assert cli.main(["train", "tic-tac-toe", "--config", str(pipe), "--print-config"]) == 0
    writer.join()
    printed = capsys.readouterr().out
    assert 'algorithm = "alphazero"' in printed
    assert "simulations = 7" in printed


def test_time_limit_ends_a_cycle_of_self_play(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cycle of a million moves is cut, and the run resumes from there."""
    config = tmp_path / "long.toml"
    config.write_text(tiny.read_text().replace("cycle_moves = 3", "cycle_moves = 1_000_000"))
    typed = ["train", "tic-tac-toe", "--out", str(tmp_path / "run"), "--config", str(config)]
    assert cli.main([*typed, "--minutes", "0.000001"]) == 0
    assert "no game was finished before the limit" in capsys.readouterr().out
    assert cli.main([*typed, "--minutes", "0.02", "--resume"]) == 0
    out = capsys.readouterr().out
    assert "no game" not in out
    assert int(out.split(" games", maxsplit=1)[0].replace(",", "")) > 0


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", None),
        ("--actors 3", ProcessExecutor(actors=3, cpus=1.0, gpus=None)),
        ("--executor processes", ProcessExecutor(actors=2)),
        (
            "--ray auto --actors 5 --actor-gpus 0.5 --exclude-driver-node",
            RayExecutor(address="auto", actors=5, cpus=1.0, gpus=0.5, exclude_driver_node=True),
        ),
        ("--executor ray --actor-cpus 2", RayExecutor(address="local", actors=2, cpus=2.0)),
    ],
)
def test_arguments_choose_executor(typed: str, expected: Executor | None) -> None:
    arguments = cli.parser().parse_args(["train", "connect4", *typed.split()])
    assert command.make_executor(arguments) == expected


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--ray auto --executor processes", "--ray: the executor is processes"),
        ("--ray=", "address must be local, auto, or HOST:PORT"),
        ("--executor in-process --actors 2", "need --executor processes or ray"),
        ("--exclude-driver-node --actors 2", "--exclude-driver-node needs --ray"),
        ("--ray local --exclude-driver-node", "exclude_driver_node needs a cluster"),
        ("--actors 2 --actor-gpus 3", "gpus must be at most 1"),
    ],
)
def test_contradicting_executor_arguments_are_refused(typed: str, message: str) -> None:
    from pondertree.errors import InvalidArgumentError

    arguments = cli.parser().parse_args(["train", "connect4", *typed.split()])
    with pytest.raises(InvalidArgumentError, match=message):
        command.make_executor(arguments)


def test_train_command_with_an_actor(tmp_path: Path, tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    typed = ["train", "tic-tac-toe", "--out", str(out), "--config", str(tiny), "--steps", "5", "--actors", "1"]
    assert cli.main([*typed, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 5
    assert json.loads((out / "shards.jsonl").read_text().splitlines()[0])["actor"] == 0
