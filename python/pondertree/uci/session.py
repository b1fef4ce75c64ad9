"""The command loop of the engine: options, game, and the running search.

Handling a line never raises: errors are reported as `info string` and leave the state unchanged. Searches run on their
own threads, so that commands are read meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pondertree import __version__
from pondertree.errors import PondertreeError
from pondertree.uci import position
from pondertree.uci.clock import LagEstimate
from pondertree.uci.options import Options, declarations
from pondertree.uci.protocol import Command, Debug, Go, Plain, Position, SetOption, Unknown, parse, shown
from pondertree.uci.search_task import SearchTask
from pondertree.uci.tree_reuse import TreeReuse
from pondertree.uci.writer import LineWriter
from pondertree.validation import useful_threads

#: Seconds for a search with limits to end by itself after the end of the input.
MAX_FINAL_WAIT = 60.0


class Session:
    """A UCI engine, from input lines to output lines."""

    def __init__(self, writer: LineWriter, options: Options | None = None) -> None:
        self.writer = writer
        self.options = Options() if options is None else options
        self._game = position.new_game()
        self._reuse = TreeReuse()
        self._lag = LagEstimate()
        self._task: SearchTask | None = None
        self._debug = False
        self._plain: dict[str, Callable[[], None]] = {
            "uci": self._identify,
            "isready": self._reply_ready,
            "ucinewgame": self._new_game,
            "stop": self._stop,
            "register": lambda: None,
            "d": self._print_board,
        }

    def handle(self, line: str, arrived: float | None = None) -> bool:
        """Handles a line that arrived at `arrived` (`time.perf_counter`); returns False after `quit`."""
        try:
            return self._execute(parse(line), time.perf_counter() if arrived is None else arrived)
        except Exception as error:  # the engine survives any error
            self.writer.info_string(f"the command failed: {type(error).__name__}: {shown(str(error), 200)}")
            return True

    def _execute(self, command: Command | None, now: float) -> bool:
        match command:
            case None:
                pass
            case Plain("quit"):
                return False
            case Plain("ponderhit"):
                if self._task is not None:
                    self._task.ponderhit(now)
            case Plain(name):
                self._plain[name]()
            case Go():
                self._go(command, now)
            case Position():
                try:
                    self._game = position.read(command, self._game)
                except PondertreeError as error:
                    self.writer.info_string(f"{error}; the position stays as it was")
            case SetOption(name, value):
                self._set(name, value)
            case Debug(on):
                self._debug = on
            case Unknown(reason):
                self.writer.info_string(reason)
        return True

    def close(self, finish: bool = False) -> bool:
        """Ends the running search with its reply; returns whether its thread has ended.

        With `finish`, a search with limits is completed first, as expected for piped commands.
        """
        if self._task is None:
            return True
        if finish and self._task.ends_by_itself:
            self._task.wait_for_reply(MAX_FINAL_WAIT)
        self._stop()
        self._task.wait_for_reply(1.0)
        return self._task.join(1.0)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _identify(self) -> None:
        self._report_threads()  # the command line may have set them
        about = [f"id name Pondertree {__version__}", "id author the Pondertree developers"]
        self.writer.write([*about, *declarations(), "uciok"])

    def _reply_ready(self) -> None:
        """Replies `readyok`, after loading the search if none is running."""
        if self._task is None or self._task.is_over:
            try:
                self._reuse.prepare(self.options)
            except Exception as error:
                self.writer.info_string(f"the search cannot be set up: {error}")
        self.writer.write(["readyok"])

    def _new_game(self) -> None:
        # A running search keeps its own tree.
        self._reuse = self._reuse.for_new_game()

    def _set(self, name: str, value: str | None) -> None:
        """Sets an option, effective from the next `go`: a running search has its own copy."""
        try:
            option = self.options.set(name, value)
        except PondertreeError as error:
            self.writer.info_string(str(error))
            return
        if option.kind == "button":
            self._new_game()
        elif option.name == "Threads":
            self._report_threads()

    def _report_threads(self) -> None:
        given: int = self.options["Threads"]
        used = useful_threads(given)
        if used < given:
            self.writer.info_string(f"Threads: {used} of {given} are used, as many as there are CPUs for this process")

    def _stop(self) -> None:
        if self._task is not None:
            self._task.stop()

    def _go(self, go: Go, arrived: float) -> None:
        """Starts the search of a `go`; on failure replies with any legal move, since the GUI waits for `bestmove`."""
        try:
            self._start_search(go, arrived)
        except Exception as error:
            self.writer.info_string(f"go failed: {type(error).__name__}: {shown(str(error), 200)}")
            legal = position.legal_moves(self._game.state)
            moves = [move for move in legal if move in go.searchmoves] or legal or ["(none)"]
            self.writer.write([f"bestmove {moves[0]}"])

    def _start_search(self, go: Go, arrived: float) -> None:
        for problem in go.problems:
            self.writer.info_string(problem)
        legal = frozenset(position.legal_moves(self._game.state)) if go.searchmoves else frozenset()
        unknown = [move for move in go.searchmoves if move not in legal]
        if unknown:
            self.writer.info_string(f"go: searchmoves {shown(' '.join(unknown))} are not legal here")
        if self._task is not None:
            # Every `go` is answered, also if the next one arrives early.
            self._task.stop()
            self._task.wait_for_reply()
        task = SearchTask(go, self._game, self.options.copy(), self._reuse, self.writer, arrived, self._lag)
        if self._debug:
            limits = task.limits
            self.writer.info_string(f"Limits(soft={limits.soft}, hard={limits.hard}, deadline={limits.deadline})")
        task.start(self._task)
        self._task = task

    def _print_board(self) -> None:
        """Prints the board (`d`, as in Stockfish)."""
        state = self._game.state
        self.writer.write([*str(state).splitlines(), "", f"Fen: {state.fen()}"])
