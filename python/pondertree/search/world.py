"""Where the positions of a forest live: in the engine (compiled games), in a table (games in Python), or in a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pondertree._core import Forest as EngineForest
from pondertree.config import Settings
from pondertree.game import GameInfo, game_mistakes, play, refuse_finished
from pondertree.search.root_actions import RootActions

#: The seed, call number and row that a tree's random numbers come from.
Key = tuple[int, int, int]
#: The keys of many trees, or the seed and the call that they have in common; they are then numbered.
Keys = tuple[int, int] | list[Key]
#: Asked now and then whether to come back early.
Over = Callable[[], bool]


class World(ABC):
    """The positions of one forest, and how a batch of its leaves is dealt with."""

    def __init__(self, core: EngineForest, info: GameInfo, settings: Settings) -> None:
        self.core = core
        self.info = info
        self.settings = settings
        #: When to stop, by the clock of `time.perf_counter`.
        self.deadline: float | None = None

    @property
    def runs_inside(self) -> bool:
        """Whether whole simulations run inside the engine, without any batch."""
        return False

    @abstractmethod
    def plant(self, states: Sequence[Any], keys: Keys, among: RootActions | None = None) -> None:
        """A tree for each state, of the root actions that are `among` some alone, where those are given."""

    @abstractmethod
    def reset(self, index: int, state: Any, key: Key) -> None:
        """Another state in the place of tree `index`."""

    @abstractmethod
    def advance(self, index: int, before: Any, action: int) -> Any:
        """Plays a legal action at the root of tree `index`, which is the state `before`; the state after it."""

    @abstractmethod
    def batch(self) -> None:
        """Gathers leaves, has them evaluated, and backs their values up."""

    def run(self, over: Over | None) -> None:
        """Batch after batch, until no tree wants more, or the search is stopped, or `over()` after one of them."""
        while self.core.wants_more() and not self.core.stopped:
            self.batch()
            if over is not None and over():
                return

    def settle(self) -> None:  # noqa: B027 (only a model's trees may be elsewhere)
        """Brings trees home that were searched elsewhere, and of which the engine knows the roots alone."""

    def legal_actions(self, state: Any) -> Sequence[int]:
        """Legal actions at a root."""
        with game_mistakes(self.info, "when asked for legal_actions()"):
            return list(state.legal_actions())

    def expect(self, simulations: Sequence[int], at_once: bool) -> None:  # noqa: B027 (only a model makes use of it)
        """So many more simulations in each tree, at most; `at_once` says that nothing but their number ends them."""

    def knows(self, before: Any, action: int, among: list[int] | None) -> bool:
        """Whether a legal action is one that the search looks at, where the root has those `among` some alone."""
        return among is None or action in among

    def release(self, slots: Sequence[int]) -> None:  # noqa: B027 (only worlds outside have slots)
        """Forgets positions that the engine no longer has."""

    def roll_back(self) -> None:
        """Takes back the batch under way."""
        self.release(self.core.roll_back())

    def after(self, before: Any, action: int) -> Any:
        """The state after a legal action; a finished one is refused, because there is nothing to search."""
        state = before.play(action) if self.info.compiled else play(before, action, self.info.name)
        refuse_finished(state)
        return state
