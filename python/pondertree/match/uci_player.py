"""UCI programs as chess players, through the engine client of python-chess (an optional dependency).

A program that dies, times out or plays an illegal move has failed: it is killed, and restarted for the next game.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pondertree import validation
from pondertree.config import option
from pondertree.errors import InvalidArgumentError
from pondertree.game import GameInfo
from pondertree.games import name_of_info
from pondertree.match.players import Entrant, PlayedMove, Player, PlayerFailure
from pondertree.match.statistics import score_of
from pondertree.optional import require

if TYPE_CHECKING:
    import chess.engine

T = TypeVar("T")
#: Seconds for a program to terminate.
QUIT_TIMEOUT = 2.0


@dataclass(frozen=True)
class UciEntrant(Entrant):
    """A UCI program: its command, at least one limit per move, and its options by name."""

    command: Sequence[str] | str
    nodes: int | None = option(None, validation.count, optional=True)
    depth: int | None = option(None, validation.count, optional=True)
    movetime: float | None = option(None, validation.positive_number, optional=True)
    """Seconds per move."""
    timeout: float = option(60.0, validation.positive_number)
    """Seconds beyond `movetime` after which a move fails."""
    start_timeout: float = option(60.0, validation.positive_number)
    """Seconds for the program to start."""
    restart: bool = option(False, validation.flag)
    """Whether to restart the program for each game, instead of sending `ucinewgame`."""
    name_as: str | None = None
    """The display name; by default the file name and limits."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validation.check_fields(self)
        words = [self.command] if isinstance(self.command, str) else list(self.command)
        if not words or not all(isinstance(word, str) and word for word in words):
            raise InvalidArgumentError(f"command must be a program and its arguments, not {self.command!r}")
        object.__setattr__(self, "command", tuple(words))
        if self.nodes is None and self.depth is None and self.movetime is None:
            raise InvalidArgumentError("a UCI program needs a limit: nodes, depth or movetime (seconds a move)")

    @property
    def text(self) -> str:
        settings = {name: getattr(self, name) for name in ("nodes", "depth", "movetime", "timeout", "restart")}
        settings |= {f"option.{name}": value for name, value in sorted(self.options.items())}
        listed = [f",{name}={value}" for name, value in settings.items() if value is not None]
        return f"uci:{shlex.join(self.command)}{''.join(listed)}"

    @property
    def name(self) -> str:
        if self.name_as is not None:
            return self.name_as
        limits = [f"{name}={getattr(self, name)}" for name in ("nodes", "depth", "movetime") if getattr(self, name)]
        return f"{os.path.basename(self.command[0])}({', '.join(limits)})"

    def check(self, info: GameInfo) -> None:
        if info.name != "chess":
            raise InvalidArgumentError(f"a UCI program plays chess, not {name_of_info(info)}")
        require("chess.engine", "python-chess", "a UCI program as a player")
        if shutil.which(self.command[0]) is None:
            raise InvalidArgumentError(f"there is no program {self.command[0]!r} that can be run")

    def start(self) -> Player:
        player = _Program(self)
        try:
            player.open()
        except BaseException:
            player.close()
            raise
        return player


class _Program(Player):
    """A running program, with its protocol on an event loop in a thread."""

    def __init__(self, entrant: UciEntrant) -> None:
        self._entrant = entrant
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._running: tuple[asyncio.SubprocessTransport, chess.engine.UciProtocol] | None = None

    def _call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Runs `work` on the loop; raises a `TimeoutError` after `seconds`."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self._loop).result()

    def open(self) -> None:
        """Starts the program and sets its options."""
        engine = require("chess.engine", "python-chess", "a UCI program as a player")

        async def begin() -> None:
            # In its own process group, the program does not receive Ctrl-C of the terminal; we end it.
            command = list(self._entrant.command)
            self._running = await engine.UciProtocol.popen(command, setpgrp=os.name == "posix")
            await self._running[1].initialize()
            await self._running[1].configure(dict(self._entrant.options))

        try:
            self._call(begin(), self._entrant.start_timeout)
        except TimeoutError:
            self._end()
            raise PlayerFailure("timeout", f"no answer to uci within {self._entrant.start_timeout:g} s") from None
        except (OSError, engine.EngineError) as error:
            self._end()
            raise PlayerFailure("died", f"{type(error).__name__}: {error}") from error

    def new_game(self, state: Any, seed: int) -> None:
        import chess

        if self._running is not None and (self._entrant.restart or self._running[0].get_returncode() is not None):
            self._end()
        if self._running is None:
            self.open()
        self._board = chess.Board(state.fen())
        #: python-chess sends `ucinewgame` when this object changes.
        self._game = object()

    def choose(self, state: Any) -> PlayedMove:
        import chess.engine

        assert self._running is not None
        protocol = self._running[1]
        entrant = self._entrant
        limit = chess.engine.Limit(time=entrant.movetime, nodes=entrant.nodes, depth=entrant.depth)
        seconds = (entrant.movetime or 0.0) + entrant.timeout
        request = protocol.play(self._board, limit, game=self._game, info=chess.engine.INFO_SCORE)
        try:
            answer = self._call(request, seconds)
        except TimeoutError:
            self._end()
            raise PlayerFailure("timeout", f"no move within {seconds:g} s") from None
        except chess.engine.EngineTerminatedError as error:
            self._end()
            raise PlayerFailure("died", str(error)) from error
        except chess.engine.EngineError as error:
            self._end()
            raise PlayerFailure("illegal_move", str(error)) from error
        # python-chess converts `bestmove 0000` to a null move.
        if not answer.move:
            self._end()
            raise PlayerFailure("illegal_move", "it gave no move, although there are legal ones")
        return PlayedMove(state.parse_action(answer.move.uci()), _value(answer.info.get("score")))

    def played(self, state: Any, action: int) -> None:
        self._board.push_uci(state.action_to_string(action))

    def _end(self) -> None:
        """Kills the program."""
        running, self._running = self._running, None
        if running is None:
            return
        transport = running[0]

        async def kill() -> None:
            with suppress(ProcessLookupError):
                transport.kill()
            await running[1].returncode
            transport.close()

        with suppress(TimeoutError, Exception):
            self._call(kill(), QUIT_TIMEOUT)

    def close(self) -> None:
        if self._running is not None and self._running[0].get_returncode() is None:
            with suppress(TimeoutError, Exception):
                self._call(self._running[1].quit(), QUIT_TIMEOUT)
        self._end()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(QUIT_TIMEOUT)
            if not self._thread.is_alive():
                self._loop.close()


def _value(score: chess.engine.PovScore | None) -> float | None:
    """Converts a UCI score to a value in [-1, 1]; 400 centipawns count as 400 Elo."""
    if score is None:
        return None
    centipawns = score.relative.score()
    if centipawns is None:
        mate = score.relative.mate()
        return None if mate is None else 1.0 if mate > 0 else -1.0
    return 2.0 * score_of(float(centipawns)) - 1.0
