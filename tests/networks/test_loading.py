"""Loading players for other commands and programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.learning import small

import pondertree
from pondertree import cli
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.evaluators.protocol import check_player_game
from pondertree.game import describe
from pondertree.games import ConnectFour, Hex, TicTacToe
from pondertree.match import play_match
from pondertree.match.spec import read_player
from pondertree.uci.options import open_network

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import train  # noqa: E402 (after the packages it needs)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    train(small(out, steps=12, evaluation={"games": 2, "uct_simulations": (5,), "simulations": 4}))
    return out


def test_load_accepts_run_folder_checkpoint_and_file(trained: Path) -> None:
    newest = sorted((trained / "checkpoints").glob("round-*"))[-1]
    states = [TicTacToe(), TicTacToe().play(4)]
    observations = np.stack([state.observation() for state in states])
    outputs = [
        pondertree.load(path).evaluate(observations) for path in (trained, newest, newest / "player.safetensors")
    ]
    for logits, values in outputs[1:]:
        np.testing.assert_array_equal(logits, outputs[0][0])
        np.testing.assert_array_equal(values, outputs[0][1])
    about = pondertree.load(str(trained)).about
    assert (about["game"], about["step"]) == ("tic-tac-toe", 12)


def test_load_refuses_other_files_with_cause(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="neither a run folder nor a player file"):
        pondertree.load("none-such")
    with pytest.raises(StorageError, match="is not a run folder"):
        pondertree.load(tmp_path)
    (tmp_path / "net.safetensors").write_bytes(b"PK\x03\x04 a pickle, perhaps")
    with pytest.raises(StorageError, match="not a player file"):
        pondertree.load(tmp_path / "net.safetensors")
    newest = sorted((trained / "checkpoints").glob("round-*"))[-1]
    (tmp_path / "noise").write_bytes(np.random.default_rng(0).bytes(100_000))
    (tmp_path / "other.safetensors").write_bytes(b"\x22" + bytes(7) + b'{"__metadata__":{"pondertree":"3"}}')
    for name, message in (
        (tmp_path / "noise", "not a player file"),
        (newest / "games.npz", "looks like a pickle, or an archive of pickles, which are never opened"),
        (newest / "training.safetensors", "training state of a checkpoint, whose player.safetensors is beside it"),
        (newest / "state.json", "not a player file"),
        (tmp_path / "other.safetensors", "not a player file"),
    ):
        with pytest.raises(StorageError, match=message) as raised:
            pondertree.load(name)
        assert len(str(raised.value)) < 300 + len(str(name))
        assert str(raised.value).isprintable()
    (tmp_path / "run.json").write_bytes((trained / "run.json").read_bytes())
    with pytest.raises(InvalidArgumentError, match="has no checkpoint yet"):
        pondertree.load(tmp_path)


def test_player_of_another_game_is_refused(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    player = pondertree.load(trained)
    with pytest.raises(InvalidArgumentError, match="this is a player of tic-tac-toe, not of connect4"):
        pondertree.Gumbel(player, num_simulations=4).run(ConnectFour())
    player.about = {**player.about, "game": "hex:3"}  # states of the same shape
    with pytest.raises(InvalidArgumentError, match="this is a player of hex:3, not of tic-tac-toe"):
        pondertree.AlphaZero(player, num_simulations=4).tree(TicTacToe())
    pondertree.AlphaZero(player, num_simulations=4).run(Hex(3))
    player = pondertree.load(trained)
    assert cli.main(["search", "connect4", "--player", str(trained), "--simulations", "4"]) == 2
    assert "this is a player of tic-tac-toe, not of connect4" in capsys.readouterr().err
    named = f"alphazero:evaluator=player:{trained},num_simulations=4"
    for given in (named, pondertree.AlphaZero(player, num_simulations=4)):
        with pytest.raises(InvalidArgumentError, match="player1: this is a player of tic-tac-toe, not of othello"):
            play_match(given, "random", game="othello", num_games=2)
    with pytest.raises(InvalidArgumentError, match="this is a player of tic-tac-toe, not of chess"):
        open_network(str(trained), 1)
    check_player_game(player, describe(TicTacToe()))


def test_bundled_player_blocks_threats() -> None:
    player = pondertree.load("connect4")
    assert player.about["game"] == "connect4"
    # It blocks three in a column.
    search = pondertree.Gumbel(player, 64, gumbel_scale=0.0, seed=1, solve=False)
    state = ConnectFour()
    for move in ("1", "4", "1", "5", "1"):
        state = state.play(state.parse_action(move))
    assert search.run(state).move == "1"
    with pytest.raises(InvalidArgumentError, match=r"nor a bundled player \(2048, connect4\)"):
        pondertree.load("checkers")


def test_match_accepts_player_by_path(trained: Path) -> None:
    entrant = read_player(f"gumbel:evaluator=player:{trained},num_simulations=8")
    assert "player:" in entrant.name
    with pytest.raises(InvalidArgumentError, match="player:PLAYER"):
        read_player("gumbel:evaluator=nothing")


def test_exported_onnx_player_gives_same_moves(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from pondertree.evaluators import Onnx

    path = tmp_path / "player.onnx"
    assert cli.main(["export", str(trained), "--onnx", str(path)]) == 0
    states = [TicTacToe()]
    while not states[-1].is_terminal:
        states.append(states[-1].play(states[-1].legal_actions()[len(states) % 2]))
    moves = [
        [result.action for result in pondertree.AlphaZero(evaluator, 60, seed=1).run(states[:-1])]
        for evaluator in (pondertree.load(trained), Onnx(str(path)))
    ]
    assert moves[0] == moves[1]


def test_train_command_writes_and_resumes_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, config = tmp_path / "run", tmp_path / "config.toml"
    config.write_text(
        "device = 'cpu'\n[self_play]\ngames_at_once = 8\nsimulations = 4\n[replay]\nlearned_first = 20\n"
        "[learner]\nbatch_size = 16\n[evaluation]\ngames = 0\npositions = 0\n"
    )
    arguments = ["train", "tic-tac-toe", "--out", str(out), "--config", str(config), "--steps", "5", "--json"]
    assert cli.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["finished"], result["steps"]) == (True, 5)
    assert (out / "report.html").exists()
    # Resuming takes the settings of the folder, and the new limit.
    assert cli.main(["train", "tic-tac-toe", "--out", str(out), "--steps", "8", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8
    assert "games_at_once = 8" in (out / "config.toml").read_text()
    assert cli.main(arguments) == 2
    assert "already has a run" in capsys.readouterr().err
    for wrong, message in (
        (["train", "tic-tac-toe", "--steps", "3"], "--out is missing"),
        (["train", "go", "--out", "x", "--steps", "3"], "unknown game"),
        (["train", "tic-tac-toe", "--out", str(tmp_path / "new")], "minutes, games or steps must be given"),
    ):
        assert cli.main(wrong) == 2
        assert message in capsys.readouterr().err
    assert cli.main(["search", "tic-tac-toe", "--player", str(out), "--simulations", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "alphazero"


def test_config_file_of_another_game_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text("game = 'chess'\n")
    assert cli.main(["train", "tic-tac-toe", "--config", str(config), "--print-config"]) == 2
    assert f"config '{config}' is for chess, not for tic-tac-toe" in capsys.readouterr().err
    config.write_text("game = 'tic-tac-toe'\nsteps = 7\n")
    assert cli.main(["train", "tictactoe", "--config", str(config), "--print-config"]) == 0
    assert "steps = 7" in capsys.readouterr().out


def test_package_imports_without_torch() -> None:
    code = "import sys, pondertree.learn, pondertree.cli; pondertree.cli.parser(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
