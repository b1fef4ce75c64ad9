"""One client: requests are read and answered, and the state of the session is sent as fast as the client takes it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from pondertree.view.details import encode_reply
from pondertree.view.frames import NOTHING_SENT
from pondertree.view.messages import HERTZ, encode, parse
from pondertree.view.session import described

if TYPE_CHECKING:
    from pondertree.view.hub import Hub

#: Requests of a client in progress; the next ones wait in its connection.
MAX_REQUESTS = 16
#: Codes of closed WebSockets (RFC 6455): after a message that is not text, and after an unexpected error.
UNSUPPORTED, INTERNAL_ERROR = 1003, 1011
#: Characters of the reason of a closed WebSocket, in ASCII.
MAX_REASON = 120


class Client:
    """A connected page. Its memory is bounded: what it has, and replies to at most `MAX_REQUESTS` requests."""

    def __init__(self, hub: Hub, websocket: WebSocket) -> None:
        self._hub = hub
        self._websocket = websocket
        self._sent = NOTHING_SENT
        self._position = ""
        self._failure = hub.session.failure
        self._answers: deque[list[str]] = deque()
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(MAX_REQUESTS)
        self._next_frame = 0.0

    def notify(self) -> None:
        """Makes the sender check for changes."""
        self._changed.set()

    async def serve(self) -> None:
        """Accepts the connection and serves the client until it disconnects; it counts as a client from the start."""
        self._hub.clients.add(self)
        tasks: set[asyncio.Task[None]] = set()
        try:
            await self._websocket.accept()
            self._hub.session.watchers = len(self._hub.clients)
            self._hub.session.submit(
                lambda: None, is_urgent=False
            )  # completes a snapshot left incomplete without clients
            ends = {asyncio.create_task(self._send()), asyncio.create_task(self._read(tasks))}
            tasks |= ends
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.clients.discard(self)
            self._hub.session.watchers = len(self._hub.clients)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for error in (task.exception() for task in done):
            if isinstance(error, Exception):
                await self._close_after(error)

    async def _close_after(self, error: Exception) -> None:
        """Reports an error of the sender or the reader, and closes the connection unless the client has done so."""
        states = self._websocket.client_state, self._websocket.application_state
        if isinstance(error, WebSocketDisconnect) or WebSocketState.DISCONNECTED in states:
            return
        logging.getLogger(__name__).error("a client of pondertree view was disconnected", exc_info=error)
        reason = described(error).encode("ascii", "replace")[:MAX_REASON].decode()
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await self._websocket.close(INTERNAL_ERROR, reason)

    async def _read(self, tasks: set[asyncio.Task[None]]) -> None:
        """Reads requests until the client disconnects; each is answered by one of `tasks`."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("text") is None:
                await self._websocket.close(UNSUPPORTED, "a message must be text")
                return
            await self._slots.acquire()
            request = asyncio.create_task(self._answer(message["text"]))
            tasks.add(request)
            request.add_done_callback(tasks.discard)

    async def _answer(self, text: str) -> None:
        """Carries a request out and queues its replies, the last of which is `done` or `error`."""
        number = None
        try:
            number, read = parse(text)
            texts = [encode_reply(reply) for reply in await self._hub.carry_out(*read())]
            texts.append(encode({"type": "done", "request": number}))
        except Exception as error:
            texts = [encode({"type": "error", "request": number, "message": described(error)})]
        self._answers.append(texts)
        self.notify()

    async def _send(self) -> None:
        """Sends what is new: first the position, then replies, then at most `HERTZ` frames a second."""
        session, send = self._hub.session, self._websocket.send_text
        await send(self._hub.hello)
        while True:
            self._changed.clear()
            if self._position is not session.position:
                self._position = session.position
                await send(self._position)
            if self._failure is not session.failure:
                self._failure = session.failure
                await send(encode({"type": "error", "request": None, "message": self._failure}))
            while self._answers:
                for text in self._answers.popleft():
                    await send(text)
                self._slots.release()
            snapshot = session.snapshot
            if snapshot is None or self._sent.is_up_to_date(snapshot):
                await self._changed.wait()
                continue
            wait = self._next_frame - time.monotonic()
            if wait <= 0:
                self._next_frame = time.monotonic() + 1 / HERTZ
                text, self._sent = await self._hub.frame(self._sent, snapshot)
                await send(text)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait)
