"""UCT: the classic search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pondertree import validation
from pondertree.config import Settings, Ucb1
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.evaluators.protocol import as_evaluator, compiled_leaf
from pondertree.game import GameInfo
from pondertree.search.base import Search
from pondertree.search.options import bounded_float, bounded_int, option, preset, simulations
from pondertree.specifications.uct import decisive_policy


def _playout_policy(value: Any, name: str) -> Any:
    if not (validation.is_one_of(value, ("random", "decisive")) or callable(value)):
        raise InvalidArgumentError(
            f'{name} must be "random", "decisive" or a function of a state, not {validation.shown(value)}'
        )
    return value


@preset
class UCT(Search):
    """Classic Monte Carlo tree search with UCB1 (the UCT specification; Kocsis & Szepesvari 2006).

    An edge scores `Q + c_param * sqrt(2 ln N / n)`, Q for the player who chooses; untried moves come first, in random
    order. A leaf is valued by a random playout (cut after `max_depth` moves, it scores 0; without `max_depth`, playouts
    of games in Python are cut after 10,000 moves, with a warning), or by `evaluator`: at once
    where `max_depth` is None or 0, else where it cuts the playout. `playout_policy` biases playouts: "random",
    "decisive" (win at once if possible), or a function of a state that gives an action or a weight per legal action.
    The answer is the most visited move, guarded by minimax `minimax_depth` plies deep. `forced_depth` plies below the
    root, immediate wins and replies to immediate threats are the only moves looked at.

    `c_param` = 1 suits values of about 1. If a game's rewards sum to much more, scale them down, or raise `c_param` to
    about that size: otherwise good moves may be given up after one bad playout.
    """

    default_temperature = 0.0

    num_simulations: int | Sequence[int] | None = simulations(1000)
    c_param: float = option(1.0, bounded_float(0.0))
    max_depth: int | None = option(None, bounded_int(0, (1 << 31) - 1), optional=True)
    evaluator: Any = option(None, as_evaluator, optional=True)
    playout_policy: str | Callable[[Any], Any] | None = option(None, _playout_policy, optional=True)
    minimax_depth: int = option(0, bounded_int(0, 64))
    forced_depth: int = option(0, bounded_int(0, 255))

    def settings(self, info: GameInfo) -> Settings:
        """UCB1; playouts inside the engine where nothing in Python has a say."""
        named = self.playout_policy if isinstance(self.playout_policy, str) else "random"
        python_policy = self.playout_policy if callable(self.playout_policy) else None
        if not info.compiled and named == "decisive":
            python_policy = decisive_policy
        evaluator, max_depth = self.evaluator, self.max_depth
        leaf = "playout"
        domain = compiled_leaf(evaluator, info) if max_depth in (None, 0) and python_policy is None else None
        if isinstance(evaluator, Uniform) and max_depth in (None, 0):
            leaf = "zero"
        elif isinstance(evaluator, Rollout):
            # A playout is a playout: one that is cut goes on where it was cut.
            evaluator, max_depth = None, None
        elif evaluator is not None and not isinstance(evaluator, Uniform):
            leaf = "outside" if domain is None else "classical"
        elif isinstance(evaluator, Uniform):
            evaluator = None
        if python_policy is not None:
            leaf = "outside"
        return Settings(
            score=Ucb1(self.c_param),
            leaf=leaf,
            domain=domain,
            evaluator=evaluator,
            playout_policy=named,
            python_policy=python_policy,
            max_depth=max_depth,
            minimax_depth=self.minimax_depth,
            forced_depth=self.forced_depth,
            **self.shared(),
        )

    def __repr__(self) -> str:
        return f"UCT({self.limit}, c_param={self.c_param}, seed={self.seed})"
