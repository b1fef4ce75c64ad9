"""Tic-tac-toe as a short Python class, not optimised."""

from __future__ import annotations

from typing import Self

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class State:
    """An immutable position."""

    __slots__ = ("board", "is_terminal", "to_play", "winner")

    num_actions = 9
    num_players = 2

    def __init__(self, board: tuple[int | None, ...] = (None,) * 9, to_play: int = 0) -> None:
        self.board = board
        self.to_play = to_play
        self.winner = next(
            (board[a] for a, b, c in LINES if board[a] is not None and board[a] == board[b] == board[c]), None
        )
        self.is_terminal = self.winner is not None or None not in board

    def legal_actions(self) -> list[int]:
        """Returns the empty squares."""
        return [square for square, owner in enumerate(self.board) if owner is None]

    def play(self, action: int) -> Self:
        """Returns the position after a move."""
        return type(self)((*self.board[:action], self.to_play, *self.board[action + 1 :]), 1 - self.to_play)

    def returns(self) -> tuple[float, float]:
        """Returns the results of both players."""
        if self.winner is None:
            return 0.0, 0.0
        return (1.0, -1.0) if self.winner == 0 else (-1.0, 1.0)
