"""Serves the page on the loopback interface until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from collections.abc import Callable

from pondertree.errors import UsageError
from pondertree.optional import require
from pondertree.view.messages import MAX_REQUEST
from pondertree.view.setup import Setup

HOST = "127.0.0.1"
#: The port if none is given; a free one if it is taken.
PORT = 8421
#: Seconds that clients have to close when the server ends.
GRACE = 1


def listen(port: int | None) -> socket.socket:
    """Returns a socket that listens on the loopback interface; without a port, on `PORT` or any free one."""
    for candidate in (PORT, 0) if port is None else (port,):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((HOST, candidate))
        except OSError:
            server.close()
            continue
        return server
    raise UsageError(f"port {port} of {HOST} is in use or not allowed: give another --port, or none for a free one")


def serve(
    setup: Setup, token: str, port: int | None = None, *, browser: bool = True, announce: Callable[[str], None] = print
) -> None:
    """Serves a session until Ctrl-C; `announce` is called with the address before."""
    uvicorn = require("uvicorn", "web", "pondertree view")
    require("starlette", "web", "pondertree view")
    require("websockets", "web", "pondertree view")
    from pondertree.view.app import create_app

    with listen(port) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        config = uvicorn.Config(
            create_app(setup, token),
            log_level="warning",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=MAX_REQUEST,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        server = uvicorn.Server(config)
        announce(address)
        if browser:
            # Opened before the first request can be answered: it waits in the queue of the socket.
            listening.listen()
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(address)
        server.run(sockets=[listening])
