"""Tree: a forest of one tree, advanced move by move."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from pondertree.files import write_columns
from pondertree.game import move_text
from pondertree.games.saved_root import game_data, root_data
from pondertree.result import SearchResult
from pondertree.search.arguments import Progress
from pondertree.search.forest import Forest
from pondertree.search.settings import settings_data
from pondertree.trace import TraceRow

if TYPE_CHECKING:
    import chess


class Tree:
    """A single tree. Returned by `Search.tree`; `save` writes it to a file, and `load_tree` reads it."""

    def __init__(self, forest: Forest, search: Any) -> None:
        self._forest = forest
        #: The `Search` whose calls are counted, and its settings as they are now; None in a read-only tree.
        self._search = search
        self._settings = None if search is None else search.with_seed(search.drawn_seed)

    @classmethod
    def _restore(cls, search: Any, state: Any, data: Mapping[str, Any], columns: dict[str, NDArray[Any]]) -> Self:
        """Returns the tree of saved data and columns, which continues bit for bit; `state` is its root."""
        search = search.with_seed(data["search_seed"], data["calls"])
        info = search.describe(state)
        config = search.config(info)
        world = search.world(info, config)
        world.restore(state, columns, data["hidden"])
        return cls(Forest._restore(config, world, state, data, search.limits, search.next_call), search)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Returns the arguments `data` and `columns` of `_restore`."""
        data, columns = self._forest._saved()
        assert self._search is not None, "a read-only forest refuses"
        return {**data, "search_seed": self._search.drawn_seed, "calls": self._search.calls}, columns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tree and the state of its search to a file, which `load_tree` reads (docs/trees.md)."""
        data, columns = self._saved()
        root, of_root = root_data(self.state)
        about = {"kind": "tree", "game": game_data(self._forest._info), "root": root}
        write_columns(path, {**about, "settings": settings_data(self._settings), **data}, {**columns, **of_root})

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the arguments of `_restore` for pickle and copy, with search and state as objects."""
        if self._search is None:
            return type(self), (self._forest, None)
        return type(self)._restore, (self._settings, self.state, *self._saved())

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

    async def asimulate(self, n: int | None = None, **arguments: Any) -> Tree:
        """Does as `simulate` with the same arguments, in a worker thread; see `Search.arun`."""
        await self._forest.asimulate(n, **arguments)
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

    def waits_for_outcome(self) -> bool:
        """Whether the root is a chance node, where `advance` passes the outcome that came up before anything else."""
        return self._forest.waits_for_outcome()

    def depths(self) -> tuple[float, int]:
        """Returns the mean depth of the simulations and the largest depth, in plies; walks the whole tree."""
        return self.result().depths()

    def stop(self) -> None:
        """Ends a running `simulate` early; from any thread."""
        self._forest.stop()

    def trace(self) -> list[TraceRow]:
        """Returns every simulation, as the reference implementation records it; needs `trace=True`."""
        return self._forest.trace(0)

    def _repr_html_(self) -> str | None:
        return None if self._forest.is_busy or self._forest.waits_for_outcome() else self.result()._repr_html_()

    def __repr__(self) -> str:
        if self._forest.is_busy:
            return "<Tree: being searched>"
        if self._forest.waits_for_outcome():
            return "<Tree: waits for an outcome of chance>"
        result = self.result()
        # Not `result.action`, which warns of a tree without simulations.
        return f"<Tree: {result.simulations} simulations, best {move_text(self.state, result._chosen[1])}>"
