"""AlphaZero: a network's policy and value, and PUCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Self

from pondertree import validation
from pondertree.config import Domain, Puct, Settings
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.evaluators.protocol import as_evaluator, compiled_leaf
from pondertree.game import GameInfo
from pondertree.search.base import Search
from pondertree.search.options import bounded_float, one_of, option, preset, simulations


def tagged_number(value: Any, name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == tag:
        return True, validation.number(value[1], f"{name}[1]")
    if isinstance(value, tuple):
        raise InvalidArgumentError(f'{name} must be a number or ("{tag}", number), not {validation.shown(value)}')
    return False, validation.number(value, name)


def concentration(value: Any, name: str) -> Any:
    """The concentration of Dirichlet noise: of each move, or `("total", alpha)` of all together."""
    validation.positive_number(tagged_number(value, name, "total")[1], name)
    return value


def first_play_urgency(value: Any, name: str) -> Any:
    """The value of a move never tried: a number, or `("parent", reduction)`."""
    tagged_number(value, name, "parent")
    return value


class PuctSearch(Search):
    """What AlphaZero's search is made of, whatever its evaluator is called (`pondertree.chess.MCTS` has its own name).

    Subclasses declare these options.
    """

    default_temperature = 1.0

    evaluator: Any
    c_puct: float
    dirichlet_alpha: float | tuple[str, float]
    dirichlet_epsilon: float
    fpu: float | tuple[str, float]
    parent_visits: str
    forced_playouts: float

    def settings(self, info: GameInfo) -> Settings:
        """PUCT; the engine's own evaluators run inside it."""
        leaf, domain = leaf_of(self.evaluator, info)
        relative, fpu = tagged_number(self.fpu, "fpu", "parent")
        spread, alpha = tagged_number(self.dirichlet_alpha, "dirichlet_alpha", "total")
        return Settings(
            score=Puct(self.c_puct, fpu, relative, self.parent_visits, self.forced_playouts),
            noise_alpha=alpha,
            noise_spread=spread,
            noise_epsilon=self.dirichlet_epsilon,
            leaf=leaf,
            domain=domain,
            evaluator=self.evaluator if leaf == "outside" else None,
            **self.shared(),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.evaluator!r}, {self.limit}, c_puct={self.c_puct}, seed={self.seed})"


@preset
class AlphaZero(PuctSearch):
    """Tree search with a network's policy and value (the AlphaZero and PUCT specifications; Silver et al. 2017, 2018).

    An edge scores `Q + c_puct * P * sqrt(N) / (1 + n)`, Q for the player who chooses. A leaf gets its moves, with
    priors from `evaluator`, and its value when it is evaluated; there are no playouts. A move never tried is worth
    `fpu`: a number, or `("parent", reduction)` for the value of its position less so much. `parent_visits` says what N
    counts: "node" (visits of the node, its own evaluation included) or "edges" (visits of its moves, at
    least 1: the PUCT specification). With `forced_playouts` k, moves of the root that were tried once get
    sqrt(k * P * N) simulations at least, so that noise is followed up (Wu 2019; for self-play). Noise at the root is
    added on request: `dirichlet_alpha` is the concentration of each move, or `("total", alpha)` of all together.
    """

    evaluator: Any = field(metadata={"check": as_evaluator})
    num_simulations: int | Sequence[int] | None = simulations(100)
    c_puct: float = option(1.0, bounded_float(0.0))
    dirichlet_alpha: float | tuple[str, float] = option(0.3, concentration)
    dirichlet_epsilon: float = option(0.25, bounded_float(0.0, 1.0))
    fpu: float | tuple[str, float] = option(0.0, first_play_urgency)
    parent_visits: str = option("node", one_of("node", "edges"))
    forced_playouts: float = option(0.0, bounded_float(0.0))

    @classmethod
    def connect_four(cls, evaluator: Any, num_simulations: int | None = None, **settings: Any) -> Self:
        """The PUCT specification's preset: c_puct 1.5, and N(s) is the sum over the moves."""
        return cls(evaluator, num_simulations, **{"c_puct": 1.5, "parent_visits": "edges", **settings})


def leaf_of(evaluator: Any, info: GameInfo) -> tuple[str, Domain | None]:
    """Who values a leaf, and what it knows: the engine's own evaluators (and on chess `Pesto`) run inside it."""
    if isinstance(evaluator, Uniform):
        return "zero", None
    if isinstance(evaluator, Rollout):
        return "playout", None
    domain = compiled_leaf(evaluator, info)
    return "outside" if domain is None else "classical", domain
