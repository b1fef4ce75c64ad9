"""Four in a row with gravity on a 7x7 board, as a short Python class with bitboards."""

from __future__ import annotations

from typing import Self

#: Bits per column: seven cells and an empty one, which keeps lines from running into the next column.
HEIGHT = 8
#: The bit of the lowest and of the highest cell of each column.
BOTTOM = tuple(1 << HEIGHT * column for column in range(7))
TOP = tuple(bit << 6 for bit in BOTTOM)
FULL = sum(127 << HEIGHT * column for column in range(7))


class State:
    """An immutable position."""

    __slots__ = ("is_terminal", "occupied", "own", "to_play", "won")

    num_actions = 7
    num_players = 2

    def __init__(self, own: int = 0, occupied: int = 0, to_play: int = 0, won: bool = False) -> None:
        self.own = own
        self.occupied = occupied
        self.to_play = to_play
        self.won = won
        """Whether the last move won."""
        self.is_terminal = won or occupied == FULL

    def legal_actions(self) -> list[int]:
        """Returns the columns that are not full."""
        occupied = self.occupied
        return [column for column, top in enumerate(TOP) if not occupied & top]

    def play(self, action: int) -> Self:
        """Returns the position after a stone falls into a column."""
        occupied = self.occupied | (self.occupied + BOTTOM[action])
        moved = self.own | (occupied ^ self.occupied)
        won = False
        for shift in (1, HEIGHT - 1, HEIGHT, HEIGHT + 1):
            pairs = moved & moved >> shift
            if pairs & pairs >> 2 * shift:
                won = True
                break
        return type(self)(occupied ^ moved, occupied, 1 - self.to_play, won)

    def returns(self) -> tuple[float, float]:
        """Returns the results of both players."""
        if not self.won:
            return 0.0, 0.0
        return (-1.0, 1.0) if self.to_play == 0 else (1.0, -1.0)
