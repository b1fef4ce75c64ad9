"""Trees as files: a saved tree is opened again and continues; one that cannot grow is shown."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.support.view import TOKEN, Server, session_of, setup_of, wait_until

import pondertree
from pondertree import UCT, AlphaZero
from pondertree.cli import view as command
from pondertree.errors import PondertreeError
from pondertree.evaluators import Rollout
from pondertree.games import Chess, ConnectFour
from pondertree.search.tree import Tree

pytestmark = pytest.mark.skipif(not hasattr(Tree, "save"), reason="trees have no files yet")


def test_saved_tree_is_downloaded_opened_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "search.tree"
    with Server(setup_of("connect4", c_param=0.7, simulations=500)) as server, server.page() as page:
        assert httpx.get(f"http://127.0.0.1:{server.port}/tree?token={TOKEN}&name=mine").status_code == 404
        page.ask("start")
        page.read_until(lambda message: message["type"] == "frame" and not message["status"]["running"])
        assert page.ask("save", name="mine")["type"] == "done"
        answer = httpx.get(f"http://127.0.0.1:{server.port}/tree?token={TOKEN}&name=mine")
        assert "attachment" in answer.headers["content-disposition"]
        path.write_bytes(answer.content)
    setup = command.setup_of_file(str(path))
    assert not setup.is_read_only
    assert setup.settings.parameters["c_param"] == 0.7
    with session_of(setup) as session:
        assert session.snapshot is not None
        assert session.snapshot.head["status"]["simulations"] == 500
        session.submit(session.start).result(30)
        wait_until(lambda: not session.is_running)
        session.submit(lambda: None).result(30)
        found = {row["action"]: row["visits"] for row in session.snapshot.head["moves"]}
    expected = UCT(c_param=0.7, num_simulations=1000, seed=1).run(ConnectFour())
    assert found == {action: int(expected.visits[action]) for action in range(7)}


def test_file_of_a_result_is_shown_and_refuses_to_search(tmp_path: Path) -> None:
    path = tmp_path / "result.tree"
    result = AlphaZero(Rollout(), num_simulations=200, seed=1).run(Chess())
    result.save(path)
    setup = command.setup_of_file(str(path))
    assert setup.is_read_only
    with Server(setup) as server, server.page() as page:
        assert page.read()["read_only"] is True
        page.catch_up(server.session)
        assert page.frame["status"]["simulations"] == 200
        assert len(page.nodes) == result.num_positions
        assert page.ask("inspect", id=0)["node"]["visit_count"] == 201
        for kind in ("start", "step", "move", "new"):
            assert "read-only" in page.ask(kind)["message"]


def test_file_that_is_no_tree_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nonsense"
    path.write_bytes(b"nonsense")
    with pytest.raises(PondertreeError):
        command.setup_of_file(str(path))
    assert hasattr(pondertree, "load_tree")
