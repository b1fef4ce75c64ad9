"""Searches that can be watched and interrupted: the engine and its twin behind one interface."""

from __future__ import annotations

import secrets
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from pondertree.cli.position import Position
from pondertree.cli.report import Report, list_moves
from pondertree.forest import UNLIMITED
from pondertree.game import describe
from pondertree.presets import UCT, AlphaZero, MuZero
from pondertree.reference import uct as reference

#: Seconds between two looks at a search.
SLICE = 0.1
#: How a shell reports a program that was interrupted.
INTERRUPTED = 130


class Thinker(ABC):
    """A search that goes on from where it was."""

    algorithm: str

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
    def grow(self, most: int, seconds: float) -> None:
        """At most so many more simulations, for about so long."""

    @abstractmethod
    def report(self, *, glance: bool = False) -> Report:
        """What has been found so far. A glance leaves out what must be read off the tree: proofs and lines of moves."""


class Engine(Thinker):
    """The compiled UCT, or AlphaZero or MuZero with a trained player; its tree is kept from move to move."""

    algorithm = "uct"

    def __init__(
        self,
        position: Position,
        seed: int | None,
        threads: int = 1,
        seconds: float | None = None,
        player: str | None = None,
    ) -> None:
        super().__init__(position, seed)
        if player is None:
            self.tree = UCT(time_limit=seconds, seed=self.seed, threads=threads).tree(position.state)
        else:
            from pondertree.learn.load import load_for_one_tree
            from pondertree.learn.own_game import check_own_game

            network = load_for_one_tree(player)
            check_own_game(network, describe(position.state))
            is_model = hasattr(network, "initial_inference")
            self.algorithm = "muzero" if is_model else "alphazero"
            search: Any = MuZero if is_model else AlphaZero
            self.tree = search(network, time_limit=seconds, seed=self.seed, threads=threads).tree(position.state)
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

    def grow(self, most: int, seconds: float) -> None:
        begun = time.perf_counter()
        try:
            self.tree.simulate(most, seconds=seconds)
        finally:
            self.elapsed += time.perf_counter() - begun
            self._look()

    def report(self, *, glance: bool = False) -> Report:
        result = self._look()
        # A tree whose nodes someone holds is copied before it grows, so a glance holds none.
        root = None if glance else result.root
        moves = list_moves(self.position.state, result.action, result.visits, result.q, root, result.pv)
        plies = None if root is None else root.distance
        done = result.simulations
        return Report(
            self.position, self.algorithm, self.seed, done, self.elapsed, result.value, result.proven, plies, moves
        )

    def follow(self, action: int) -> None:
        """Plays a move; what is known below it is kept."""
        self.position = self.position.play(action)
        if not self.position.state.is_terminal:
            self.tree.advance(action)
            self._look()

    def restart(self, position: Position) -> None:
        """Goes on from another position, with nothing known."""
        self.position = position
        self.tree.reset(position.state)
        self._look()


class Reference(Thinker):
    """The twin in plain Python: the same search, number for number, and some hundred times slower."""

    algorithm = "reference"

    def __init__(self, position: Position, seed: int | None) -> None:
        super().__init__(position, seed)
        self._search = reference.MCTS(seed=self.seed)
        self._tree = self._search.tree(position.state)

    @property
    def simulations(self) -> int:
        return self._tree.simulations

    @property
    def is_solved(self) -> bool:
        return self._tree.root.proven is not None

    def grow(self, most: int, seconds: float) -> None:
        begun = time.perf_counter()
        for _ in range(most):
            self._search.simulate(self._tree, 1)
            if self.is_solved or time.perf_counter() - begun >= seconds:
                break
        self.elapsed += time.perf_counter() - begun

    def report(self, *, glance: bool = False) -> Report:
        result = self._search.result(self._tree)
        root = result.root
        moves = list_moves(self.position.state, result.action, result.visits, result.q, root)
        plies = None if root.proven is None else root.distance
        done = result.simulations
        return Report(
            self.position, self.algorithm, self.seed, done, self.elapsed, result.value, result.proven, plies, moves
        )


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
    """Searches to the limits; whether it came that far. `watch(fraction)` is called some ten times a second."""
    first, begun = thinker.simulations, time.perf_counter()
    slice_seconds = SLICE
    with Interrupts() as interrupts:
        while not interrupts.came:
            done, passed = thinker.simulations - first, time.perf_counter() - begun
            if watch is not None:
                watch(done / simulations if simulations else passed / (seconds or 1.0))
            left = UNLIMITED if simulations is None else simulations - done
            time_left = slice_seconds if seconds is None else seconds - passed
            if left <= 0 or time_left <= 0 or thinker.is_solved:
                break
            thinker.grow(left, min(slice_seconds, time_left))
            if thinker.simulations - first == done:
                # A playout longer than its slice is discarded: the next slice must be long enough for one.
                slice_seconds *= 2
    return not interrupts.came
