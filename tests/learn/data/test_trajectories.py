"""Unrolled batches: targets along a game and beyond its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.learning import small

torch = pytest.importorskip("torch")

from pondertree.errors import GameContractError  # noqa: E402 (after the packages it needs)
from pondertree.evaluators import Uniform  # noqa: E402
from pondertree.games import TicTacToe  # noqa: E402
from pondertree.gpu.buffer import unpacked  # noqa: E402
from pondertree.learn.config.game_spec import GameSpec, game_spec  # noqa: E402
from pondertree.learn.data.records import GameRecord  # noqa: E402
from pondertree.learn.data.trajectories import TrajectoryBuffer  # noqa: E402
from pondertree.learn.self_play.actor import SelfPlay  # noqa: E402

NUMBERS = np.random.default_rng(0)


def played(count: int, **values: Any) -> tuple[GameSpec, TrajectoryBuffer, list[GameRecord]]:
    """Returns a buffer of tic-tac-toe games with made-up search results."""
    config = small(Path("unused"), algorithm="muzero", **values)
    spec = game_spec("tic-tac-toe")
    self_play = SelfPlay(spec, config.with_values(algorithm="gumbel"), Uniform())
    self_play.begin()
    games: list[GameRecord] = []
    while len(games) < count:
        games += self_play.move(0)
    replay = TrajectoryBuffer(spec, config)
    replay.add(games)
    return spec, replay, games


def seen(replay: TrajectoryBuffer, places: Any) -> Any:
    found = replay.observations_at(np.asarray(places))
    planes, numbers = torch.from_numpy(found.planes.view(np.int64)), torch.from_numpy(found.numbers)
    return unpacked(planes, numbers, (3, 3, 3) if planes.shape[1] + numbers.shape[1] == 3 else (-1, 3, 3)).numpy()


def test_unrolled_row_follows_game_then_absorbs() -> None:
    _, replay, games = played(12, learner={"root_value_share": 0.0})
    place = 0
    for game in games:
        state = TicTacToe()
        for move in game.opening.tolist():
            state = state.play(move)
        for number, move in enumerate(game.moves.tolist()):
            batch = replay.gather(np.array([place]), NUMBERS)
            left = len(game.moves) - number
            np.testing.assert_array_equal(
                seen(replay, [place])[0].reshape(np.shape(state.observation())), state.observation()
            )
            assert batch.values[0, 0] == game.returns[state.to_play]
            steps = batch.moves.shape[1]
            inside = min(left, steps)
            assert batch.moves[0, :inside].tolist() == game.moves[number : number + inside].tolist()
            for depth in range(steps + 1):
                if depth < left:
                    # Values are for the player to move at that depth.
                    assert batch.values[0, depth] == (-1) ** depth * batch.values[0, 0]
                    assert batch.searched[0, depth] == 1.0
                    assert batch.policy[0, depth].sum() == pytest.approx(1.0, abs=1e-5)
                else:
                    assert batch.values[0, depth] == 0.0
                    assert batch.searched[0, depth] == 0.0
                    assert (batch.actions[0, depth] == 9).all()
                assert batch.known[0, depth] == 1.0
                if depth:
                    is_last = depth == left
                    mover = (state.to_play + depth - 1) % 2
                    assert batch.rewards[0, depth - 1] == (game.returns[mover] if is_last else 0.0)
            state = state.play(move)
            place += 1
    assert place == len(replay)


def test_targets_beyond_truncation_are_masked() -> None:
    _, replay, games = played(4, self_play={"max_moves": 4, "opening_plies": 0})
    cut = next(number for number, game in enumerate(games) if game.cut)
    first = sum(len(game.moves) for game in games[:cut])
    batch = replay.gather(np.array([first + 3]), NUMBERS)
    assert batch.known[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert batch.rewards[0, 0] == 0.0


def test_value_target_mixes_in_root_value() -> None:
    _, plain, games = played(6, learner={"root_value_share": 0.0})
    _, mixed, _ = played(6, learner={"root_value_share": 0.25})
    places = np.arange(len(plain))
    results, both = (replay.gather(places, NUMBERS).values[:, 0] for replay in (plain, mixed))
    found = np.concatenate([game.values for game in games])
    np.testing.assert_allclose(both, 0.75 * results + 0.25 * found, atol=1e-6)


def test_prioritised_replay_corrects_by_importance_weights() -> None:
    _, replay, _ = played(10, muzero={"priority": 1.0, "priority_correction": 1.0})
    length = len(replay)
    errors = np.full(length, 0.5, np.float32)
    errors[3] = 10.0
    replay.update_priorities(np.arange(length), errors)
    chosen, weights = replay.sample_indices(20_000, np.random.default_rng(1))
    share = (chosen == 3).mean()
    assert share == pytest.approx(10.001 / (10.001 + (length - 1) * 0.501), rel=0.1)
    # Importance weight times probability is constant.
    assert weights[chosen == 3][0] * 10.001 == pytest.approx(weights[chosen == 4][0] * 0.501, rel=1e-3)
    assert weights.max() == 1.0
    saved = replay.state_dict()
    _, again, _ = played(10, muzero={"priority": 1.0})
    again.load_state_dict(saved)
    np.testing.assert_array_equal(
        again.sample_indices(50, np.random.default_rng(2))[0], replay.sample_indices(50, np.random.default_rng(2))[0]
    )


def test_trajectory_buffer_sampling_is_recency_weighted() -> None:
    _, replay, _ = played(30, replay={"fresh": 1.0})
    chosen, weights = replay.sample_indices(4000, np.random.default_rng(1))
    assert chosen.mean() / len(replay) == pytest.approx(2 / 3, abs=0.02)
    assert (weights == 1.0).all()


class TwiceInARow:
    """A game in which the first player moves twice."""

    num_actions, num_players = 2, 2

    def __init__(self, moves: int = 0) -> None:
        self.moves = moves
        self.to_play = (0, 0, 1, 1)[moves % 4]
        self.is_terminal = moves >= 4

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> TwiceInARow:
        return TwiceInARow(self.moves + 1)

    def returns(self) -> list[float]:
        return [1.0, -1.0]

    def observation(self) -> Any:
        return np.zeros(2, np.float32)


def test_non_alternating_players_are_refused() -> None:
    config = small(Path("unused"), algorithm="muzero")
    spec = game_spec("", TwiceInARow)
    self_play = SelfPlay(spec, config.with_values(algorithm="gumbel", self_play={"opening_plies": 0}), Uniform())
    self_play.begin()
    games: list[GameRecord] = []
    while not games:
        games += self_play.move(0)
    with pytest.raises(GameContractError, match="moves twice in a row"):
        TrajectoryBuffer(spec, config).add(games)
