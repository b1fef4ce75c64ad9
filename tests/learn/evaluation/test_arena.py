"""Batched matches, ratings with error bars, exact play."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondertree.evaluators import Function
from pondertree.games import ConnectFour, TicTacToe
from pondertree.learn.config.game_spec import game_spec
from pondertree.learn.evaluation.arena import bare_policy, play_pairs, search_player
from pondertree.learn.evaluation.exact_play import ExactPlayTest, exact_play_test, read_positions
from pondertree.learn.evaluation.ratings import Games, rate
from pondertree.match.statistics import score_of as expected_score
from pondertree.presets import UCT


def first_move(states: Any, seeds: Any) -> list[int]:
    return [int(state.legal_actions()[0]) for state in states]


def test_strong_player_beats_weak_one_with_both_sides() -> None:
    strong = search_player(UCT(300, seed=1))
    counts = play_pairs(strong, first_move, ConnectFour, "connect_four", 6, 5)
    assert counts == [0, 0, 0, 0, 6]
    assert play_pairs(first_move, strong, ConnectFour, "connect_four", 6, 5) == [6, 0, 0, 0, 0]
    assert counts == play_pairs(strong, first_move, ConnectFour, "connect_four", 6, 5)


def test_player_against_itself_scores_half() -> None:
    counts = play_pairs(first_move, first_move, TicTacToe, "tic_tac_toe", 9, 1)
    assert sum(counts) == 9
    assert counts[2] == 9


def test_bare_policy_plays_legal_move_of_highest_logit() -> None:
    evaluator = Function(
        lambda observations: (np.tile(np.arange(9.0, dtype=np.float32), (len(observations), 1)), np.zeros(1)),
        policy="logits",
    )
    state = TicTacToe().play(8)
    assert bare_policy(evaluator)([state], [0]) == [7]


@settings(max_examples=30)
@given(st.lists(st.floats(-400, 400), min_size=2, max_size=5))
def test_ratings_recover_generating_strengths(strengths: list[float]) -> None:
    """Expected scores of many games give back the strengths that generated them."""
    strengths = [0.0, *strengths]
    names = [f"player {number}" for number in range(len(strengths))]
    games = [
        Games(names[one], names[other], 10_000 * expected_score(strengths[one] - strengths[other]), 10_000)
        for one in range(len(names))
        for other in range(one)
    ]
    found = rate(games, "player 0")
    for name, strength in zip(names, strengths, strict=True):
        assert found[name].elo == pytest.approx(strength, abs=3.0)
        assert found[name].error < 15.0


def test_rating_of_unbeaten_player_is_finite_and_uncertain() -> None:
    found = rate([Games("a", "anchor", 20.0, 20), Games("b", "a", 10.0, 20)], "anchor")
    assert 300 < found["a"].elo < 1500
    assert found["a"].error > 200
    assert found["b"].elo == pytest.approx(found["a"].elo, abs=60)
    assert found["anchor"].elo == 0.0
    assert rate([], "anchor")["anchor"].error == 0.0


def test_rating_error_matches_hand_computation() -> None:
    """Two players: the variance of the logit of a share p of n games is 1 / (n p (1 - p))."""
    found = rate([Games("a", "anchor", 75.0, 100)], "anchor")["a"]
    assert found.elo == pytest.approx(400 * math.log10(3), rel=0.02)
    assert found.error == pytest.approx(1.96 * 400 / math.log(10) / math.sqrt(100 * 0.75 * 0.25), rel=0.03)


def test_exact_play_test_scores_perfect_and_weak_players() -> None:
    exam = exact_play_test(game_spec("connect4"), 40)
    assert exam is not None
    assert isinstance(exam, ExactPlayTest)
    assert len(exam.positions) == 40
    for state, keeping in exam.positions:
        assert keeping < set(state.legal_actions())
        assert keeping
    right = {id(state): min(keeping) for state, keeping in exam.positions}
    assert exam.share(lambda states, seeds: [right[id(state)] for state in states]) == 1.0
    assert exact_play_test(game_spec("othello"), 40) is None
    # A search with proofs preserves the value in most positions.
    assert exam.share(search_player(UCT(3000, seed=1))) > 0.8


def test_stored_exact_positions_are_valid(tmp_path: Any) -> None:
    path = tmp_path / "positions.txt"
    path.write_text("# a comment\n44:135\n\n4:4 # another\n")
    [(first, keeping), (second, other)] = read_positions(path)
    assert first == ConnectFour().play(3).play(3)
    assert (keeping, second, other) == (frozenset({0, 2, 4}), ConnectFour().play(3), frozenset({3}))
