"""Gumbel search: policy improvement with few simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pondertree import check
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.model_search import ModelSearch
from pondertree.presets.alphazero import leaf_of
from pondertree.rules import Halving
from pondertree.search import Shared
from pondertree.settings import Settings


class Gumbel(ModelSearch):
    """Search that improves a policy even with two simulations (Danihelka et al. 2022), by an evaluator or a model.

    At the root, `max_num_considered_actions` moves are drawn without replacement by Gumbel numbers, and sequential
    halving spends the simulations on the best of them. Below it, visits follow the improved policy: the softmax of
    logits plus completed Q. Names and meanings are those of mctx. `policy` of a result is the improved policy, the
    target to train a network with; `action` is the best of the moves visited most. Values of moves never tried are
    completed by a mixture (`use_mixed_value`), brought to [0, 1] (`rescale_values`) and weighted by `(maxvisit_init +
    most visits) * value_scale`. `gumbel_scale=0`, or `add_noise=False`, leaves the Gumbel numbers out; `gumbel` gives
    them, an array over all actions or one for each row. A limit of time cuts the schedule of `num_simulations` short.
    `discount` and `num_players` (see `MuZero`) are of searches in a model; a game has its own.
    """

    default_simulations = 32
    default_temperature = 0.0
    default_noise = None
    needs_count = True

    def __init__(
        self,
        evaluator: Any = None,
        num_simulations: int | Sequence[int] | None = None,
        max_num_considered_actions: int = 16,
        gumbel_scale: float = 1.0,
        value_scale: float = 0.1,
        maxvisit_init: float = 50,
        rescale_values: bool = True,
        use_mixed_value: bool = True,
        discount: float = 0.997,
        num_players: int | None = None,
        gumbel: Any = None,
        *,
        model: Any = None,
        **shared: Unpack[Shared],
    ) -> None:
        if (evaluator is None) == (model is None):
            raise InvalidArgumentError("Gumbel needs an evaluator or a model, and not both")
        if model is None and hasattr(evaluator, "initial_inference"):
            evaluator, model = None, evaluator
        super().__init__(num_simulations, model=model, discount=discount, num_players=num_players, **shared)
        if evaluator is not None:
            evaluator = as_evaluator(evaluator)
        self.evaluator = evaluator
        self.max_num_considered_actions = check.count(max_num_considered_actions, "max_num_considered_actions")
        self.gumbel_scale = check.number(gumbel_scale, "gumbel_scale", least=0.0)
        self.value_scale = check.number(value_scale, "value_scale", least=0.0)
        self.maxvisit_init = check.number(maxvisit_init, "maxvisit_init", least=0.0)
        self.rescale_values = check.flag(rescale_values, "rescale_values")
        self.use_mixed_value = check.flag(use_mixed_value, "use_mixed_value")
        self.gumbel = None if gumbel is None else _numbers(gumbel)

    def settings(self, info: GameInfo) -> Settings:
        """Sequential halving and completed Q; the engine's own evaluators run inside it."""
        leaf, knowledge = ("outside", None) if self.model is not None else leaf_of(self.evaluator, info)
        return Settings(
            score=Halving(
                self.max_num_considered_actions,
                self.gumbel_scale,
                self.value_scale,
                self.maxvisit_init,
                self.rescale_values,
                self.use_mixed_value,
            ),
            gumbel=self.gumbel,
            discount=self.discount,
            leaf=leaf,
            knowledge=knowledge,
            evaluator=self.evaluator if leaf == "outside" else None,
            **self.shared(),
        )

    def __repr__(self) -> str:
        by = self.evaluator if self.model is None else self.model
        return f"Gumbel({by!r}, {self.limit}, seed={self.seed})"


def _numbers(given: Any) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except Exception as error:
        raise InvalidArgumentError(f"gumbel must be numbers, one for each action: {error}") from None
    if numbers.ndim not in (1, 2) or not np.isfinite(numbers).all():
        raise InvalidArgumentError("gumbel must be finite numbers [num_actions], or [rows, num_actions]")
    return numbers
