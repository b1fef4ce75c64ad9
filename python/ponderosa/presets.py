"""The searches, each a page that names its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, Unpack

from ponderosa import check
from ponderosa.errors import InvalidArgumentError
from ponderosa.evaluators import Rollout, Uniform
from ponderosa.evaluators.protocol import check_evaluator
from ponderosa.game import GameInfo
from ponderosa.playout import decisive_policy
from ponderosa.rules import Puct, Ucb1
from ponderosa.search import Search, Shared
from ponderosa.settings import Settings


class UCT(Search):
    """Classic Monte Carlo tree search with UCB1 (seed 3; Kocsis & Szepesvari 2006).

    An edge scores `Q + c_param * sqrt(2 ln N / n)`, Q for the player who chooses; untried moves come first, in random
    order. A leaf is valued by a random playout (cut after `max_depth` moves, it scores 0), or by `evaluator`: at once
    where `max_depth` is None or 0, else where it cuts the playout. `playout_policy` biases playouts: "random",
    "decisive" (win at once if possible), or a function of a state that gives an action or a weight per legal action.
    The answer is the most visited move, guarded by minimax `minimax_depth` plies deep. `forced_depth` plies below the
    root, immediate wins and replies to immediate threats are the only moves looked at.
    """

    default_simulations = 1000
    default_temperature = 0.0

    def __init__(
        self,
        num_simulations: int | Sequence[int] | None = None,
        c_param: float = 1.0,
        max_depth: int | None = None,
        evaluator: Any = None,
        playout_policy: str | Callable[[Any], Any] | None = None,
        minimax_depth: int = 0,
        forced_depth: int = 0,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(num_simulations, **shared)
        self.c_param = check.number(c_param, "c_param", least=0.0)
        self.max_depth = None if max_depth is None else check.whole_number(max_depth, "max_depth", most=(1 << 31) - 1)
        self.minimax_depth = check.whole_number(minimax_depth, "minimax_depth", most=64)
        self.forced_depth = check.whole_number(forced_depth, "forced_depth", most=255)
        if evaluator is not None:
            check_evaluator(evaluator)
        self.evaluator = evaluator
        if not (playout_policy is None or playout_policy in ("random", "decisive") or callable(playout_policy)):
            raise InvalidArgumentError(
                f'playout_policy must be "random", "decisive" or a function of a state, not {playout_policy!r}'
            )
        self.playout_policy = playout_policy

    def settings(self, info: GameInfo) -> Settings:
        """UCB1; playouts inside the engine where nothing in Python has a say."""
        named = self.playout_policy if isinstance(self.playout_policy, str) else "random"
        python_policy = self.playout_policy if callable(self.playout_policy) else None
        if not info.compiled and named == "decisive":
            python_policy = decisive_policy
        evaluator, max_depth = self.evaluator, self.max_depth
        leaf = "playout"
        if isinstance(evaluator, Uniform) and max_depth in (None, 0):
            leaf = "zero"
        elif isinstance(evaluator, Rollout):
            # A playout is a playout: one that is cut goes on where it was cut.
            evaluator, max_depth = None, None
        elif evaluator is not None and not isinstance(evaluator, Uniform):
            leaf = "outside"
        elif isinstance(evaluator, Uniform):
            evaluator = None
        if python_policy is not None:
            leaf = "outside"
        return Settings(
            score=Ucb1(self.c_param),
            leaf=leaf,
            evaluator=evaluator,
            playout_policy=named,
            python_policy=python_policy,
            max_depth=max_depth,
            minimax_depth=self.minimax_depth,
            forced_depth=self.forced_depth,
            **self.shared(),
        )

    def __repr__(self) -> str:
        limit = (
            f"num_simulations={self.num_simulations}" if self.time_limit is None else f"time_limit={self.time_limit}"
        )
        return f"UCT({limit}, c_param={self.c_param}, seed={self.seed})"


class AlphaZero(Search):
    """Tree search with a network's policy and value (seeds 0 and 2; Silver et al. 2017, 2018).

    An edge scores `Q + c_puct * P * sqrt(N) / (1 + n)`, Q for the player who chooses. A leaf gets its moves, with
    priors from `evaluator`, and its value when it is evaluated; there are no playouts. A move never tried is worth
    `fpu`: a number, or `("parent", reduction)` for the value of its position less so much. `parent_visits` says what N
    counts: "node" (seed 0: visits of the node, its own evaluation included) or "edges" (seed 2: visits of its moves, at
    least 1). Noise at the root is added on request: `dirichlet_alpha` is the concentration of each move, or
    `("total", alpha)` of all together.
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
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(num_simulations, **shared)
        check_evaluator(evaluator)
        self.evaluator = evaluator
        self.c_puct = check.number(c_puct, "c_puct", least=0.0)
        self.dirichlet_alpha = dirichlet_alpha
        self._spread, self._alpha = tagged_number(dirichlet_alpha, "dirichlet_alpha", "total")
        check.positive_number(self._alpha, "dirichlet_alpha")
        self.dirichlet_epsilon = check.number(dirichlet_epsilon, "dirichlet_epsilon", least=0.0, most=1.0)
        self.fpu = fpu
        self._fpu_parent, self._fpu = tagged_number(fpu, "fpu", "parent")
        if parent_visits not in ("node", "edges"):
            raise InvalidArgumentError(f'parent_visits must be "node" or "edges", not {parent_visits!r}')
        self.parent_visits = parent_visits

    @classmethod
    def connect_four(cls, evaluator: Any, num_simulations: int | None = None, **settings: Any) -> Self:
        """Seed 2's preset: c_puct 1.5, and N(s) is the sum over the moves."""
        return cls(evaluator, num_simulations, **{"c_puct": 1.5, "parent_visits": "edges", **settings})

    def settings(self, info: GameInfo) -> Settings:
        """PUCT; the two evaluators of the engine run inside it."""
        leaf = (
            "zero"
            if isinstance(self.evaluator, Uniform)
            else "playout"
            if isinstance(self.evaluator, Rollout)
            else "outside"
        )
        return Settings(
            score=Puct(self.c_puct, self._fpu, self._fpu_parent, self.parent_visits),
            noise_alpha=self._alpha,
            noise_spread=self._spread,
            noise_epsilon=self.dirichlet_epsilon,
            leaf=leaf,
            evaluator=self.evaluator if leaf == "outside" else None,
            **self.shared(),
        )

    def __repr__(self) -> str:
        limit = (
            f"num_simulations={self.num_simulations}" if self.time_limit is None else f"time_limit={self.time_limit}"
        )
        return f"{type(self).__name__}({self.evaluator!r}, {limit}, c_puct={self.c_puct}, seed={self.seed})"


def tagged_number(value: Any, name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == tag:
        return True, check.number(value[1], f"{name}[1]")
    if isinstance(value, tuple):
        raise InvalidArgumentError(f'{name} must be a number or ("{tag}", number), not {value!r}')
    return False, check.number(value, name)
