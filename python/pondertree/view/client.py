"""One client: requests are read and answered, and the state of the session is sent as fast as the client takes it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket, WebSocketDisconnect

from pondertree.view.frames import NOTHING_SENT
from pondertree.view.messages import HERTZ, encode, parse
from pondertree.view.session import described

if TYPE_CHECKING:
    from pondertree.view.hub import Hub

#: Requests of a client in progress; the next ones wait in its connection.
MAX_REQUESTS = 16
#: The code that closes a WebSocket after a message that is not text (RFC 6455).
UNSUPPORTED = 1003


class Client:
    """A connected page. Its memory is bounded: what it has, and replies to at most `MAX_REQUESTS` requests."""

    def __init__(self, hub: Hub, websocket: WebSocket) -> None:
        self._hub = hub
        self._websocket = websocket
        self._sent = NOTHING_SENT
        self._position = ""
        self._failure = hub.session.failure
        self._answers: deque[list[str]] = deque()
        self._news = asyncio.Event()
        self._slots = asyncio.Semaphore(MAX_REQUESTS)
        self._next_frame = 0.0

    def wake(self) -> None:
        """Lets the sender look for news."""
        self._news.set()

    async def serve(self) -> None:
        """Serves the client until it disconnects."""
        self._hub.clients.add(self)
        self._hub.session.watchers = len(self._hub.clients)
        self._hub.session.submit(lambda: None, is_urgent=False)  # to complete a window that nobody watched
        sender = asyncio.create_task(self._send())
        requests: set[asyncio.Task[None]] = set()
        try:
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if message.get("text") is None:
                    await self._websocket.close(UNSUPPORTED, "a message must be text")
                    return
                await self._slots.acquire()
                request = asyncio.create_task(self._answer(message["text"]))
                requests.add(request)
                request.add_done_callback(requests.discard)
        except (WebSocketDisconnect, RuntimeError):
            return
        finally:
            self._hub.clients.discard(self)
            self._hub.session.watchers = len(self._hub.clients)
            sender.cancel()
            for request in requests:
                request.cancel()
            await asyncio.gather(sender, *requests, return_exceptions=True)

    async def _answer(self, text: str) -> None:
        """Carries a request out and queues its replies, the last of which is `done` or `error`."""
        number, replies = None, []
        try:
            number, read = parse(text)
            replies = await self._hub.carry_out(*read())
            replies = [*replies, {"type": "done", "request": number}]
        except Exception as error:
            replies = [{"type": "error", "request": number, "message": described(error)}]
        self._answers.append([encode(answer) for answer in replies])
        self.wake()

    async def _send(self) -> None:
        """Sends what is new: first the position, then replies, then at most `HERTZ` frames a second."""
        session, send = self._hub.session, self._websocket.send_text
        await send(self._hub.hello)
        while True:
            self._news.clear()
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
                await self._news.wait()
                continue
            wait = self._next_frame - time.monotonic()
            if wait <= 0:
                self._next_frame = time.monotonic() + 1 / HERTZ
                text, self._sent = await self._hub.frame(self._sent, snapshot)
                await send(text)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), wait)
