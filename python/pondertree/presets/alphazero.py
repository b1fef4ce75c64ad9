"""AlphaZero: PUCT with the policy and value of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Self

from pondertree.config import (
    DirichletNoise,
    LeafAnalysisConfig,
    Puct,
    SearchConfig,
    discount_factor,
    discount_in,
    option,
    option_of,
)
from pondertree.evaluators import Rollout, Uniform
from pondertree.evaluators.dispatch import as_evaluator
from pondertree.evaluators.protocol import compiled_leaf
from pondertree.game import GameInfo
from pondertree.search.base import Search
from pondertree.search.preset import preset, simulations


class PuctSearch(Search):
    """The base of `AlphaZero` and `pondertree.chess.MCTS`, which declare these options."""

    default_temperature = 1.0

    evaluator: Any
    c_puct: float
    dirichlet_alpha: float | tuple[str, float]
    dirichlet_epsilon: float
    fpu: float | tuple[str, float]
    parent_visits: str
    forced_playouts: float
    chance: str = "balanced"
    chance_width: int = 36
    normalize: str | None = None
    discount: float = 1.0
    backup: str = "mean"

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns the configuration, with `Uniform` the last one again if no option has changed."""
        # What other evaluators are compiled to may change with their attributes.
        is_constant = type(self.evaluator) is Uniform
        return self._reused_config(info, self._new_config) if is_constant else self._new_config(info)

    def _new_config(self, info: GameInfo) -> SearchConfig:
        """Returns a new configuration; evaluators that the engine implements are compiled leaves."""
        leaf, analysis = compiled_leaf_of(self.evaluator, info)
        return SearchConfig(
            rule=Puct.of(self),
            options=self.snapshot(),
            noise=DirichletNoise(self.dirichlet_alpha, self.dirichlet_epsilon),
            leaf=leaf,
            analysis=analysis,
            evaluator=self.evaluator if leaf == "external" else None,
            chance=self.chance,
            chance_width=self.chance_width,
            discount=discount_in(info, self.discount),
            backup=self.backup,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.evaluator!r}, {self.limit_text}, c_puct={self.c_puct}, seed={self.seed})"


@preset
class AlphaZero(PuctSearch):
    """Tree search with a network's policy and value (the AlphaZero and PUCT specifications; Silver et al. 2017, 2018).

    An edge scores `Q + c_puct * P * sqrt(N) / (1 + n)`, Q for the player who chooses. A leaf is expanded, with priors
    from `evaluator`, and takes its value; there are no playouts. An unvisited move is worth `fpu` (first-play urgency):
    a number, or `("parent", reduction)` for the value of its position minus the reduction. `parent_visits` is what N
    counts: "node" (visits of the node, its own evaluation included) or "edges" (visits of its moves, at least 1: the
    PUCT specification). With `forced_playouts` k, visited moves of the root get at least sqrt(k * P * N) simulations,
    so that noise is followed up (Wu 2019; for self-play). `add_noise=True` mixes Dirichlet noise into the priors of the
    root, with weight `dirichlet_epsilon`; `dirichlet_alpha` is its concentration for each move, or `("total", alpha)`
    for all together. At chance nodes outcomes are visited as `chance` says: "balanced", in proportion to their
    probabilities, up to `chance_width` outcomes; otherwise, or with "sample", each is drawn. `normalize`, `discount`
    and `backup` are for games with rewards, as in `UCT`; with `normalize="tree"`, `fpu` is on the scale of the tree,
    where 0 is the lowest value and 1 the highest.
    """

    evaluator: Any = field(metadata={"check": as_evaluator})
    num_simulations: int | Sequence[int] | None = simulations(100)
    c_puct: float = option_of(Puct, "c_puct")
    dirichlet_alpha: float | tuple[str, float] = option_of(DirichletNoise, "alpha")
    dirichlet_epsilon: float = option_of(DirichletNoise, "epsilon")
    fpu: float | tuple[str, float] = option_of(Puct, "fpu")
    parent_visits: str = option_of(Puct, "parent_visits")
    forced_playouts: float = option_of(Puct, "forced_playouts")
    chance: str = option_of(SearchConfig, "chance")
    chance_width: int = option_of(SearchConfig, "chance_width")
    normalize: str | None = option_of(Puct, "normalize")
    discount: float = option(1.0, discount_factor)
    backup: str = option_of(SearchConfig, "backup")

    @classmethod
    def connect_four(cls, evaluator: Any, num_simulations: int | None = None, **settings: Any) -> Self:
        """Returns the PUCT specification's search: c_puct 1.5, and N(s) sums the visits of the moves."""
        return cls(evaluator, num_simulations, **{"c_puct": 1.5, "parent_visits": "edges", **settings})


def compiled_leaf_of(evaluator: Any, info: GameInfo) -> tuple[str, LeafAnalysisConfig | None]:
    """Returns the kind of leaf and the leaf analysis of an evaluator; "external" if the engine has none."""
    if isinstance(evaluator, Uniform):
        return "zero", None
    if isinstance(evaluator, Rollout):
        return "playout", None
    analysis = compiled_leaf(evaluator, info)
    return "external" if analysis is None else "static", analysis
