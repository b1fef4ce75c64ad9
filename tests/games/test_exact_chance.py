"""Exact values of games of chance: known results, and the rules of the compiled games."""

from __future__ import annotations

import random

import pytest
from tests.support.exact_chance import ROLLS, after_roll, bear_off, best_sum, homes, nearly_over, solve_pig, xgid

from pondertree.games import Backgammon, Pig, TwentyFortyEight


def test_pig_values_satisfy_the_optimality_equations_of_the_rules() -> None:
    target = 12
    wins = solve_pig(target)

    def win(state: Pig, player: int) -> float:
        """The probability that a player wins, before a decision or at the end."""
        if state.is_terminal:
            return (1 + state.returns()[player]) / 2
        first, second, total = (int(line.split()[1]) for line in str(state).splitlines()[:3])
        own, other = (first, second) if state.to_play == 0 else (second, first)
        value = 1.0 if own + total >= target else wins[own, other, total]
        return value if state.to_play == player else 1.0 - value

    def after(state: Pig, player: int) -> float:
        if state.to_play == player or state.is_terminal or state.to_play >= 0:
            return win(state, player)
        return sum(chance * win(state.play(face), player) for face, chance in state.chance_outcomes())

    numbers = random.Random(1)
    for _ in range(30):
        state = Pig(target)
        while not state.is_terminal:
            if state.to_play >= 0:
                best = max(after(state.play(action), state.to_play) for action in state.legal_actions())
                assert best == pytest.approx(win(state, state.to_play), abs=1e-9)
            state = state.play(numbers.choice(state.legal_actions()))


def test_pig_values_with_one_roll_to_go_are_those_by_hand() -> None:
    # Any face but 1 wins: p = 5/6 + (1 - p) / 6 with the same for the other.
    assert solve_pig(2)[0, 0, 0] == pytest.approx(6 / 7)


def test_bear_off_of_few_checkers_counts_rolls() -> None:
    ace, six = (1, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1)
    assert bear_off(ace, six) == pytest.approx(1.0)
    # 27 of 36 rolls bear a checker off the six point, 6 doubles bear off three checkers.
    assert bear_off(six, ace) == pytest.approx(27 / 36)
    assert bear_off((2, 0, 0, 0, 0, 0), ace) == pytest.approx(1.0)
    assert bear_off((3, 0, 0, 0, 0, 0), ace) == pytest.approx(6 / 36)


def test_bear_off_moves_are_those_of_backgammon() -> None:
    for home in homes(2):
        for roll, _ in ROLLS:
            states, reached = {Backgammon(xgid(home, (1, 0, 0, 0, 0, 0), *roll))}, set()
            while states:
                state = states.pop()
                for after in map(state.play, state.legal_actions()):
                    if after.to_play == 0 and not after.is_terminal:
                        states.add(after)
                        continue
                    cells = str(after).splitlines()[2].split()[7:13][::-1]
                    reached.add(tuple(int(cell[1:]) if cell[0] == "X" else 0 for cell in cells))
            expected = after_roll(home, *roll)
            assert reached <= expected, (home, roll)
            # If all checkers can go off, other plays do not matter: with the last checker off dice may be left.
            assert reached == expected or (0,) * 6 in reached, (home, roll)


def test_best_sum_of_2048_is_that_of_the_best_move() -> None:
    state, known = nearly_over(seed=3)
    values = []
    for after in map(state.play, state.legal_actions()):
        outcomes = [(chance, best_sum(after.play(outcome))) for outcome, chance in after.chance_outcomes()]
        values.append(after.rewards()[0] + sum(chance * value for chance, value in outcomes if value is not None))
        assert all(value is not None for _, value in outcomes)
    assert max(values) == pytest.approx(known)
    assert best_sum(TwentyFortyEight(), limit=100) is None
