"""What clients share: exact solves and saved trees."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.view import TOKEN, Server, setup_of, wait_until

from pondertree.view import hub
from pondertree.view.hub import MAX_SAVED


def test_a_position_is_solved_once_and_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[Any] = []
    running: list[int] = []
    go_on, lock = threading.Event(), threading.Lock()

    def solve(state: Any) -> list[dict[str, Any]]:
        with lock:
            solved.append(state)
            running.append(len(solved) - running.count(-1))
        go_on.wait(30)
        return [{"action": 3, "value": 0, "distance": None}]

    monkeypatch.setattr(hub, "solve", solve)
    with Server(setup_of("connect4")) as server, server.page() as leaving:
        pages = [server.page() for _ in range(20)]
        try:
            leaving.send("solve")
            wait_until(lambda: solved)
            leaving.connection.close()
            for page in pages:
                page.send("solve")
            assert pages[0].ask("play", action=3)["type"] == "done"
            pages[0].send("solve")
            time.sleep(0.3)
            assert len(solved) == 1
            go_on.set()
            for page in pages:
                page.read_until(lambda message: message["type"] == "solved")
            pages[0].read_until(lambda message: message["type"] == "solved")
            assert len(solved) == 2
        finally:
            go_on.set()
            for page in pages:
                page.connection.close()


def test_each_save_has_a_file_of_its_own_and_few_are_kept() -> None:
    with Server(setup_of()) as server, server.page() as page:
        paths: list[Path] = []
        for number in range(MAX_SAVED + 3):
            assert page.ask("save", name=str(number))["type"] == "done"
            paths.append(server.hub.saved[str(number)])
        assert len(set(paths)) == len(paths)
        assert [path.exists() for path in paths] == [False] * 3 + [True] * MAX_SAVED
        assert len(server.hub.saved) == MAX_SAVED
        assert page.ask("save", name=str(number))["type"] == "done"
        assert not paths[-1].exists()
        assert server.hub.saved[str(number)].exists()


def test_each_page_downloads_the_tree_that_it_saved() -> None:
    with Server(setup_of(simulations=200)) as server, server.page() as first, server.page() as second:
        address, query = f"http://127.0.0.1:{server.port}/tree", {"token": TOKEN}
        assert first.ask("save", name="first")["type"] == "done"
        second.ask("start")
        second.read_until(lambda message: message["type"] == "frame" and message["status"]["simulations"] == 200)
        assert second.ask("save", name="second")["type"] == "done"
        saved = [httpx.get(address, params={**query, "name": name}) for name in ("first", "second", "third")]
        assert [answer.status_code for answer in saved] == [200, 200, 404]
        assert saved[0].content != saved[1].content
