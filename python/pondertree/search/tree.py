"""Tree: a forest of one tree, advanced move by move."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pondertree.game import move_text
from pondertree.result import SearchResult
from pondertree.search.arguments import Progress
from pondertree.search.forest import Forest
from pondertree.trace import TraceRow

if TYPE_CHECKING:
    import chess


class Tree:
    """A single tree. Returned by `Search.tree`."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    @property
    def state(self) -> Any:
        """The state at the root."""
        return self._forest.state(0)

    def simulate(
        self,
        n: int | None = None,
        *,
        seconds: float | timedelta | None = None,
        add_noise: bool | None = None,
        progress: Progress | None = None,
    ) -> Tree:
        """Runs `n` more simulations, or as many as fit into `seconds`; see `Forest.simulate`."""
        self._forest.simulate(n, seconds=seconds, add_noise=add_noise, progress=progress)
        return self

    def step(self, *, of: int | None = None, add_noise: bool | None = None) -> TraceRow | None:
        """Runs one simulation, of a search of `of` ones, and returns its row of `trace`; see `Forest.step`."""
        return self._forest.step(0, of=of, add_noise=add_noise)

    def result(self, *, temperature: float | None = None) -> SearchResult:
        """Returns the result so far."""
        return self._forest.result(0, temperature=temperature)

    def advance(
        self,
        action: int | str | chess.Move,
        *,
        observation: Any = None,
        legal_actions: Any = None,
        to_play: int | None = None,
    ) -> None:
        """Plays `action`, a number, move text or a `chess.Move`, and keeps the subtree; see `Forest.advance`."""
        self._forest.advance(0, action, observation=observation, legal_actions=legal_actions, to_play=to_play)

    def reset(
        self, state: Any = None, *, observation: Any = None, legal_actions: Any = None, to_play: int | None = None
    ) -> None:
        """Starts a new search from `state`, or from another observation."""
        self._forest.reset(0, state, observation=observation, legal_actions=legal_actions, to_play=to_play)

    def restrict(self, actions: Sequence[int]) -> None:
        """Searches only `actions` at the root until it is advanced or reset; see `Forest.restrict`."""
        self._forest.restrict(0, actions)

    def skip_root_analysis(self) -> None:
        """Skips the analysis of the next root; see `Forest.skip_root_analysis`."""
        self._forest.skip_root_analysis(0)

    def depths(self) -> tuple[float, int]:
        """Returns the mean depth of the simulations and the largest depth, in plies; walks the whole tree."""
        return self.result().depths()

    def stop(self) -> None:
        """Ends a running `simulate` early; from any thread."""
        self._forest.stop()

    def trace(self) -> list[TraceRow]:
        """Returns every simulation, as the reference implementation records it; needs `trace=True`."""
        return self._forest.trace(0)

    def __repr__(self) -> str:
        result = self.result()
        # Not `result.action`, which warns of a tree without simulations.
        return f"<Tree: {result.simulations} simulations, best {move_text(self.state, result._chosen[1])}>"
