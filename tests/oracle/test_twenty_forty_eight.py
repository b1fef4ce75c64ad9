"""2048: random games against OpenSpiel."""

from __future__ import annotations

import random

import pyspiel
import pytest
from tests.support.openspiel import games_to_compare

from pondertree import CHANCE
from pondertree.games import TwentyFortyEight

pytestmark = pytest.mark.oracle


def test_rules_match_openspiel() -> None:
    numbers = random.Random(1)
    oracle = pyspiel.load_game("2048(max_tile=65536)")
    largest = plies = 0
    for _ in range(games_to_compare(150)):
        state, theirs = TwentyFortyEight("empty"), oracle.new_initial_state()
        while not theirs.is_terminal():
            plies += 1
            assert not state.is_terminal
            rows = [
                [0 if cell == "." else int(cell) for cell in line.split()[1:]] for line in str(state).splitlines()[1:5]
            ]
            assert rows == [[int(cell) for cell in line.split()] for line in str(theirs).splitlines()]
            legal = theirs.legal_actions()
            if not theirs.is_chance_node():
                # OpenSpiel omits mergers with a tile that merged in the last move, but plays them.
                assert set(legal) <= set(state.legal_actions())
                legal = [action for action in range(4) if action in legal or str(theirs.child(action)) != str(theirs)]
            assert state.legal_actions() == legal
            if theirs.is_chance_node():
                assert state.to_play == CHANCE
                assert state.chance_outcomes() == theirs.chance_outcomes()
            else:
                assert state.to_play == 0
                assert state.chance_outcomes() == []
            # Numbers as chance has them: tiles of 4 are rare.
            weights = [chance for _, chance in theirs.chance_outcomes()] if theirs.is_chance_node() else None
            chosen = numbers.choices(legal, weights)[0]
            moved = not theirs.is_chance_node()
            state = state.play(chosen)
            theirs.apply_action(chosen)
            # OpenSpiel repeats the reward of a move after the outcome.
            assert state.rewards() == (theirs.rewards() if moved else [0.0])
            assert [state.score] == theirs.returns()
            largest = max(largest, *map(max, rows))
        assert state.is_terminal
        assert state.legal_actions() == []
        assert state.returns() == [0.0]
    assert plies > 100 * games_to_compare(150)
    assert largest >= 256
