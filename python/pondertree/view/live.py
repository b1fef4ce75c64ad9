"""A search that is watched: one tree, grown in slices, and what is read of it between them.

No result is held while the search runs: the engine would copy the tree before it grows (decision 006).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from pondertree.errors import GameOverError, InvalidArgumentError, UsageError
from pondertree.games import Chess
from pondertree.games.chance import is_chance
from pondertree.node import predicted_successor, searched_action_text
from pondertree.result import SearchResult
from pondertree.search.arguments import UNLIMITED
from pondertree.search.base import Search
from pondertree.search.tree import Tree
from pondertree.view.details import node_details, step_details
from pondertree.view.frames import Rows, Snapshot
from pondertree.view.parameters import read_parameters
from pondertree.view.position import MAX_TEXT
from pondertree.view.setup import Algorithm, ViewSettings
from pondertree.view.statistics import finite, move_rows, outcome_rows
from pondertree.view.window import Window

#: Seconds of a slice, and the longest one for a game whose playouts exceed it.
SLICE, MAX_SLICE = 0.1, 10.0
#: Minimum duration of a slice relative to the CPU time of the reading before it: readings take a hundredth of a search.
SLICE_PER_READING = 100
#: Most seconds of a slice that is extended for the reading before it.
MAX_PAUSE = 1.0
#: Moves of an expected line.
MAX_LINE = 12
#: Seconds for the moves of new positions, and as many for expected lines: after a slice, and after the last one.
WRITING, FINAL_WRITING = 0.001, 0.1


@dataclass
class Run:
    """A search in progress; the limits count from when the root was set."""

    simulations: int | None
    seconds: float | None
    reply: Future[None] | None = None
    """Resolved when the move of the search was played, or the search was stopped."""
    slice_seconds: float = SLICE
    done: int = 0
    """Simulations since the root was set, before this search."""

    @property
    def is_unlimited(self) -> bool:
        """Whether it ends only with the position solved."""
        return self.simulations is None and self.seconds is None


class LiveSearch:
    """The search of one position and of those that are played from it.

    `tree` is None at the end of a game, and at a chance node that no search has reached. `is_known` is False for a tree
    from a file that was not made by `search`.
    """

    def __init__(self, search: Search, state: Any, tree: Tree | None, *, is_known: bool = True) -> None:
        config = search.config(search.describe(state))
        self.tree = tree
        self.run: Run | None = None
        #: CPU seconds of the last reading.
        self._reading = 0.0
        #: Mean (None without one) and largest depth of the simulations. Computing them walks the whole tree:
        #: the first snapshot of a search that has ended leaves them out.
        self._depths: list[float | None] | None = None
        self._is_shown = self._lacks_depths = False
        self._search, self._rule = search, config.rule if is_known else None
        is_model = getattr(search, "model", None) is not None
        #: Whether positions have values of an evaluator or a model, beside the search's.
        self._evaluates = is_known and (is_model or config.leaf == "static" or config.evaluator is not None)
        self._info = replace(search.describe(state), is_learned_model=is_model)
        self._set_root(state)

    def _set_root(self, state: Any) -> None:
        self._state = state
        self._forget_depths()
        self.window = Window(state, self._info, self._write)
        #: The texts of the moves at the root, which every frame has.
        self._root_texts: dict[int, str] = {}

    def _forget_depths(self) -> None:
        self._depths, self._is_shown, self._lacks_depths = None, False, False

    @property
    def is_complete(self) -> bool:
        """Whether the last snapshot left out nothing that takes long: moves of new positions, and depths at the end."""
        return self.window.is_complete and not self._lacks_depths

    @property
    def has_schedule(self) -> bool:
        """Whether the simulations of a search are planned as a whole (sequential halving)."""
        return self._search.requires_simulation_budget

    def _write(self, state: Any, action: int) -> str:
        if isinstance(state, Chess) and not self._info.is_learned_model:
            return state.san(action)
        return searched_action_text(state, action, self._info)[:MAX_TEXT]

    def _root_text(self, action: int) -> str:
        if action not in self._root_texts:
            self._root_texts[action] = self._write(self._state, action)
        return self._root_texts[action]

    def _add_lines(self, result: SearchResult, moves: list[dict[str, Any]], seconds: float) -> None:
        """Adds the expected lines of the moves; but for the first one, only those that are written within `seconds`."""
        rows = {action: row for row, action in enumerate(result.edges.actions.tolist())}
        deadline = time.perf_counter() + seconds
        for count, move in enumerate(moves):
            if move["visits"] and (count == 0 or time.perf_counter() < deadline):
                move["line"] = result.line(rows[move["action"]], MAX_LINE, self._write)

    def advance(self, action: int, state: Any, *, is_over: bool) -> None:
        """Plays a move and keeps its subtree; `state` is the one after it."""
        if is_over:
            self.tree = None
        elif self.tree is not None:
            self.tree.advance(action)
        self._set_root(state)

    @property
    def is_chance(self) -> bool:
        """Whether the position is a chance node, which has no search: a tree waits for the outcome."""
        return self._info.has_chance and is_chance(self._state)

    @property
    def _searched(self) -> Tree | None:
        """The tree, where it has results."""
        return None if self.is_chance else self.tree

    def require_tree(self) -> Tree:
        """Returns the tree; raises if there is nothing to search: the game is over, or an outcome comes next."""
        if self.is_chance:
            raise UsageError("chance is to move: play an outcome, or let one be drawn, before a search")
        if self.tree is None:
            raise GameOverError("the game is over: there is nothing to search")
        return self.tree

    # Running

    def validate(self, simulations: int | None) -> None:
        """Raises if the simulations cannot be searched: the game is over, or a schedule needs their number."""
        self.require_tree()
        if simulations is None and self.has_schedule:
            raise UsageError("sequential halving needs a number of simulations")

    def start(self, simulations: int | None, seconds: float | None, reply: Future[None] | None = None) -> None:
        """Starts the search, limited to additional simulations and seconds."""
        self.validate(simulations)
        done, elapsed = spent(self.require_tree())
        self._forget_depths()
        self.run = Run(
            None if simulations is None else done + simulations, None if seconds is None else elapsed + seconds, reply
        )
        self.run.done = done

    def run_slice(self, is_urgent: Callable[[], bool]) -> bool:
        """Searches for a slice; returns whether the search has ended. `is_urgent` is asked whether to stop early."""
        run, tree = self.run, self.require_tree()
        assert run is not None, "called while the search runs"
        before, elapsed = spent(tree)
        left = UNLIMITED if run.simulations is None else run.simulations - before
        pause = min(SLICE_PER_READING * self._reading, MAX_PAUSE)
        seconds = None if self.has_schedule else max(run.slice_seconds, pause)
        if run.seconds is not None:
            seconds = min(run.seconds - elapsed, seconds or run.seconds)

        def stop_if_urgent(done: int, total: int) -> None:
            if is_urgent():
                tree.stop()

        tree.simulate(left, seconds=seconds, progress=stop_if_urgent)
        after, now = spent(tree)
        if tree.result().proven is not None:
            return True
        if after == before and not is_urgent():
            # A full tree or an early stop returns at once; a playout that exceeds its slice is discarded.
            run.slice_seconds *= 2
            return now - elapsed < run.slice_seconds / 4 or run.slice_seconds > MAX_SLICE
        is_over = run.seconds is not None and now >= run.seconds
        return is_over or (run.simulations is not None and after >= run.simulations)

    def stop(self) -> Run | None:
        """Ends the search; returns what has run."""
        run, self.run = self.run, None
        return run

    # Reading

    def snapshot(self, position: int, number: int) -> Snapshot:
        """Reads status, moves and window of the tree."""
        seconds = FINAL_WRITING if self.run is None else WRITING
        begun = time.thread_time()
        tree = self._searched
        if tree is None:
            outcomes = outcome_rows(self._state, self._root_text) if self.is_chance else []
            head: dict[str, Any] = {"status": self._status(None), "moves": outcomes, "shares": []}
            return Snapshot(position, number, head, Rows.empty())
        result = tree.result()
        rows = self.window.read(result, seconds)
        moves = move_rows(result, self._rule, self._root_text, evaluates=self._evaluates)
        self._add_lines(result, moves, seconds)
        shares = [[move["action"], move["share"]] for move in moves if move["visits"]]
        status = self._status(result)
        self._reading = 0.0 if self.run is None else time.thread_time() - begun
        return Snapshot(position, number, {"status": status, "moves": moves, "shares": shares}, rows)

    def _status(self, result: SearchResult | None) -> dict[str, Any]:
        """Returns the status of a frame; None where there is nothing to search."""
        run = self.run
        status: dict[str, Any] = dict.fromkeys(("goal", "value", "proven", "distance", "best", "depth"))
        status |= dict.fromkeys(("simulations", "nodes", "bytes", "seconds", "rate"), 0)
        status["running"] = run is not None
        if result is None:
            return status
        status |= {
            "simulations": result.simulations,
            "goal": None if run is None else run.simulations,
            "nodes": result.num_positions,
            "bytes": result.memory,
            "seconds": round(result.elapsed, 3),
            "rate": round(result.simulations / result.elapsed, 1) if result.elapsed > 0 else 0.0,
            "proven": result.proven,
            "distance": result.root.distance,
        }
        if result.simulations > 0 or result.proven is not None or result.visits.any():
            status |= {"value": finite(result.value), "best": int(result.edges.actions[result.best_row])}
            if run is None:
                status["depth"] = self._known_depths(result)
        return status

    def _known_depths(self, result: SearchResult) -> list[float | None] | None:
        """Returns the depths of a search that has ended, from its second snapshot on."""
        if self._depths is None and self._is_shown:
            mean, largest = result.depths()
            self._depths = [finite(mean), largest]
        self._is_shown, self._lacks_depths = True, self._depths is None
        return self._depths

    def is_stuck(self, run: Run) -> bool:
        """Whether a search that has ended could not run one simulation, although the position is not solved."""
        result = self.require_tree().result()
        return result.proven is None and result.simulations == run.done

    def value(self) -> float | None:
        """Returns the value of the position for the first player; None if it was not searched."""
        tree = self._searched
        result = None if tree is None else tree.result()
        if result is None or not (result.simulations > 0 or result.proven is not None):
            return None
        return finite(result.values[0])

    def best_action(self) -> int:
        """Returns the move to play."""
        return self.require_tree().result().action

    def step(self, planned: int | None) -> dict[str, Any]:
        """Runs one simulation, of `planned` ones if there is a schedule, and returns all of its terms."""
        tree: Any = self.require_tree()
        self._forget_depths()
        row = tree.step(of=planned if self.has_schedule else None)
        if row is None:
            raise UsageError("no simulation is left: the position is solved, or the tree is full")
        return {**step_details(row, self._state, self._successor, self._write), "path": row["path"]}

    def _successor(self, state: Any, action: int) -> Any:
        return predicted_successor(state, action, self._info)

    def inspect(self, number: int) -> dict[str, Any]:
        """Returns everything on a position of the window."""
        if number not in self.window:
            raise InvalidArgumentError(f"id must be a position of the window: {number} is not, or not any more")
        result, node = self.require_tree().result(), self.window.node(number)
        path = self.window.path(number)
        return node_details(result, path, node, self._rule, self._write, evaluates=self._evaluates)


def spent(tree: Tree) -> tuple[int, float]:
    """Returns simulations and seconds since the root was set."""
    result = tree.result()
    return result.simulations, result.elapsed


def build(algorithms: Sequence[Algorithm], settings: ViewSettings) -> Search:
    """Returns the search of these settings; raises if they are invalid."""
    algorithm = next((each for each in algorithms if each.name == settings.preset), None)
    if algorithm is None:
        known = ", ".join(each.name for each in algorithms)
        raise InvalidArgumentError(f"preset must be one of {known}, not {settings.preset}")
    arguments = read_parameters(algorithm, settings.parameters)
    limits: dict[str, Any] = {"num_simulations": settings.simulations, "time_limit": settings.seconds}
    return algorithm.search(**arguments, **limits, seed=settings.seed)


def root_actions(state: Any, settings: ViewSettings) -> list[int] | None:
    """Returns the moves to search at the root: `force`, or all but `exclude`; None for all."""
    legal = [int(action) for action in state.legal_actions()]
    searched = [action for action in settings.force or legal if action not in settings.exclude]
    if not searched:
        raise InvalidArgumentError("no move is left to search: exclude fewer")
    return None if searched == legal else searched
