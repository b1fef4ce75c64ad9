"""UCT: Monte Carlo tree search with UCB1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pondertree import validation
from pondertree.config import SearchConfig, Ucb1, discount_factor, discount_in, option, option_of
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.evaluators.dispatch import as_evaluator
from pondertree.evaluators.protocol import compiled_leaf
from pondertree.game import GameInfo
from pondertree.games.playout import decisive_policy
from pondertree.search.base import Search
from pondertree.search.preset import preset, simulations


def check_playout_policy(value: Any, name: str) -> Any:
    """Returns a playout policy; raises for anything but a name or a function."""
    if not (validation.is_one_of(value, ("random", "decisive")) or callable(value)):
        raise InvalidArgumentError(
            f'{name} must be "random", "decisive" or a function of a state, not {validation.shown(value)}'
        )
    return value


@preset
class UCT(Search):
    """Classic Monte Carlo tree search with UCB1 (the UCT specification; Kocsis & Szepesvari 2006).

    An edge scores `Q + c_param * sqrt(2 ln N / n)`, Q for the player who chooses; unvisited moves come first, in random
    order. A leaf is valued by a random playout (truncated after `max_depth` moves it scores 0; without `max_depth`,
    playouts of games in Python are truncated after 10,000 moves, with a warning), or by `evaluator`: the leaf itself if
    `max_depth` is None or 0, else the last position of the playout. `playout_policy` biases playouts: "random",
    "decisive" (win at once if possible), or a function of a state that returns an action or a weight per legal action.
    The chosen move is the most visited one, checked by a minimax search of `minimax_depth` plies. `forced_depth` plies
    below the root, only immediate wins and replies to immediate threats are searched, where there are any.

    At chance nodes outcomes are visited as `chance` says: "balanced", in proportion to their probabilities, up to
    `chance_width` outcomes; otherwise, or with "sample", each is drawn. The look-ahead of `minimax_depth` and
    `forced_depth` stops there.

    `c_param` = 1 suits values of about 1. With rewards of any other size, set `normalize="tree"`: Q is then mapped to
    [0, 1] by the lowest and highest mean value of the tree, and leaves in flight count in N alone. `discount` is that
    of each move, 1 takes the game's own: g = reward + discount * g, in games without rewards of the result.
    `backup="max"` values a position by its best visited move instead of the mean of its visits, and a chance node by
    its mean (MaxUCT; Keller & Helmert 2013); it is for games of one player.
    """

    default_temperature = 0.0

    num_simulations: int | Sequence[int] | None = simulations(1000)
    c_param: float = option_of(Ucb1, "c_param")
    max_depth: int | None = option_of(SearchConfig, "max_depth")
    evaluator: Any = option(None, as_evaluator, optional=True)
    playout_policy: str | Callable[[Any], Any] | None = option(None, check_playout_policy, optional=True)
    minimax_depth: int = option_of(SearchConfig, "minimax_depth")
    forced_depth: int = option_of(SearchConfig, "forced_depth")
    chance: str = option_of(SearchConfig, "chance")
    chance_width: int = option_of(SearchConfig, "chance_width")
    normalize: str | None = option_of(Ucb1, "normalize")
    discount: float = option(1.0, discount_factor)
    backup: str = option_of(SearchConfig, "backup")

    def config(self, info: GameInfo) -> SearchConfig:
        """Returns the configuration, the last one again if no option has changed."""
        # What an evaluator is compiled to may change with its attributes.
        return self._reused_config(info, self._new_config) if self.evaluator is None else self._new_config(info)

    def _new_config(self, info: GameInfo) -> SearchConfig:
        """Returns a new configuration.

        The kind of leaf follows from the evaluator, `max_depth` and the playout policy:

        | evaluator | `max_depth` None or 0 | `max_depth` > 0 |
        |---|---|---|
        | None | "playout" | "playout" |
        | `Uniform` | "zero" | "playout" |
        | `Rollout` | "playout" | "playout", without `max_depth` |
        | compiled (`compiled_leaf`) | "static" | "external" |
        | in Python | "external" | "external" |

        A policy in Python makes every kind "external".
        """
        compiled_policy = self.playout_policy if isinstance(self.playout_policy, str) else "random"
        python_policy = self.playout_policy if callable(self.playout_policy) else None
        if not info.compiled and compiled_policy == "decisive":
            python_policy = decisive_policy
        evaluator, max_depth = self.evaluator, self.max_depth
        leaf = "playout"
        analysis = compiled_leaf(evaluator, info) if max_depth in (None, 0) and python_policy is None else None
        if isinstance(evaluator, Uniform) and max_depth in (None, 0):
            leaf = "zero"
        elif isinstance(evaluator, Rollout):
            # A truncated playout valued by another playout is the same as one that is not truncated.
            evaluator, max_depth = None, None
        elif evaluator is not None and not isinstance(evaluator, Uniform):
            leaf = "external" if analysis is None else "static"
        elif isinstance(evaluator, Uniform):
            evaluator = None
        if python_policy is not None:
            leaf = "external"
        return SearchConfig(
            rule=Ucb1.of(self),
            options=self.snapshot(),
            leaf=leaf,
            evaluator=evaluator,
            max_depth=max_depth,
            minimax_depth=self.minimax_depth,
            forced_depth=self.forced_depth,
            chance=self.chance,
            chance_width=self.chance_width,
            discount=discount_in(info, self.discount),
            backup=self.backup,
            playout_policy=compiled_policy,
            python_policy=python_policy,
            analysis=analysis,
        )

    def __repr__(self) -> str:
        return f"UCT({self.limit_text}, c_param={self.c_param}, seed={self.seed})"
