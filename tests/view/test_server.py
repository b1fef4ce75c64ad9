"""The server: who may connect, what it refuses, and how it treats many and slow clients."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from tests.support.view import TOKEN, Server, setup_of, wait_until
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pondertree.cli import main
from pondertree.errors import UsageError
from pondertree.view.app import MAX_CLIENTS
from pondertree.view.messages import HERTZ, MAX_MESSAGE, MAX_REQUEST
from pondertree.view.server import listen, serve

WIDE = "tests.view.test_window:Crowd"


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A built page."""
    (tmp_path / "index.html").write_text("<!doctype html><title>a page</title>")
    (tmp_path / "app.js").write_text("1")
    (tmp_path.parent / "secret.txt").write_text("secret")
    return tmp_path


def get(server: Server, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{server.port}{path}", headers=headers, timeout=10)


def test_page_and_its_files_are_served_with_security_headers(static: Path) -> None:
    with Server(setup_of(), static) as server:
        page = get(server, f"/?token={TOKEN}")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        script = get(server, "/app.js")
        assert (script.status_code, script.text) == (200, "1")
        for answer in (page, script):
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
        assert get(server, "/nothing.js").status_code == 404
        assert "secret" not in get(server, "/..%2fsecret.txt").text


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=" + TOKEN[:-1], "?Token=" + TOKEN])
def test_wrong_token_is_refused(query: str, static: Path) -> None:
    with Server(setup_of(), static) as server:
        assert get(server, f"/{query}").status_code == 403
        assert get(server, f"/tree{query}").status_code == 403
        with pytest.raises(InvalidStatus) as refusal:
            server.connect(token=query.removeprefix("?token="))
        assert refusal.value.response.status_code == 403


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://localhost:1"),
        ("Host", "evil.example"),
        ("Host", "localhost.evil.example:8421"),
        ("Host", ""),
        ("Host", "["),
    ],
)
def test_foreign_host_and_origin_are_refused(header: str, value: str) -> None:
    with Server(setup_of()) as server:
        assert get(server, f"/?token={TOKEN}", **{header: value}).status_code in (400, 403)
        assert handshake(server, {header: value}) in (400, 403)
        host = f"localhost:{server.port}"
        assert handshake(server, {"Host": host, "Origin": f"http://{host}"}) == 101


def handshake(server: Server, headers: dict[str, str]) -> int:
    """The status of a WebSocket handshake with exactly these headers."""
    lines = {"Host": f"127.0.0.1:{server.port}", **headers}
    request = [
        f"GET /socket?token={TOKEN} HTTP/1.1",
        *(f"{name}: {value}" for name, value in lines.items()),
        *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall("\r\n".join([*request, "", ""]).encode())
        return int(connection.recv(4096).split()[1])


def test_missing_page_says_how_to_build_it(tmp_path: Path) -> None:
    with Server(setup_of(), tmp_path / "none") as server:
        answer = get(server, f"/?token={TOKEN}")
        assert answer.status_code == 503
        assert "make view" in answer.text


def test_hello_describes_game_and_searches() -> None:
    with Server(setup_of("chess", "hybrid")) as server, server.page() as page:
        hello = page.read()
        assert hello["type"] == "hello"
        assert hello["game"] == {
            "name": "chess",
            "title": "Chess",
            "players": ["White", "Black"],
            "num_actions": 4672,
            "chance": False,
            "fen": True,
            "solver": False,
        }
        assert [preset["name"] for preset in hello["presets"]] == ["uct", "alphazero", "gumbel", "hybrid"]
        assert hello["limits"] == {"nodes": 4000, "bytes": MAX_MESSAGE, "hertz": HERTZ}
        assert page.read()["type"] == "position"
        assert page.read()["type"] == "frame"


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "[]", "{}", '{"request":1}', '{"request":2,"type":"x"}', '{"request":3,"type":"goto"}'),
        *('{"request":4,"type":"play","action":{}}', "[" * 10_000, '{"request":5,"type":"goto","ply":99}'),
    ],
)
def test_malformed_messages_are_answered_by_an_error(text: str) -> None:
    with Server(setup_of()) as server, server.page() as page:
        page.connection.send(text)
        error = page.read_until(lambda message: message["type"] == "error")
        assert "Traceback" not in error["message"]
        assert 0 < len(error["message"]) <= 1_000
        assert page.ask("pause")["type"] == "done"


def test_oversized_and_binary_messages_end_the_connection_with_a_code(caplog: pytest.LogCaptureFixture) -> None:
    with Server(setup_of()) as server:
        for message, code in ((" " * (MAX_REQUEST + 1), 1009), (b"\x00", 1003)):
            with server.page() as page:
                page.read()
                page.connection.send(message)
                with pytest.raises(ConnectionClosed) as closed:
                    page.read_for(10)
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == code
        with server.page() as page:
            page.connection.send(" " * (MAX_REQUEST - 100) + '{"request":1,"type":"pause"}')
            page.read_until(lambda message: message["type"] == "done")
    assert not caplog.records


@pytest.mark.parametrize("game", ["connect4", WIDE, "hex"])
def test_frames_are_few_and_small(game: str) -> None:
    parameters = {"max_depth": 2} if game == WIDE else {}
    with Server(setup_of(game, simulations=None, **parameters)) as server, server.page() as page:
        page.send("start")
        page.read_until(lambda message: message["type"] == "frame" and message["status"]["simulations"] > 0)
        first = len(page.times)
        page.read_for(3)
        page.ask("pause")
        frames = len(page.times) - first
        assert 3 <= frames <= 3.3 * HERTZ
        assert max(page.sizes) <= MAX_MESSAGE
        page.catch_up(server.session)
        assert len(page.nodes) <= 4000
        assert max(page.sizes) <= MAX_MESSAGE


def test_fifty_clients_share_a_session() -> None:
    with Server(setup_of(simulations=None)) as server:
        pages = [server.page() for _ in range(50)]
        try:
            assert pages[0].ask("start")["type"] == "done"
            time.sleep(1.5)
            assert pages[-1].ask("pause")["type"] == "done"
            for page in pages:
                page.catch_up(server.session)
                assert page.position == pages[0].position
                assert page.nodes == pages[0].nodes
                assert page.frame["moves"] == pages[0].frame["moves"]
            assert pages[7].ask("play", text="4")["type"] == "done"
            for page in pages:
                if page.position["ply"] == 0:
                    page.read_until(lambda message: message["type"] == "position" and message["ply"] == 1)
        finally:
            for page in pages:
                page.connection.close()
        wait_until(lambda: not server.hub.clients)
        assert server.session.watchers == 0


def test_more_clients_than_the_most_are_refused() -> None:
    with Server(setup_of()) as server:
        connections = [server.connect() for _ in range(MAX_CLIENTS)]
        with pytest.raises(InvalidStatus):
            server.connect()
        connections.pop().close()
        wait_until(lambda: len(server.hub.clients) < MAX_CLIENTS)
        server.page().read()
        for connection in connections:
            connection.close()


def test_slow_client_gets_the_last_frame_and_costs_bounded_memory() -> None:
    with Server(setup_of(simulations=None)) as server, server.page() as page:
        slow = server.page(receive_buffer=4096)
        page.ask("start")
        page.read_for(2)
        tracemalloc.start()
        page.read_for(1)
        before, own = tracemalloc.get_traced_memory()[0], sum(page.sizes)
        page.read_for(4)
        grown, own = tracemalloc.get_traced_memory()[0] - before, sum(page.sizes) - own
        tracemalloc.stop()
        page.ask("pause")
        # What the test itself keeps of the messages, and the texts of the positions shown.
        assert grown < 12 * own + 10_000_000
        last = page.frame["sequence"]
        slow.catch_up(server.session)
        page.catch_up(server.session)
        assert slow.nodes == page.nodes
        running = [message for message in slow.messages if message["type"] == "frame" and message["status"]["running"]]
        # The buffers of the connection hold a dozen frames; a busy machine sends few more in this time.
        assert len(running) < max(last / 2, 15)
        slow.connection.close()


def test_flood_of_requests_is_answered_in_bounded_number() -> None:
    with Server(setup_of()) as server, server.page() as page:
        for _ in range(500):
            page.send("window", nodes=10)
        for _ in range(500):
            page.read_until(lambda message: message["type"] == "done")
        assert len(page.times) < 100


def test_solver_and_details_answer_over_the_socket() -> None:
    with Server(setup_of("tic-tac-toe", moves="a1 b2 a2")) as server, server.page() as page:
        solved = page.ask("solve")
        assert solved["type"] == "solved"
        values = {move["action"]: (move["value"], move["distance"]) for move in solved["moves"]}
        assert values[6] == (0, None)
        assert values[1] == (-1, 2)
        page.ask("start", simulations=200)
        page.read_until(lambda message: message["type"] == "frame" and not message["status"]["running"])
        details = page.ask("inspect", id=0)
        assert (details["type"], details["path"], len(details["moves"])) == ("node", [], 6)
        assert details["node"]["visit_count"] == page.frame["status"]["simulations"]
    with Server(setup_of("connect4", moves="4 4 4 4 4 4 3 3 3 3 3 3 5 5 5 5 5 5 1 1")) as server, server.page() as page:
        solved = page.ask("solve")
        assert {move["value"] for move in solved["moves"]} <= {-1, 0, 1}
    with Server(setup_of("othello")) as server, server.page() as page:
        assert "positions can be reached" in page.ask("solve")["message"]


def test_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with listen(None) as first:
        port = first.getsockname()[1]
        first.listen()
        with pytest.raises(UsageError, match=f"port {port} .* in use"):
            listen(port)
        assert main(["view", "connect4", "--no-browser", "--port", str(port)]) == 2
        assert f"port {port}" in capsys.readouterr().err
        with listen(None) as second:
            assert second.getsockname()[1] != port


def test_port_is_not_shared_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen(None) as posix:
        assert sys.platform == "win32" or posix.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
    monkeypatch.setattr(sys, "platform", "win32")
    with listen(0) as windows:
        assert not windows.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


def test_browser_gets_the_token_in_a_file_of_this_user(static: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    pages: list[tuple[str, int]] = []

    class Idle:
        def run(self, sockets: list[socket.socket]) -> None:
            path = Path(unquote(urlsplit(opened[0]).path))
            pages.append((path.read_text(), path.stat().st_mode & 0o777))
            assert path.parent.stat().st_mode & 0o777 == 0o700 or sys.platform == "win32"

    monkeypatch.setattr("pondertree.view.app.STATIC", static)
    monkeypatch.setattr("pondertree.view.server.server_of", lambda app: Idle())
    monkeypatch.setattr("webbrowser.open", opened.append)
    addresses: list[str] = []
    serve(setup_of(), TOKEN, announce=addresses.append)
    assert TOKEN not in opened[0]
    assert opened[0].startswith("file:")
    text, mode = pages[0]
    assert f'content="0; url={addresses[0]}"' in text
    assert mode == 0o600 or sys.platform == "win32"
    assert not Path(unquote(urlsplit(opened[0]).path)).exists()


def test_token_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens: list[str] = []
    monkeypatch.setattr("pondertree.view.server.serve", lambda setup, token, *_, **__: tokens.append(token))
    monkeypatch.setenv("PONDERTREE_TOKEN", TOKEN)
    assert main(["view", "connect4"]) == 0
    assert main(["view", "connect4", "--token", "another-token-of-tests"]) == 0
    monkeypatch.setenv("PONDERTREE_TOKEN", "")
    assert main(["view", "connect4"]) == 0
    assert tokens[:2] == [TOKEN, "another-token-of-tests"]
    assert len(tokens[2]) > 16
    monkeypatch.setenv("PONDERTREE_TOKEN", "short")
    with pytest.raises(SystemExit):
        main(["view", "connect4"])
    assert "PONDERTREE_TOKEN" in capsys.readouterr().err


def test_game_comes_before_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setups: list[Any] = []
    monkeypatch.setattr("pondertree.view.server.serve", lambda setup, *_, **__: setups.append(setup))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chess").write_text("no tree")
    assert main(["view", "chess"]) == 0
    assert setups[0].history[0][1].game == "chess"
    assert main(["view", "./chess"]) == 2


class Program:
    """`pondertree view` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pondertree", "view", *arguments, "--no-browser"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline()]
        while "http://" not in lines[-1]:
            assert lines[-1], self.process.communicate()
            lines.append(self.process.stdout.readline())
        self.address = lines[-1][lines[-1].index("http://") :].strip()

    def stop(self) -> tuple[int, str]:
        """Presses Ctrl-C; returns the exit status and what was printed on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of a process group")
def test_ctrl_c_ends_the_server_and_a_restart_keeps_the_token() -> None:
    from websockets.sync.client import connect

    servers = []
    port = 0
    for _ in range(2):
        arguments = ["connect4", "--algorithm", "uct", "--token", TOKEN, *(["--port", str(port)] if port else [])]
        program = Program(*arguments)
        port = int(program.address.split(":")[2].split("/")[0])
        assert program.address == f"http://127.0.0.1:{port}/?token={TOKEN}"
        with connect(f"ws://127.0.0.1:{port}/socket?token={TOKEN}", max_size=None) as connection:
            servers.append(json.loads(connection.recv(10))["server"])
            connection.send('{"request":1,"type":"start","simulations":null}')
            time.sleep(0.5)
            status, errors = program.stop()
        assert (status, errors) == (0, "")
    assert servers[0] != servers[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["connect4", "--port", "0"], "from 1 to 65535"),
        (["connect4", "--token", "short"], "at least 16"),
        (["connect4", "--algorithm", "reference"], "reference"),
        (["nonsense"], "unknown game"),
        ([], "no GAME"),
    ],
)
def test_wrong_arguments_are_reported(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: Any = main(["view", *arguments])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err
