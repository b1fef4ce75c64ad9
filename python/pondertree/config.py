"""The configuration of a search: the options of users, with their defaults, checks and documentation.

Presets name the parameters that they offer (`option_of`) and build a `SearchConfig`, whose data cross to the engine.
"""

from __future__ import annotations

import functools
import math
import operator
import secrets
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from enum import IntEnum
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import usable_cpus
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.validation import useful_threads

#: Validates and converts a value; an error names the option, its second argument.
Check = Callable[[Any, str], Any]

#: Below this many rows per thread, a thread costs more than it gains.
ROWS_PER_THREAD = 32


def option(default: Any, check: Check, *, optional: bool = False, engine: bool = True) -> Any:
    """Returns a dataclass field with a default and a check; with `optional`, None passes the check.

    `engine=False` marks an option that does not cross to the engine. The metadata keep the check as declared, too, for
    forms that show its bounds.
    """
    validate = (lambda value, name: None if value is None else check(value, name)) if optional else check
    return field(default=default, metadata={"check": validate, "engine": engine, "declared": check})


def option_of(part: type[Any], name: str, default: Any = MISSING) -> Any:
    """Returns a copy of field `name` of `part` for a preset, with another default if one is given."""
    declared = part.__dataclass_fields__[name]
    return field(default=declared.default if default is MISSING else default, metadata=declared.metadata)


def one_of(*values: str | None) -> Check:
    """Returns the check of an option that is one of some names."""
    texts = ["None" if value is None else f'"{value}"' for value in values]
    listed = " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
    return functools.partial(validation.one_of, values=values, listed=listed)


def bounded_int(least: int, most: int) -> Check:
    """Returns the check of a whole number from `least` to `most`."""
    return functools.partial(validation.whole_number, least=least, most=most)


def bounded_float(least: float, most: float = float("inf")) -> Check:
    """Returns the check of a finite number from `least` to `most`."""
    return functools.partial(validation.number, least=least, most=most)


def parse_tagged_number(value: Any, name: str, tag: str) -> tuple[bool, float]:
    """Returns (whether a tag is given, the number) from a number or the pair `(tag, number)`."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == tag:
        return True, validation.number(value[1], f"{name}[1]")
    if isinstance(value, (tuple, str)) or value is None:
        raise InvalidArgumentError(f'{name} must be a number or ("{tag}", number), not {validation.shown(value)}')
    return False, validation.number(value, name)


def concentration(value: Any, name: str) -> Any:
    """Checks the concentration of Dirichlet noise: of each action, or `("total", alpha)` of all together."""
    validation.positive_number(parse_tagged_number(value, name, "total")[1], name)
    return value


def discount_factor(value: Any, name: str) -> float:
    """Checks the discount per move of a game: above 0 and at most 1."""
    result = validation.number(value, name)
    if not 0.0 < result <= 1.0:
        raise InvalidArgumentError(f"{name} must be above 0 and at most 1, not {result}")
    return result


def discount_in(info: GameInfo, own: float) -> float:
    """Returns the discount of a search in a game: its `own` or, where that is 1, the one that the game declares."""
    if own != 1.0 and info.discount not in (1.0, own):
        raise InvalidArgumentError(
            f"discount is {own} in the search, but {info.discount} in {info.name}: give it to one of them"
        )
    return info.discount if own == 1.0 else own


def first_play_urgency(value: Any, name: str) -> Any:
    """Checks the value of an unvisited action: a number, or `("parent", reduction)`."""
    parse_tagged_number(value, name, "parent")
    return value


def _engine_names(part: type[Any]) -> tuple[str, ...]:
    """Returns the names of the fields of a class that cross to the engine."""
    return tuple(each.name for each in fields(part) if each.metadata.get("engine"))


def _reader_of(part: Any) -> Callable[[Any], dict[str, Any]]:
    """Returns a function that reads the engine fields of class `part` from an object that has fields of these names."""
    names = _engine_names(part)
    if not names:
        return lambda source: {}
    if len(names) == 1:
        name, read_one = names[0], operator.attrgetter(names[0])
        return lambda source: {name: read_one(source)}
    read = operator.attrgetter(*names)  # one call for all fields: short searches spend much of their time here
    return lambda source: dict(zip(names, read(source), strict=True))


_engine_reader: Callable[[Any], Callable[[Any], dict[str, Any]]] = functools.cache(_reader_of)


@dataclass(kw_only=True, repr=False, eq=False)
class SearchOptions:
    """Options that all searches share, keyword-only:

    time_limit: seconds, or a `timedelta`. Given without `num_simulations`, it alone ends the search.
    max_nodes: maximum number of positions of one tree; a full tree stops growing and keeps its result.
    max_memory: maximum MiB of all trees of one call.
    seed: random seed; equal seeds give equal trees. None draws one, reported as `result.seed`.
    in_flight: leaves of one tree evaluated in one batch, under virtual loss.
    threads: threads of the engine. Results do not depend on it.
    solve: propagate proven results (two-player zero-sum games): a proven win is played at once, a proven loss avoided.
    early_stop: stop a tree when its leading move cannot be overtaken any more.
    trace: record every simulation, for `Forest.trace`.
    """

    time_limit: float | timedelta | None = option(None, validation.seconds, optional=True, engine=False)
    max_nodes: int | None = option(None, validation.count, optional=True)
    max_memory: float | None = option(None, validation.positive_number, optional=True)
    seed: int | None = option(None, validation.whole_number, optional=True, engine=False)
    in_flight: int = option(1, bounded_int(1, 65535))
    threads: int = option(1, validation.threads)
    solve: bool = option(True, validation.flag)
    early_stop: bool = option(False, validation.flag)
    trace: bool = option(False, validation.flag)

    def __post_init__(self) -> None:
        for each in fields(self):
            if "check" in each.metadata:
                setattr(self, each.name, each.metadata["check"](getattr(self, each.name), each.name))
        #: The seed that was drawn because none was given.
        self._own_seed: int | None = None
        if self.seed is None:
            self._draw_seed()

    def _draw_seed(self) -> None:
        self.seed = self._own_seed = secrets.randbits(63)

    def snapshot(self) -> SearchOptions:
        """Returns a copy of the shared options alone, as they are now."""
        options = object.__new__(SearchOptions)
        options.__dict__.update(zip(_OPTION_NAMES, _read_options(self), strict=True))
        return options


_OPTION_NAMES = tuple(SearchOptions.__dataclass_fields__)
_read_options = operator.attrgetter(*_OPTION_NAMES)
_SHARED_NAMES = _engine_names(SearchOptions)
_read_shared = operator.attrgetter(*_SHARED_NAMES)


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """The rule that scores the moves of a node; its parameters are the fields."""

    #: The engine's name of the rule.
    name: ClassVar[str]
    #: Whether moves have priors, so that the root is evaluated before the first descent.
    has_priors: ClassVar[bool] = True
    #: Whether the engine reads `num_actions` with the parameters.
    needs_num_actions: ClassVar[bool] = False
    #: Whether Dirichlet noise may be mixed into the priors of the root.
    has_dirichlet_noise: ClassVar[bool] = True
    #: Whether Q is normalised before the exploration term is added.
    normalises_q: ClassVar[bool] = False

    @classmethod
    def of(cls, search: Any) -> Self:
        """Returns the rule with the parameters that a search has under the same names."""
        return cls(**_engine_reader(cls)(search))

    def to_data(self) -> dict[str, Any]:
        """Returns the name and the parameters as the engine reads them."""
        return {"name": self.name, **_engine_reader(type(self))(self)}

    def exploration_weight(self, total: float) -> float:
        """Returns the factor of P / (1 + n) at a node with `total` visits; NaN if the rule has none."""
        return math.nan

    def exploration(self, visits: NDArray[Any], priors: NDArray[Any], total: int) -> NDArray[np.float64]:
        """Returns the exploration terms of edges at a node with `total` visits; NaN if the rule has none."""
        return np.asarray(self.exploration_weight(total) * priors.astype(np.float64) / (1.0 + visits))


@dataclass(frozen=True, slots=True)
class Ucb1(ScoringRule):
    """`Q + c_param * sqrt(2 ln N / n)`."""

    name = "ucb1"
    has_priors = False
    has_dirichlet_noise = False
    c_param: float = option(1.0, bounded_float(0.0))
    normalize: str | None = option(None, one_of("tree", None))
    """Whether Q is mapped to [0, 1] by the lowest and highest mean value of the tree."""

    def exploration(self, visits: NDArray[Any], priors: NDArray[Any], total: int) -> NDArray[np.float64]:
        """Returns the exploration terms of edges at a node with `total` visits; infinite without visits."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.c_param * np.sqrt(2.0 * math.log(max(total, 1)) / visits))


@dataclass(frozen=True, slots=True)
class Puct(ScoringRule):
    """`Q + c_puct * P * sqrt(N) / (1 + n)`."""

    name = "puct"
    c_puct: float = option(1.0, bounded_float(0.0))
    fpu: float | tuple[str, float] = option(0.0, first_play_urgency)
    """First-play urgency: the value of an unvisited move, or `("parent", reduction)`, taken off its parent's value."""
    parent_visits: str = option("node", one_of("node", "edges"))
    """What N counts: the visits of the node, or of its edges."""
    forced_playouts: float = option(0.0, bounded_float(0.0))
    """k of forced playouts: visited moves of the root get at least sqrt(k * P * N) simulations."""
    normalize: str | None = option(None, one_of("tree", None))
    """Whether Q is mapped to [0, 1] by the lowest and highest mean value of the tree; `fpu` is on that scale then."""

    @property
    def relative_fpu(self) -> tuple[bool, float]:
        """(Whether `fpu` is taken off the parent's value, the number)."""
        return parse_tagged_number(self.fpu, "fpu", "parent")

    def to_data(self) -> dict[str, Any]:
        """Returns the name and the parameters as the engine reads them."""
        is_relative, fpu = self.relative_fpu
        # `super()` without arguments fails here: `slots=True` creates a new class.
        return {**ScoringRule.to_data(self), "fpu": fpu, "fpu_parent": is_relative}

    def exploration_weight(self, total: float) -> float:
        """Returns the factor of P / (1 + n) at a node with `total` visits."""
        return self.c_puct * math.sqrt(total if self.parent_visits == "node" else max(total - 1, 1))


@dataclass(frozen=True, slots=True)
class LogPuct(ScoringRule):
    """MuZero's PUCT: `c = ln((N + pb_c_base + 1) / pb_c_base) + pb_c_init`, with Q normalised."""

    name = "log_puct"
    normalises_q = True
    pb_c_base: float = option(19652, validation.positive_number)
    pb_c_init: float = option(1.25, bounded_float(0.0))
    normalize: str | None = option("node", one_of("node", "tree", None))

    def exploration_weight(self, total: float) -> float:
        """Returns the factor of P / (1 + n) at a node with `total` visits."""
        return (math.log((total + self.pb_c_base + 1) / self.pb_c_base) + self.pb_c_init) * math.sqrt(total)


@dataclass(frozen=True, slots=True)
class GumbelRule(ScoringRule):
    """Sequential halving at the root; below it, visits in proportion to the improved policy. Names are mctx's."""

    name = "gumbel"
    needs_num_actions = True
    has_dirichlet_noise = False
    max_num_considered_actions: int = option(16, validation.count)
    gumbel_scale: float = option(1.0, bounded_float(0.0))
    value_scale: float = option(0.1, bounded_float(0.0))
    maxvisit_init: float = option(50, bounded_float(0.0))
    rescale_values: bool = option(True, validation.flag)
    use_mixed_value: bool = option(True, validation.flag)


@dataclass(frozen=True, slots=True)
class DirichletNoise:
    """Noise that is mixed into the priors of the root on request."""

    alpha: float | tuple[str, float] = option(0.3, concentration)
    """The concentration for each move, or `("total", alpha)`, which is divided by their number."""
    epsilon: float = option(0.25, bounded_float(0.0, 1.0))
    """The weight of the noise."""

    @property
    def concentration(self) -> tuple[float, bool]:
        """(The concentration, whether it is that of all moves together)."""
        is_total, alpha = parse_tagged_number(self.alpha, "alpha", "total")
        return alpha, is_total


NO_NOISE = DirichletNoise(0.0, 0.0)


class LeafAnalysisConfig(Protocol):
    """Parameters of the engine's leaf analysis for one game, which also analyzes the root."""

    @property
    def move_categories(self) -> type[IntEnum] | None:
        """The enumeration of move categories; None if the analysis assigns none."""
        ...

    def to_data(self) -> dict[str, Any]:
        """Returns the fields as the engine reads them."""
        ...


_GAME_FIELDS = ("num_players", "zero_sum", "has_rewards", "has_chance", "num_actions")
_read_game = operator.attrgetter(*_GAME_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The complete configuration of a search in one game, as the engine receives it."""

    rule: ScoringRule
    options: SearchOptions
    leaf: str
    """The kind of leaf evaluation: "playout", "zero" and "static" in the engine; "external" by an evaluator, model or
    policy in Python."""
    evaluator: Any = None
    """The evaluator of external leaves."""
    playout_policy: str = option("random", one_of("random", "decisive"))
    """How compiled playouts choose moves."""
    python_policy: Callable[[Any], Any] | None = None
    """A playout policy in Python, which moves playouts to Python."""
    max_depth: int | None = option(None, bounded_int(0, (1 << 31) - 1), optional=True)
    """Moves after which a playout is truncated; None plays to the end."""
    minimax_depth: int = option(0, bounded_int(0, 64), engine=False)
    """Plies of the minimax guard on the chosen action; 0 is off."""
    forced_depth: int = option(0, bounded_int(0, 255))
    """Plies below the root in which only forced moves are searched."""
    chance: str = option("balanced", one_of("balanced", "sample"))
    """How outcomes of chance nodes are chosen: the greatest P / (n + 1), or sampled by P."""
    chance_width: int = option(36, bounded_int(1, 65535))
    """Outcomes of a chance node up to which the choice may be balanced; those of more are sampled."""
    discount: float = option(1.0, bounded_float(0.0, 1.0))
    """Discount per move: g = reward + discount * g. A learned model may give its own."""
    backup: str = option("mean", one_of("mean", "max"))
    """What an expanded position is worth: the mean of its visits, or its best move (one player)."""
    noise: DirichletNoise = NO_NOISE
    gumbel: Any = None
    """Gumbel numbers, [num_actions] for every tree or [trees, num_actions]; None draws them."""
    analysis: LeafAnalysisConfig | None = None
    """The leaf analysis, such as chess's evaluation, mate search and move categories."""
    _data: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """What `to_data` returned; a short search spends much of its time there."""

    def to_data(self) -> dict[str, Any]:
        """Returns the configuration as plain data for the engine."""
        data = self._data
        if data is None:
            data = self._new_data()
            object.__setattr__(self, "_data", data)
        return {**data, "rule": data["rule"].copy()}

    def _new_data(self) -> dict[str, Any]:
        data = dict(zip(_CONFIG_NAMES, _read_config(self), strict=True))
        data.update(zip(_SHARED_NAMES, _read_shared(self.options), strict=True))
        data["leaf"], data["rule"] = self.leaf, self.rule.to_data()
        data["analysis"] = None if self.analysis is None else self.analysis.to_data()
        return data

    def engine_data(self, info: GameInfo, trees: int, network: Any = None) -> dict[str, Any]:
        """Returns the data of `to_data` for a forest of `trees`, with those of the game; raises if they conflict.

        `network` is a learned model, and by default the evaluator.
        """
        if (self.minimax_depth or self.forced_depth) and not info.is_two_player_zero_sum:
            name = "minimax_depth" if self.minimax_depth else "forced_depth"
            raise InvalidArgumentError(
                f"{name} needs a zero-sum game of two players without rewards; {info.name} is not one"
            )
        if self.backup == "max" and info.num_players != 1:
            raise InvalidArgumentError(
                f'backup="max" is for games of one player, who alone maximises; {info.name} has {info.num_players}'
            )
        if self.discount == 0.0 and not info.is_learned_model:
            raise InvalidArgumentError("discount must be above 0 and at most 1, not 0.0, in the search of a game")
        data = self.to_data()
        max_memory = data.pop("max_memory")
        if self.rule.needs_num_actions:
            data["rule"]["num_actions"] = info.num_actions
        data["max_bytes"] = None if max_memory is None else int(min(max_memory * 2**20 / trees, 2.0**62))
        data["threads"] = self.engine_threads(self.evaluator if network is None else network, trees)
        if self.leaf == "external" and self.python_policy is not None:
            # Python plays the playouts, from the leaf itself.
            data["max_depth"] = 0
        if not info.compiled:
            data["leaf"] = "external"
        data.update(zip(_GAME_FIELDS, _read_game(info), strict=True))
        return data

    def engine_threads(self, network: Any, trees: int) -> int:
        """Returns the number of threads that the engine starts beside `network`: at most one per CPU."""
        rows = trees * self.options.in_flight
        return useful_threads(max(self.options.threads, threads_with_network(network, rows)))


_CONFIG_NAMES = _engine_names(SearchConfig)
_read_config = operator.attrgetter(*_CONFIG_NAMES)


def threads_with_network(network: Any, rows: int) -> int:
    """Returns the default number of engine threads: 1, or more where a network on an accelerator waits for the engine.

    Results do not depend on it; a network on the CPU needs the cores itself.
    """
    device = getattr(network, "device", None)
    if getattr(device, "type", "cpu") == "cpu":
        return 1
    # Half the CPUs: with SMT two of them share a core, and one descheduled thread holds up all others.
    return max(1, min(usable_cpus() // 2, rows // ROWS_PER_THREAD))
