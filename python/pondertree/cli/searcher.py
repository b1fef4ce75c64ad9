"""Incremental, interruptible searches: the engine and the reference implementation behind one interface."""

from __future__ import annotations

import math
import secrets
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, Self

from pondertree.cli.position import Position
from pondertree.cli.search_report import Report, list_moves
from pondertree.drawing import SearchedNode
from pondertree.errors import GameContractError
from pondertree.game import CHANCE
from pondertree.presets import UCT
from pondertree.reference import uct as reference
from pondertree.search.arguments import UNLIMITED
from pondertree.search.base import Search

#: Seconds per search slice.
SLICE = 0.1
#: Seconds within which at least one simulation must finish.
MAX_SLICE = 10.0
#: Exit status after SIGINT, as shells report it.
EXIT_INTERRUPTED = 130


class Searcher(ABC):
    """A search that is run in increments."""

    algorithm: str
    #: The description of the search.
    description: str
    #: Whether simulations are scheduled as a whole and cannot be run in slices.
    has_schedule = False

    def __init__(self, position: Position, seed: int | None) -> None:
        self.position = position
        self.seed = secrets.randbits(32) if seed is None else seed
        self.elapsed = 0.0

    @property
    @abstractmethod
    def simulations(self) -> int:
        """Number of simulations so far."""

    @property
    @abstractmethod
    def is_solved(self) -> bool:
        """Whether the root is proven."""

    @abstractmethod
    def grow(self, most: int, seconds: float | None, is_over: Callable[[], bool] | None = None) -> None:
        """Runs up to `most` simulations within about `seconds`; stops early once `is_over()` holds."""

    @abstractmethod
    def report(self, *, is_preview: bool = False) -> Report:
        """Returns the report; a preview omits proofs and principal variations, which need the tree."""

    @abstractmethod
    def follow(self, action: int) -> None:
        """Plays a move, with tree reuse if supported."""

    @abstractmethod
    def restart(self, position: Position) -> None:
        """Restarts at another position without reuse."""

    def _report(
        self, result: Any, action: int, values: Sequence[float], root: SearchedNode | None, pv: Sequence[str] = ()
    ) -> Report:
        moves = list_moves(self.position.state, action, result.visits, result.q, root, pv)
        return Report(
            position=self.position,
            algorithm=self.algorithm,
            description=self.description,
            seed=self.seed,
            simulations=result.simulations,
            elapsed=self.elapsed,
            value=float(result.value),
            values=tuple(map(float, values)),
            proven=result.proven,
            plies=None if root is None or result.proven is None else root.distance,
            moves=moves,
        )


class EngineSearcher(Searcher):
    """A compiled search with tree reuse; `build(seed)` creates it (default: UCT)."""

    def __init__(
        self,
        position: Position,
        seed: int | None,
        build: Callable[[int], Search] | None = None,
        algorithm: str = "uct",
        description: str = "UCT, compiled",
    ) -> None:
        super().__init__(position, seed)
        self.algorithm, self.description = algorithm, description
        search = UCT(seed=self.seed) if build is None else build(self.seed)
        self.has_schedule = search.requires_simulation_budget
        self.tree = search.tree(position.state)
        self._current_result()

    def _current_result(self) -> Any:
        """Returns the current result and caches its counters; the result itself is not retained."""
        result = self.tree.result()
        self._simulations, self._proven = result.simulations, result.proven
        return result

    @property
    def simulations(self) -> int:
        return self._simulations

    @property
    def is_solved(self) -> bool:
        return self._proven is not None

    def grow(self, most: int, seconds: float | None, is_over: Callable[[], bool] | None = None) -> None:
        def stop_when_over(done: int, total: int) -> None:
            if is_over is not None and is_over():
                self.tree.stop()

        started = time.perf_counter()
        try:
            self.tree.simulate(most, seconds=seconds, progress=None if is_over is None else stop_when_over)
        finally:
            self.elapsed += time.perf_counter() - started
            self._current_result()

    def report(self, *, is_preview: bool = False) -> Report:
        result = self._current_result()
        # A tree with live nodes is copied before it grows: a preview keeps none.
        root = None if is_preview else result.root
        if result.proven is None and not result.visits.any():
            # No result yet: any legal move.
            return self._report(result, int(self.position.state.legal_actions()[0]), result.values, root)
        return self._report(result, result.action, result.values, root, result.pv)

    def follow(self, action: int) -> None:
        self.position = self.position.play(action)
        if not self.position.state.is_terminal:
            self.tree.advance(action)
            # At a chance node the tree waits for the outcome.
            if self.position.state.to_play != CHANCE:
                self._current_result()

    def restart(self, position: Position) -> None:
        self.position = position
        self.tree.reset(position.state)
        self._current_result()


class ReferenceSearcher(Searcher):
    """The reference implementation of UCT: identical results, some hundred times slower."""

    algorithm = "reference"

    def __init__(
        self,
        position: Position,
        seed: int | None,
        max_depth: int | None = None,
        description: str = "UCT, reference in Python",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(position, seed)
        self.description = description
        self._search = reference.MCTS(seed=self.seed, max_depth=max_depth, **(options or {}))
        self._calls = 0
        #: Sums of returns per player, in games where one value does not determine the others.
        self._sums: list[float] = []
        self.restart(position)

    @property
    def simulations(self) -> int:
        return self._tree.simulations

    @property
    def is_solved(self) -> bool:
        return self._tree.root.proven is not None

    def grow(self, most: int, seconds: float | None, is_over: Callable[[], bool] | None = None) -> None:
        started = time.perf_counter()
        for _ in range(most):
            self._search.simulate(self._tree, 1)
            self._sum_returns()
            if self.is_solved or (seconds is not None and time.perf_counter() - started >= seconds):
                break
        self.elapsed += time.perf_counter() - started

    def _sum_returns(self) -> None:
        """Adds the returns of the last simulation per player, if it is traced."""
        for row in self._tree.trace or ():
            state = self._tree.root.state
            totals = list(row["values"])
            for action in row["path"]:
                state = state.play(action)
                rewards = reference.rewards_of(state) or [0.0] * len(totals)
                totals = [total + reward for total, reward in zip(totals, rewards, strict=True)]
            self._sums = [sum(pair) for pair in zip(self._sums, totals, strict=True)]
        if self._tree.trace is not None:
            self._tree.trace.clear()

    def report(self, *, is_preview: bool = False) -> Report:
        result = self._search.result(self._tree)
        if self.position.info.is_two_player_zero_sum:
            values = [result.value, -result.value][:: 1 if self.position.state.to_play == 0 else -1]
        else:
            values = [total / max(result.simulations, 1) for total in self._sums]
        return self._report(result, result.action, values, result.root)

    def follow(self, action: int) -> None:
        after = self.position.play(action)
        if after.state.is_terminal or after.state.to_play == CHANCE:
            self.position = after
        else:
            self.restart(after)

    def restart(self, position: Position) -> None:
        self.position = position
        # Two-player zero-sum games have one value; other games sum up the returns of every simulation.
        self._tree = self._search.tree(position.state, self._calls, trace=not position.info.is_two_player_zero_sum)
        self._sums = [0.0] * position.info.num_players
        self._calls += 1


class Interrupts:
    """While entered, the first Ctrl-C sets `was_interrupted`; the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.was_interrupted = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.was_interrupted:
            raise KeyboardInterrupt
        self.was_interrupted = True

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)


def run_search(
    searcher: Searcher, simulations: int | None, seconds: float | None, watch: Callable[[float], object] | None = None
) -> bool:
    """Searches up to the limits; returns False if interrupted. `watch(fraction)` is called about ten times a second.

    Raises a GameContractError if no simulation finishes within the time limit, or within `MAX_SLICE`.
    """
    first, started = searcher.simulations, time.perf_counter()
    slice_seconds = math.inf if searcher.has_schedule else SLICE
    with Interrupts() as interrupts:
        while not interrupts.was_interrupted:
            done, passed = searcher.simulations - first, time.perf_counter() - started
            if watch is not None:
                watch(done / simulations if simulations else passed / (seconds or 1.0))
            left = UNLIMITED if simulations is None else simulations - done
            time_left = min(slice_seconds, math.inf if seconds is None else seconds - passed)
            if left <= 0 or time_left <= 0 or searcher.is_solved:
                break
            if searcher.has_schedule:
                searcher.grow(left, None if time_left == math.inf else time_left, lambda: interrupts.was_interrupted)
            else:
                searcher.grow(left, time_left)
            if searcher.simulations - first == done:
                if done == 0 and MAX_SLICE <= time_left < math.inf:
                    break
                # A playout that exceeds its slice is discarded: the next slice is longer.
                slice_seconds *= 2
    if not interrupts.was_interrupted and not has_result(searcher):
        raise GameContractError(
            f"not one simulation of {searcher.position.title} ended within {time.perf_counter() - started:.3g} s: "
            "give more time, unless its games never end"
        )
    return not interrupts.was_interrupted


def has_result(searcher: Searcher) -> bool:
    """Whether there is a result to report."""
    is_known = searcher.simulations > 0 or searcher.is_solved
    return is_known or any(move.visits for move in searcher.report(is_preview=True).moves)
