"""Complete small MuZero runs: games and environments, resuming, loading, export, reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import GYM, SMALL, Killed, Stopper, digest, numbers_of, small_muzero

import pondertree
from pondertree import cli
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.games import TicTacToe

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import Config, train  # noqa: E402 (after the packages it needs)
from pondertree.learn.data.shards import list_shards, read_shard  # noqa: E402
from pondertree.learn.evaluation.metrics import read_metrics  # noqa: E402
from pondertree.learn.report.page import write_report  # noqa: E402
from pondertree.match import play_match  # noqa: E402
from pondertree.match.spec import read_player  # noqa: E402

STEPS = 30
PRIORITY = {"priority": 0.7, "fresh_values": True, "reanalyse": 0.25, "reanalyse_simulations": 4}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Uninterrupted runs."""
    outs = {}
    for game in ("tic-tac-toe", GYM):
        outs[game] = tmp_path_factory.mktemp("whole")
        evaluation = {"games": 2, "uct_simulations": (5,), "simulations": 4}
        result = train(small_muzero(outs[game], game, steps=STEPS, muzero=PRIORITY, evaluation=evaluation))
        assert (result.steps, result.finished) == (STEPS, True)
    return outs


@pytest.mark.parametrize("game", ["tic-tac-toe", GYM])
@pytest.mark.parametrize(("rounds", "error"), [(2, KeyboardInterrupt), (4, Killed)])
def test_interrupted_muzero_run_resumes_bit_for_bit(
    game: str, rounds: int, error: type[BaseException], whole: dict[str, Path], tmp_path: Path
) -> None:
    """Including priorities, fresh targets and unfinished episodes."""
    config = small_muzero(tmp_path, game, steps=STEPS, muzero=PRIORITY)
    stopper = Stopper(rounds, error)
    if error is KeyboardInterrupt:
        assert not train(config, watcher=stopper).finished
    else:
        with pytest.raises(Killed):
            train(config, watcher=stopper)
    before = numbers_of(tmp_path)
    assert train(config, resume=True).steps == STEPS
    assert digest(tmp_path) == digest(whole[game])
    assert digest(tmp_path, "games.npz") == digest(whole[game], "games.npz")
    after = numbers_of(tmp_path)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
    assert after == numbers_of(whole[game])


def test_irreproducible_episodes_are_replaced_on_resuming(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Unrepeatable

    muzero = {"support": 10, "td_steps": 3}
    config = small_muzero(tmp_path, steps=30, muzero=muzero).with_values(self_play={"opening_plies": 0})
    assert not train(config, factory=Unrepeatable, watcher=Stopper(2)).finished
    stopper = Stopper(10**9)
    assert train(config, factory=Unrepeatable, resume=True, watcher=stopper).finished
    assert any("episodes are not reproducible" in note for note in stopper.notes)


def test_truncated_episode_is_recorded_as_truncated(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Corridor

    config = small_muzero(tmp_path, steps=3, muzero={"support": 10}).with_values(self_play={"opening_plies": 0})
    train(config, factory=Corridor)
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert {game.cut for game in games} == {True, False}
    for game in games:
        assert game.cut == (game.rewards[-1] < 0.0)
        assert game.cut <= (len(game.moves) == 8)


def test_max_moves_truncates_episodes(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Corridor

    config = small_muzero(tmp_path, steps=2, muzero={"support": 10})
    train(config.with_values(self_play={"opening_plies": 0, "max_moves": 3}), factory=Corridor)
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert all(game.cut and len(game.moves) == 3 for game in games)


def test_endless_environment_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Endless

    from pondertree.learn.loop import session

    monkeypatch.setattr(session, "MOVES_WITHOUT_END", 10)
    config = small_muzero(tmp_path, steps=1, muzero={"support": 10})
    stopper = Stopper(10**9)
    train(config.with_values(self_play={"opening_plies": 0, "max_moves": 30}), factory=Endless, watcher=stopper)
    [note] = [note for note in stopper.notes if "has ended" in note]
    assert note.startswith("no game of tests.support.environments:Endless has ended in 10 moves")
    assert "self_play.max_moves = 3 would truncate them (it is 30)" in note


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("algorithm is muzero in this run and cannot become gumbel", {"algorithm": "gumbel"}),
        ("muzero.support is 0 in this run and cannot become 7", {"muzero": {"support": 7}}),
        ("muzero.dynamics_blocks is 1 in this run and cannot become 2", {"muzero": {"dynamics_blocks": 2}}),
        ("muzero.consistency is 0.0 in this run and cannot become 1.0", {"muzero": {"consistency": 1.0}}),
        ("network.channels is 8 in this run and cannot become 9", {"network": {"channels": 9}}),
    ],
)
def test_architecture_of_run_cannot_change(name: str, change: dict[str, Any], whole: dict[str, Path]) -> None:
    out = whole["tic-tac-toe"]
    config = small_muzero(out, steps=STEPS + 1, muzero=PRIORITY).with_values(**change)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgumentError, match=f"{re.escape(name)}: start another run for that"):
        train(config, resume=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("muzero", [{"root": "puct"}, {"consistency": 1.0}, {"support": 5}, {"discount": 0.9}])
@pytest.mark.parametrize("game", ["connect4", "examples.games.nim:Nim"])
def test_other_games_and_muzero_options_train(game: str, muzero: dict[str, Any], tmp_path: Path) -> None:
    evaluation = {"games": 2, "uct_simulations": (5,), "simulations": 4}
    self_play = {"full_share": 0.6, "opening_plies": 0}
    config = Config(game=game, algorithm="muzero", out=str(tmp_path), steps=4)
    config = config.with_values(**SMALL).with_values(muzero=muzero, evaluation=evaluation, self_play=self_play)
    result = train(config)
    assert result.steps == 4
    [line] = result.evaluations
    assert set(line["scores"]) == {"UCT 5"}


def test_episode_record_keeps_observations_and_rewards(whole: dict[str, Path]) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from pondertree.learn.config.game_spec import game_spec
    from pondertree.learn.data.observations import packed_observations

    spec = game_spec(GYM, model=True)
    games = [game for shard in list_shards(whole[GYM] / "games") for game in read_shard(shard)]
    for game in games[:5]:
        assert len(game.rewards) == len(game.moves)
        assert game.returns.tolist() == [game.rewards.sum()] == [len(game.moves)]
        seen, _ = packed_observations(game, spec)
        assert seen.numbers.shape == (len(game.moves), 4)
        assert (np.abs(seen.numbers[0]) <= 0.05).all()  # CartPole's initial range
    assert gymnasium is not None


def test_loaded_model_works_with_every_search(whole: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = whole["tic-tac-toe"]
    model = pondertree.load(out)
    assert (model.about["game"], model.about["step"]) == ("tic-tac-toe", STEPS)
    for search in (pondertree.MuZero(model, 20, seed=1), pondertree.Gumbel(model, 20, seed=1)):
        result = search.run(TicTacToe())
        assert result.simulations == 20
        # The model itself reports alternating players and no discounting.
        assert abs(result.value) <= 1.0
    state = TicTacToe()
    action = pondertree.select_action(
        model, pondertree.MCTSConfig(num_players=2), state.observation(), state.legal_actions(), seed=1
    )
    assert action in state.legal_actions()
    for text in (f"muzero:model=player:{out},num_simulations=8", f"gumbel:model=player:{out},num_simulations=8"):
        result = play_match(text, "first", "tic-tac-toe", num_games=2, seed=1, concurrency=1)
        assert result.wins + result.draws + result.losses == 2
    assert cli.main(["play", "tic-tac-toe", "--player", str(out), "--side", "none", "--simulations", "8"]) == 0
    assert "plays" in capsys.readouterr().out


def test_principal_variation_of_model_stops_where_rules_do(
    whole: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A model continues beyond the end of a game and through occupied cells."""
    command = ["tic-tac-toe", "--player", str(whole["tic-tac-toe"]), "--simulations", "120", "--seed", "1"]
    for moves in ("a1 b2 a2 b1", "a1 b1 c1 b2 a2 c2 b3"):
        assert cli.main(["search", *command, "--moves", moves, "--json"]) == 0
        output = json.loads(capsys.readouterr().out)
        lines = [output["pv"], *(move["pv"] for move in output["moves"])]
        assert cli.main(["play", *command, "--moves", moves, "--side", "none"]) == 0
        printed = capsys.readouterr().out
        lines += [line.split("expects ")[1].split() for line in printed.splitlines() if "expects " in line]
        for line in lines:
            assert "".join(line).isalnum()
            assert not any(text.isdigit() for text in line)
        for line in lines[: 1 + len(output["moves"])]:
            state = TicTacToe()
            for text in (*moves.split(), *line):
                state = state.play(state.parse_action(text))
    assert cli.main(["search", *command]) == 0
    assert "MuZero, trained model" in capsys.readouterr().out


def test_policy_value_players_are_refused_as_models(whole: dict[str, Path], tmp_path: Path) -> None:
    out = whole["tic-tac-toe"]
    with pytest.raises(InvalidArgumentError, match="this player is a model, which muzero:model=player:DIR plans in"):
        read_player(f"alphazero:evaluator=player:{out}")
    with pytest.raises(InvalidArgumentError, match="model is missing: model=player:DIR"):
        read_player("muzero:num_simulations=3")
    with pytest.raises(InvalidArgumentError, match="is an evaluator, not a model"):
        read_player("muzero:model=player:connect4")
    with pytest.raises(InvalidArgumentError, match="model must be player:DIR"):
        read_player("muzero:model=7")


def test_report_shows_prediction_errors(whole: dict[str, Path]) -> None:
    pytest.importorskip("matplotlib")
    for game, out in whole.items():
        lines = [line for line in read_metrics(out / "metrics.jsonl") if line["kind"] == "model"]
        by_depth = lines[-1]["by_depth"]
        assert [len(by_depth[name]) for name in ("value", "reward", "policy", "legal")] == [4, 3, 4, 4]
        page, complaint = write_report(out)
        assert complaint == ""
        text = page.read_text(encoding="utf-8")
        assert "Prediction errors by unroll depth" in text
        assert text.count("probability on legal moves") >= 2, "in the table and in the plot"
        assert ("mean return" in text) == (game == GYM)
        assert (out / "plots" / "model.svg").exists()
        assert (out / "plots" / "returns.svg").exists() == (game == GYM)
        assert (out / "plots" / "elo.svg").exists() == (game != GYM)


def test_model_exports_to_two_onnx_files(
    whole: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    assert cli.main(["export", str(whole["tic-tac-toe"]), "--onnx", str(tmp_path / "ttt.onnx")]) == 0
    paths = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert paths == [str(tmp_path / "ttt.onnx"), str(tmp_path / "ttt.step.onnx")]
    model = pondertree.load(whole["tic-tac-toe"])
    seen = np.stack([TicTacToe().observation(), TicTacToe().play(4).observation(), TicTacToe().play(0).observation()])
    first = runtime.InferenceSession(str(tmp_path / "ttt.onnx"), providers=["CPUExecutionProvider"])
    hidden, *rest = first.run(None, {"observations": seen})
    expected = model.initial_inference(seen)
    for one, other in zip((hidden, *rest), expected, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), atol=1e-4)
    step = runtime.InferenceSession(str(tmp_path / "ttt.step.onnx"), providers=["CPUExecutionProvider"])
    actions = np.array([1, 2, 3])
    found = step.run(None, {"hidden_states": hidden, "actions": actions})
    for one, other in zip(found, model.recurrent_inference(expected[0], actions), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), atol=1e-4)


def test_invalid_muzero_arguments_are_reported_before_training(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InvalidArgumentError, match=r"muzero\.support must be above 0"):
        train(small_muzero(tmp_path, GYM, steps=1, muzero={"support": 0}))
    with pytest.raises(InvalidArgumentError, match="environments need algorithm muzero"):
        train(small_muzero(tmp_path, GYM, steps=1).with_values(algorithm="gumbel"))
    with pytest.raises(InvalidArgumentError, match=r'muzero\.root must be "gumbel" or "puct"'):
        small_muzero(tmp_path, muzero={"root": "beam"})


def test_insufficient_memory_is_reported_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.trainer import devices

    monkeypatch.setattr(devices, "memory_of", lambda device: 1_000_000)
    with pytest.raises(InvalidArgumentError, match=r"need 4,000 kB, but there are 1,000 kB: lower replay\.window"):
        train(small_muzero(tmp_path, steps=1, replay={"window": 200_000}))
    with pytest.raises(
        InvalidArgumentError, match=r"lower self_play\.games_at_once, self_play\.simulations or network"
    ):
        train(small_muzero(tmp_path, steps=1, self_play={"games_at_once": 5000}))


def test_broken_environment_stops_run(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Raises

    config = small_muzero(tmp_path, steps=30, muzero={"support": 10}).with_values(self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match="the robot fell over"):
        train(config, factory=Raises)


@pytest.mark.slow
def test_train_command_uses_muzero_for_environment(tmp_path: Path) -> None:
    """`pondertree train` selects MuZero for an environment and resumes the run."""
    pytest.importorskip("gymnasium")
    settings = "[self_play]\ngames_at_once = 4\nsimulations = 2\nworkers = 1\n[replay]\nlearned_first = 30\n"
    settings += "[learner]\nbatch_size = 8\n[network]\nchannels = 8\n[evaluation]\ngames = 2\nsimulations = 2\n"
    (tmp_path / "settings.toml").write_text(settings)
    command = [sys.executable, "-m", "pondertree", "train", GYM, "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(
        [*command, "--config", str(tmp_path / "settings.toml"), "--steps", "3", "--device", "cpu"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["steps"] == 3
    assert output["evaluations"][0]["mean_return"] >= 8.0
    assert 'algorithm = "muzero"' in (tmp_path / "run" / "config.toml").read_text()
    done = subprocess.run([*command, "--resume", "--steps", "5"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("game", ["connect4", "chess", GYM])
def test_muzero_trains_on_gpu(game: str, tmp_path: Path) -> None:
    config = small_muzero(tmp_path, game, steps=12, device="cuda", muzero={"consistency": 1.0, **PRIORITY})
    config = config.with_values(self_play={"max_moves": 20}, evaluation={"games": 2, "simulations": 4})
    result = train(config)
    assert (result.steps, result.finished) == (12, True)
    assert train(config.with_values(steps=16), resume=True).steps == 16
