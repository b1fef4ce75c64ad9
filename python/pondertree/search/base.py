"""What every search offers, whatever its parts: `run`, `search`, `get_policy`, `tree`, `forest`."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import Settings
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo, describe
from pondertree.games.chess_interop import adapt_state, to_state, to_states
from pondertree.result import SearchResult
from pondertree.search.compiled_world import CompiledWorld, PythonWorld
from pondertree.search.forest import UNLIMITED, Forest, Progress, Tree
from pondertree.search.options import DefaultSimulations, SearchOptions
from pondertree.search.world import World


class Search(SearchOptions, ABC):
    """A search with its options. It holds no tree: each call of `run` plants its own."""

    #: The temperature of `search` and `get_policy` where none is given.
    default_temperature: ClassVar[float]
    #: Whether these two add noise where nothing is said.
    default_noise: ClassVar[bool | None] = False
    #: Whether the search must know its number of simulations, so that a limit of time alone does not lift it.
    needs_count: ClassVar[bool] = False

    num_simulations: int | Sequence[int] | None

    def __post_init__(self) -> None:
        is_default = self.num_simulations is None or isinstance(self.num_simulations, DefaultSimulations)
        super().__post_init__()
        if is_default:
            # Still marked as the default, for `dataclasses.replace`.
            default: Any = self.__dataclass_fields__["num_simulations"].default
            self.num_simulations = default if self.time_limit is None or self.needs_count else None
        self._calls = 0

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy. A seed that was drawn stays behind: processes that get one search draw their own."""
        state = self.__dict__.copy()
        if state["seed"] == state["_own_seed"]:
            state.update(seed=None, _own_seed=None, _calls=0)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.seed is None:
            self._draw_seed()

    def with_seed(self, seed: int) -> Self:
        """Returns a copy with another seed, whose calls are numbered from 0."""
        search = copy.copy(self)
        search.seed, search._calls = seed, 0
        return search

    @abstractmethod
    def settings(self, info: GameInfo) -> Settings:
        """The parts of this search for a game."""

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
    def limit(self) -> str:
        """What ends a search, as it was given."""
        if self.time_limit is None:
            return f"num_simulations={self.num_simulations}"
        return f"time_limit={self.time_limit}"

    def describe(self, state: Any) -> GameInfo:
        """What game a state belongs to."""
        return describe(state)

    def world(self, info: GameInfo, settings: Settings, states: Sequence[Any]) -> World:
        """Where the positions of a forest of `states` live."""
        if info.compiled:
            return CompiledWorld(info, settings, len(states))
        return PythonWorld(info, settings, len(states))

    def shared(self) -> dict[str, Any]:
        """The settings that all searches share."""
        return {
            "solve": self.solve,
            "in_flight": self.in_flight,
            "threads": self.threads,
            "early_stop": self.early_stop,
            "trace": self.trace,
            "max_nodes": self.max_nodes,
            "max_memory": self.max_memory,
        }

    def next_call(self) -> int:
        """Calls are numbered, so that no two searches of one object draw the same random numbers."""
        self._calls += 1
        return self._calls - 1

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

        `temperature=None` is greedy. `seeds` fixes the random numbers of each row, which then does not depend on its
        place in the batch. `root_actions` are the only moves searched at the root, one list for all states or one per
        state: numbers, move text or `chess.Move`; `value` and `proven` are then those of the best of them.
        `progress(done, wanted)` is called now and then. After Ctrl-C, `result` of the `KeyboardInterrupt` is what was
        found until then: a result, or a list of them.
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
        """The results of all states if they are `many`, or of the only one. An interrupt offers what was found."""
        # What is wrong is said before anything is searched; one number for all rows is then handed on as one.
        per_row_temperature(temperature, len(states))
        forest = Forest(self, states, seeds, root_actions)
        counts = UNLIMITED if self.num_simulations is None else self.num_simulations
        validation.per_row(counts, len(states), "num_simulations")

        def found() -> SearchResult | list[SearchResult]:
            results = forest.results(temperature=temperature)
            return results if many else results[0]

        try:
            forest.simulate(counts, seconds=self.seconds, add_noise=add_noise, progress=progress)
        except KeyboardInterrupt as interrupt:
            # No class of its own: Python ends a process by the signal for a plain KeyboardInterrupt alone.
            with contextlib.suppress(Exception):
                interrupt.result = found()  # type: ignore[attr-defined]
                interrupt.add_note("`result` of this exception is what the search had found.")
            raise
        return found()

    def search(self, state: Any, temperature: float | None = None, add_noise: bool | None = None) -> Any:
        """The action to play: an int, or a `chess.Move` for a `chess.Board` or a `ChessGame`."""
        return self.get_policy(state, temperature, add_noise)[0]

    def get_policy(
        self, state: Any, temperature: float | None = None, add_noise: bool | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The action to play and the share of visits of each action, whatever the temperature.

        The action is an int, or a `chess.Move` for a `chess.Board` or a `ChessGame`.
        """
        tau = self.default_temperature if temperature is None else temperature
        state, answer = adapt_state(state)
        noise = self.default_noise if add_noise is None else add_noise
        result: SearchResult = self._run([state], False, tau, noise)
        return answer(result.action), result.policy.copy()

    def tree(self, state: Any, *, seeds: int | None = None, root_actions: Collection[Any] | None = None) -> Tree:
        """A tree to be grown step by step and kept from move to move.

        With `root_actions` only these moves are searched at the root, until the tree is advanced or reset.
        """
        return Tree(self, to_state(state), seeds, root_actions)

    def forest(
        self,
        states: Sequence[Any],
        *,
        seeds: int | Sequence[int] | None = None,
        root_actions: Collection[Any] | None = None,
    ) -> Forest:
        """Many trees, grown together; `root_actions` as in `tree`, one list for all states or one per state."""
        if not validation.is_listed(states):
            raise InvalidArgumentError(
                f"states must be a list of states, not a {type(states).__name__}; for one state use tree()"
            )
        return Forest(self, to_states(states), seeds, root_actions)


def per_row_temperature(value: Any, rows: int) -> list[float | None]:
    """A temperature for each row; None stays None."""
    return validation.per_row(value, rows, "temperature", validation.optional_temperature)
