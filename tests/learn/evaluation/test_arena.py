"""Batched matches and the bare policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pondertree.evaluators import Function
from pondertree.games import TicTacToe
from pondertree.learn.config import game_spec
from pondertree.learn.evaluation.arena import bare_policy, count_pairs, play_games, search_player
from pondertree.presets import UCT


def first_move(states: Any, seeds: Any) -> list[int]:
    return [int(state.legal_actions()[0]) for state in states]


def test_strong_player_beats_weak_one_with_both_sides() -> None:
    strong = search_player(UCT(300, seed=1))
    counts = count_pairs(play_games(strong, first_move, game_spec("connect4"), 6, 5))
    assert counts == [0, 0, 0, 0, 6]
    assert count_pairs(play_games(first_move, strong, game_spec("connect4"), 6, 5)) == [6, 0, 0, 0, 0]
    assert counts == count_pairs(play_games(strong, first_move, game_spec("connect4"), 6, 5))


def test_player_against_itself_scores_half() -> None:
    counts = count_pairs(play_games(first_move, first_move, game_spec("tic-tac-toe"), 9, 1))
    assert sum(counts) == 9
    assert counts[2] == 9


def test_bare_policy_plays_legal_move_of_highest_logit() -> None:
    evaluator = Function(
        lambda observations: (np.tile(np.arange(9.0, dtype=np.float32), (len(observations), 1)), np.zeros(1)),
        policy="logits",
    )
    state = TicTacToe().play(8)
    assert bare_policy(evaluator)([state], [0]) == [7]
