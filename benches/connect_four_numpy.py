"""Connect 4 as a Python class with a NumPy board: one position per call."""

from __future__ import annotations

from typing import Any, Self

import numpy as np


class State:
    """An immutable position; row 0 is the lowest."""

    __slots__ = ("board", "is_terminal", "to_play", "won")

    num_actions = 7
    num_players = 2

    def __init__(self, board: Any = None, to_play: int = 0, won: bool = False) -> None:
        self.board = np.zeros((6, 7), dtype=np.int8) if board is None else board
        self.to_play = to_play
        self.won = won
        """Whether the last move won."""
        self.is_terminal = won or bool(self.board[5].all())

    def legal_actions(self) -> list[int]:
        """Returns the columns that are not full."""
        actions: list[int] = np.flatnonzero(self.board[5] == 0).tolist()
        return actions

    def play(self, action: int) -> Self:
        """Returns the position after a stone falls into a column."""
        board = self.board.copy()
        board[np.count_nonzero(board[:, action]), action] = self.to_play + 1
        own = board == self.to_play + 1
        won = (
            (own[:, :-3] & own[:, 1:-2] & own[:, 2:-1] & own[:, 3:]).any()
            or (own[:-3] & own[1:-2] & own[2:-1] & own[3:]).any()
            or (own[:-3, :-3] & own[1:-2, 1:-2] & own[2:-1, 2:-1] & own[3:, 3:]).any()
            or (own[3:, :-3] & own[2:-1, 1:-2] & own[1:-2, 2:-1] & own[:-3, 3:]).any()
        )
        return type(self)(board, 1 - self.to_play, bool(won))

    def returns(self) -> tuple[float, float]:
        """Returns the results of both players."""
        if not self.won:
            return 0.0, 0.0
        return (-1.0, 1.0) if self.to_play == 0 else (1.0, -1.0)
