"""Tic-tac-toe with double moves: X starts with one move, then each side makes two in a row.

The player to move is the same at consecutive tree levels, so a search that negates values at every level fails. X wins
from the centre and the corners, but not from an edge. Run it: python examples/games/double_move.py
"""

from __future__ import annotations

from dataclasses import dataclass

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@dataclass(frozen=True)
class DoubleMove:
    """The board as nine of `.XO`, from the top left; an action is a square."""

    board: str = "." * 9

    num_actions = 9
    num_players = 2

    @property
    def to_play(self) -> int:
        # X, O O, X X, O O, X X
        return (9 - self.board.count(".") + 1) // 2 % 2

    def has_line(self, mark: str) -> bool:
        return any(all(self.board[square] == mark for square in line) for line in LINES)

    @property
    def is_terminal(self) -> bool:
        return "." not in self.board or self.has_line("X") or self.has_line("O")

    def legal_actions(self) -> list[int]:
        return [] if self.is_terminal else [square for square, mark in enumerate(self.board) if mark == "."]

    def play(self, action: int) -> DoubleMove:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal in {self}")
        return DoubleMove(self.board[:action] + "XO"[self.to_play] + self.board[action + 1 :])

    def returns(self) -> tuple[float, float]:
        result = float(self.has_line("X")) - float(self.has_line("O"))
        return result, -result + 0.0

    def action_to_string(self, action: int) -> str:
        return f"{'abc'[action % 3]}{action // 3 + 1}"

    def parse_action(self, text: str) -> int:
        return "abc".index(text[0]) + 3 * (int(text[1]) - 1)


if __name__ == "__main__":
    import pondertree

    state, search = DoubleMove(), pondertree.UCT(num_simulations=3000, seed=0)
    while not state.is_terminal:
        result = search.run(state)
        print(f"{'XO'[state.to_play]} plays {result.move}, value {result.value:+.2f}, proven: {result.proven}")
        state = state.play(result.action)
    print(*(state.board[row : row + 3] for row in (0, 3, 6)), sep="\n")
