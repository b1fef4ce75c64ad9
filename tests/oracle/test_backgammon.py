"""Backgammon: random games against OpenSpiel."""

from __future__ import annotations

import random
import re
from typing import Any

import pyspiel
import pytest
from tests.support.openspiel import games_to_compare

from pondertree import CHANCE
from pondertree.games import Backgammon

pytestmark = pytest.mark.oracle

#: Games have no limit of moves here.
GAME = "backgammon(max_player_turns=1000000)"
#: The point of the bar in OpenSpiel.
BAR = 100


def outcome_of(theirs: int, opening: bool) -> int:
    """Converts an outcome of OpenSpiel, which distinguishes the order of the dice: at the opening, who starts."""
    texts = "12 21 13 31 14 41 15 51 16 61 23 32 24 42 25 52 26 62 34 43 35 53 36 63 45 54 46 64 56 65"
    dice = sorted(map(int, [*texts.split(), "11", "22", "33", "44", "55", "66"][theirs]))
    return dice[1] * (dice[1] - 1) // 2 + dice[0] - 1 + 21 * (opening and theirs % 2)


def action_of(theirs: int, player: int) -> int:
    """Converts an action of OpenSpiel, where points are counted from the side of X."""
    order, pair = divmod(theirs, 676)
    digits = [digit if digit >= 24 or player == 0 else 23 - digit for digit in (pair % 26, pair // 26)]
    return order * 676 + digits[1] * 26 + digits[0]


def contents(theirs: Any) -> list[tuple[int, ...]]:
    """Returns the checkers of X and O in an OpenSpiel state: on the points from the side of X, on the bar, off."""
    scores = map(int, re.findall(r"Scores, X: (\d+), O: (\d+)", str(theirs))[0])
    return [
        (*(theirs.board(player, point) for point in range(24)), theirs.board(player, BAR), score)
        for player, score in enumerate(scores)
    ]


def own_contents(state: Backgammon) -> list[tuple[int, ...]]:
    """Returns the same of the text of a state."""
    lines = [line.split() for line in str(state).splitlines()[1:3]]
    upper, lower = ([cells[place] for place in range(14)] for cells in lines)
    # X moves from point 24 to point 1, which OpenSpiel numbers from 0.
    points = (upper[:6] + upper[7:13])[::-1] + lower[:6] + lower[7:13]
    count = [[int(cell[1:]) if cell[0] == mark else 0 for cell in points] for mark in "XO"]
    number = lambda cell: int(cell[1:] or 0)  # noqa: E731
    return [
        (*count[0], number(lower[6]), number(lower[13])),
        (*count[1], number(upper[6]), number(upper[13])),
    ]


def normal_text(theirs: str) -> str:
    """Converts the notation of OpenSpiel."""
    return re.sub(r"^\d+ - |(?<=.) Pass$", "", theirs).lower()


def test_rules_match_openspiel() -> None:
    numbers = random.Random(1)
    oracle = pyspiel.load_game(GAME)
    plies = texts = 0
    for number in range(games_to_compare(100)):
        state, theirs = Backgammon("roll"), oracle.new_initial_state()
        opening = True
        while not theirs.is_terminal():
            plies += 1
            assert not state.is_terminal
            assert own_contents(state) == contents(theirs)
            legal = theirs.legal_actions()
            if theirs.is_chance_node():
                assert state.to_play == CHANCE
                expected: dict[int, float] = {}
                for outcome, probability in theirs.chance_outcomes():
                    ours = outcome_of(outcome, opening)
                    expected[ours] = expected.get(ours, 0.0) + probability
                assert dict(state.chance_outcomes()) == pytest.approx(expected)
                assert state.legal_actions() == [outcome for outcome, _ in state.chance_outcomes()]
                chosen = legal[int(numbers.random() * len(legal))]
                state, opening = state.play(outcome_of(chosen, opening)), False
                theirs.apply_action(chosen)
                continue
            player = theirs.current_player()
            assert state.to_play == player
            # OpenSpiel lists all orders of the same moves: ours are a subset of them, one for each result.
            ours = state.legal_actions()
            by_action = {action_of(action, player): action for action in legal}
            assert set(ours) <= set(by_action)
            results = {str(state.play(action)) for action in ours}
            assert len(results) == len(ours)
            if number % 20 == 0:
                for action, their_action in by_action.items():
                    after = theirs.child(their_action)
                    assert any(own_contents(state.play(one)) == contents(after) for one in ours), f"{state}\n{action}"
                for action in ours:
                    text = state.action_to_string(action)
                    texts += 1
                    assert text == normal_text(theirs.action_to_string(player, by_action[action]))
                    assert state.parse_action(text) == action
            chosen = ours[int(numbers.random() * len(ours))]
            state = state.play(chosen)
            theirs.apply_action(by_action[chosen])
        assert state.is_terminal, f"{state}\n{theirs}"
        assert state.legal_actions() == []
        assert state.chance_outcomes() == []
        assert state.returns() == theirs.returns()
    assert plies > 100 * games_to_compare(100)
    assert texts > 1000
