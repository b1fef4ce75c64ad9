"""What ends a search, and the temperature of each move of a game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pondertree import validation

#: Called now and then with the simulations that are done and wanted.
Progress = Callable[[int, int], object]
#: More simulations than any search makes: only other limits end it.
UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a search where `simulate` is given none."""

    num_simulations: int | Sequence[int] | None
    seconds: float | None
    needs_count: bool
    """Whether the rule schedules a number of simulations, so that a time limit alone does not lift it."""

    def resolve(
        self, n: int | Sequence[int] | None, seconds: float | None
    ) -> tuple[int | Sequence[int] | None, float | None]:
        """Returns (simulations, seconds) as given, completed by those of the search."""
        if n is None and seconds is None:
            return self.num_simulations, self.seconds
        return (self.num_simulations if n is None and self.needs_count else n), seconds


@dataclass(frozen=True, slots=True)
class Temperature:
    """A schedule: temperature `value` for moves 0 to `until - 1` of a game, and `then` from there on.

    `Temperature(1.0, until=30)` is that of AlphaZero chess, `Temperature(1.0, until=10)` that of Connect 4;
    without `until` it is constant.

        schedule = Temperature(1.0, until=30)
        move, policy = mcts.get_policy(game, temperature=schedule(move_number), add_noise=True)
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
