"""When a game is ended from outside: by its length, by what the players think, by a draw that could be claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pondertree import check
from pondertree._core import Chess

#: What one side has thought of its positions, move by move; None where it had no opinion.
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """When a game is ended from outside. Values are those the players give, from -1 to 1, each for its own side."""

    max_plies: int = 1000
    """A game with so many moves, the opening's included, is cut and counted as a draw."""
    resign: float | None = None
    """A side that finds its position worth at most minus this has lost, after `resign_moves` such moves in a row."""
    resign_moves: int = 3
    draw: float | None = None
    """A game is drawn when both sides find it worth at most this, either way, for `draw_moves` moves in a row."""
    draw_moves: int = 8
    draw_after: int = 40
    """No such draw before so many plies."""
    agree: bool = True
    """The winner must agree with a resignation: it too has found the game won for as many moves."""

    def __post_init__(self) -> None:
        for name in ("max_plies", "resign_moves", "draw_moves"):
            object.__setattr__(self, name, check.count(getattr(self, name), name))
        object.__setattr__(self, "draw_after", check.whole_number(self.draw_after, "draw_after"))
        for name in ("resign", "draw"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check.number(getattr(self, name), name, least=0.0, most=1.0))
        object.__setattr__(self, "agree", check.flag(self.agree, "agree"))

    def verdict(self, mine: Values, other: Values, plies: int) -> tuple[int, str] | None:
        """(result for the side that has just moved, reason), or None if the game goes on."""
        bound = self.resign
        if bound is not None:
            given_up = _all(mine, self.resign_moves, lambda value: value <= -bound)
            if given_up and (not self.agree or _all(other, self.resign_moves, lambda value: value >= bound)):
                return -1, "resigned"
        near = self.draw
        if near is not None and plies >= self.draw_after:
            calm = [_all(side, self.draw_moves, lambda value: abs(value) <= near) for side in (mine, other)]
            if all(calm):
                return 0, "draw_agreed"
        return (0, "max_plies") if plies >= self.max_plies else None


def claimed_draw(state: Any) -> str | None:
    """Why a game of chess is drawn if somebody says so, as an arbiter of engines always does; None elsewhere."""
    if not isinstance(state, Chess):
        return None
    if state.repetitions >= 2:
        return "threefold_repetition"
    # The clock is the fifth field of a FEN.
    return "fifty_moves" if int(state.fen().split()[4]) >= 100 else None


def _all(values: Values, moves: int, holds: Callable[[float], bool]) -> bool:
    """Whether the last `moves` values are known, and it holds of each."""
    last = values[-moves:]
    return len(last) == moves and all(value is not None and holds(value) for value in last)
