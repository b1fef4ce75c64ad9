"""Random games of OpenSpiel compared with their conversions, ply by ply."""

from __future__ import annotations

import random
from typing import Any

import pyspiel
import pytest

from pondertree import CHANCE
from pondertree.envs import from_openspiel

#: Sequential games with perfect information and explicit chance, with parameters where the default is slow.
DETERMINISTIC = (
    "amazons",
    "antichess",
    "breakthrough",
    "checkers",
    "chess",
    "chinese_checkers(players=3)",
    "clobber",
    "connect_four",
    "crazyhouse",
    "cursor_go(board_size=5)",
    "dots_and_boxes",
    "go(board_size=9)",
    "gomoku",
    "havannah",
    "hex",
    "hive",
    "lines_of_action",
    "mancala",
    "misere(game=tic_tac_toe())",
    "mnk",
    "nim",
    "nine_mens_morris",
    "othello",
    "oware",
    "pentago",
    "python_tic_tac_toe",
    "quoridor(players=4)",
    "shogi",
    "tic_tac_toe",
    "twixt",
    "ultimate_tic_tac_toe",
    "xiangqi",
    "y",
)
CHANCE_GAMES = (
    "backgammon",
    "banqi",
    "catch",
    "einstein_wurfelt_nicht",
    "maedn(players=4)",
    "pig(players=5)",
    "yacht(num_dice=2)",
)
REWARDS = ("2048", "cliff_walking")
GAMES = DETERMINISTIC + CHANCE_GAMES + REWARDS


def load(name: str) -> Any:
    """Returns a game of OpenSpiel, with those in Python registered."""
    if name.startswith("python_"):
        import open_spiel.python.games  # noqa: F401
    return pyspiel.load_game(name)


def compare_random_games(name: str, games: int) -> int:
    """Compares random games of OpenSpiel with their conversion in every position; returns the number of plies."""
    game, numbers, plies = load(name), random.Random(name), 0
    start = from_openspiel(game, compiled=False)
    has_rewards = hasattr(start, "rewards")
    for _ in range(games):
        state, theirs = start, game.new_initial_state()
        total, since = [0.0] * game.num_players(), [0.0] * game.num_players()
        while True:
            assert state.is_terminal == theirs.is_terminal()
            returns = [number * state.scale for number in state.returns()]
            assert returns == pytest.approx(theirs.returns(), abs=1e-12)
            if has_rewards:
                # OpenSpiel's rewards are those since the last decision, of outcomes of chance, too.
                assert total == theirs.returns()
                if not theirs.is_initial_state() and not theirs.is_chance_node():
                    assert since == theirs.rewards()
            if theirs.is_terminal():
                assert state.legal_actions() == []
                break
            if theirs.is_chance_node():
                assert state.to_play == CHANCE
                outcomes = theirs.chance_outcomes()
                assert state.chance_outcomes() == outcomes
                assert state.legal_actions() == [outcome for outcome, _ in outcomes]
                chosen = numbers.choices(*zip(*outcomes, strict=True))[0]
            else:
                assert state.to_play == theirs.current_player()
                legal = theirs.legal_actions()
                assert state.legal_actions() == legal
                chosen = numbers.choice(legal)
                since = [0.0] * game.num_players()
            before = state
            state = state.play(chosen)
            if plies % 10 == 0:
                assert str(before) == str(theirs)
            theirs.apply_action(chosen)
            if has_rewards:
                total = [sum_ + reward for sum_, reward in zip(total, state.rewards(), strict=True)]
                since = [sum_ + reward for sum_, reward in zip(since, state.rewards(), strict=True)]
            plies += 1
    return plies
