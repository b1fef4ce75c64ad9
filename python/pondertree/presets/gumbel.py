"""Gumbel search: policy improvement with few simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import Halving, Settings
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.protocol import as_evaluator
from pondertree.game import GameInfo
from pondertree.presets.alphazero import leaf_of
from pondertree.search.model_search import ModelSearch
from pondertree.search.options import bounded_float, bounded_int, option, preset, simulations


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

    default_temperature = 0.0
    default_noise = None
    needs_count = True

    evaluator: Any = option(None, as_evaluator, optional=True)
    num_simulations: int | Sequence[int] | None = simulations(32)
    max_num_considered_actions: int = option(16, validation.count)
    gumbel_scale: float = option(1.0, bounded_float(0.0))
    value_scale: float = option(0.1, bounded_float(0.0))
    maxvisit_init: float = option(50, bounded_float(0.0))
    rescale_values: bool = option(True, validation.flag)
    use_mixed_value: bool = option(True, validation.flag)
    discount: float = option(0.997, bounded_float(0.0, 1.0))
    num_players: int | None = option(None, bounded_int(1, 2), optional=True)
    gumbel: Any = option(None, _numbers, optional=True)
    model: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.evaluator is None) == (self.model is None):
            raise InvalidArgumentError("Gumbel needs an evaluator or a model, and not both")
        if self.model is None and hasattr(self.evaluator, "initial_inference"):
            self.evaluator, self.model = None, self.evaluator
        super().__post_init__()

    def settings(self, info: GameInfo) -> Settings:
        """Sequential halving and completed Q; the engine's own evaluators run inside it."""
        leaf, domain = ("outside", None) if self.model is not None else leaf_of(self.evaluator, info)
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
            domain=domain,
            evaluator=self.evaluator if leaf == "outside" else None,
            **self.shared(),
        )

    def __repr__(self) -> str:
        by = self.evaluator if self.model is None else self.model
        return f"Gumbel({by!r}, {self.limit}, seed={self.seed})"
