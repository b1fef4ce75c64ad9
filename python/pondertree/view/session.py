"""A session: a game, its search, and the commands of the pages.

A worker thread alone uses the game and the tree. What it publishes, `position` and `snapshot`, is immutable; clients
read it at their own pace.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.search.tree import Tree
from pondertree.validation import brief
from pondertree.view.frames import Snapshot
from pondertree.view.live import LiveSearch, build, root_actions
from pondertree.view.position import legal_message, outcome_of, position_message
from pondertree.view.setup import GamePosition, Setup, Turn, ViewSettings
from pondertree.view.worker import Worker

#: Characters of an error message.
MAX_ERROR = 1_000


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
        self._history, self._ply = list(setup.history), len(setup.history) - 1
        self._settings = setup.settings
        self._evaluations: dict[int, float] = {}
        self._number = self._snapshots = 0
        #: The number of a position and its legal moves, whose texts may take a game in Python some time.
        self._legal: tuple[int, list[dict[str, Any]]] = -1, []
        self._live = self._planted(setup.settings, setup.tree)
        self._worker = Worker(self._slice, self._interrupt)

    @property
    def is_running(self) -> bool:
        """Whether the search runs."""
        return self._live.run is not None

    def start_worker(self) -> None:
        """Starts the worker thread; called once."""
        self._show()
        self._worker.start()

    def close(self) -> None:
        """Stops the search and the worker thread."""
        self._worker.close()

    def submit(self, command: Callable[[], Any], *, is_urgent: bool = True) -> Future[Any]:
        """Lets the worker thread call a command after the current slice.

        A command that is not urgent waits for the end of a search that must run as a whole (sequential halving).
        """
        return self._worker.submit(command, is_urgent=is_urgent or not self._live.has_schedule)

    def _interrupt(self) -> None:
        tree = self._live.tree
        if tree is not None and self.is_running:
            tree.stop()

    def _slice(self) -> bool:
        """Runs the search for a slice, if it runs, and publishes the tree; returns whether there is more to do."""
        run = self._live.run
        if run is None and (self._live.window.is_complete or not self.watchers):
            return False
        try:
            if run is None:
                self._show_tree()
            elif self._live.run_slice(lambda: self._worker.is_urgent):
                self._finish()
            elif self.watchers:
                self._show_tree()
        except Exception as error:
            self._live.stop()
            self.failure = described(error)
            self._changed()
            if run is None or run.reply is None:
                return False
            run.reply.set_result(None)
        return self._live.run is not None or not self._live.window.is_complete

    def _finish(self) -> None:
        """Ends a search whose limits are reached; a reply is played."""
        run = self._live.stop()
        if run is None or run.reply is None:
            self._evaluate()
            self._show()
            return
        self._advance(self._live.best_action())
        run.reply.set_result(None)

    def _stop(self) -> bool:
        """Ends the search without a reply; returns whether it had no limits."""
        run = self._live.stop()
        if run is None:
            return False
        self._evaluate()
        if run.reply is not None:
            run.reply.set_result(None)
        return run.is_unlimited

    # Publication

    def _show(self) -> None:
        """Publishes position and tree."""
        if self._legal[0] != self._number:
            self._legal = self._number, legal_message(self._position)
        about = self._settings, self._evaluations
        self.position = position_message(self._number, self._history, self._ply, self._legal[1], *about)
        self._show_tree()

    def _show_tree(self) -> None:
        self._snapshots += 1
        self.snapshot = self._live.snapshot(self._number, self._snapshots)
        self._changed()

    def _evaluate(self) -> None:
        value = self._live.value()
        if value is not None:
            self._evaluations[self._ply] = value

    # The position and its search

    @property
    def _position(self) -> GamePosition:
        return self._history[self._ply][1]

    def _planted(self, settings: ViewSettings, tree: Tree | None = None) -> LiveSearch:
        """Returns the search of the shown position, with a new tree if none is given."""
        state, search = self._position.state, build(self.setup.algorithms, settings)
        if tree is None and not outcome_of(self._position):
            tree = search.tree(state, root_actions=root_actions(state, settings))
        live = LiveSearch(search, state, tree, is_known=not self.setup.is_read_only)
        self._number += 1
        return live

    def _replant(self, settings: ViewSettings | None = None) -> None:
        """Begins a new search; without `settings`, with the present ones for another position."""
        wanted = settings or replace(self._settings, exclude=(), force=())
        self._live, self._settings = self._planted(wanted), wanted
        self._show()

    def _advance(self, action: int) -> None:
        """Plays a legal action, in the tree too."""
        self._evaluate()
        after: Turn = (action, self._position.play(action))
        if self._history[self._ply + 1 : self._ply + 2] != [after]:
            del self._history[self._ply + 1 :]
            self._history.append(after)
            self._evaluations = {ply: value for ply, value in self._evaluations.items() if ply <= self._ply}
        self._settings = replace(self._settings, exclude=(), force=())
        self._ply += 1
        self._number += 1
        self._live.advance(action, after[1].state, is_over=bool(outcome_of(after[1])))
        self._show()

    # Commands of the pages

    def start(self, **limits: Any) -> None:
        """Starts the search: with the limits given, None for none; by default with those of the settings."""
        self._stop()
        given = limits or {"simulations": self._settings.simulations, "seconds": self._settings.seconds}
        self._live.start(given.get("simulations"), given.get("seconds"))

    def pause(self) -> None:
        """Stops the search."""
        if self._live.run is not None:
            self._stop()
            self._show()

    def move(self) -> Future[None]:
        """Searches with the limits of the settings and plays the best move; the future is resolved then."""
        self._stop()
        settings = self._settings
        if settings.simulations is None and settings.seconds is None:
            raise UsageError("a move of the search needs a limit: set simulations or seconds")
        reply: Future[None] = Future()
        self._live.start(settings.simulations, settings.seconds, reply)
        return reply

    def play(self, action: int | None = None, text: str | None = None, reply: bool = False) -> Future[None] | None:
        """Plays a move; with `reply` the search replies, and a search without limits goes on."""
        if outcome_of(self._position):
            raise GameOverError("the game is over: take a move back to go on")
        if text is not None:
            action = self._position.parse(text)
        if action not in [int(legal) for legal in self._position.state.legal_actions()]:
            raise InvalidActionError("play needs a legal action, or the text of one")
        goes_on = self._stop()
        self._advance(action)
        if self._live.tree is None:
            return None
        if reply:
            return self.move()
        if goes_on:
            self._live.start(None, None)
        return None

    def goto(self, ply: int) -> None:
        """Shows the position after `ply` moves; the tree is kept for the next move alone."""
        if ply >= len(self._history):
            raise InvalidArgumentError(f"ply must be at most {len(self._history) - 1}, not {ply}")
        self._stop()
        action = self._history[ply][0]
        if ply == self._ply + 1 and action is not None:
            self._advance(action)
        elif ply != self._ply:
            self._ply = ply
            self._replant()

    def set_up(self, fen: str | None = None, moves: str = "") -> None:
        """Begins at another position: a FEN, or the usual start, and moves from there."""
        self._begin(list(self.setup.begin(fen, moves)))

    def new(self) -> None:
        """Begins a new game from where this one began."""
        self._begin(self._history[:1])

    def _begin(self, history: list[Turn]) -> None:
        self._stop()
        self._history, self._ply, self._evaluations = history, len(history) - 1, {}
        self._replant()

    def change_settings(self, settings: dict[str, Any]) -> None:
        """Changes settings; the search begins anew unless only limits change."""
        wanted = replace(self._settings, **settings)
        if wanted.preset != self._settings.preset and "parameters" not in settings:
            wanted = replace(wanted, parameters={})
        if wanted.seed is None:
            wanted = replace(wanted, seed=secrets.randbits(32))
        before = self._settings
        if replace(wanted, simulations=before.simulations, seconds=before.seconds) == before:
            build(self.setup.algorithms, wanted)
            self._settings = wanted
            self._show()
            return
        self._stop()
        self._replant(wanted)

    def change_window(self, **changes: Any) -> None:
        """Changes what the window of the tree shows."""
        self._live.window.change(**changes)
        if self._live.run is None:
            self._show_tree()

    def step(self) -> dict[str, Any]:
        """Runs one simulation and returns every choice with every term."""
        self._stop()
        found = self._live.step(self._settings.simulations)
        self._show_tree()
        nodes = self._live.window.follow_path(found.pop("path"))
        return {"type": "step", "position": self._number, **found, "nodes": nodes}

    def inspect(self, id: int) -> dict[str, Any]:
        """Returns the details of a position of the window."""
        return {"type": "node", "position": self._number, "id": id, **self._live.inspect(id)}

    def shown_state(self) -> tuple[int, Any]:
        """Returns the number of the shown position and its state."""
        return self._number, self._position.state

    def save(self, path: Path) -> None:
        """Writes the tree to a file."""
        tree: Any = self._live.require_tree()
        tree.save(path)


def described(error: Exception) -> str:
    """Returns the text of an error for the page."""
    text = str(error) if isinstance(error, PondertreeError) else f"{type(error).__name__}: {error}"
    return brief(text, MAX_ERROR)
