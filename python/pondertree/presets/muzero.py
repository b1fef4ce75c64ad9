"""MuZero: planning in a learned model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree import validation
from pondertree.config import DirichletNoise, LogPuct, SearchConfig, bounded_int, option, option_of
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.search.model_search import ModelSearch
from pondertree.search.preset import preset, simulations


@preset
class MuZero(ModelSearch):
    """Tree search in a learned model (the MuZero specification; Schrittwieser et al. 2020, appendix B).

    An edge scores `Q + c * P * sqrt(N) / (1 + n)` with `c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init`. Q is
    reward + discount * value of the child, for the player who chooses, normalised to [0, 1] by `normalize`: "node" by
    the values of the node and its moves, "tree" by the extremes of the whole tree, None not at all. An unvisited move
    is worth 0 there. Legal actions are known at the root alone. `num_players` is 1, or 2 for alternating zero-sum
    players; a state has its own number. None is the model's `num_players` if it has one (as models of
    `pondertree.load` do), else 1, with a warning for bare observations.
    """

    default_temperature = 1.0

    model: Any
    num_simulations: int | Sequence[int] | None = simulations(50)
    pb_c_base: float = option_of(LogPuct, "pb_c_base")
    pb_c_init: float = option_of(LogPuct, "pb_c_init")
    discount: float = option_of(SearchConfig, "discount", 0.997)
    root_dirichlet_alpha: float = option(0.3, validation.positive_number)
    root_exploration_fraction: float = option_of(DirichletNoise, "epsilon")
    num_players: int | None = option(None, bounded_int(1, 2), optional=True)
    normalize: str | None = option_of(LogPuct, "normalize")

    def __post_init__(self) -> None:
        if self.model is None:
            raise InvalidArgumentError("model is None: MuZero plans in a model (see pondertree.models)")
        super().__post_init__()

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns the configuration; the model is both the dynamics and the evaluator."""
        return SearchConfig(
            rule=LogPuct.of(self),
            options=self.snapshot(),
            discount=self.discount,
            noise=DirichletNoise(self.root_dirichlet_alpha, self.root_exploration_fraction),
            leaf="external",
        )

    def __repr__(self) -> str:
        return f"MuZero({self.model!r}, {self.limit_text}, discount={self.discount}, seed={self.seed})"
