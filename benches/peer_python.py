"""The worker process of the Python searches `mcts` and `mctspy`; runs in their environment.

Both use the same game as Pondertree through adapters.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import tic_tac_toe
from mcts import mcts
from mctspy.tree.nodes import TwoPlayersGameMonteCarloTreeSearchNode
from mctspy.tree.search import MonteCarloTreeSearch
from worker import Work, serve


class ForMcts(tic_tac_toe.State):
    """The interface of `mcts`: values are for the first player."""

    __slots__ = ()

    def getCurrentPlayer(self) -> int:  # noqa: N802
        """+1 or -1."""
        return 1 - 2 * self.to_play

    def getPossibleActions(self) -> list[int]:  # noqa: N802
        """The legal actions."""
        return self.legal_actions()

    def takeAction(self, action: int) -> ForMcts:  # noqa: N802
        """The next state."""
        return self.play(action)

    def isTerminal(self) -> bool:  # noqa: N802
        """Whether the game is over."""
        return self.is_terminal

    def getReward(self) -> float:  # noqa: N802
        """The result."""
        return self.returns()[0]


class ForMctspy(tic_tac_toe.State):
    """The interface of `mctspy`."""

    __slots__ = ()

    @property
    def next_to_move(self) -> int:
        """+1 or -1."""
        return 1 - 2 * self.to_play

    @property
    def game_result(self) -> float:
        """The result."""
        return self.returns()[0]

    def is_game_over(self) -> bool:
        """Whether the game is over."""
        return self.is_terminal

    def get_legal_actions(self) -> list[int]:
        """The legal actions."""
        return self.legal_actions()

    def move(self, action: int) -> ForMctspy:
        """The next state."""
        return self.play(action)


def python_uct(package: str, sims: int) -> Work:
    """Searches from the start."""

    def with_mcts() -> int:
        mcts(iterationLimit=sims, explorationConstant=1.0).search(ForMcts())
        return sims

    def with_mctspy() -> int:
        MonteCarloTreeSearch(TwoPlayersGameMonteCarloTreeSearchNode(ForMctspy())).best_action(sims)
        return sims

    return {"mcts": with_mcts, "mctspy": with_mctspy}[package]


def environment() -> dict[str, Any]:
    """Returns the versions."""
    return {"packages": {name: version(name) for name in ("mcts", "mctspy")}}


if __name__ == "__main__":
    serve(rates={"python_uct": python_uct}, handlers={"environment": environment})
