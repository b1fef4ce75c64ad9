"""Training in games with chance and rewards: records, targets, values of any size, evaluation, exact resumption."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learn.data.test_records import same
from tests.support.learning import SMALL, Dice, Killed, Stopper, digest

from pondertree.errors import GameContractError, InvalidArgumentError, StorageError
from pondertree.evaluators import Uniform
from pondertree.games.chance import is_chance
from pondertree.learn import Config, default_config, list_shards, read_shard
from pondertree.learn.config import game_spec
from pondertree.learn.data import GameRecord, ReplayBuffer, check_games, draw_outcomes
from pondertree.learn.data.observations import packed_observations
from pondertree.learn.data.records import from_columns, to_columns
from pondertree.learn.data.shards import write_shard
from pondertree.learn.evaluation.arena import greedy_player, play_episodes, random_player
from pondertree.learn.evaluation.ratings import mean_interval
from pondertree.learn.self_play import SelfPlay

GAMES = ["2048", "tests.support.learning:Dice", "pig", "backgammon"]


def small(game: str, **values: Any) -> Config:
    return default_config(game, **{**SMALL, "out": ""}).with_values(**values)


def self_play(game: str, algorithm: str = "gumbel", **play: Any) -> SelfPlay:
    config = small(game, algorithm=algorithm, self_play={"simulations": 4, "max_moves": 60, **play})
    found = SelfPlay(game_spec(game), config, Uniform())
    found.begin()
    return found


def play_on(games: SelfPlay, moves: int) -> list[GameRecord]:
    return [game for version in range(moves) for game in games.move(version)]


def states_of(game: GameRecord, factory: Any) -> list[Any]:
    """Returns the states after each action and outcome of a record, the start first."""
    states = [factory()]
    for action in game.line()[0].tolist():
        assert action in states[-1].legal_actions()
        states.append(states[-1].play(action))
    return states


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
def test_records_replay_to_the_searched_positions(name: str, algorithm: str) -> None:
    spec = game_spec(name)
    records = play_on(self_play(name, algorithm), 70)
    assert len(records) >= 8
    for game in records:
        states = states_of(game, spec.factory)
        decisions = [state for state in states[:-1] if not is_chance(state)]
        line, chance = game.line()
        assert chance.tolist() == [is_chance(state) for state in states[:-1]]
        assert len(line) == len(game.opening) + len(game.moves) + len(game.outcomes)
        searched = decisions[len(game.opening) :]
        seen, players = packed_observations(game, spec)
        assert players.tolist() == [state.to_play for state in searched]
        assert len(seen.planes) == len(seen.numbers) == len(searched) == len(game.moves)
        if not spec.info.compiled:
            np.testing.assert_array_equal(seen.numbers, [state.observation().ravel() for state in searched])
        for state, legal in zip(searched, np.split(game.actions, np.cumsum(game.counts)[:-1]), strict=True):
            assert sorted(legal.tolist()) == sorted(state.legal_actions())
        if spec.info.has_rewards:
            paid = [float(state.rewards()[0]) for state in states[1:]]
            assert game.returns[0] == pytest.approx(sum(paid))
            starts = [*np.flatnonzero(~chance)[len(game.opening) :].tolist(), len(line)]
            discount = small(name).returns.discount
            assert discount < 1.0
            expected = [
                paid[first] + discount * sum(paid[first + 1 : end]) for first, end in itertools.pairwise(starts)
            ]
            np.testing.assert_allclose(game.rewards, expected)
        else:
            assert game.cut or game.returns.tolist() == states[-1].returns()


def test_observations_of_compiled_records_are_those_of_the_states() -> None:
    from pondertree.gpu.buffer import unpacked

    torch = pytest.importorskip("torch")
    spec = game_spec("2048")
    game = play_on(self_play("2048"), 61)[0]
    seen, _ = packed_observations(game, spec)
    found = unpacked(torch.from_numpy(seen.planes.view(np.int64)), torch.from_numpy(seen.numbers), spec.shape).numpy()
    searched = [state for state in states_of(game, spec.factory)[:-1] if not is_chance(state)][len(game.opening) :]
    np.testing.assert_array_equal(found, [state.observation() for state in searched])


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("moves", [1, 7, 40])
def test_unfinished_games_with_chance_resume_exactly(name: str, moves: int) -> None:
    through, first, second = (self_play(name, opening_plies=3) for _ in range(3))
    before = play_on(first, moves)
    records, data = first.snapshot()
    back = from_columns(to_columns(records))
    check_games(back, game_spec(name), finished=False)
    second.restore(back, data)
    second.begin()
    after = [game for version in range(moves, 62) for game in second.move(version)]
    whole = play_on(through, 62)
    assert len(whole) == len(before) + len(after) > 0
    assert all(same(one, other) for one, other in zip(whole, [*before, *after], strict=True))


def test_outcomes_have_their_probabilities() -> None:
    spec = game_spec("tests.support.learning:Dice")
    drawn = [draw_outcomes(Dice(), spec.info, key)[1][0] for key in range(6000)]
    counts = np.bincount(drawn, minlength=6)
    assert counts.sum() == 6000
    assert (np.abs(counts - 1000) < 5 * np.sqrt(1000 * 5 / 6)).all()
    compiled = game_spec("2048")
    tiles = [draw_outcomes(compiled.factory(), compiled.info, key)[1] for key in range(2000)]
    assert {len(two) for two in tiles} == {2}
    fours = sum(outcome % 2 for two in tiles for outcome in two)
    assert abs(fours - 400) < 5 * np.sqrt(4000 * 0.09)
    assert len({two[0] // 2 for two in tiles}) == 16


def test_rolls_of_self_play_are_independent() -> None:
    records = play_on(self_play("tests.support.learning:Dice", games_at_once=64), 40)
    rolls = np.array([game.outcomes for game in records if len(game.outcomes) == 6])
    assert len(rolls) >= 300
    expected = rolls.size / 6
    assert (np.abs(np.bincount(rolls.ravel(), minlength=6) - expected) < 5 * np.sqrt(expected)).all()
    assert abs(np.corrcoef(rolls[:, 0], rolls[:, 1])[0, 1]) < 0.25
    assert len({tuple(row) for row in rolls.tolist()}) > 0.95 * len(rolls)


@pytest.mark.parametrize("name", GAMES)
def test_damaged_outcomes_are_refused(name: str, tmp_path: Path) -> None:
    spec = game_spec(name)
    game = play_on(self_play(name), 62)[0]
    check_games([game], spec)

    def refused(message: str, **changes: Any) -> None:
        shard = write_shard(tmp_path, 0, [replace(game, **changes)], kind="npz")
        with pytest.raises(StorageError, match=message):
            read_shard(shard, spec)
        shard.path.unlink()

    impossible = game.outcomes.copy()
    impossible[len(impossible) // 2] = 60_000
    refused("is not legal", outcomes=impossible)
    refused("misplaced", outcomes=game.outcomes[:-1])
    refused("misplaced", drawn=game.drawn[:-1])
    empty = np.zeros(0, np.uint16)
    refused("other lengths", outcomes=empty, drawn=empty)
    moved = game.drawn.astype(np.int64)
    first, last = np.flatnonzero(moved)[[0, -1]]
    moved[first] -= 1
    moved[last] += 1
    refused("is not legal|is recorded where|is missing", drawn=moved.astype(np.uint16))


def test_games_without_chance_have_no_outcomes(tmp_path: Path) -> None:
    spec = game_spec("tic-tac-toe")
    games = SelfPlay(spec, small("tic-tac-toe"), Uniform())
    games.begin()
    game = play_on(games, 9)[0]
    assert len(game.outcomes) == len(game.drawn) == 0
    extended = np.zeros(len(game.opening) + len(game.moves) + 1, np.uint16)
    shard = write_shard(tmp_path, 0, [replace(game, drawn=extended)], kind="npz")
    with pytest.raises(StorageError, match="other lengths"):
        read_shard(shard, spec)


def test_value_targets_match_hand_computation() -> None:
    """Rewards 10, 0, 40 with discount 0.5: all of them, and two of them with the value of the position after."""
    spec = game_spec("tests.support.learning:Dice")
    game = next(game for game in play_on(self_play("tests.support.learning:Dice", opening_plies=0), 8))
    rewards = np.array([10, 0, 40, 0, 0, 20], np.float32)
    values = np.array([1, 2, 4, 8, 16, 32], np.float32)
    game = replace(game, rewards=rewards, values=values)
    whole = [10 + 0.25 * 40 + 20 / 32, 0.5 * 40 + 20 / 16, 40 + 20 / 8, 20 / 4, 20 / 2, 20]
    for steps, expected in ((0, whole), (2, [10 + 1.0, 20 + 2.0, 40 + 4.0, 8.0, 10.0, 20.0])):
        replay = ReplayBuffer(spec, small(spec.name, returns={"discount": 0.5, "td_steps": steps}))
        replay.add([game])
        batch = replay.gather(np.arange(6))
        np.testing.assert_allclose(batch.results, expected)
        np.testing.assert_array_equal(batch.values, values)
        assert replay.largest == max(expected)


def test_truncated_game_bootstraps_from_its_last_value() -> None:
    spec = game_spec("2048")
    game = play_on(self_play("2048", max_moves=5, opening_plies=0), 5)[0]
    assert game.cut
    replay = ReplayBuffer(spec, small("2048", returns={"discount": 0.5}))
    replay.add([game])
    rewards, last = game.rewards.astype(float), float(game.values[-1])
    expected = [
        sum(rewards[place + k] * 0.5**k for k in range(4 - place)) + 0.5 ** (4 - place) * last for place in range(5)
    ]
    np.testing.assert_allclose(replay.gather(np.arange(5)).results, expected, rtol=1e-6)


def test_reference_players_are_random_and_greedy() -> None:
    spec = game_spec("tests.support.learning:Dice")
    states = [Dice(pips=3), Dice(pips=3)]
    assert greedy_player(states, [1, 2]) == [1, 1]
    assert {random_player(states[:1], [seed])[0] for seed in range(20)} == {0, 1}
    # Greedy play banks every roll: 6 rolls of 10 * 3.5 + 5 / 6 points.
    scores = play_episodes(greedy_player, spec, 400, 7)
    low, high = mean_interval(scores)
    assert low < 215.0 < high
    assert scores == play_episodes(greedy_player, spec, 400, 7)
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx((2.0 - 1.96 / 3**0.5, 2.0 + 1.96 / 3**0.5), abs=1e-4)


def test_algorithms_that_cannot_learn_a_game_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="learned models have no chance nodes; use algorithm gumbel"):
        default_config("2048", algorithm="muzero")

    class Duel(Dice):
        num_players, zero_sum = 2, True

        def rewards(self) -> list[float]:
            return [self.paid, -self.paid]

    with pytest.raises(InvalidArgumentError, match="rewards can be learned in games of one player"):
        game_spec("", Duel)


def test_broken_chance_is_reported_by_name() -> None:
    class Loaded(Dice):
        def chance_outcomes(self) -> list[tuple[int, float]]:
            return [(0, 0.5)] if self.turn >= broken_from else super().chance_outcomes()

    message = r"Loaded\.chance_outcomes\(\) has probabilities that sum to 0\.5"
    broken_from = 1
    play = {"simulations": 1, "opening_plies": 0}
    games = SelfPlay(game_spec("", Loaded), small("2048", self_play=play), Uniform())
    games.begin()
    with pytest.raises(GameContractError, match=message):
        play_on(games, 2)
    broken_from = 0
    with pytest.raises(GameContractError, match=message):
        game_spec("", Loaded)


@pytest.fixture(scope="module", params=["2048", "tests.support.learning:Dice"])
def game(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def run_config(out: Path, game: str) -> Config:
    play = {"simulations": 4, "max_moves": 40, "temperature_moves": 2}
    evaluation = {"games": 4, "simulations": 4}
    return small(game, out=str(out), steps=24, self_play=play, evaluation=evaluation, returns={"support": 40})


def test_run_with_chance_and_rewards_resumes_bit_for_bit(game: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    import pondertree
    from pondertree.learn import train

    whole = train(run_config(tmp_path / "whole", game))
    [line] = whole.evaluations
    assert line["return_low"] <= line["mean_return"] <= line["return_high"]
    assert {"random_return", "greedy_return"} <= line.keys()
    for rounds in (2, 5):
        with pytest.raises(Killed):
            train(run_config(tmp_path / "cut", game), resume=rounds > 2, watcher=Stopper(rounds, Killed))
    train(run_config(tmp_path / "cut", game), resume=True)
    assert digest(tmp_path / "cut") == digest(tmp_path / "whole")
    assert digest(tmp_path / "cut", "player.safetensors") == digest(tmp_path / "whole", "player.safetensors")
    stored = [
        [one for shard in list_shards(tmp_path / out / "games") for one in read_shard(shard, game_spec(game))]
        for out in ("cut", "whole")
    ]
    assert all(same(one, other) for one, other in zip(*stored, strict=True))
    player = pondertree.load(tmp_path / "whole")
    state, _, _ = draw_outcomes(game_spec(game).factory(), game_spec(game).info, 1)
    assert pondertree.Gumbel(player, 8, seed=1).run(state).simulations == 8


def test_report_shows_scores_and_replays_games(game: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from pondertree.learn import train
    from pondertree.learn.report.page import write_report

    train(run_config(tmp_path, game))
    factory = Dice if "Dice" in game else None
    text = write_report(tmp_path, factory)[0].read_text(encoding="utf-8")
    for column in ("mean return", "return low", "random return", "greedy return"):
        assert f"<th>{column}</th>" in text
    assert "by chance</figcaption>" in text
    assert "moves and outcomes" in text
    assert "reward " in text


def test_player_of_returns_is_equal_in_numpy(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from pondertree.learn.trainer.architectures import policy_value_architecture
    from pondertree.networks import fresh, player_bytes, player_of
    from pondertree.networks.numpy_player import load_numpy_player

    spec = game_spec("2048")
    network = fresh(policy_value_architecture(spec, small("2048", returns={"support": 50})), 1)
    with torch.no_grad():
        network.value_out.weight.normal_(generator=torch.Generator().manual_seed(2))
        network.value_out.bias[70:90] += 4.0
    player = player_of(network)
    path = tmp_path / "player.safetensors"
    path.write_bytes(player_bytes(player, spec.metadata(1, 1)))
    states = [draw_outcomes(spec.factory(), spec.info, key)[0] for key in range(20)]
    observations = np.stack([state.observation() for state in states]).astype(np.float32)
    loaded = load_numpy_player(path)
    assert loaded is not None
    logits, values = loaded.evaluate(observations)
    with torch.no_grad():
        expected = player(torch.from_numpy(observations))
    np.testing.assert_allclose(logits, expected[0].numpy(), atol=1e-4)
    np.testing.assert_allclose(values, expected[1].numpy(), rtol=1e-3)
    assert np.abs(values).max() > 10.0
