"""What the clients of a session share: the session, its first message, and the frames that several of them get."""

from __future__ import annotations

import asyncio
import functools
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pondertree.errors import UsageError
from pondertree.view.frames import Sent, Snapshot, frame
from pondertree.view.messages import HERTZ, MAX_MESSAGE, MAX_ROWS, VERSION, encode
from pondertree.view.parameters import parameters_of
from pondertree.view.session import Session
from pondertree.view.setup import Setup
from pondertree.view.solver import ExactSolver

#: Saved trees that are kept, so that a download of one continues while another is saved.
MAX_SAVED = 4


class Hub:
    """The session and its clients. Everything but `session` belongs to the event loop."""

    def __init__(self, setup: Setup, server: str) -> None:
        self.session = Session(setup, self._changed)
        self.hello = hello(setup, server)
        self.clients: set[Any] = set()
        self.saved: dict[str, Path] = {}
        """The files of the trees that were saved last, by the names that the pages chose."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder = Path()
        self._frames: dict[int, tuple[Sent, asyncio.Task[tuple[str, Sent]]]] = {}
        self._framed: Snapshot | None = None
        self._solver = ExactSolver(self.session)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the session's worker."""
        self._loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="pondertree-view-") as folder:
            self._folder = Path(folder)
            self.session.start_worker()
            try:
                yield
            finally:
                self._solver.close()
                await asyncio.to_thread(self.session.close)

    def _changed(self) -> None:
        """Notifies all clients, from the worker, that the session has published something."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.notify)

    def notify(self) -> None:
        """Makes the senders of all clients check for changes."""
        for client in self.clients:
            client.notify()

    async def carry_out(self, kind: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Carries a request out; returns its replies, besides what the session publishes."""
        if self.session.setup.read_only and kind not in ("pause", "window", "inspect", "solve", "cancel"):
            raise UsageError(f"this tree is read-only: {self.session.setup.read_only}")
        if kind == "solve":
            return [await self._solver.solve()]
        if kind == "cancel":
            self._solver.cancel()
            return []
        session = self.session
        commands: dict[str, Callable[..., Any]] = {
            "start": session.start,
            "pause": session.pause,
            "step": session.step,
            "play": session.play,
            "move": session.move,
            "goto": session.goto,
            "setup": session.set_up,
            "new": session.new,
            "settings": session.change_settings,
            "window": session.change_window,
            "inspect": session.inspect,
            "save": self._save,
        }
        command = functools.partial(commands[kind], **fields)
        done = session.submit(command, is_urgent=kind not in ("window", "inspect"))
        answer = await asyncio.wrap_future(done)
        return [] if answer is None else [answer]

    def _save(self, name: str) -> None:
        """Saves the tree to a file of its own and deletes the oldest ones; called by the worker."""
        path = self._folder / f"{secrets.token_hex(8)}.tree"
        self.session.save(path)
        for old in [name, *list(self.saved)[: 1 - MAX_SAVED]]:
            with suppress(OSError):  # Windows does not delete a file that is being read
                if old in self.saved:
                    self.saved[old].unlink(missing_ok=True)
                    del self.saved[old]
        self.saved[name] = path

    async def frame(self, sent: Sent, snapshot: Snapshot) -> tuple[str, Sent]:
        """Returns the next frame for a client that has `sent`; clients that have the same share it."""
        if self._framed is not snapshot:
            self._framed, self._frames = snapshot, {}
        if id(sent) not in self._frames:
            # The entry holds `sent`, so that its id stays unique.
            self._frames[id(sent)] = sent, asyncio.create_task(asyncio.to_thread(frame, sent, snapshot))
        return await asyncio.shield(self._frames[id(sent)][1])


def hello(setup: Setup, server: str) -> str:
    """Returns the first message to a client."""
    position = setup.history[-1][1]
    info = position.info
    return encode(
        {
            "type": "hello",
            "version": VERSION,
            "pondertree": setup.version,
            "server": server,
            "game": {
                "name": position.game,
                "title": position.title,
                "players": list(position.players),
                "num_actions": info.num_actions,
                "chance": info.has_chance,
                "fen": position.game == "chess",
                "solver": info.is_two_player_zero_sum and not info.has_chance and position.game != "chess",
            },
            "presets": [
                {"name": each.name, "title": each.title, "parameters": parameters_of(each)}
                for each in setup.algorithms
                if setup.has_settings
            ],
            "read_only": bool(setup.read_only),
            "reason": setup.read_only,
            "limits": {"nodes": MAX_ROWS, "bytes": MAX_MESSAGE, "hertz": HERTZ},
        }
    )
