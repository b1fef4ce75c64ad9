"""The worker process of the Python searches `mcts` and `mctspy`; runs in their environment.

Both use the same games as Pondertree, whose methods have their names as well.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import four_in_a_row
import tic_tac_toe
from mcts import mcts
from mctspy.tree.nodes import TwoPlayersGameMonteCarloTreeSearchNode
from mctspy.tree.search import MonteCarloTreeSearch
from worker import Work, serve


def for_mcts(state: Any) -> type[Any]:
    """Returns the class of a game with the interface of `mcts`, where values are for the first player."""

    class ForMcts(state):  # type: ignore[misc]
        __slots__ = ()

        getPossibleActions = state.legal_actions  # noqa: N815
        takeAction = state.play  # noqa: N815

        def getCurrentPlayer(self) -> Any:  # noqa: N802
            return 1 - 2 * self.to_play

        def isTerminal(self) -> Any:  # noqa: N802
            return self.is_terminal

        def getReward(self) -> Any:  # noqa: N802
            return self.returns()[0]

    return ForMcts


def for_mctspy(state: Any) -> type[Any]:
    """Returns the class of a game with the interface of `mctspy`."""

    class ForMctspy(state):  # type: ignore[misc]
        __slots__ = ()

        get_legal_actions = state.legal_actions
        move = state.play

        @property
        def next_to_move(self) -> Any:
            return 1 - 2 * self.to_play

        @property
        def game_result(self) -> Any:
            return self.returns()[0]

        def is_game_over(self) -> Any:
            return self.is_terminal

    return ForMctspy


GAMES = {"tic_tac_toe": tic_tac_toe.State, "four_in_a_row": four_in_a_row.State}


def python_uct(game: str, package: str, sims: int) -> Work:
    """Searches from the start."""
    state = {"mcts": for_mcts, "mctspy": for_mctspy}[package](GAMES[game])

    def with_mcts() -> int:
        mcts(iterationLimit=sims, explorationConstant=1.0).search(state())
        return sims

    def with_mctspy() -> int:
        MonteCarloTreeSearch(TwoPlayersGameMonteCarloTreeSearchNode(state())).best_action(sims)
        return sims

    return {"mcts": with_mcts, "mctspy": with_mctspy}[package]


def environment() -> dict[str, Any]:
    """Returns the versions."""
    return {"packages": {name: version(name) for name in ("mcts", "mctspy")}}


if __name__ == "__main__":
    serve(rates={"python_uct": python_uct}, handlers={"environment": environment})
