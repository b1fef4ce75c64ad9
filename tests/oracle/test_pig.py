"""Pig: random games against OpenSpiel."""

from __future__ import annotations

import random
import re

import pyspiel
import pytest
from tests.support.openspiel import games_to_compare

from pondertree import CHANCE
from pondertree.games import Pig

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("target", [20, 100])
def test_rules_match_openspiel(target: int) -> None:
    numbers = random.Random(target)
    oracle = pyspiel.load_game(f"pig(winscore={target},horizon=1000000)")
    rolls = 0
    for _ in range(games_to_compare(1000)):
        state, theirs = Pig(target), oracle.new_initial_state()
        while not theirs.is_terminal():
            assert not state.is_terminal
            scores = [int(number) for number in re.findall(r"\d+", str(theirs).splitlines()[0])]
            assert [int(line.split()[1]) for line in str(state).splitlines()[:3]] == scores, f"{state}\n{theirs}"
            # Faces are numbered from 0 in OpenSpiel.
            first = int(theirs.is_chance_node())
            legal = theirs.legal_actions()
            assert state.legal_actions() == [first + action for action in legal]
            if theirs.is_chance_node():
                rolls += 1
                assert state.to_play == CHANCE
                assert state.chance_outcomes() == [(1 + face, chance) for face, chance in theirs.chance_outcomes()]
            else:
                assert state.to_play == theirs.current_player()
                assert state.chance_outcomes() == []
            chosen = numbers.choice(legal)
            state = state.play(first + chosen)
            theirs.apply_action(chosen)
        assert state.is_terminal
        assert state.legal_actions() == []
        assert state.returns() == theirs.returns()
    assert rolls > 8 * games_to_compare(1000)
