"""Whole trainings by MuZero, small ones: of games and environments, stopped and taken up, loaded, played and shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.end_to_end.test_learn_loop import Killed, Stopper, numbers_of
from tests.support.learning import SMALL, digest, small

import pondertree
from pondertree import cli
from pondertree.errors import GameContractError, InvalidArgumentError
from pondertree.games import TicTacToe

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import Config, train  # noqa: E402 (after the packages it needs)
from pondertree.learn.data.shards import list_shards, read_shard  # noqa: E402
from pondertree.learn.evaluation.metrics import read_metrics  # noqa: E402
from pondertree.learn.evaluation.report import write_report  # noqa: E402
from pondertree.match import play_match  # noqa: E402
from pondertree.match.spec import read_player  # noqa: E402

STEPS = 30
GYM = "gym:CartPole-v1"
PRIORITY = {"priority": 0.7, "fresh_values": True, "reanalyse": 0.25, "reanalyse_simulations": 4}


def modelled(out: Path, game: str = "tic-tac-toe", **values: Any) -> Config:
    """A training of some seconds."""
    muzero = {"unroll": 3, **values.pop("muzero", {})}
    if game == GYM:
        pytest.importorskip("gymnasium")
        muzero = {"support": 20, "discount": 0.99, "td_steps": 5, **muzero}
        values["self_play"] = {"opening_plies": 0, "temperature_moves": 0, **values.get("self_play", {})}
    config = small(out, game, **values) if game != GYM else small(out).with_values(game=GYM, **values)
    return config.with_values(algorithm="muzero", muzero=muzero)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Trainings that nobody disturbed."""
    outs = {}
    for game in ("tic-tac-toe", GYM):
        outs[game] = tmp_path_factory.mktemp("whole")
        evaluation = {"games": 2, "uct_simulations": (5,), "simulations": 4}
        result = train(modelled(outs[game], game, steps=STEPS, muzero=PRIORITY, evaluation=evaluation))
        assert (result.steps, result.finished) == (STEPS, True)
    return outs


@pytest.mark.parametrize("game", ["tic-tac-toe", GYM])
@pytest.mark.parametrize(("rounds", "error"), [(2, KeyboardInterrupt), (4, Killed)])
def test_a_training_that_is_stopped_goes_on_bit_for_bit(
    game: str, rounds: int, error: type[BaseException], whole: dict[str, Path], tmp_path: Path
) -> None:
    """Priorities, fresh targets and episodes under way included."""
    config = modelled(tmp_path, game, steps=STEPS, muzero=PRIORITY)
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


def test_episodes_that_do_not_repeat_themselves_are_begun_anew(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Unrepeatable

    muzero = {"support": 10, "td_steps": 3}
    config = modelled(tmp_path, steps=30, muzero=muzero).with_values(self_play={"opening_plies": 0})
    assert not train(config, factory=Unrepeatable, watcher=Stopper(2)).finished
    stopper = Stopper(10**9)
    assert train(config, factory=Unrepeatable, resume=True, watcher=stopper).finished
    assert any("episodes are not reproducible" in note for note in stopper.notes)


def test_what_was_only_too_long_is_recorded_as_that(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Corridor

    config = modelled(tmp_path, steps=3, muzero={"support": 10}).with_values(self_play={"opening_plies": 0})
    train(config, factory=Corridor)
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert {game.cut for game in games} == {True, False}
    for game in games:
        assert game.cut == (game.rewards[-1] < 0.0)
        assert game.cut <= (len(game.moves) == 8)


def test_a_limit_of_moves_cuts_episodes(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Corridor

    config = modelled(tmp_path, steps=2, muzero={"support": 10})
    train(config.with_values(self_play={"opening_plies": 0, "max_moves": 3}), factory=Corridor)
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert all(game.cut and len(game.moves) == 3 for game in games)


def test_an_environment_without_an_end_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Endless

    from pondertree.learn.loop import session

    monkeypatch.setattr(session, "MOVES_WITHOUT_END", 10)
    config = modelled(tmp_path, steps=1, muzero={"support": 10})
    stopper = Stopper(10**9)
    train(config.with_values(self_play={"opening_plies": 0, "max_moves": 30}), factory=Endless, watcher=stopper)
    [note] = [note for note in stopper.notes if "has ended" in note]
    assert note.startswith("no game of tests.support.environments:Endless has ended in 10 moves")
    assert "self_play.max_moves = 3 would truncate them (it is 30)" in note


class Stairs:
    """A game of one player who is paid for every step up, or stays where he is."""

    num_actions, num_players, to_play = 2, 1, 0

    def __init__(self, height: int = 0, moves: int = 0, paid: float = 0.0) -> None:
        self.height, self.moves, self.paid = height, moves, paid
        self.is_terminal = moves >= 6

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Stairs:
        return Stairs(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[float]:
        return [self.paid]

    def returns(self) -> list[float]:
        return [0.0]

    def observation(self) -> Any:
        return np.array([self.height, self.moves], np.float32)


def test_a_game_of_one_player_with_rewards(tmp_path: Path) -> None:
    config = modelled(tmp_path, steps=20, muzero={"support": 5}).with_values(
        self_play={"opening_plies": 0, "temperature_moves": 0},
        evaluation={"games": 2, "simulations": 8},
        learner={"learning_rate": 0.01},
    )
    result = train(config, factory=Stairs)
    [line] = result.evaluations
    assert 0.0 <= line["mean_return"] <= 6.0
    games = [game for shard in list_shards(tmp_path / "games") for game in read_shard(shard)]
    assert all(game.returns[0] == game.rewards.sum() == game.moves.sum() and not game.cut for game in games)
    with pytest.raises(InvalidArgumentError, match="rewards need algorithm muzero"):
        train(config.with_values(algorithm="gumbel"), factory=Stairs)


class Rotten(Stairs):
    """One step is broken."""

    def play(self, action: int) -> Stairs:
        if self.moves == 3:
            raise RuntimeError("the stairs are rotten")
        return Rotten(self.height + action, self.moves + 1, float(action))


class Unpaid(Stairs):
    """One reward is no number."""

    def play(self, action: int) -> Stairs:
        return Unpaid(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[Any]:
        return [None] if self.moves == 3 else [0.0]


class Overpaid(Stairs):
    """One reward is NaN."""

    def play(self, action: int) -> Stairs:
        return Overpaid(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[float]:
        return [float("nan") if self.moves == 3 else 1.0]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Overpaid, r"^Overpaid\.rewards\(\) gave, after action \d, the reward nan: rewards must be finite"),
        (
            Rotten,
            r"^Rotten\.play\(\d\) raised RuntimeError although the action is in legal_actions\(\): the stairs are",
        ),
        (Unpaid, "^Unpaid raised TypeError when asked about a state"),
    ],
)
def test_a_game_that_breaks_is_named(kind: Any, message: str, tmp_path: Path) -> None:
    config = modelled(tmp_path, steps=1, muzero={"support": 5}).with_values(self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match=message):
        train(config, factory=kind)


class Blind:
    """Stairs without rewards, on which something is not to be seen."""

    num_actions, num_players = 2, 2

    def __init__(self, moves: int = 0, seen: Any = None) -> None:
        self.moves, self.seen, self.to_play, self.is_terminal = moves, seen, moves % 2, moves >= 6

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Blind:
        return type(self)(self.moves + 1)

    def returns(self) -> list[float]:
        return [1.0, -1.0]

    def observation(self) -> Any:
        return np.array([self.moves, np.nan if self.moves == 3 else 0.0], np.float32)


class Shrinking(Blind):
    def observation(self) -> Any:
        return np.zeros(3 if self.moves == 3 else 4, np.float32)


class BlindAtOnce(Blind):
    def observation(self) -> Any:
        return np.array([np.inf])


@pytest.mark.parametrize("algorithm", ["muzero", "gumbel"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Blind, r"Blind\.observation\(\) has a number that is not finite: nan"),
        (Shrinking, r"Shrinking\.observation\(\) has shape \(3,\), and in the starting state it has \(4,\)"),
        (BlindAtOnce, r"BlindAtOnce\.observation\(\) has a number that is not finite: inf"),
    ],
)
def test_observations_that_no_network_takes_are_named(kind: Any, message: str, algorithm: str, tmp_path: Path) -> None:
    config = modelled(tmp_path, steps=1).with_values(algorithm=algorithm, self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match=message):
        train(config, factory=kind)


def test_rewards_that_the_support_does_not_reach_are_told_once(tmp_path: Path) -> None:
    values = {"self_play": {"opening_plies": 0, "temperature_moves": 0}}
    stopper = Stopper(10**9)
    config = modelled(tmp_path / "one", steps=3, muzero={"support": 1, "unroll": 1}).with_values(**values)
    train(config, factory=Stairs, watcher=stopper)
    [note] = [note for note in stopper.notes if "support" in note]
    assert re.fullmatch(r"muzero\.support = 1 reaches to 2\.9\d*, .* muzero\.support = 2 or more, .*", note)
    # Nobody watches here.
    with pytest.warns(UserWarning, match=r"muzero\.support = 2 or more"):
        train(config.with_values(out=str(tmp_path / "two")), factory=Stairs)
    stopper = Stopper(10**9)
    config = modelled(tmp_path / "enough", steps=3, muzero={"support": 2, "unroll": 1}).with_values(**values)
    train(config, factory=Stairs, watcher=stopper)
    assert not any("support" in note for note in stopper.notes)


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
def test_the_network_of_a_training_stays(name: str, change: dict[str, Any], whole: dict[str, Path]) -> None:
    out = whole["tic-tac-toe"]
    config = modelled(out, steps=STEPS + 1, muzero=PRIORITY).with_values(**change)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgumentError, match=f"{re.escape(name)}: start another run for that"):
        train(config, resume=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("muzero", [{"root": "puct"}, {"consistency": 1.0}, {"support": 5}, {"discount": 0.9}])
@pytest.mark.parametrize("game", ["connect4", "examples.games.nim:Nim"])
def test_other_games_and_settings(game: str, muzero: dict[str, Any], tmp_path: Path) -> None:
    evaluation = {"games": 2, "uct_simulations": (5,), "simulations": 4}
    self_play = {"full_share": 0.6, "opening_plies": 0}
    config = Config(game=game, algorithm="muzero", out=str(tmp_path), steps=4)
    config = config.with_values(**SMALL).with_values(muzero=muzero, evaluation=evaluation, self_play=self_play)
    result = train(config)
    assert result.steps == 4
    [line] = result.evaluations
    assert set(line["scores"]) == {"UCT 5"}


def test_what_is_kept_of_an_episode(whole: dict[str, Path]) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from pondertree.learn.config.game_spec import game_spec
    from pondertree.learn.data.observations import packed_observations

    spec = game_spec(GYM, rewards=True)
    games = [game for shard in list_shards(whole[GYM] / "games") for game in read_shard(shard)]
    for game in games[:5]:
        assert len(game.rewards) == len(game.moves)
        assert game.returns.tolist() == [game.rewards.sum()] == [len(game.moves)]
        seen, _ = packed_observations(game, spec)
        assert seen.numbers.shape == (len(game.moves), 4)
        assert (np.abs(seen.numbers[0]) <= 0.05).all()  # where CartPole begins
    assert gymnasium is not None


def test_a_model_for_every_search(whole: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = whole["tic-tac-toe"]
    model = pondertree.load(out)
    assert (model.about["game"], model.about["step"]) == ("tic-tac-toe", STEPS)
    for search in (pondertree.MuZero(model, 20, seed=1), pondertree.Gumbel(model, 20, seed=1)):
        result = search.run(TicTacToe())
        assert result.simulations == 20
        # The model says itself that players take turns, and that nothing is discounted.
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


def test_lines_of_a_model_stop_where_the_rules_do(whole: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A model goes on behind the end of a game, and through squares that are taken."""
    command = ["tic-tac-toe", "--player", str(whole["tic-tac-toe"]), "--simulations", "120", "--seed", "1"]
    for moves in ("a1 b2 a2 b1", "a1 b1 c1 b2 a2 c2 b3"):
        assert cli.main(["search", *command, "--moves", moves, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        lines = [told["pv"], *(move["pv"] for move in told["moves"])]
        assert cli.main(["play", *command, "--moves", moves, "--side", "none"]) == 0
        printed = capsys.readouterr().out
        lines += [line.split("expects ")[1].split() for line in printed.splitlines() if "expects " in line]
        for line in lines:
            assert "".join(line).isalnum()
            assert not any(text.isdigit() for text in line)
        for line in lines[: 1 + len(told["moves"])]:
            state = TicTacToe()
            for text in (*moves.split(), *line):
                state = state.play(state.parse_action(text))
    assert cli.main(["search", *command]) == 0
    assert "MuZero, trained model" in capsys.readouterr().out


def test_players_that_are_no_models(whole: dict[str, Path], tmp_path: Path) -> None:
    out = whole["tic-tac-toe"]
    with pytest.raises(InvalidArgumentError, match="this player is a model, which muzero:model=player:DIR plans in"):
        read_player(f"alphazero:evaluator=player:{out}")
    with pytest.raises(InvalidArgumentError, match="model is missing: model=player:DIR"):
        read_player("muzero:num_simulations=3")
    with pytest.raises(InvalidArgumentError, match="is no model, but an evaluator"):
        read_player("muzero:model=player:connect4")
    with pytest.raises(InvalidArgumentError, match="model must be player:DIR"):
        read_player("muzero:model=7")


def test_the_quality_of_the_model_is_shown(whole: dict[str, Path]) -> None:
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


def test_a_model_is_exported_in_two_parts(
    whole: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    assert cli.main(["export", str(whole["tic-tac-toe"]), "--onnx", str(tmp_path / "ttt.onnx")]) == 0
    told = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == [str(tmp_path / "ttt.onnx"), str(tmp_path / "ttt.step.onnx")]
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


def test_mistakes_are_said_before_the_work(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InvalidArgumentError, match=r"muzero\.support must be above 0"):
        train(modelled(tmp_path, GYM, steps=1, muzero={"support": 0}))
    with pytest.raises(InvalidArgumentError, match="rewards need algorithm muzero"):
        train(modelled(tmp_path, GYM, steps=1).with_values(algorithm="gumbel"))
    with pytest.raises(InvalidArgumentError, match=r"muzero\.root must be gumbel or puct"):
        modelled(tmp_path, muzero={"root": "beam"})


def test_what_does_not_fit_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pondertree.learn.loop import devices

    monkeypatch.setattr(devices, "memory_of", lambda device: 1_000_000)
    with pytest.raises(InvalidArgumentError, match=r"need 4,000 kB, but there are 1,000 kB: lower replay\.window"):
        train(modelled(tmp_path, steps=1, replay={"window": 200_000}))
    with pytest.raises(
        InvalidArgumentError, match=r"lower self_play\.games_at_once, self_play\.simulations or network"
    ):
        train(modelled(tmp_path, steps=1, self_play={"games_at_once": 5000}))


def test_an_environment_that_breaks_stops_the_training(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    from tests.support.environments import Raises

    config = modelled(tmp_path, steps=30, muzero={"support": 10}).with_values(self_play={"opening_plies": 0})
    with pytest.raises(GameContractError, match="the robot fell over"):
        train(config, factory=Raises)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """`pondertree train` chooses MuZero for an environment by itself, and goes on with it."""
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
    told = json.loads(done.stdout)
    assert told["steps"] == 3
    assert told["evaluations"][0]["mean_return"] >= 8.0
    assert 'algorithm = "muzero"' in (tmp_path / "run" / "config.toml").read_text()
    done = subprocess.run([*command, "--resume", "--steps", "5"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("game", ["connect4", "chess", GYM])
def test_on_a_gpu(game: str, tmp_path: Path) -> None:
    config = modelled(tmp_path, game, steps=12, device="cuda", muzero={"consistency": 1.0, **PRIORITY})
    config = config.with_values(self_play={"max_moves": 20}, evaluation={"games": 2, "simulations": 4})
    result = train(config)
    assert (result.steps, result.finished) == (12, True)
    assert train(config.with_values(steps=16), resume=True).steps == 16
