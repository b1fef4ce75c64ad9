"""Temperature schedules: the temperature of each move of a game."""

from __future__ import annotations

from dataclasses import dataclass

from pondertree import validation


@dataclass(frozen=True, slots=True)
class Temperature:
    """A schedule: temperature `value` for moves 0 to `until - 1` of a game, and `then` from there on.

    `Temperature(1.0, until=30)` is that of AlphaZero chess, `Temperature(1.0, until=10)` that of Connect 4;
    without `until` it is constant. Searches take its value for a move: `temperature=schedule(move_number)`.
    """

    value: float = 1.0
    until: int | None = None
    then: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", validation.temperature(self.value, "value"))
        object.__setattr__(self, "then", validation.temperature(self.then, "then"))
        if self.until is not None:
            object.__setattr__(self, "until", validation.whole_number(self.until, "until"))

    def __call__(self, move_number: int) -> float:
        """Returns the temperature of move `move_number`, counted from 0."""
        number = validation.whole_number(move_number, "move_number")
        return self.value if self.until is None or number < self.until else self.then
