"""Sessions, servers and clients for tests of `pondertree view`."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

from pondertree.cli import view as command
from pondertree.cli.position import read_position
from pondertree.view.app import create_app
from pondertree.view.live import LiveSearch, build
from pondertree.view.server import listen, server_of
from pondertree.view.session import Session
from pondertree.view.setup import Setup, ViewSettings

TOKEN = "the-token-of-the-tests"


def setup_of(
    game: str = "connect4",
    algorithm: str = "uct",
    *,
    simulations: int | None = 1000,
    moves: str = "",
    fen: str | None = None,
    seed: int = 1,
    **parameters: Any,
) -> Setup:
    """Returns the setup that the command line makes; `parameters` are those of the search."""
    position = read_position(game, moves, fen)
    settings = ViewSettings(algorithm, parameters, seed, simulations, None)
    return command.setup_of(position, fen, command.algorithms(position, None), settings)


def live_of(setup: Setup) -> LiveSearch:
    """Returns the search of a setup's position."""
    search, state = build(setup.algorithms, setup.settings), setup.history[-1][1].state
    return LiveSearch(search, state, search.tree(state))


@contextlib.contextmanager
def session_of(setup: Setup) -> Iterator[Session]:
    """Runs a session without a server; as if a page watched it."""
    session = Session(setup, lambda: None)
    session.watchers = 1
    session.start_worker()
    try:
        yield session
    finally:
        session.close()


def call(session: Session, command: Callable[[], Any]) -> Any:
    """Lets the worker of a session call a command and returns its result."""
    return session.submit(command).result(timeout=60)


def wait_until(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.005)


class Server:
    """A server on a free port of the loopback interface, in a thread."""

    def __init__(self, setup: Setup, static: Path | None = None) -> None:
        self.app = create_app(setup, TOKEN, **({} if static is None else {"static": static}))
        self.hub = self.app.state.hub
        self._listening = listen(None)
        self.port = self._listening.getsockname()[1]
        self._server = server_of(self.app)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})

    @property
    def session(self) -> Session:
        return self.hub.session  # type: ignore[no-any-return]

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()

    def connect(self, token: str = TOKEN, receive_buffer: int | None = None) -> ClientConnection:
        """Connects a WebSocket, which the caller closes; with a small receive buffer, it is one that reads slowly."""
        address = f"ws://127.0.0.1:{self.port}/socket?token={token}"
        options: dict[str, Any] = {"max_size": None, "ping_interval": None, "close_timeout": 0.1}
        if receive_buffer is not None:
            options |= {"sock": socket.socket(), "max_queue": 1}
            options["sock"].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            options["sock"].connect(("127.0.0.1", self.port))
        return connect(address, **options).__enter__()

    def page(self, receive_buffer: int | None = None) -> Page:
        """Connects a client that follows the messages."""
        return Page(self.connect(receive_buffer=receive_buffer))


class Page:
    """A client: what a page knows after the messages so far."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.messages: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self.times: list[float] = []
        """When frames came."""
        self.position: dict[str, Any] = {}
        self.frame: dict[str, Any] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self._request = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def read(self, timeout: float = 30.0) -> dict[str, Any]:
        """Reads a message and applies it."""
        text = self.connection.recv(timeout=timeout)
        message: dict[str, Any] = json.loads(text)
        self.messages.append(message)
        self.sizes.append(len(text))
        if message["type"] == "position":
            self.position = message
        if message["type"] == "frame":
            self.times.append(time.monotonic())
            self.frame = message
            apply_tree(self.nodes, message["tree"])
        return message

    def read_until(self, wanted: Callable[[dict[str, Any]], Any], seconds: float = 30.0) -> dict[str, Any]:
        """Reads messages until one is wanted."""
        end = time.monotonic() + seconds
        while True:
            message = self.read(end - time.monotonic())
            if wanted(message):
                return message

    def read_for(self, seconds: float) -> None:
        """Reads messages for some time."""
        end = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            while end > time.monotonic():
                self.read(end - time.monotonic())

    def send(self, kind: str, **fields: Any) -> int:
        """Sends a request and returns its number."""
        self._request += 1
        self.connection.send(json.dumps({"request": self._request, "type": kind, **fields}))
        return self._request

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Sends a request; returns its answer, `done` or `error` if there is no other."""
        before, number = len(self.messages), self.send(kind, **fields)
        last = self.read_until(lambda message: message.get("request") == number)
        replies = [each for each in self.messages[before:] if each["type"] in ("node", "step", "solved")]
        return replies[-1] if replies and last["type"] == "done" else last

    def catch_up(self, session: Session) -> None:
        """Reads until the page has the whole tree of the session's last snapshot."""
        while not self._has(session):
            self.read()

    def _has(self, session: Session) -> bool:
        snapshot = session.snapshot
        if snapshot is None or self.frame.get("position") != snapshot.position:
            return False
        rows = snapshot.rows
        visits = dict(zip(rows.ids.tolist(), rows.values[:, 0].tolist(), strict=True))
        return {number: node["visits"] for number, node in self.nodes.items()} == visits


def apply_tree(nodes: dict[int, dict[str, Any]], tree: dict[str, Any]) -> None:
    """Applies the changes of a frame as the page does."""
    if tree["reset"]:
        nodes.clear()
    for number in tree["remove"]:
        del nodes[number]
    for node in tree["add"]:
        assert node["id"] not in nodes
        assert node["parent"] is None or node["parent"] in nodes
        nodes[node["id"]] = node
    for number, visits, q, proven, hidden, pv in tree["change"]:
        nodes[number] |= {"visits": visits, "q": q, "proven": proven, "hidden": hidden, "pv": pv}


class Deep:
    """A zero-sum game of 60 moves in Python whose moves take a millisecond, so that solving it takes long."""

    num_players, num_actions = 2, 4

    def __init__(self, moves: tuple[int, ...] = ()) -> None:
        self.moves, self.to_play, self.is_terminal = moves, len(moves) % 2, len(moves) >= 60

    def __hash__(self) -> int:
        return hash(self.moves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deep) and self.moves == other.moves

    def legal_actions(self) -> list[int]:
        return [0, 1, 2, 3]

    def play(self, action: int) -> Deep:
        time.sleep(0.001)
        return Deep((*self.moves, action))

    def returns(self) -> list[float]:
        return [0.0, 0.0]
