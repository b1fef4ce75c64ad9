"""AlphaZero: a network's policy and value, and PUCT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, Unpack

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.knowledge import Knowledge, knowledge_of
from pondertree.rules import Puct
from pondertree.search import Search, Shared
from pondertree.settings import Settings


class AlphaZero(Search):
    """Tree search with a network's policy and value (seeds 0 and 2; Silver et al. 2017, 2018).

    An edge scores `Q + c_puct * P * sqrt(N) / (1 + n)`, Q for the player who chooses. A leaf gets its moves, with
    priors from `evaluator`, and its value when it is evaluated; there are no playouts. A move never tried is worth
    `fpu`: a number, or `("parent", reduction)` for the value of its position less so much. `parent_visits` says what N
    counts: "node" (seed 0: visits of the node, its own evaluation included) or "edges" (seed 2: visits of its moves, at
    least 1). With `forced_playouts` k, moves of the root that were tried once get sqrt(k * P * N) simulations at
    least, so that noise is followed up (Wu 2019; for self-play). Noise at the root is added on request:
    `dirichlet_alpha` is the concentration of each move, or `("total", alpha)` of all together.
    """

    default_simulations = 100
    default_temperature = 1.0

    def __init__(
        self,
        evaluator: Any,
        num_simulations: int | Sequence[int] | None = None,
        c_puct: float = 1.0,
        dirichlet_alpha: float | tuple[str, float] = 0.3,
        dirichlet_epsilon: float = 0.25,
        fpu: float | tuple[str, float] = 0.0,
        parent_visits: str = "node",
        forced_playouts: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(num_simulations, **shared)
        evaluator = as_evaluator(evaluator)
        self.evaluator = evaluator
        self.c_puct = check.number(c_puct, "c_puct", least=0.0)
        self.dirichlet_alpha = dirichlet_alpha
        self._spread, self._alpha = tagged_number(dirichlet_alpha, "dirichlet_alpha", "total")
        check.positive_number(self._alpha, "dirichlet_alpha")
        self.dirichlet_epsilon = check.number(dirichlet_epsilon, "dirichlet_epsilon", least=0.0, most=1.0)
        self.fpu = fpu
        self._fpu_parent, self._fpu = tagged_number(fpu, "fpu", "parent")
        if not check.is_one_of(parent_visits, ("node", "edges")):
            raise InvalidArgumentError(f'parent_visits must be "node" or "edges", not {check.shown(parent_visits)}')
        self.parent_visits = parent_visits
        self.forced_playouts = check.number(forced_playouts, "forced_playouts", least=0.0)

    @classmethod
    def connect_four(cls, evaluator: Any, num_simulations: int | None = None, **settings: Any) -> Self:
        """Seed 2's preset: c_puct 1.5, and N(s) is the sum over the moves."""
        return cls(evaluator, num_simulations, **{"c_puct": 1.5, "parent_visits": "edges", **settings})

    def settings(self, info: GameInfo) -> Settings:
        """PUCT; the engine's own evaluators run inside it."""
        leaf, knowledge = leaf_of(self.evaluator, info)
        return Settings(
            score=Puct(self.c_puct, self._fpu, self._fpu_parent, self.parent_visits, self.forced_playouts),
            noise_alpha=self._alpha,
            noise_spread=self._spread,
            noise_epsilon=self.dirichlet_epsilon,
            leaf=leaf,
            knowledge=knowledge,
            evaluator=self.evaluator if leaf == "outside" else None,
            **self.shared(),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.evaluator!r}, {self.limit}, c_puct={self.c_puct}, seed={self.seed})"


def leaf_of(evaluator: Any, info: GameInfo) -> tuple[str, Knowledge | None]:
    """Who values a leaf, and what it knows: the engine's own evaluators (and on chess `Pesto`) run inside it."""
    if isinstance(evaluator, Uniform):
        return "zero", None
    if isinstance(evaluator, Rollout):
        return "playout", None
    knowledge = knowledge_of(evaluator, info)
    return "outside" if knowledge is None else "classical", knowledge


def tagged_number(value: Any, name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == tag:
        return True, check.number(value[1], f"{name}[1]")
    if isinstance(value, tuple):
        raise InvalidArgumentError(f'{name} must be a number or ("{tag}", number), not {check.shown(value)}')
    return False, check.number(value, name)
