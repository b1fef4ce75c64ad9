"""One client: what its errors do to its connection, and when it counts."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from tests.support.view import Server, setup_of
from websockets.exceptions import ConnectionClosed

from pondertree.view.app import MAX_CLIENTS, TRY_LATER, create_app
from pondertree.view.client import MAX_REQUESTS

TOKEN = "the-token-of-the-tests"


def test_error_of_the_sender_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> Any:
        raise ValueError("no frame — today")

    with Server(setup_of()) as server:
        monkeypatch.setattr(server.hub, "frame", fail)
        with server.page() as page:
            with pytest.raises(ConnectionClosed) as closed:
                page.read_for(10)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1011
            assert "no frame" in closed.value.rcvd.reason


@pytest.mark.parametrize("value", [math.nan, np.int64(3), object()])
def test_answer_that_is_not_json_is_an_error(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(setup_of()) as server, server.page() as page:
        monkeypatch.setattr(server.session, "inspect", lambda id: {"type": "node", "moves": [], "path": [value]})
        for _ in range(MAX_REQUESTS + 1):
            assert page.ask("inspect", id=0)["type"] == "error"
        assert page.ask("pause")["type"] == "done"


def test_clients_count_before_their_handshake_ends() -> None:
    """Many clients that connect at once: their handshakes wait until all have been read."""
    app = create_app(setup_of(), TOKEN)
    refused: list[int] = []

    async def connect(go_on: asyncio.Event) -> None:
        scope = {
            "type": "websocket",
            "path": "/socket",
            "query_string": f"token={TOKEN}".encode(),
            "headers": [(b"host", b"127.0.0.1")],
            "subprotocols": [],
        }
        messages = iter(["websocket.connect", "websocket.disconnect"])

        async def receive() -> dict[str, Any]:
            return {"type": next(messages), "code": 1000}

        async def send(message: Any) -> None:
            if message["type"] == "websocket.accept":
                await go_on.wait()
            elif message["type"] == "websocket.close":
                refused.append(message["code"])

        await app(scope, receive, send)

    async def connect_all() -> None:
        go_on = asyncio.Event()
        tasks = [asyncio.create_task(connect(go_on)) for _ in range(MAX_CLIENTS + 3)]
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*tasks)

    asyncio.run(connect_all())
    assert refused == [TRY_LATER] * 3
    assert not app.state.hub.clients
