"""Self-play: rules, resuming, resignation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learn.data.test_records import same
from tests.support.learning import small
from tests.support.networks import table

from pondertree.evaluators import Function
from pondertree.games import TicTacToe
from pondertree.learn.config.game_spec import game_spec
from pondertree.learn.data.records import GameRecord, from_columns, to_columns
from pondertree.learn.self_play.actor import SelfPlay
from pondertree.learn.self_play.episode import MIN_CHECKED, Resignation
from pondertree.presets import AlphaZero, Gumbel


def self_play(game: str = "tic-tac-toe", evaluator: Any = None, algorithm: str = "gumbel", **play: Any) -> SelfPlay:
    spec = game_spec(game)
    config = small(Path("unused"), game, self_play=play, algorithm=algorithm)
    if evaluator is None:
        evaluator = Function(lambda observations: table(observations, spec.info.num_actions), policy="logits")
    found = SelfPlay(spec, config, evaluator)
    found.begin()
    return found


def play_on(games: SelfPlay, moves: int) -> list[GameRecord]:
    return [game for version in range(moves) for game in games.move(version)]


@pytest.mark.parametrize("algorithm", ["gumbel", "alphazero"])
@pytest.mark.parametrize("full_share", [1.0, 0.3])
def test_self_play_games_are_legal_with_true_results(algorithm: str, full_share: float) -> None:
    records = play_on(self_play(algorithm=algorithm, full_share=full_share), 20)
    assert len(records) >= 16
    assert len({game.number for game in records}) == len(records)
    for game in records:
        state = TicTacToe()
        for move in (*game.opening.tolist(), *game.moves.tolist()):
            assert move in state.legal_actions()
            state = state.play(move)
        assert state.is_terminal
        assert game.returns.tolist() == state.returns()
        assert len(game.opening) <= 2
        assert not game.cut
        ends = np.cumsum(game.counts)[:-1]
        for policy in np.split(game.policy, ends):
            assert policy.sum() == pytest.approx(1.0, abs=1e-5)
            assert (policy >= 0.0).all()
    shares = np.concatenate([game.full for game in records])
    assert shares.all() if full_share == 1.0 else 0.15 < shares.mean() < 0.5


def test_policy_target_is_policy_of_search() -> None:
    games = self_play(games_at_once=1, opening_plies=0)
    search = games._search
    games.move(0)
    game = games.games[0]
    from pondertree.random import fold

    evaluator = search.evaluator  # type: ignore[attr-defined]
    again = Gumbel(evaluator, 8, 4, seed=0, solve=False).run([TicTacToe()], seeds=[fold(game.key, 0)])[0]
    shares = again.policy[game.actions[0]] / again.policy.sum()
    np.testing.assert_allclose(game.policy[0], shares, rtol=1e-6)
    assert sorted(game.actions[0].tolist()) == list(range(9))
    assert game.values[0] == again.value


def test_worker_threads_do_not_change_games() -> None:
    alone, batched = self_play(workers=1), self_play(workers=3)
    try:
        for one, other in zip(play_on(alone, 12), play_on(batched, 12), strict=True):
            assert same(one, other)
    finally:
        batched.close()


@pytest.mark.parametrize("moves", [1, 4, 7])
def test_unfinished_games_resume_exactly(moves: int) -> None:
    play = {"resign_below": -0.2, "resign_check": 0.5}
    through, first, second = (self_play(algorithm="alphazero", **play) for _ in range(3))
    before = play_on(first, moves)
    records, data = first.snapshot()
    second.restore(from_columns(to_columns(records)), data)
    second.begin()
    after = [game for version in range(moves, 14) for game in second.move(version)]
    whole = play_on(through, 14)
    assert len(whole) == len(before) + len(after)
    assert all(same(one, other) for one, other in zip(whole, [*before, *after], strict=True))


def test_known_finished_games_are_not_replayed() -> None:
    games = self_play()
    games.begin(known=frozenset({0, 3, 20}))
    numbers = [game.number for game in games.games]
    assert numbers == [1, 2, 4, 5, 6, 7, 21, 22]


def test_overlong_game_is_draw_marked_as_truncated() -> None:
    records = play_on(self_play(max_moves=4, opening_plies=0), 12)
    assert all(game.cut and game.returns.tolist() == [0.0, 0.0] and len(game.moves) == 4 for game in records)


def test_best_move_is_played_after_temperature_moves() -> None:
    """Without exploration all games are equal."""
    evaluator = Function(lambda observations: table(observations, 9), policy="logits")
    games = self_play(
        evaluator=evaluator, algorithm="alphazero", temperature_moves=0, opening_plies=0, dirichlet_epsilon=0.0
    )
    search = AlphaZero(evaluator, 8, 1.5, seed=0, solve=False, forced_playouts=2.0)
    state = TicTacToe()
    games.move(0)
    result = search.run([state], seeds=[games.games[0].key])[0]
    visits = [game.moves[0] for game in games.games]
    assert set(visits) <= set(np.flatnonzero(result.visits == result.visits.max()).tolist())


def lost_for_player(player: int) -> Any:
    """Returns values that say `player` is lost. Plane 2 of an observation is 1 if player 0 is to move."""

    def evaluate(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = observations[:, 2, 0, 0] == 1.0
        mine = first if player == 0 else ~first
        return np.zeros((len(observations), 7), np.float32), np.where(mine, -0.99, 0.99).astype(np.float32)

    return Function(evaluate, policy="logits")


def test_resignation_ends_lost_games_and_plays_some_on() -> None:
    play = {"resign_below": -0.9, "opening_plies": 0, "games_at_once": 40, "resign_check": 0.25, "simulations": 2}
    games = self_play("connect4", lost_for_player(1), **play)
    records = play_on(games, 60)
    resigned = [game for game in records if game.resigned]
    assert 0.3 < len(resigned) / len(records) <= 1.0
    assert all(game.returns.tolist() == [1.0, -1.0] and len(game.moves) == 4 for game in resigned)
    assert any(not game.resigned for game in records)
    # Values are made up, so about half of the resignations are false positives: resignation is disabled by now.
    assert len(games.resignation.checked) >= MIN_CHECKED
    assert games.resignation.false_positive_rate > 0.05
    assert not games.resignation.is_allowed


def test_resignation_is_disabled_at_high_false_positive_rate() -> None:
    config = small(Path("unused"), self_play={"resign_below": -0.9, "resign_wrong": 0.1}).self_play
    watch = Resignation(config, [False] * (MIN_CHECKED - 1))
    assert watch.is_allowed
    watch.add_check(True)
    assert watch.is_allowed
    watch.add_check(True)
    assert not watch.is_allowed
    assert watch.is_below_threshold(-0.95)
    assert not watch.is_below_threshold(-0.85)
    assert Resignation(config, watch.checked).false_positive_rate == watch.false_positive_rate
