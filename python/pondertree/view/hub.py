"""What the clients of a session share: the session, its first message, and the frames that several of them get."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from pondertree.errors import UsageError
from pondertree.view.messages import HERTZ, MAX_MESSAGE, MAX_ROWS, VERSION, encode
from pondertree.view.parameters import parameters_of
from pondertree.view.session import Session
from pondertree.view.setup import Setup
from pondertree.view.window import Sent, Snapshot, frame


class Hub:
    """The session and its clients. Everything but `session` belongs to the event loop."""

    def __init__(self, setup: Setup, server: str) -> None:
        self.session = Session(setup, self._changed)
        self.hello = hello(setup, server)
        self.clients: set[Any] = set()
        self.saved: tuple[str, bytes] | None = None
        """Name and content of the tree that was saved last."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._frames: dict[int, tuple[Sent, asyncio.Task[tuple[str, Sent]]]] = {}
        self._framed: Snapshot | None = None

    def start(self) -> None:
        """Starts the session's worker; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.session.start_worker()

    def _changed(self) -> None:
        """Wakes the senders, from the worker."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Wakes the senders of all clients."""
        for client in self.clients:
            client.wake()

    async def carry_out(self, kind: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Carries a request out; returns its answers, besides what the session publishes."""
        session = self.session
        commands: dict[str, Callable[..., Any]] = {
            "start": session.start,
            "pause": session.pause,
            "play": session.play,
            "move": session.move,
            "goto": session.goto,
            "setup": session.setup_position,
            "new": session.new,
            "settings": session.settings,
            "window": session.window,
        }
        if kind not in commands:
            raise UsageError(f"{kind} is not implemented yet")
        done = session.submit(functools.partial(commands[kind], **fields), is_urgent=kind != "window")
        answer = await asyncio.wrap_future(done)
        return [] if answer is None else [answer]

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
    position = setup.turns[-1][1]
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
                "fen": position.game == "chess",
                "solver": info.is_two_player_zero_sum and position.game != "chess",
            },
            "presets": [
                {"name": each.name, "title": each.title, "parameters": parameters_of(each.search)}
                for each in setup.algorithms
            ],
            "read_only": False,
            "limits": {"nodes": MAX_ROWS, "bytes": MAX_MESSAGE, "hertz": HERTZ},
        }
    )
