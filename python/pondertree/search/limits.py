"""The limits that end a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

#: Called after each batch or time slice with the numbers of simulations done and requested.
Progress = Callable[[int, int], object]
#: A number of simulations that no search reaches: only other limits end it.
UNLIMITED = 1 << 62


class Limits(NamedTuple):
    """The default limits of `Forest.simulate`."""

    num_simulations: int | Sequence[int] | None
    seconds: float | None
    requires_simulation_budget: bool
    """Whether the rule needs the number of simulations in advance, so that a time limit alone does not lift it."""

    def resolve(
        self, n: int | Sequence[int] | None, seconds: float | None
    ) -> tuple[int | Sequence[int] | None, float | None]:
        """Returns (simulations, seconds) as given, completed by the defaults."""
        if n is None and seconds is None:
            return self.num_simulations, self.seconds
        return (self.num_simulations if n is None and self.requires_simulation_budget else n), seconds
