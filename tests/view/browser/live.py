"""A server of `pondertree view` in this process, and what the tests read of its page."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pondertree.cli import main

TOKEN = "a-token-of-the-tests"
#: Milliseconds to wait for what the page shall show; generous, since tests also run on loaded machines.
PATIENCE_MS = 30_000
#: The window of a desktop, and of a phone.
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Returns the path of a Chromium: that of the environment variable, or one that is installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = [os.environ.get("PONDERTREE_CHROMIUM"), *map(shutil.which, names)]
    return next((path for path in found if path), None)


def setup_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """Returns what `pondertree view` with these arguments would serve."""
    found = []
    monkeypatch.setattr("pondertree.view.server.serve", lambda setup, *rest, **options: found.append(setup))
    assert main(["view", *arguments]) == 0
    return found[0]


class LiveServer:
    """A server on a port of its own, which can be stopped and started again."""

    def __init__(self, setup: Any) -> None:
        self._setup = setup
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={TOKEN}"
        self.start()

    def start(self) -> None:
        """Starts a new session on the port."""
        import uvicorn

        from pondertree.view.app import create_app

        self.app = create_app(self._setup, TOKEN)
        config = uvicorn.Config(
            self.app, host="127.0.0.1", port=self.port, log_level="warning", ws="websockets-sansio",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """Stops the server."""
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive(), "the server does not stop"


class Watched:
    """A page, and the complaints of its console."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: message.type in ("error", "warning") and self._complain(message.text))
        page.on("pageerror", lambda error: self._complain(str(error)))

    def _complain(self, text: str) -> None:
        self.complaints.append(text)

    def open(self, server: LiveServer) -> None:
        """Opens the page of a server and waits until it shows the position."""
        self.server = server
        self.page.goto(server.url)
        self.page.wait_for_selector('#connection[data-state="open"]')
        self.wait("document.querySelector('#turn').textContent !== ''")

    def tree(self) -> Any:
        """Returns the tree of the server; nothing may be searching."""
        return self.server.app.state.hub.session._live.tree

    def wait(self, condition: str, argument: Any = None) -> None:
        """Waits for a condition in JavaScript."""
        function = condition if argument is not None else f"() => {condition}"
        self.page.wait_for_function(function, arg=argument, timeout=PATIENCE_MS)

    def press(self, test_id: str) -> None:
        """Clicks an element."""
        self.page.get_by_test_id(test_id).click()

    def number(self, test_id: str) -> float | None:
        """Returns the number that an element shows, in full precision."""
        return as_number(self.page.get_by_test_id(test_id).get_attribute("data-value"))

    def simulate(self, simulations: int) -> None:
        """Sets the limit and searches up to it."""
        self.page.get_by_test_id("limit-kind").select_option("simulations")
        self.page.get_by_test_id("limit").fill(str(simulations))
        self.page.get_by_test_id("limit").press("Enter")
        self.press("run")
        self.idle(simulations)

    def idle(self, least: int) -> None:
        """Waits until the search has stopped after at least so many simulations."""
        self.wait(
            "least => document.querySelector('#run').dataset.running === 'false' && "
            "Number(document.querySelector('[data-testid=status-simulations]').dataset.value) >= least",
            least,
        )

    def rows(self) -> dict[int, dict[str, float | None]]:
        """Returns the numbers of the table of moves: per action, by the names of the columns."""
        found = self.page.evaluate(
            """() => [...document.querySelectorAll('[data-testid=moves] tbody tr')].map(row => [
                Number(row.dataset.action),
                [...row.querySelectorAll('td[data-column]')].filter(cell => !cell.hidden).map(cell => [
                    cell.dataset.column,
                    (cell.querySelector('[data-value]') ?? cell).dataset.value ?? null,
                    cell.dataset.distance ?? null])])"""
        )
        return {
            action: {
                **{name: as_number(value) for name, value, _ in cells},
                **{f"{name}_distance": as_number(distance) for name, _, distance in cells if distance is not None},
            }
            for action, cells in found
        }


def as_number(text: str | None) -> float | None:
    return float(text) if text else None


@contextlib.contextmanager
def serving(setup: Any) -> Iterator[LiveServer]:
    """Runs a server until the end of the block."""
    server = LiveServer(setup)
    try:
        yield server
    finally:
        server.stop()
