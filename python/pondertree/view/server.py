"""Serves the page on the loopback interface until Ctrl-C."""

from __future__ import annotations

import contextlib
import html
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pondertree.errors import UsageError
from pondertree.optional import require
from pondertree.view.messages import MAX_REQUEST
from pondertree.view.setup import Setup

HOST = "127.0.0.1"
#: The port if none is given; a free one if it is taken.
PORT = 8421
#: Bytes of the operating system's buffer of a connection: a few frames.
SEND_BUFFER = 128 * 1024
#: Seconds that clients have to close when the server ends.
GRACE = 1


def listen(port: int | None) -> socket.socket:
    """Returns a socket that listens on the loopback interface; without a port, on `PORT` or any free one."""
    for candidate in (PORT, 0) if port is None else (port,):
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if sys.platform != "win32":  # there it would let two servers listen on one port
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: what waits in the buffer of a slow client is old when it arrives.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        try:
            server.bind((HOST, candidate))
        except OSError:
            server.close()
            continue
        return server
    raise UsageError(f"port {port} of {HOST} is in use or not allowed: give another --port, or none for a free one")


def server_of(app: Any) -> Any:
    """Returns the uvicorn server of an application. Frames are not compressed: they do not leave this machine."""
    uvicorn = require("uvicorn", "web", "pondertree view")
    require("websockets", "web", "pondertree view")
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=MAX_REQUEST,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def redirect_to(address: str) -> Iterator[Path]:
    """Writes a page that only this user can read and that leads to an address; deletes it at the end.

    The command line of a browser can be read by other users of the machine: it must not contain the token.
    """
    with tempfile.TemporaryDirectory(prefix="pondertree-view-") as folder:
        path = Path(folder) / "open.html"
        link = html.escape(address)
        text = (
            '<!doctype html><meta charset="utf-8"><title>pondertree view</title>'
            f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Open pondertree view</a>'
        )
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        yield path


def serve(
    setup: Setup, token: str, port: int | None = None, *, browser: bool = True, announce: Callable[[str], None] = print
) -> None:
    """Serves a session until Ctrl-C; `announce` is called with the address before."""
    require("starlette", "web", "pondertree view")
    from pondertree.view.app import NOT_BUILT, STATIC, create_app

    server = server_of(create_app(setup, token))
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(listen(port))
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        # From now on connections wait in the queue of the socket.
        listening.listen()
        announce(address)
        if not (STATIC / "index.html").exists():
            announce(NOT_BUILT)
        elif browser:
            page = stack.enter_context(redirect_to(address))
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(page.as_uri())
        server.run(sockets=[listening])
