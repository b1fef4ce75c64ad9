"""The worker process of OpenSpiel's C++ search; runs in its own environment."""

from __future__ import annotations

import math
import random
from importlib.metadata import version
from typing import Any

import four_in_a_row
import numpy as np
import pyspiel
import tic_tac_toe
from open_spiel.python.algorithms import mcts as python_mcts
from worker import Work, resident_bytes, serve

# OpenSpiel scores an edge `Q + uct_c * sqrt(ln N / n)`, Pondertree `Q + c_param * sqrt(2 ln N / n)`: with c_param = 1
# the two are the same. Results are from -1 to 1 on both sides.
UCT_C = math.sqrt(2)
NOTHING = np.zeros(2)


def bot(game: pyspiel.Game, sims: int) -> pyspiel.MCTSBot:
    """UCT with one rollout per simulation, no memory limit (0) and no proofs."""
    evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
    return pyspiel.MCTSBot(game, evaluator, UCT_C, sims, 0, False, 1, False, pyspiel.ChildSelectionPolicy.UCT)


def uct(game: str, sims: int) -> Work:
    """Searches from the start, or from the position after the first outcome of chance there."""
    loaded = pyspiel.load_game(game)
    start, searcher = loaded.new_initial_state(), bot(loaded, sims)
    while start.is_chance_node():
        start.apply_action(start.legal_actions()[0])

    def work() -> int:
        searcher.step(start)
        return sims

    return work


class Free(python_mcts.Evaluator):  # type: ignore[misc]
    """A constant evaluator of minimal cost."""

    def evaluate(self, state: Any) -> Any:
        """Returns zeros."""
        return NOTHING

    def prior(self, state: Any) -> Any:
        """Returns uniform priors."""
        actions = state.legal_actions()
        return [(action, 1 / len(actions)) for action in actions]


def puct_python(game: str, sims: int) -> Work:
    """Searches in Python from the start with the constant evaluator."""
    loaded = pyspiel.load_game(game)
    start = loaded.new_initial_state()
    searcher = python_mcts.MCTSBot(
        loaded,
        1.25,
        sims,
        Free(),
        solve=False,
        random_state=np.random.RandomState(1),
        child_selection_fn=python_mcts.SearchNode.puct_value,
    )

    def work() -> int:
        searcher.mcts_search(start)
        return sims

    return work


class Mutable:
    """A game in Python with the interface of OpenSpiel's states, as far as its search in Python uses it."""

    __slots__ = ("state",)

    def __init__(self, state: Any) -> None:
        self.state = state

    def clone(self) -> Mutable:
        """Returns a copy, which shares the immutable position."""
        return Mutable(self.state)

    def apply_action(self, action: int) -> None:
        """Plays a move in place."""
        self.state = self.state.play(action)

    def is_terminal(self) -> Any:
        """Returns whether the game is over."""
        return self.state.is_terminal

    def is_chance_node(self) -> bool:
        """Returns False."""
        return False

    def current_player(self) -> Any:
        """Returns the player to move."""
        return self.state.to_play

    def legal_actions(self, player: int | None = None) -> Any:
        """Returns the legal actions."""
        return self.state.legal_actions()

    def returns(self) -> Any:
        """Returns the results."""
        return self.state.returns()


#: The games in Python, and a game of OpenSpiel with the same kind of rewards, which its search asks for.
PYTHON_GAMES = {"tic_tac_toe": tic_tac_toe.State, "four_in_a_row": four_in_a_row.State}


def python_uct(game: str, package: str, sims: int) -> Work:
    """Searches a game in Python by the search in Python, with one random rollout per simulation."""
    searcher = python_mcts.MCTSBot(
        pyspiel.load_game("tic_tac_toe"), UCT_C, sims, python_mcts.RandomRolloutEvaluator(), solve=False
    )
    start = Mutable(PYTHON_GAMES[game]())

    def work() -> int:
        searcher.mcts_search(start)
        return sims

    return work


def playout_length(game: str, games: int) -> dict[str, Any]:
    """Returns the mean number of moves of a random game, without passes of Othello."""
    start = pyspiel.load_game(game).new_initial_state()
    draw = random.Random(1)
    moves = 0
    for _ in range(games):
        state = start.clone()
        while not state.is_terminal():
            action = draw.choice(state.legal_actions())
            moves += not (game == "othello" and action == 64)
            state.apply_action(action)
    return {"mean": moves / games}


def memory(game: str, sims: int) -> dict[str, Any]:
    """Returns the memory that one search adds to this process."""
    loaded = pyspiel.load_game(game)
    start = loaded.new_initial_state()
    bot(loaded, 100).step(start)
    before = resident_bytes()
    root = bot(loaded, sims).mcts_search(start)
    return {"simulations": root.explore_count, "resident": resident_bytes() - before}


def environment() -> dict[str, Any]:
    """Returns the version."""
    return {"packages": {"open_spiel": version("open_spiel")}}


if __name__ == "__main__":
    serve(
        rates={"uct": uct, "puct_python": puct_python, "puct_compiled": puct_python, "python_uct": python_uct},
        handlers={"playout_length": playout_length, "memory": memory, "environment": environment},
    )
