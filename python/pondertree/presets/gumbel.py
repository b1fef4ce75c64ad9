"""Gumbel search: policy improvement with few simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.config import GumbelRule, SearchConfig, bounded_float, bounded_int, discount_in, option, option_of
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.dispatch import as_evaluator
from pondertree.game import GameInfo
from pondertree.presets.alphazero import compiled_leaf_of
from pondertree.search.model_search import ModelSearch
from pondertree.search.preset import preset, simulations


def _numbers(given: Any, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except Exception as error:
        raise InvalidArgumentError(f"{name} must be numbers, one for each action: {error}") from None
    if numbers.ndim not in (1, 2) or not np.isfinite(numbers).all():
        raise InvalidArgumentError(f"{name} must be finite numbers [num_actions], or [rows, num_actions]")
    return numbers


@preset
class Gumbel(ModelSearch):
    """Policy improvement with few simulations (Danihelka et al. 2022), by an evaluator or a learned model.

    At the root, `max_num_considered_actions` moves are drawn without replacement by the Gumbel-top-k trick, and
    sequential halving spends the simulations on the best of them. Below the root, visits follow the improved policy:
    the softmax of logits plus completed Q-values. Names and meanings are those of mctx. `policy` of a result is the
    improved policy, the training target; `action` is the best of the moves visited most. Q-values of unvisited moves
    are completed by the mixed value (`use_mixed_value`), rescaled to [0, 1] (`rescale_values`) and weighted by
    `(maxvisit_init + most visits) * value_scale`. `gumbel_scale=0`, or `add_noise=False`, sets the Gumbel numbers to 0;
    `gumbel` sets them: an array over all actions, or one for each row. A time limit truncates the schedule of
    `num_simulations`. `discount` is that of each move, by default 0.997 with a model and 1 in a game; `num_players`
    (see `MuZero`) is for models. `chance` and `chance_width` (see `UCT`) say how outcomes of chance nodes are visited;
    learned models have none.
    """

    default_temperature = 0.0
    default_noise = None
    requires_simulation_budget = True

    evaluator: Any = option(None, as_evaluator, optional=True)
    num_simulations: int | Sequence[int] | None = simulations(32)
    max_num_considered_actions: int = option_of(GumbelRule, "max_num_considered_actions")
    gumbel_scale: float = option_of(GumbelRule, "gumbel_scale")
    value_scale: float = option_of(GumbelRule, "value_scale")
    maxvisit_init: float = option_of(GumbelRule, "maxvisit_init")
    rescale_values: bool = option_of(GumbelRule, "rescale_values")
    use_mixed_value: bool = option_of(GumbelRule, "use_mixed_value")
    discount: float | None = option(None, bounded_float(0.0, 1.0), optional=True)
    num_players: int | None = option(None, bounded_int(1, 2), optional=True)
    gumbel: Any = option(None, _numbers, optional=True)
    chance: str = option_of(SearchConfig, "chance")
    chance_width: int = option_of(SearchConfig, "chance_width")
    model: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.evaluator is None) == (self.model is None):
            raise InvalidArgumentError("Gumbel needs an evaluator or a model, and not both")
        if self.model is None and hasattr(self.evaluator, "initial_inference"):
            self.evaluator, self.model = None, self.evaluator
        if self.discount is None:
            self.discount = 1.0 if self.model is None else 0.997  # of a game and of a model
        super().__post_init__()

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns the configuration; evaluators that the engine implements are compiled leaves."""
        assert self.discount is not None, "set with the search"
        leaf, analysis = ("external", None) if self.model is not None else compiled_leaf_of(self.evaluator, info)
        return SearchConfig(
            rule=GumbelRule.of(self),
            options=self.snapshot(),
            gumbel=self.gumbel,
            discount=discount_in(info, self.discount),
            leaf=leaf,
            analysis=analysis,
            evaluator=self.evaluator if leaf == "external" else None,
            chance=self.chance,
            chance_width=self.chance_width,
        )

    def __repr__(self) -> str:
        source = self.evaluator if self.model is None else self.model
        return f"Gumbel({source!r}, {self.limit_text}, seed={self.seed})"
