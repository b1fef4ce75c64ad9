"""Random games compared with OpenSpiel, ply by ply."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any


def compare_random_games(start: Any, oracle: Any, games: int, seed: int, actions: Sequence[int] | None = None) -> int:
    """Plays random games from `start` and in the OpenSpiel game `oracle`; returns the number of plies.

    Compares players, ends, returns and legal actions in every position. `actions` converts actions of OpenSpiel; None
    where they are the same.
    """
    numbers = random.Random(seed)
    plies = 0
    for _ in range(games):
        state, theirs = start, oracle.new_initial_state()
        while not theirs.is_terminal():
            legal = theirs.legal_actions()
            converted = legal if actions is None else [actions[action] for action in legal]
            assert not state.is_terminal
            assert state.to_play == theirs.current_player()
            assert sorted(state.legal_actions()) == sorted(converted), f"{state}\n{theirs}"
            place = int(numbers.random() * len(legal))
            state = state.play(converted[place])
            theirs.apply_action(legal[place])
            plies += 1
        assert state.is_terminal, f"{state}\n{theirs}"
        assert state.legal_actions() == []
        assert state.returns() == theirs.returns(), f"{state}\n{theirs}"
    return plies


def games_to_compare(fewest: int) -> int:
    """Returns the number of games of a comparison: `fewest`, or `PONDERTREE_ORACLE_GAMES` for longer ones."""
    return int(os.environ.get("PONDERTREE_ORACLE_GAMES", fewest))
