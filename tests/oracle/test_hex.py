"""Hex: random games against OpenSpiel, trees against the reference, exact values of 3x3."""

from __future__ import annotations

from functools import cache

import pyspiel
import pytest
from tests.support.engine_uct import assert_equal
from tests.support.openspiel import compare_random_games

import pondertree
from pondertree.games import Hex

pytestmark = pytest.mark.oracle

#: Random games by size of the board.
GAMES = {2: 500, 3: 2000, 4: 2000} | dict.fromkeys(range(5, 11), 1000) | {11: 2000, 12: 500, 13: 1000}


@pytest.mark.parametrize("size", GAMES)
def test_rules_match_openspiel(size: int) -> None:
    oracle = pyspiel.load_game(f"hex(board_size={size})")
    start = Hex(size)
    assert start.num_actions == oracle.num_distinct_actions()
    texts = [start.action_to_string(action) for action in start.legal_actions()]
    assert texts == [oracle.new_initial_state().action_to_string(action) for action in range(size * size)]
    plies = compare_random_games(start, oracle, GAMES[size], seed=size)
    assert plies >= GAMES[size] * (2 * size - 1)


def test_single_cell_wins_on_1x1() -> None:
    """In OpenSpiel, a game on this board never ends."""
    assert Hex(1).play(0).returns() == [1.0, -1.0]


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("solve", [True, False])
def test_uct_matches_reference(size: int, solve: bool) -> None:
    for seed, max_depth in enumerate((None, None, 3)):
        assert_equal(Hex(size), 300, seed, solve=solve, max_depth=max_depth, in_flight=1 + seed)


@cache
def value(state: Hex) -> float:
    """The result for player 0 with best play."""
    if state.is_terminal:
        return state.returns()[0]
    values = (value(state.play(action)) for action in state.legal_actions())
    return max(values) if state.to_play == 0 else min(values)


def test_proven_openings_on_3x3_match_minimax() -> None:
    """All openings win but the acute corners and their neighbours at the first player's edges."""
    start = Hex(3)
    openings = [value(start.play(action)) for action in range(9)]
    assert openings == [-1, -1, 1, 1, 1, 1, 1, -1, -1]
    assert pondertree.UCT(5000, seed=1).run(start).proven == 1
    for action, expected in enumerate(openings):
        assert pondertree.UCT(5000, seed=1).run(start.play(action)).proven == -expected
