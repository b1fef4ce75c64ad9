"""A session: one game and its search, which a worker thread runs in slices; commands take effect between two slices.

The worker alone uses the game and the tree. What it publishes, `position` and `snapshot`, is immutable; the clients'
senders read it at their own pace.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.games import Chess
from pondertree.node import searched_action_text
from pondertree.result import SearchResult
from pondertree.search.arguments import UNLIMITED
from pondertree.search.base import Search
from pondertree.search.tree import Tree
from pondertree.validation import brief
from pondertree.view.parameters import read_parameters
from pondertree.view.position import MAX_TEXT, outcome_of, position_message
from pondertree.view.setup import Algorithm, GamePosition, Settings, Setup, Turn
from pondertree.view.statistics import finite, move_rows
from pondertree.view.window import NO_ROWS, Snapshot, Window

#: Seconds of a slice of the search, and the longest one for a game whose playouts exceed it.
SLICE, MAX_SLICE = 0.1, 10.0
#: Seconds for the moves of new positions, and as many for expected lines: after a slice, and when the search has stopped.
WRITING, FINAL_WRITING = 0.002, 0.5
#: Characters of an error message.
MAX_ERROR = 1_000


@dataclass
class Run:
    """A search in progress; the limits count from when the root was set."""

    simulations: int | None
    seconds: float | None
    reply: Future[None] | None = None
    """Resolved when the search has played its move."""
    slice_seconds: float = SLICE


class Session:
    """A game and its search. `changed` is called, in the worker thread, when something was published."""

    def __init__(self, setup: Setup, changed: Callable[[], None]) -> None:
        self.setup = setup
        self.snapshot: Snapshot | None = None
        self.position = ""
        """The message of the position."""
        self.failure = ""
        """The last error that no request caused."""
        self.watchers = 0
        """The number of clients; without any, the tree is not read while it is searched."""
        self._changed = changed
        self._turns, self._ply = list(setup.turns), len(setup.turns) - 1
        self._settings = setup.settings
        self._evaluations: dict[int, float] = {}
        self._number = self._snapshots = 0
        self._run: Run | None = None
        self._tree: Tree | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._is_urgent = threading.Event()
        self._set_up(self._settings)
        self._thread = threading.Thread(target=self._work, name="pondertree-view", daemon=True)

    # From any thread

    def start_worker(self) -> None:
        """Starts the worker."""
        self._thread.start()

    def close(self) -> None:
        """Stops the search and the worker."""
        self._interrupt()
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join(MAX_SLICE)

    def submit(self, command: Callable[[], Any], *, is_urgent: bool = True) -> Future[Any]:
        """Lets the worker call a command of this session after the current slice; the future has its result.

        A command that is not urgent does not interrupt a search that must run as a whole (sequential halving).
        """
        done: Future[Any] = Future()

        def job() -> None:
            self._is_urgent.clear()
            try:
                result = command()
            except Exception as error:
                done.set_exception(error)
                return
            if isinstance(result, Future):
                result.add_done_callback(lambda reply: _forward(reply, done))
            else:
                done.set_result(result)

        self._jobs.put(job)
        if is_urgent or not self._search.requires_simulation_budget:
            self._interrupt()
        return done

    def _interrupt(self) -> None:
        self._is_urgent.set()
        if self._tree is not None:
            self._tree.stop()

    # The worker

    def _work(self) -> None:
        self._show_position()
        while True:
            try:
                job = self._jobs.get(block=self._run is None)
            except queue.Empty:
                self._slice()
                continue
            if job is None:
                return
            job()

    def _slice(self) -> None:
        """Runs the search for a slice, and publishes the tree."""
        run, tree = self._run, self._tree
        assert run is not None, "called while a search runs"
        assert tree is not None, "called while a search runs"
        try:
            before, elapsed = self._simulations(tree)
            left = UNLIMITED if run.simulations is None else run.simulations - before
            seconds = None if self._search.requires_simulation_budget else run.slice_seconds
            if run.seconds is not None:
                seconds = min(run.seconds - elapsed, seconds or run.seconds)
            tree.simulate(left, seconds=seconds, progress=self._stop_if_urgent)
            after, now = self._simulations(tree)
            is_over = (
                tree.result().proven is not None
                or (run.simulations is not None and after >= run.simulations)
                or (run.seconds is not None and now >= run.seconds)
            )
            if after == before and not self._is_urgent.is_set():
                # A full tree or an early stop returns at once; a playout that exceeds its slice is discarded.
                is_over = is_over or now - elapsed < run.slice_seconds / 2 or run.slice_seconds >= MAX_SLICE
                run.slice_seconds *= 2
            if is_over:
                self._finish()
            elif self.watchers:
                self._show_tree()
        except Exception as error:
            self._run = None
            self.failure = described(error)
            if run.reply is not None:
                run.reply.set_result(None)
            self._show_tree_if_possible()

    def _stop_if_urgent(self, done: int, total: int) -> None:
        if self._is_urgent.is_set() and self._tree is not None:
            self._tree.stop()

    @staticmethod
    def _simulations(tree: Tree) -> tuple[int, float]:
        # The result must not be held: the engine would copy the tree before it grows.
        result = tree.result()
        return result.simulations, result.elapsed

    def _finish(self) -> None:
        """Ends the search: a reply is played."""
        run, self._run = self._run, None
        if run is None:
            return
        self._evaluate()
        if run.reply is None:
            self._show_position()
            self._show_tree()
            return
        assert self._tree is not None, "a search has run"
        self._advance(self._tree.result().action)
        run.reply.set_result(None)

    def _stop(self) -> bool:
        """Ends the search without a reply; returns whether it had no limit."""
        run, self._run = self._run, None
        if run is not None and run.reply is not None:
            run.reply.set_result(None)
        if run is not None:
            self._evaluate()
        return run is not None and run.simulations is None and run.seconds is None

    # Publication

    def _show_position(self) -> None:
        message = position_message(self._number, self._turns, self._ply, self._settings, self._evaluations)
        self.position = message
        self._changed()

    def _show_tree(self) -> None:
        """Publishes status, moves and window of the tree."""
        self._snapshots += 1
        tree = self._tree
        seconds = FINAL_WRITING if self._run is None else WRITING
        if tree is None:
            head: dict[str, Any] = {"status": self._status(None), "moves": [], "shares": []}
            self.snapshot = Snapshot(self._number, self._snapshots, head, NO_ROWS)
        else:
            result = tree.result()
            rows = self._window.read(result, seconds)
            moves = move_rows(result, rows, tree.state, self._rule, self._write, seconds)
            shares = [[move["action"], move["share"]] for move in moves if move["visits"]]
            head = {"status": self._status(result), "moves": moves, "shares": shares}
            self.snapshot = Snapshot(self._number, self._snapshots, head, rows)
        self._changed()

    def _show_tree_if_possible(self) -> None:
        try:
            self._show_tree()
        except Exception:
            self._changed()

    def _status(self, result: SearchResult | None) -> dict[str, Any]:
        run = self._run
        if result is None:
            numbers = dict.fromkeys(("value", "proven", "distance", "best", "depth"))
            return {
                "running": False, "simulations": 0, "goal": None, "nodes": 0, "bytes": 0, "seconds": 0.0, "rate": 0.0,
                **numbers,
            }  # fmt: skip
        is_known = result.simulations > 0 or result.proven is not None or bool(result.visits.any())
        return {
            "running": run is not None,
            "simulations": result.simulations,
            "goal": None if run is None else run.simulations,
            "nodes": result.num_positions,
            "bytes": result.memory,
            "seconds": round(result.elapsed, 3),
            "rate": round(result.simulations / result.elapsed, 1) if result.elapsed > 0 else 0.0,
            "value": finite(result.value) if is_known else None,
            "proven": result.proven,
            "distance": result.root.distance,
            "best": int(result.edges.actions[result.best_row]) if is_known else None,
            "depth": None if run is not None or not is_known else [round(result.depths()[0], 2), result.depths()[1]],
        }

    # Settings and tree

    @property
    def _position(self) -> GamePosition:
        return self._turns[self._ply][1]

    def _build(self, settings: Settings) -> tuple[Algorithm, Search]:
        """Returns the search of these settings; raises if they are invalid."""
        algorithm = next((each for each in self.setup.algorithms if each.name == settings.preset), None)
        if algorithm is None:
            known = ", ".join(each.name for each in self.setup.algorithms)
            raise InvalidArgumentError(f"preset must be one of {known}, not {settings.preset}")
        limits: dict[str, Any] = {"num_simulations": settings.simulations, "time_limit": settings.seconds}
        arguments = read_parameters(algorithm.search, settings.parameters)
        return algorithm, algorithm.search(**algorithm.sources, **limits, **arguments, seed=settings.seed)

    def _set_up(self, settings: Settings) -> None:
        """Plants a new tree for the shown position; nothing changes if that fails."""
        _, search = self._build(settings)
        position, tree = self._position, None
        config = search.config(search.describe(position.state))
        if not outcome_of(position):
            tree = search.tree(position.state, root_actions=root_actions(position.state, settings))
        self._search, self._rule, self._tree, self._settings = search, config.rule, tree, settings
        self._show_new_root()

    def _show_new_root(self) -> None:
        info = self._search.describe(self._position.state)
        is_model = getattr(self._search, "model", None) is not None
        self._info = replace(info, is_learned_model=is_model)
        self._window = Window(self._position.state, self._info, self._write)
        self._number += 1

    def _write(self, state: Any, action: int) -> str:
        if isinstance(state, Chess) and not self._info.is_learned_model:
            return state.san(action)
        return searched_action_text(state, action, self._info)[:MAX_TEXT]

    def _evaluate(self) -> None:
        """Records the value of the shown position, for the first player."""
        if self._tree is None:
            return
        result = self._tree.result()
        if result.simulations or result.proven is not None:
            value = result.values[0] if self._info.num_players > 1 else result.value
            self._evaluations[self._ply] = round(float(value), 6)

    # Commands of the page, called by the worker

    def start(self, **limits: Any) -> None:
        """Starts the search; limits that are not given are those of the settings, None lifts them."""
        self._begin(limits)

    def move(self) -> Future[None]:
        """Searches with the limits of the settings and plays the best move; the future is resolved then."""
        settings = self._settings
        if settings.simulations is None and settings.seconds is None:
            raise UsageError("a move needs a limit: set simulations or seconds")
        reply: Future[None] = Future()
        self._begin({}, reply)
        return reply

    def _begin(self, limits: dict[str, Any], reply: Future[None] | None = None) -> None:
        self._stop()
        if self._tree is None:
            raise GameOverError("the game is over: there is nothing to search")
        simulations = limits.get("simulations", None if "seconds" in limits else self._settings.simulations)
        seconds = limits.get("seconds", None if "simulations" in limits else self._settings.seconds)
        if simulations is None and self._search.requires_simulation_budget:
            raise UsageError(f"{self._settings.preset} needs a number of simulations")
        done, elapsed = self._simulations(self._tree)
        self._run = Run(
            None if simulations is None else done + simulations, None if seconds is None else elapsed + seconds, reply
        )

    def pause(self) -> None:
        """Stops the search."""
        if self._run is not None:
            self._stop()
            self._show_position()
            self._show_tree()

    def play(self, action: int | None = None, text: str | None = None, reply: bool = False) -> Future[None] | None:
        """Plays a move; with `reply`, the search answers."""
        if (action is None) == (text is None):
            raise InvalidArgumentError("play needs either action or text")
        if outcome_of(self._position):
            raise GameOverError(f"the game is over. {outcome_of(self._position)}")
        if text is not None:
            action = self._position.parse(text)
        elif action not in [int(legal) for legal in self._position.state.legal_actions()]:
            raise InvalidActionError(f"action {action} is not legal here")
        goes_on = self._stop()
        assert action is not None, "read above"
        self._advance(action)
        if self._tree is not None and reply:
            return self.move()
        if self._tree is not None and goes_on:
            self._begin({"simulations": None})
        return None

    def _advance(self, action: int) -> None:
        """Plays a legal action, in the tree too."""
        self._evaluate()
        after = self._turns[self._ply + 1] if self._ply + 1 < len(self._turns) else None
        if after is None or after[0] != action:
            after = action, self._position.play(action)
            self._turns[self._ply + 1 :] = [after]
            self._evaluations = {ply: value for ply, value in self._evaluations.items() if ply <= self._ply}
        if self._settings.exclude or self._settings.force:
            self._settings = replace(self._settings, exclude=(), force=())
        self._ply += 1
        if outcome_of(after[1]):
            self._tree = None
        elif self._tree is not None:
            self._tree.advance(action)
        self._show_new_root()
        self._show_position()
        self._show_tree()

    def goto(self, ply: int) -> None:
        """Shows the position after `ply` moves; a subtree is kept only on the way forward."""
        if ply >= len(self._turns):
            raise InvalidArgumentError(f"ply must be at most {len(self._turns) - 1}, not {ply}")
        self._stop()
        if ply == self._ply + 1 and self._tree is not None:
            action = self._turns[ply][0]
            assert action is not None, "only the first position has none"
            self._advance(action)
        elif ply != self._ply:
            self._ply = ply
            self._renew(replace(self._settings, exclude=(), force=()))

    def setup_position(self, fen: str | None = None, moves: str = "") -> None:
        """Begins at another position: a FEN, or moves from the start."""
        turns = list(self.setup.begin(fen, moves))
        self._stop()
        self._turns, self._ply, self._evaluations = turns, len(turns) - 1, {}
        self._renew(replace(self._settings, exclude=(), force=()))

    def new(self) -> None:
        """Begins a new game from where this one began."""
        self._stop()
        del self._turns[1:]
        self._ply, self._evaluations = 0, {}
        self._renew(replace(self._settings, exclude=(), force=()))

    def settings(self, settings: dict[str, Any]) -> None:
        """Changes settings; the search begins anew."""
        wanted = replace(self._settings, **settings)
        if "preset" in settings and "parameters" not in settings and settings["preset"] != self._settings.preset:
            wanted = replace(wanted, parameters={})
        if wanted.seed is None:
            wanted = replace(wanted, seed=secrets.randbits(32))
        self._stop()
        self._renew(wanted)

    def _renew(self, settings: Settings) -> None:
        self._set_up(settings)
        self._show_position()
        self._show_tree()

    def window(
        self,
        open: list[int] | None = None,
        close: list[int] | None = None,
        least: int | None = None,
        nodes: int | None = None,
        follow: bool | None = None,
    ) -> None:
        """Changes what the window of the tree shows."""
        window = self._window
        window.change(open or [], close or [])
        window.min_visits = window.min_visits if least is None else least
        window.max_rows = window.max_rows if nodes is None else nodes
        window.follow = window.follow if follow is None else follow
        if self._run is None:
            self._show_tree()


def root_actions(state: Any, settings: Settings) -> list[int] | None:
    """Returns the moves to search at the root: `force`, or all but `exclude`; None for all."""
    legal = [int(action) for action in state.legal_actions()]
    searched = [action for action in settings.force or legal if action not in settings.exclude]
    if not searched:
        raise InvalidArgumentError("no move is left to search: exclude fewer")
    return None if searched == legal else searched


def described(error: Exception) -> str:
    """Returns the text of an error for the page."""
    text = str(error) if isinstance(error, PondertreeError) else f"{type(error).__name__}: {error}"
    return brief(text, MAX_ERROR)


def _forward(reply: Future[None], done: Future[Any]) -> None:
    done.set_result(reply.result())
