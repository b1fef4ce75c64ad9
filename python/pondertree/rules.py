"""The rules by which a search chooses among moves, as the engine is told them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its name, with its settings as fields."""

    name: ClassVar[str]
    #: Whether moves have priors, and the root is evaluated before the first descent.
    has_priors: ClassVar[bool] = True
    #: Whether Dirichlet noise may be mixed into the priors of the root.
    takes_noise: ClassVar[bool] = True

    def engine(self, num_actions: int) -> dict[str, Any]:
        """What the engine reads."""
        settings = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"rule": self.name, "num_actions": num_actions, **settings}


@dataclass(frozen=True, slots=True)
class Ucb1(Rule):
    """`Q + c_param * sqrt(2 ln N / n)`."""

    name = "ucb1"
    has_priors = False
    takes_noise = False
    c_param: float


@dataclass(frozen=True, slots=True)
class Puct(Rule):
    """`Q + c_puct * P * sqrt(N) / (1 + n)`."""

    name = "puct"
    c_puct: float
    fpu: float = 0.0
    """The value of a move never tried, or with `fpu_parent` what is taken off its parent's."""
    fpu_parent: bool = False
    parent_visits: str = "node"
    """What N counts, "node" or "edges"."""
    forced_playouts: float = 0.0
    """Tried moves of the root get sqrt(this * P * N) simulations at least."""


@dataclass(frozen=True, slots=True)
class LogPuct(Rule):
    """MuZero's: c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init, and Q brought to a scale."""

    name = "muzero"
    pb_c_base: float
    pb_c_init: float
    normalize: str | None
    """ "node", "tree" or None."""


@dataclass(frozen=True, slots=True)
class Halving(Rule):
    """Gumbel search's: sequential halving at the root, visits that follow the improved policy below it."""

    name = "gumbel"
    takes_noise = False
    max_num_considered_actions: int
    gumbel_scale: float
    value_scale: float
    maxvisit_init: float
    rescale_values: bool
    use_mixed_value: bool
