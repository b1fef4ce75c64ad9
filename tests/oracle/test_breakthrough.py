"""Breakthrough: random games against OpenSpiel."""

from __future__ import annotations

import random

import pyspiel
import pytest
from tests.support.openspiel import compare_random_games

from pondertree.games import Breakthrough

pytestmark = pytest.mark.oracle


def action_of(theirs: int) -> int:
    """Converts an action of OpenSpiel, which are numbered by row from the top, column, direction and capture.

    Directions 0 to 2 are those of player 0, 3 to 5 those of player 1.
    """
    square, direction = divmod(theirs // 2, 6)
    return (square if direction < 3 else square ^ 56) * 3 + direction % 3


def test_rules_match_openspiel() -> None:
    oracle = pyspiel.load_game("breakthrough")
    actions = [action_of(theirs) for theirs in range(oracle.num_distinct_actions())]
    plies = compare_random_games(Breakthrough(), oracle, 10_000, seed=1, actions=actions)
    assert plies > 10_000 * 50


def test_capture_of_all_pieces_matches_openspiel() -> None:
    """Player 0 moves its rearmost pieces, player 1 captures whenever it can."""
    numbers = random.Random(3)
    captured = 0
    for _ in range(300):
        state, theirs = Breakthrough(), pyspiel.load_game("breakthrough").new_initial_state()
        while not theirs.is_terminal():
            legal = theirs.legal_actions()
            captures = [action for action in legal if action % 2]
            rearmost = [action for action in legal if action // 96 == legal[0] // 96]
            chosen = numbers.choice(rearmost if state.to_play == 0 else captures or legal)
            theirs.apply_action(chosen)
            state = state.play(action_of(chosen))
            assert state.is_terminal == theirs.is_terminal()
        assert state.returns() == theirs.returns()
        captured += state.observation()[0].sum() == 0
    assert captured > 50


def test_move_texts_match_openspiel() -> None:
    numbers = random.Random(2)
    captures = 0
    for _ in range(50):
        state, theirs = Breakthrough(), pyspiel.load_game("breakthrough").new_initial_state()
        while not theirs.is_terminal():
            for legal in theirs.legal_actions():
                text, action = theirs.action_to_string(legal), action_of(legal)
                captures += text.endswith("*")
                assert state.action_to_string(action) == (f"{text[:2]}x{text[2:4]}" if text.endswith("*") else text)
                for written in (text, text[:4], state.action_to_string(action).upper()):
                    assert state.parse_action(written) == action
            assert str(state).splitlines()[1:9] == [
                " ".join(row).translate({ord("b"): "X", ord("w"): "O"}) for row in str(theirs).splitlines()[:8]
            ]
            chosen = numbers.choice(theirs.legal_actions())
            state = state.play(action_of(chosen))
            theirs.apply_action(chosen)
    assert captures > 500
