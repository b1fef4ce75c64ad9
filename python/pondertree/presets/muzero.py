"""MuZero: planning in a learned model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree import validation
from pondertree.config import LogPuct, Settings
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.search.model_search import ModelSearch
from pondertree.search.options import bounded_float, bounded_int, one_of, option, preset, simulations


@preset
class MuZero(ModelSearch):
    """Tree search in a learned model (the MuZero specification; Schrittwieser et al. 2020, appendix B).

    An edge scores `Q + c * P * sqrt(N) / (1 + n)` with `c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init`. Q is
    reward + discount * value of the position behind it, for the player who chooses, brought to [0, 1] by `normalize`:
    "node" by the values of the position and of its moves, "tree" by all values met in the tree, None not at all. A
    move never tried is worth 0 there. Only the root knows which actions are legal. `num_players` is 1, or 2 for
    players who alternate and whose gains cancel out; a state says itself how many it has. None asks a model that knows
    (its own `num_players`, as players of `pondertree.load` have); with others it is 1, and a bare observation warns.
    """

    default_temperature = 1.0

    model: Any
    num_simulations: int | Sequence[int] | None = simulations(50)
    pb_c_base: float = option(19652, validation.positive_number)
    pb_c_init: float = option(1.25, bounded_float(0.0))
    discount: float = option(0.997, bounded_float(0.0, 1.0))
    root_dirichlet_alpha: float = option(0.3, validation.positive_number)
    root_exploration_fraction: float = option(0.25, bounded_float(0.0, 1.0))
    num_players: int | None = option(None, bounded_int(1, 2), optional=True)
    normalize: str | None = option("node", one_of("node", "tree", None))

    def __post_init__(self) -> None:
        if self.model is None:
            raise InvalidArgumentError(
                "model is None: MuZero plans in a model (pondertree.models tells how to write one)"
            )
        super().__post_init__()

    def settings(self, info: GameInfo) -> Settings:
        """PUCT with a growing constant on scaled values; the model is the world and the evaluator."""
        return Settings(
            score=LogPuct(self.pb_c_base, self.pb_c_init, self.normalize),
            discount=self.discount,
            noise_alpha=self.root_dirichlet_alpha,
            noise_epsilon=self.root_exploration_fraction,
            leaf="outside",
            **self.shared(),
        )

    def __repr__(self) -> str:
        return f"MuZero({self.model!r}, {self.limit}, discount={self.discount}, seed={self.seed})"
