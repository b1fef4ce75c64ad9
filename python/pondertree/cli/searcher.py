"""Searches that can be watched and interrupted: compiled ones and the reference behind one interface."""

from __future__ import annotations

import math
import secrets
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self

from pondertree.cli.position import Position
from pondertree.cli.report import Report, TreeNode, list_moves
from pondertree.errors import GameContractError
from pondertree.presets import UCT
from pondertree.reference import uct as reference
from pondertree.search.base import Search
from pondertree.search.limits import UNLIMITED

#: Seconds between two looks at a search.
SLICE = 0.1
#: Seconds in which at least one simulation must end.
LONGEST_SLICE = 10.0
#: How a shell reports a program that was interrupted.
INTERRUPTED = 130


class Thinker(ABC):
    """A search that goes on from where it was."""

    algorithm: str
    #: The description of the search.
    description: str
    #: Whether a number of simulations is planned as a whole, so that it must not be run in slices.
    has_schedule = False

    def __init__(self, position: Position, seed: int | None) -> None:
        self.position = position
        self.seed = secrets.randbits(32) if seed is None else seed
        self.elapsed = 0.0

    @property
    @abstractmethod
    def simulations(self) -> int:
        """Simulations so far."""

    @property
    @abstractmethod
    def is_solved(self) -> bool:
        """Whether nothing is left to find out."""

    @abstractmethod
    def grow(self, most: int, seconds: float | None, is_over: Callable[[], bool] | None = None) -> None:
        """At most so many more simulations, for about so long; `is_over()` is asked now and then to end it sooner."""

    @abstractmethod
    def report(self, *, glance: bool = False) -> Report:
        """What has been found so far. A glance leaves out what must be read off the tree: proofs and lines of moves."""

    @abstractmethod
    def follow(self, action: int) -> None:
        """Plays a move; what is known below it is kept, where the search can keep it."""

    @abstractmethod
    def restart(self, position: Position) -> None:
        """Goes on from another position, with nothing known."""

    def _report(
        self, result: Any, action: int, values: Sequence[float], root: TreeNode | None, pv: Sequence[str] = ()
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


class Engine(Thinker):
    """A compiled search, UCT where nothing else is given; its tree is kept from move to move.

    `build(seed)` makes the search.
    """

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
        self.has_schedule = search.needs_count
        self.tree = search.tree(position.state)
        self._look()

    def _look(self) -> Any:
        """The result so far. It is not kept."""
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
        def stop_when_over(done: int, wanted: int) -> None:
            if is_over is not None and is_over():
                self.tree.stop()

        begun = time.perf_counter()
        try:
            self.tree.simulate(most, seconds=seconds, progress=None if is_over is None else stop_when_over)
        finally:
            self.elapsed += time.perf_counter() - begun
            self._look()

    def report(self, *, glance: bool = False) -> Report:
        result = self._look()
        # A tree whose nodes someone holds is copied before it grows, so a glance holds none.
        root = None if glance else result.root
        if result.proven is None and not result.visits.any():
            # Nothing to answer yet: the first move stands for all.
            return self._report(result, int(self.position.state.legal_actions()[0]), result.values, root)
        return self._report(result, result.action, result.values, root, result.pv)

    def follow(self, action: int) -> None:
        self.position = self.position.play(action)
        if not self.position.state.is_terminal:
            self.tree.advance(action)
            self._look()

    def restart(self, position: Position) -> None:
        self.position = position
        self.tree.reset(position.state)
        self._look()


class Reference(Thinker):
    """The reference implementation of UCT: the same search, number for number, and some hundred times slower."""

    algorithm = "reference"

    def __init__(
        self,
        position: Position,
        seed: int | None,
        max_depth: int | None = None,
        description: str = "UCT, reference in Python",
    ) -> None:
        super().__init__(position, seed)
        self.description = description
        self._search = reference.MCTS(seed=self.seed, max_depth=max_depth)
        self._calls = 0
        #: What the simulations brought each player, where a value alone does not say it.
        self._sums: list[float] = []
        self.restart(position)

    @property
    def simulations(self) -> int:
        return self._tree.simulations

    @property
    def is_solved(self) -> bool:
        return self._tree.root.proven is not None

    def grow(self, most: int, seconds: float | None, is_over: Callable[[], bool] | None = None) -> None:
        begun = time.perf_counter()
        for _ in range(most):
            self._search.simulate(self._tree, 1)
            self._add_up()
            if self.is_solved or (seconds is not None and time.perf_counter() - begun >= seconds):
                break
        self.elapsed += time.perf_counter() - begun

    def _add_up(self) -> None:
        """Adds what the last simulation brought each player, where its trace is kept."""
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

    def report(self, *, glance: bool = False) -> Report:
        result = self._search.result(self._tree)
        if self.position.info.is_plain:
            values = [result.value, -result.value][:: 1 if self.position.state.to_play == 0 else -1]
        else:
            values = [total / max(result.simulations, 1) for total in self._sums]
        return self._report(result, result.action, values, result.root)

    def follow(self, action: int) -> None:
        after = self.position.play(action)
        if after.state.is_terminal:
            self.position = after
        else:
            self.restart(after)

    def restart(self, position: Position) -> None:
        self.position = position
        # Two players of a zero-sum game have one value; others need what each simulation brought them.
        self._tree = self._search.tree(position.state, self._calls, trace=not position.info.is_plain)
        self._sums = [0.0] * position.info.num_players
        self._calls += 1


class Interrupts:
    """While entered, Ctrl-C is noted in `came` instead of breaking off; a second one breaks off as ever."""

    def __init__(self) -> None:
        self.came = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)


def think(
    thinker: Thinker, simulations: int | None, seconds: float | None, watch: Callable[[float], object] | None = None
) -> bool:
    """Searches to the limits; whether it came that far. `watch(fraction)` is called some ten times a second.

    Raises a GameContractError where not one simulation ends within the time, or within `LONGEST_SLICE`.
    """
    first, begun = thinker.simulations, time.perf_counter()
    slice_seconds = math.inf if thinker.has_schedule else SLICE
    with Interrupts() as interrupts:
        while not interrupts.came:
            done, passed = thinker.simulations - first, time.perf_counter() - begun
            if watch is not None:
                watch(done / simulations if simulations else passed / (seconds or 1.0))
            left = UNLIMITED if simulations is None else simulations - done
            time_left = min(slice_seconds, math.inf if seconds is None else seconds - passed)
            if left <= 0 or time_left <= 0 or thinker.is_solved:
                break
            if thinker.has_schedule:
                thinker.grow(left, None if time_left == math.inf else time_left, lambda: interrupts.came)
            else:
                thinker.grow(left, time_left)
            if thinker.simulations - first == done:
                if done == 0 and LONGEST_SLICE <= time_left < math.inf:
                    break
                # A playout longer than its slice is discarded: the next slice must be long enough for one.
                slice_seconds *= 2
    if not interrupts.came and not has_answer(thinker):
        raise GameContractError(
            f"not one simulation of {thinker.position.title} ended within {time.perf_counter() - begun:.3g} s: "
            "give more time, unless its games never end"
        )
    return not interrupts.came


def has_answer(thinker: Thinker) -> bool:
    """Whether anything is known of the position."""
    is_known = thinker.simulations > 0 or thinker.is_solved
    return is_known or any(move.visits for move in thinker.report(glance=True).moves)
