"""A session: a game, its search, and the commands of the pages.

A worker thread alone uses the game and the tree. What it publishes, `position` and `snapshot`, is immutable; clients
read the last of each.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.games.chance import draw_outcome, is_chance
from pondertree.random import OUTCOME, Random
from pondertree.search.tree import Tree
from pondertree.validation import brief
from pondertree.view.frames import Snapshot
from pondertree.view.live import LiveSearch, build, root_actions
from pondertree.view.position import legal_message, outcome_of, position_message
from pondertree.view.setup import GamePosition, Setup, Turn, ViewSettings
from pondertree.view.worker import WithinSliceError, Worker

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
        self._number, self._snapshots = 1, 0
        seed = setup.settings.seed
        #: Draws the outcomes at chance nodes.
        self._outcomes = Random(secrets.randbits(32) if seed is None else seed, OUTCOME)
        #: The legal moves of the position, whose texts may take a game in Python some time.
        self._legal = legal_message(self._position)
        self._live = self._new_search(self._position, setup.settings, setup.tree)
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

        A search that must run as a whole (sequential halving) has one slice: a command that is not urgent waits for its
        end, and an urgent one is called within the slice, which ends early only if the command ends the search.
        """
        run = functools.partial(self._run_command, command)
        return self._worker.submit(run, is_urgent=is_urgent or not self._live.has_schedule)

    def _run_command(self, command: Callable[[], Any]) -> Any:
        was_running = self.is_running
        try:
            return command()
        except Exception:
            if was_running and not self.is_running:
                self._show_failed()
            raise

    def _interrupt(self) -> None:
        live = self._live
        if live.tree is not None and self.is_running and (self._worker.is_closed or not live.has_schedule):
            live.tree.stop()

    def _must_end_slice(self) -> bool:
        return self._worker.call_within_slice() if self._live.has_schedule else self._worker.is_urgent

    def _require_end_of_slice(self, *, ends_slice: bool) -> None:
        """Lets the command be called again after the slice if it was called within one; nothing may be changed yet."""
        if self._worker.is_within_slice:
            raise WithinSliceError(ends_slice=ends_slice)

    def _slice(self) -> bool:
        """Runs the search for a slice, if it runs, and publishes the tree; returns whether there is more to do."""
        run = self._live.run
        if run is None and (self._live.is_complete or not self.watchers):
            return False
        try:
            if run is None:
                self._show_tree()
            elif self._live.run_slice(self._must_end_slice):
                self._finish()
            elif self.watchers:
                self._show_tree()
        except BaseException as error:  # SystemExit, too: a game may raise anything
            self._live.stop()
            self.failure = described(error)
            self._show_failed()
            if run is not None and run.reply is not None:
                run.reply.set_result(None)
            return False
        return self._live.run is not None or not self._live.is_complete

    def _finish(self) -> None:
        """Ends a search whose limits are reached; a reply is played."""
        run = self._live.stop()
        is_stuck = run is not None and self._live.is_stuck(run)
        if run is not None and is_stuck:
            # A new text each time: clients compare it by identity.
            self.failure = (
                f"no simulation was run after {run.done:,}: the tree is full (raise max nodes or max memory in "
                "Settings), or one takes longer than the limit"
            )
        if run is None or run.reply is None or (is_stuck and self._live.value() is None):
            if run is not None and run.reply is not None:
                run.reply.set_result(None)
            self._evaluate()
            self._show()
            return
        action = self._live.best_action()
        self._advance((action, self._position.play(action)))
        self._draw_outcomes()
        run.reply.set_result(None)

    def _stop(self) -> bool:
        """Ends the search without a reply; returns whether it had no limits.

        A command calls it after all that may be refused.
        """
        self._require_end_of_slice(ends_slice=True)
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
        self._show_position()
        self._show_tree()

    def _show_position(self) -> None:
        about = self._settings, self._evaluations
        self.position = position_message(self._number, self._history, self._ply, self._legal, *about)
        self._changed()

    def _show_tree(self) -> None:
        self._snapshots += 1
        self.snapshot = self._live.snapshot(self._number, self._snapshots)
        self._changed()

    def _show_failed(self) -> None:
        """Publishes that the search has stopped after an error, even if reading the tree raises one too."""
        try:
            self._show_tree()
        except BaseException:
            if self.snapshot is not None:
                head = self.snapshot.head
                head = {**head, "status": {**head["status"], "running": False, "goal": None}}
                self.snapshot = replace(self.snapshot, number=self._snapshots, head=head)
            self._changed()

    def _evaluate(self) -> None:
        value = self._live.value()
        if value is not None:
            self._evaluations[self._ply] = value

    # The position and its search

    @property
    def _position(self) -> GamePosition:
        return self._history[self._ply][1]

    def _new_search(self, position: GamePosition, settings: ViewSettings, tree: Tree | None = None) -> LiveSearch:
        """Returns the search of a position, with a new tree if none is given."""
        state, search = position.state, build(self.setup.algorithms, settings)
        if tree is None and not outcome_of(position) and not is_chance(state):
            tree = search.tree(state, root_actions=root_actions(state, settings))
        return LiveSearch(search, state, tree, is_known=not self.setup.read_only)

    def _begin_search(self, history: list[Turn], ply: int, settings: ViewSettings | None = None) -> None:
        """Begins a new search; without `settings`, with the present ones for another position."""
        wanted = settings or self._unrestricted()
        live, legal = self._new_search(history[ply][1], wanted), legal_message(history[ply][1])
        self._stop()
        if history is not self._history:
            self._evaluations = {}
        self._history, self._ply, self._legal, self._settings = history, ply, legal, wanted
        self._live = live
        self._number += 1
        self._show()

    def _unrestricted(self) -> ViewSettings:
        """Returns the settings without those for the moves of the shown position."""
        return replace(self._settings, exclude=(), force=())

    def _advance(self, turn: Turn) -> bool:
        """Ends the search and plays a legal action, in the tree too; returns whether the search had no limits."""
        action, position = turn
        assert action is not None, "a move leads to every position but the first one"
        is_over, legal, history = bool(outcome_of(position)), legal_message(position), self._history
        if history[self._ply + 1 : self._ply + 2] != [turn]:
            history = [*history[: self._ply + 1], turn]
        anew = None
        if self._live.tree is None and not is_over and not is_chance(position.state):
            # From a chance node that no search has reached.
            anew = self._new_search(position, self._unrestricted())
        goes_on = self._stop()
        self._evaluate()
        if anew is None:
            self._live.advance(action, position.state, is_over=is_over)
        else:
            self._live = anew
        if history is not self._history:
            self._evaluations = {ply: value for ply, value in self._evaluations.items() if ply <= self._ply}
        self._history, self._ply, self._legal, self._settings = history, self._ply + 1, legal, self._unrestricted()
        self._number += 1
        self._show()
        return goes_on

    def _draw_outcomes(self) -> None:
        """Plays an outcome of chance, and those that follow it, by their probabilities."""
        while is_chance(self._position.state):
            outcome = draw_outcome(self._position.state, self._outcomes)
            self._advance((outcome, self._position.play(outcome)))

    # Commands of the pages

    def start(self, **limits: Any) -> None:
        """Starts the search: with the limits given, None for none; by default with those of the settings."""
        given = limits or {"simulations": self._settings.simulations, "seconds": self._settings.seconds}
        self._live.validate(given.get("simulations"))
        self._stop()
        self._live.start(given.get("simulations"), given.get("seconds"))

    def pause(self) -> None:
        """Stops the search."""
        self._stop()
        self._show()

    def move(self) -> Future[None] | None:
        """Searches with the limits of the settings and plays the best move; the future is resolved then.

        At a chance node, draws an outcome.
        """
        if is_chance(self._position.state):
            self._draw_outcomes()
            return None
        self._validate_move()
        self._stop()
        settings = self._settings
        reply: Future[None] = Future()
        self._live.start(settings.simulations, settings.seconds, reply)
        return reply

    def _validate_move(self) -> None:
        """Raises if the search cannot play a move with the limits of the settings."""
        if self._settings.simulations is None and self._settings.seconds is None:
            raise UsageError("a move of the search needs a limit: set simulations or seconds")
        self._live.validate(self._settings.simulations)

    def play(self, action: int | None = None, text: str | None = None, reply: bool = False) -> Future[None] | None:
        """Plays a move; with `reply` the search replies, and a search without limits goes on.

        Outcomes of chance after it are drawn. The search does not reply while the player who moved is to move again.
        """
        if outcome_of(self._position):
            raise GameOverError("the game is over: take a move back to go on")
        if text is not None:
            action = self._position.parse(text)
        if action not in [int(legal) for legal in self._position.state.legal_actions()]:
            raise InvalidActionError("play needs a legal action, or the text of one")
        player = self._position.state.to_play
        after = self._position.play(action)
        if reply and not outcome_of(after):
            self._validate_move()
        goes_on = self._advance((action, after))
        self._draw_outcomes()
        if self._live.tree is None:
            return None
        if reply and (self._position.info.num_players == 1 or self._position.state.to_play != player):
            return self.move()
        if goes_on:
            self._live.start(None, None)
        return None

    def goto(self, ply: int) -> None:
        """Shows the position after `ply` moves; the tree is kept for the next move alone."""
        if not 0 <= ply < len(self._history):
            raise InvalidArgumentError(f"ply must be from 0 to {len(self._history) - 1}, not {ply}")
        if ply == self._ply:
            self._stop()
            self._show()
        elif ply == self._ply + 1:
            self._advance(self._history[ply])
        else:
            self._begin_search(self._history, ply)

    def set_up(self, fen: str | None = None, moves: str = "") -> None:
        """Begins at another position: a FEN, or the usual start, and moves from there."""
        history = list(self.setup.begin(fen, moves))
        self._begin_search(history, len(history) - 1)

    def new(self) -> None:
        """Begins a new game from where this one began."""
        self._begin_search(self._history[:1], 0)

    def change_settings(self, settings: dict[str, Any]) -> None:
        """Changes settings; the search begins anew unless only limits change."""
        wanted = replace(self._settings, **settings)
        if wanted.preset != self._settings.preset and "parameters" not in settings:
            chosen = (each.parameters for each in self.setup.algorithms if each.name == wanted.preset)
            wanted = replace(wanted, parameters=next(chosen, {}))
        if wanted.seed is None:
            wanted = replace(wanted, seed=secrets.randbits(32))
        before = self._settings
        if replace(wanted, simulations=before.simulations, seconds=before.seconds) == before:
            build(self.setup.algorithms, wanted)
            self._settings = wanted
            self._show_position()
            return
        self._begin_search(self._history, self._ply, wanted)

    def change_window(self, **changes: Any) -> None:
        """Changes what the window of the tree shows."""
        self._live.window.change(**changes)
        if self._live.run is None:
            self._show_tree()

    def step(self) -> dict[str, Any]:
        """Runs one simulation and returns every choice with every term."""
        self._live.validate(self._settings.simulations)
        self._stop()
        found = self._live.step(self._settings.simulations)
        self._show_tree()
        nodes = self._live.window.follow_path(found.pop("path"))
        return {"type": "step", "position": self._number, **found, "nodes": nodes}

    def inspect(self, id: int) -> dict[str, Any]:
        """Returns the details of a position of the window."""
        self._require_end_of_slice(ends_slice=False)
        return {"type": "node", "position": self._number, "id": id, **self._live.inspect(id)}

    def shown_state(self) -> tuple[int, Any]:
        """Returns the number of the shown position and its state."""
        return self._number, self._position.state

    def save(self, path: Path) -> None:
        """Writes the tree to a file."""
        self._require_end_of_slice(ends_slice=False)
        tree: Any = self._live.require_tree()
        tree.save(path)


def described(error: BaseException) -> str:
    """Returns the text of an error for the page."""
    text = str(error) if isinstance(error, PondertreeError) else f"{type(error).__name__}: {error}"
    return brief(text, MAX_ERROR)
