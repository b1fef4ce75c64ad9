"""What a preset tells the engine: the parts of one search, resolved for one game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pondertree._core import Forest as EngineForest
from pondertree._core import usable_cpus
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.validation import useful_threads

#: With fewer rows for each, a thread costs more than it brings.
ROWS_PER_THREAD = 32


class Domain(Protocol):
    """Knowledge of one game that the engine consults at leaves and at the root."""

    def engine(self) -> dict[str, Any]:
        """The fields as the engine reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parts of a search. One sentence per field; the engine gets them by name."""

    score: Rule
    """The rule that chooses among moves."""
    gumbel: Any = None
    """Gumbel numbers, [num_actions] for every tree or [trees, num_actions]; None draws them."""
    discount: float = 1.0
    """What a learned model's values are multiplied by, a move later, where the model does not say."""
    noise_alpha: float = 0.0
    """Concentration of the Dirichlet noise for each move, or with `noise_spread` for all together."""
    noise_spread: bool = False
    """`noise_alpha` is spread over the legal moves."""
    noise_epsilon: float = 0.0
    """Weight of the noise; 0 where the search has none."""
    leaf: str
    """Who values a leaf: "playout", "zero" and "classical" inside the engine, "outside" an evaluator."""
    evaluator: Any = None
    """The evaluator, where it is outside."""
    playout_policy: str = "random"
    """How compiled playouts draw moves."""
    python_policy: Callable[[Any], Any] | None = None
    """A playout policy in Python; playouts are then played in Python."""
    max_depth: int | None = None
    """Where playouts are cut; None plays them to the end."""
    minimax_depth: int = 0
    """Plies of the minimax guard at the answer; 0 is off."""
    forced_depth: int = 0
    """Plies below the root in which forced moves are looked for."""
    domain: Domain | None = None
    """Knowledge of one game beside its rules, such as chess's evaluation, mate search and move categories."""
    solve: bool = True
    """Keep proven results."""
    in_flight: int = 1
    """Leaves under way in one tree at a time."""
    threads: int = 1
    """Threads of the engine; beside a network on an accelerator it takes as many as help. At most one for each CPU."""
    early_stop: bool = False
    """Stop a tree when its leading move cannot be caught any more."""
    trace: bool = False
    """Record every descent."""
    max_nodes: int | None = None
    """Most positions one tree may hold."""
    max_memory: float | None = None
    """Most MiB all trees of one forest may hold."""

    def check_noise(self) -> None:
        """Refuses to add noise where there is nothing it could be added to."""
        if not self.score.has_priors:
            raise InvalidArgumentError("add_noise=True: this search has no priors that noise could be added to")

    def set_noise(self, core: EngineForest, index: int | None, wanted: bool, trees: int) -> None:
        """Asks for fresh noise at the root of tree `index` of `trees`, or of all, or for none."""
        if self.score.takes_noise:
            core.set_noise(index, self.noise_alpha, self.noise_spread, self.noise_epsilon if wanted else 0.0)
        elif self.score.has_priors:
            for each in range(trees) if index is None else (index,):
                self.set_gumbel(core, each, trees, wanted)

    def set_gumbel(self, core: EngineForest, index: int, trees: int, wanted: bool = True) -> None:
        """Gives tree `index` of `trees` its Gumbel numbers, if there are given ones; unwanted, they are all 0."""
        if not wanted:
            core.set_gumbel(index, [0.0] * core.num_actions)
        elif self.gumbel is None:
            core.set_gumbel(index, None)
        else:
            if self.gumbel.ndim == 2 and len(self.gumbel) != trees:
                raise InvalidArgumentError(f"gumbel has {len(self.gumbel)} rows for {trees} states: give one each")
            core.set_gumbel(index, (self.gumbel if self.gumbel.ndim == 1 else self.gumbel[index]).tolist())

    def engine(self, info: GameInfo, trees: int) -> dict[str, Any]:
        """The parts as the engine reads them."""
        for name in ("minimax_depth", "forced_depth"):
            if getattr(self, name) and not info.is_plain:
                raise InvalidArgumentError(
                    f"{name} needs a zero-sum game of two players without rewards; {info.name} is not one"
                )
        # A Python policy plays its playouts outside, from the leaf itself.
        outside_depth = 0 if self.python_policy is not None else self.max_depth
        return {
            "score": self.score.engine(info.num_actions),
            "leaf": self.leaf if info.compiled else "outside",
            "playout_policy": self.playout_policy,
            "max_depth": outside_depth if self.leaf == "outside" else self.max_depth,
            "knowledge": None if self.domain is None else self.domain.engine(),
            "solve": self.solve,
            "in_flight": self.in_flight,
            "forced_depth": self.forced_depth,
            "early_stop": self.early_stop,
            "trace": self.trace,
            "num_players": info.num_players,
            "zero_sum": info.zero_sum,
            "has_rewards": info.has_rewards,
            "discount": self.discount,
            "num_actions": info.num_actions,
            "max_nodes": self.max_nodes,
            "max_bytes": None if self.max_memory is None else int(min(self.max_memory * 2**20 / trees, 2.0**62)),
            "threads": self.engine_threads(self.evaluator, trees),
        }

    def engine_threads(self, network: Any, trees: int) -> int:
        """Threads that the engine starts for so many trees beside `network`: never more than there are CPUs."""
        return useful_threads(max(self.threads, threads_beside(network, trees * self.in_flight)))


def threads_beside(evaluator: Any, rows: int) -> int:
    """How many threads the engine has if nobody asks for more: one, unless a network on an accelerator waits for it.

    Results do not depend on it, and a network on the processor needs the cores itself.
    """
    device = getattr(evaluator, "device", None)
    if getattr(device, "type", "cpu") == "cpu":
        return 1
    # Two threads often share a core without its being told, and a thread that waits for its core holds up all others.
    return max(1, min(usable_cpus() // 2, rows // ROWS_PER_THREAD))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its name, with its settings as fields."""

    name: ClassVar[str]
    #: Whether moves have priors, and the root is evaluated before the first descent.
    has_priors: ClassVar[bool] = True
    #: Whether Dirichlet noise may be mixed into the priors of the root.
    takes_noise: ClassVar[bool] = True

    def engine(self, num_actions: int) -> dict[str, Any]:
        """What the engine reads."""
        settings = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"rule": self.name, "num_actions": num_actions, **settings}


@dataclass(frozen=True, slots=True)
class Ucb1(Rule):
    """`Q + c_param * sqrt(2 ln N / n)`."""

    name = "ucb1"
    has_priors = False
    takes_noise = False
    c_param: float


@dataclass(frozen=True, slots=True)
class Puct(Rule):
    """`Q + c_puct * P * sqrt(N) / (1 + n)`."""

    name = "puct"
    c_puct: float
    fpu: float = 0.0
    """The value of a move never tried, or with `fpu_parent` what is taken off its parent's."""
    fpu_parent: bool = False
    parent_visits: str = "node"
    """What N counts, "node" or "edges"."""
    forced_playouts: float = 0.0
    """Tried moves of the root get sqrt(this * P * N) simulations at least."""


@dataclass(frozen=True, slots=True)
class LogPuct(Rule):
    """MuZero's: c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init, and Q brought to a scale."""

    name = "muzero"
    pb_c_base: float
    pb_c_init: float
    normalize: str | None
    """ "node", "tree" or None."""


@dataclass(frozen=True, slots=True)
class Halving(Rule):
    """Gumbel search's: sequential halving at the root, visits that follow the improved policy below it."""

    name = "gumbel"
    takes_noise = False
    max_num_considered_actions: int
    gumbel_scale: float
    value_scale: float
    maxvisit_init: float
    rescale_values: bool
    use_mixed_value: bool
