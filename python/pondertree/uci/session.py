"""The engine between two commands: its options, the game, and the search that is under way.

Every line is answered here without ever raising: what cannot be done is told as `info string`, and all stays as it was.
Searches run on threads of their own, so that the next command is heard while they think.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pondertree import __version__
from pondertree.errors import PondertreeError
from pondertree.uci import position
from pondertree.uci.clock import Lag
from pondertree.uci.options import Options, declarations
from pondertree.uci.protocol import Command, Debug, Go, Plain, Position, SetOption, Unknown, parse, shown
from pondertree.uci.search_task import Thought
from pondertree.uci.tree_reuse import Kept
from pondertree.uci.writer import Voice
from pondertree.validation import useful_threads

#: Seconds that a search has to end by itself when the input has ended; nobody may be there any more to see it.
LONGEST_WAIT = 60.0


class Session:
    """An engine that is told lines and says lines."""

    def __init__(self, voice: Voice, options: Options | None = None) -> None:
        self.voice = voice
        self.options = Options() if options is None else options
        self._game = position.new_game()
        self._kept = Kept()
        self._lag = Lag()
        self._thought: Thought | None = None
        self._debug = False
        self._plain: dict[str, Callable[[], None]] = {
            "uci": self._introduce,
            "isready": self._get_ready,
            "ucinewgame": self._new_game,
            "stop": self._stop,
            "register": lambda: None,
            "d": self._draw,
        }

    def handle(self, line: str, arrived: float | None = None) -> bool:
        """Does what a line asks for; whether to go on. `arrived` is when it came, by `time.perf_counter`."""
        try:
            return self._do(parse(line), time.perf_counter() if arrived is None else arrived)
        except Exception as error:  # whatever it is, the next line finds an engine
            self.voice.tell(f"the command failed: {type(error).__name__}: {shown(str(error), 200)}")
            return True

    def _do(self, command: Command | None, now: float) -> bool:
        match command:
            case None:
                pass
            case Plain("quit"):
                return False
            case Plain("ponderhit"):
                if self._thought is not None:
                    self._thought.hit(now)
            case Plain(name):
                self._plain[name]()
            case Go():
                self._answer(command, now)
            case Position():
                try:
                    self._game = position.read(command, self._game)
                except PondertreeError as error:
                    self.voice.tell(f"{error}; the position stays as it was")
            case SetOption(name, value):
                self._set(name, value)
            case Debug(on):
                self._debug = on
            case Unknown(why):
                self.voice.tell(why)
        return True

    def close(self, finish: bool = False) -> bool:
        """Ends what is under way, with its answer; whether its thread has come back.

        With `finish`, a search that ends by itself may do so: whoever pipes commands in wants to see the move.
        """
        if self._thought is None:
            return True
        if finish and self._thought.ends_by_itself:
            self._thought.wait_for_answer(LONGEST_WAIT)
        self._stop()
        self._thought.wait_for_answer(1.0)
        return self._thought.join(1.0)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _introduce(self) -> None:
        self._tell_threads()  # the command line may have set them
        about = [f"id name Pondertree {__version__}", "id author the Pondertree developers"]
        self.voice.say([*about, *declarations(), "uciok"])

    def _get_ready(self) -> None:
        """`readyok`; while nothing is searched, what takes time to load is loaded before."""
        if self._thought is None or self._thought.is_over:
            try:
                self._kept.prepare(self.options)
            except Exception as error:
                self.voice.tell(f"the search cannot be set up: {error}")
        self.voice.say(["readyok"])

    def _new_game(self) -> None:
        # A search that is under way keeps the tree it has.
        self._kept = self._kept.renewed()

    def _set(self, name: str, value: str | None) -> None:
        """A search that is under way has its own copy of the options: changes count from the next `go` on."""
        try:
            option = self.options.set(name, value)
        except PondertreeError as error:
            self.voice.tell(str(error))
            return
        if option.kind == "button":
            self._new_game()
        elif option.name == "Threads":
            self._tell_threads()

    def _tell_threads(self) -> None:
        wanted: int = self.options["Threads"]
        used = useful_threads(wanted)
        if used < wanted:
            self.voice.tell(f"Threads: {used} of {wanted} are used, as many as there are CPUs for this process")

    def _stop(self) -> None:
        if self._thought is not None:
            self._thought.stop()

    def _answer(self, go: Go, arrived: float) -> None:
        """Starts the search of a `go`. If that fails, answers with any legal move: a program waits for a `bestmove`."""
        try:
            self._think(go, arrived)
        except Exception as error:
            self.voice.tell(f"go failed: {type(error).__name__}: {shown(str(error), 200)}")
            legal = position.legal_moves(self._game.state)
            moves = [move for move in legal if move in go.searchmoves] or legal or ["(none)"]
            self.voice.say([f"bestmove {moves[0]}"])

    def _think(self, go: Go, arrived: float) -> None:
        for complaint in go.complaints:
            self.voice.tell(complaint)
        legal = frozenset(position.legal_moves(self._game.state)) if go.searchmoves else frozenset()
        unknown = [move for move in go.searchmoves if move not in legal]
        if unknown:
            self.voice.tell(f"go: searchmoves {shown(' '.join(unknown))} are not legal here")
        if self._thought is not None:
            # Every `go` has its answer, also one that was not waited for.
            self._thought.stop()
            self._thought.wait_for_answer()
        thought = Thought(go, self._game, self.options.copy(), self._kept, self.voice, arrived, self._lag)
        if self._debug:
            self.voice.tell(f"{thought.limits}")
        thought.start(self._thought)
        self._thought = thought

    def _draw(self) -> None:
        """The board, as people see it."""
        state = self._game.state
        self.voice.say([*str(state).splitlines(), "", f"Fen: {state.fen()}"])
