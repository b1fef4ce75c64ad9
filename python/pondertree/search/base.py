"""The base class of all searches: `run`, `search`, `get_policy`, `tree`, `forest`."""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import SearchConfig, SearchOptions
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators.awaiting import in_worker
from pondertree.evaluators.protocol import check_player_game
from pondertree.game import GameInfo, describe, game_is_over, is_over
from pondertree.games import name_of_info
from pondertree.games.chance import refuse_chance
from pondertree.games.chess_interop import adapt_state, to_state, to_states
from pondertree.result import SearchResult
from pondertree.search.arguments import UNLIMITED, Limits, Progress, read_root_actions
from pondertree.search.batch_world import BatchWorld
from pondertree.search.compiled_world import CompiledWorld
from pondertree.search.forest import Forest
from pondertree.search.observation_root import ObservationBatch, ObservationRoot
from pondertree.search.preset import DefaultSimulations
from pondertree.search.python_world import PythonWorld
from pondertree.search.tree import Tree
from pondertree.search.world import World


class Search(SearchOptions, ABC):
    """A search and its options. It holds no tree: each call of `run` creates a new tree."""

    #: The default `temperature` of `search` and `get_policy`.
    default_temperature: ClassVar[float]
    #: The default `add_noise` of `search` and `get_policy`.
    default_noise: ClassVar[bool | None] = False
    #: Whether the rule needs the number of simulations in advance (sequential halving).
    requires_simulation_budget: ClassVar[bool] = False

    num_simulations: int | Sequence[int] | None

    def __post_init__(self) -> None:
        is_default = self.num_simulations is None or isinstance(self.num_simulations, DefaultSimulations)
        super().__post_init__()
        if is_default:
            # Keeps the `DefaultSimulations` marker, so that `dataclasses.replace` does not treat it as given.
            default: Any = self.__dataclass_fields__["num_simulations"].default
            self.num_simulations = default if self.time_limit is None or self.requires_simulation_budget else None
        self._calls = 0

    def __getstate__(self) -> dict[str, Any]:
        """Returns the attributes for pickle and copy, without a drawn seed: every copy draws a new one."""
        state = self.__dict__.copy()
        state.pop("_last_config", None)
        if state["seed"] == state["_own_seed"]:
            state.update(seed=None, _own_seed=None, _calls=0)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.seed is None:
            self._draw_seed()

    @abstractmethod
    def config(self, info: GameInfo) -> SearchConfig:
        """Returns the configuration of this search for a game."""

    def _reused_config(self, info: GameInfo, create: Callable[[GameInfo], SearchConfig]) -> SearchConfig:
        """Returns what `create` returned last if game and options are the same objects, else a new configuration."""
        options = _reader_of_options(type(self))(self)
        last: tuple[GameInfo, tuple[Any, ...], SearchConfig] | None = self.__dict__.get("_last_config")
        if last is not None and last[0] is info and all(map(operator.is_, options, last[1])):
            return last[2]
        config = create(info)
        self._last_config = info, options, config
        return config

    @property
    def drawn_seed(self) -> int:
        """The seed, given or drawn."""
        assert self.seed is not None, "drawn by __post_init__"
        return self.seed

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return None if self.time_limit is None else validation.seconds(self.time_limit, "time_limit")

    @property
    def limit_text(self) -> str:
        """The limit as shown in `repr`."""
        if self.time_limit is None:
            return f"num_simulations={self.num_simulations}"
        return f"time_limit={self.time_limit}"

    def describe(self, state: Any) -> GameInfo:
        """Returns the game that a state belongs to."""
        return describe(state)

    def world(self, info: GameInfo, config: SearchConfig) -> World:
        """Returns a new world, without trees."""
        if info.compiled:
            return CompiledWorld(info, config)
        return PythonWorld(info, config) if info.batch_game is None else BatchWorld(info, config)

    @property
    def limits(self) -> Limits:
        """The default limits of `Forest.simulate`."""
        return Limits(self.num_simulations, self.seconds, self.requires_simulation_budget)

    @property
    def calls(self) -> int:
        """The number of calls so far, which is the number of the next one."""
        return self._calls

    def next_call(self) -> tuple[int, int]:
        """Returns (seed, call number) for a new call's random keys."""
        self._calls += 1
        return self.drawn_seed, self._calls - 1

    def with_seed(self, seed: int, calls: int = 0) -> Self:
        """Returns a copy with another seed, whose next call has the number `calls`."""
        other = copy.copy(self)
        other.seed = seed
        other._calls = calls
        return other

    def _plant(self, states: Sequence[Any], seeds: Any = None, root_actions: Any = None) -> Forest:
        """Plants a tree for each state."""
        if len(states) == 0:
            raise InvalidArgumentError("states is empty: give at least one state")
        info = check_states(states, self.describe)
        given = None if seeds is None else validation.per_row(seeds, len(states), "seeds", validation.whole_number)
        config = self.config(info)
        if config.evaluator is not None and info.compiled:
            check_player_game(config.evaluator, info)
        world = self.world(info, config)
        roots = world.create_engine(states)
        searched = read_root_actions(root_actions, states, world.legal_actions)
        key = self.next_call()
        world.plant(roots, key if given is None else [(seed, 0, 0) for seed in given], searched)
        if config.gumbel is not None:
            for index in range(len(states)):
                world.set_gumbel(index)
        seeds = [key[0]] * len(states) if given is None else given
        return Forest(config, world, states, seeds, searched, self.limits, self.next_call)

    @overload
    def run(
        self,
        state: list[Any] | tuple[Any, ...],
        *,
        temperature: float | Sequence[float] | None = None,
        add_noise: bool | Sequence[bool] | None = None,
        seeds: int | Sequence[int] | None = None,
        root_actions: Collection[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[SearchResult]: ...

    @overload
    def run(
        self,
        state: Any,
        *,
        temperature: float | None = None,
        add_noise: bool | None = None,
        seeds: int | None = None,
        root_actions: Collection[Any] | None = None,
        progress: Progress | None = None,
    ) -> SearchResult: ...

    def run(
        self,
        state: Any,
        *,
        temperature: Any = None,
        add_noise: Any = None,
        seeds: Any = None,
        root_actions: Any = None,
        progress: Progress | None = None,
    ) -> SearchResult | list[SearchResult]:
        """Searches a state (or a python-chess board), or a list of them in one batch.

        `temperature=None` is greedy. `seeds` fixes the random numbers of each row, independently of its index.
        `root_actions` restricts the moves searched at the root, by one list for all states or one per state: numbers,
        move text or `chess.Move`; `value` and `proven` are then those of the best of them. `progress(done, total)` is
        called after each batch or time slice. After Ctrl-C, `result` of the `KeyboardInterrupt` is the partial result,
        or a list of them.
        """
        validation.no_iterator(state, "state", "states")
        many = isinstance(state, (list, tuple))
        states = to_states(state) if many else [to_state(state)]
        if many and not states:
            return []
        results: SearchResult | list[SearchResult] = self._run(
            states, many, temperature, add_noise, seeds, root_actions, progress
        )
        return results

    async def arun(self, state: Any = None, **arguments: Any) -> Any:
        """Returns what `run` returns for the same arguments, while the event loop of asyncio continues.

        The search runs in a worker thread, where `progress` and an evaluator that is no coroutine function are called,
        too. Coroutine functions are awaited in the event loop, one coroutine per batch. Searches that are awaited at
        once are numbered in the order in which they start. Cancelling ends the search after the batch under way, and
        cancels its coroutine.
        """
        search = self.with_seed(*self.next_call())
        return await in_worker(lambda: search.run(state, **arguments))

    def _run(
        self,
        states: list[Any],
        many: bool,
        temperature: Any,
        add_noise: Any,
        seeds: Any = None,
        root_actions: Any = None,
        progress: Progress | None = None,
    ) -> Any:
        """Returns the list of all results if `many`, else the only result."""
        # All arguments are checked before the first simulation.
        per_row_temperature(temperature, len(states))
        forest = self._plant(states, seeds, root_actions)
        counts = UNLIMITED if self.num_simulations is None else self.num_simulations
        validation.per_row(counts, len(states), "num_simulations")

        def results() -> SearchResult | list[SearchResult]:
            rows = forest.results(temperature=temperature)
            return rows if many else rows[0]

        try:
            forest.simulate(counts, seconds=forest.limits.seconds, add_noise=add_noise, progress=progress)
        except KeyboardInterrupt as interrupt:
            # Not a subclass: Python ends a process by the signal only for a plain KeyboardInterrupt.
            with contextlib.suppress(Exception):
                interrupt.result = results()  # type: ignore[attr-defined]
                interrupt.add_note("`result` of this exception holds the partial result.")
            raise
        return results()

    def search(self, state: Any, temperature: float | None = None, add_noise: bool | None = None) -> Any:
        """Returns the action to play: an int, or a `chess.Move` for a `chess.Board` or a `ChessGame`."""
        return self.get_policy(state, temperature, add_noise)[0]

    def get_policy(
        self, state: Any, temperature: float | None = None, add_noise: bool | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Returns the action to play and the share of visits of each action, independently of the temperature.

        The action is an int, or a `chess.Move` for a `chess.Board` or a `ChessGame`.
        """
        tau = self.default_temperature if temperature is None else temperature
        state, answer = adapt_state(state)
        noise = self.default_noise if add_noise is None else add_noise
        result: SearchResult = self._run([state], False, tau, noise)
        return answer(result.action), result.policy.copy()

    def tree(self, state: Any, *, seeds: int | None = None, root_actions: Collection[Any] | None = None) -> Tree:
        """Plants a tree that `Tree.simulate` grows and `Tree.advance` reuses from move to move.

        With `root_actions` only these moves are searched at the root, until the tree is advanced or reset.
        """
        return Tree(self._plant([to_state(state)], seeds, root_actions), self)

    def forest(
        self,
        states: Sequence[Any],
        *,
        seeds: int | Sequence[int] | None = None,
        root_actions: Collection[Any] | None = None,
    ) -> Forest:
        """Plants many trees that are searched in shared batches; `root_actions` as in `run`."""
        if not validation.is_listed(states):
            raise InvalidArgumentError(
                f"states must be a list of states, not a {type(states).__name__}; for one state use tree()"
            )
        return self._plant(to_states(states), seeds, root_actions)


@functools.cache
def _reader_of_options(kind: type[Search]) -> operator.attrgetter[tuple[Any, ...]]:
    """Returns a function that reads all options of a search of this class."""
    return operator.attrgetter(*kind.__dataclass_fields__)


def per_row_temperature(value: Any, rows: int) -> list[float | None]:
    """Returns a temperature for each row; None stays None."""
    return validation.per_row(value, rows, "temperature", validation.optional_temperature)


def check_states(states: Sequence[Any], describe: Callable[[Any], GameInfo]) -> GameInfo:
    """Returns the game of all states; raises if they are of several games, or if one is terminal."""
    info = describe(states[0])
    if isinstance(states, ObservationBatch):
        return info
    kinds = set(map(type, states))
    if kinds == {ObservationRoot}:
        return info
    is_one_game = len(states) == 1 or (info.compiled and len(kinds) == 1)
    if not is_one_game or (len(states) > 1 and len(set(map(operator.attrgetter("num_actions"), states))) > 1):
        for row, state in enumerate(states[1:], start=1):
            other = describe(state)
            if other is not info and other != info:
                raise InvalidArgumentError(
                    f"states[{row}] is a state of {name_of_info(other)}, states[0] one of {name_of_info(info)}: "
                    f"all states of a forest must be of one game ({_difference(info, other)})"
                )
    over = operator.attrgetter("is_terminal") if info.compiled else is_over
    # One call per state: `is_terminal` of a game that violates its contract may change between calls.
    finished = list(map(over, states))
    if any(finished):
        raise game_is_over(f"states[{finished.index(True)}]" if len(states) > 1 else "this state")
    if info.has_chance:
        for row, state in enumerate(states):
            refuse_chance(state, f"states[{row}]" if len(states) > 1 else "this state")
    return info


def _difference(one: GameInfo, other: GameInfo) -> str:
    """Returns the fields in which two games differ, with both values."""
    fields = ("name", "num_actions", "num_players", "zero_sum", "has_rewards", "discount")
    differing = [name for name in fields if getattr(one, name) != getattr(other, name)]
    return ", ".join(f"{name} {getattr(one, name)} and {getattr(other, name)}" for name in differing)
