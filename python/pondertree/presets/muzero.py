"""MuZero: planning in a learned model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.model_search import ModelSearch
from pondertree.rules import LogPuct
from pondertree.search import Shared
from pondertree.settings import Settings


class MuZero(ModelSearch):
    """Tree search in a learned model (seed 1; Schrittwieser et al. 2020, appendix B).

    An edge scores `Q + c * P * sqrt(N) / (1 + n)` with `c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init`. Q is
    reward + discount * value of the position behind it, for the player who chooses, brought to [0, 1] by `normalize`:
    "node" by the values of the position and of its moves, "tree" by all values met in the tree, None not at all. A
    move never tried is worth 0 there. Only the root knows which actions are legal. `num_players` is 1, or 2 for
    players who alternate and whose gains cancel out; a state says itself how many it has. None asks a model that knows
    (its own `num_players`, as players of `pondertree.load` have), and is 1 with others.
    """

    default_simulations = 50
    default_temperature = 1.0

    def __init__(
        self,
        model: Any,
        num_simulations: int | Sequence[int] | None = None,
        pb_c_base: float = 19652,
        pb_c_init: float = 1.25,
        discount: float = 0.997,
        root_dirichlet_alpha: float = 0.3,
        root_exploration_fraction: float = 0.25,
        num_players: int | None = None,
        normalize: str | None = "node",
        **shared: Unpack[Shared],
    ) -> None:
        if model is None:
            raise InvalidArgumentError(
                "model is None: MuZero plans in a model (pondertree.models tells how to write one)"
            )
        super().__init__(num_simulations, model=model, discount=discount, num_players=num_players, **shared)
        self.pb_c_base = check.positive_number(pb_c_base, "pb_c_base")
        self.pb_c_init = check.number(pb_c_init, "pb_c_init", least=0.0)
        self.root_dirichlet_alpha = check.positive_number(root_dirichlet_alpha, "root_dirichlet_alpha")
        self.root_exploration_fraction = check.number(
            root_exploration_fraction, "root_exploration_fraction", least=0.0, most=1.0
        )
        if not check.is_one_of(normalize, ("node", "tree", None)):
            raise InvalidArgumentError(f'normalize must be "node", "tree" or None, not {check.shown(normalize)}')
        self.normalize = normalize

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
