"""Trees as files: a saved tree is opened again and continues; one that cannot grow is shown."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.support.view import TOKEN, Deep, Server, call, session_of, setup_of, wait_until

import pondertree
from pondertree import UCT, AlphaZero
from pondertree.cli import main, view_tree
from pondertree.errors import PondertreeError
from pondertree.evaluators import Rollout
from pondertree.games import Chess, ConnectFour
from pondertree.networks import load_for_one_tree
from pondertree.search.tree import Tree
from pondertree.view.setup import Setup

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
    setup = view_tree.setup_of_file(str(path))
    assert setup.read_only == ""
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
    setup = view_tree.setup_of_file(str(path))
    assert setup.read_only
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
        view_tree.setup_of_file(str(path))
    assert hasattr(pondertree, "load_tree")


def command_of(*arguments: str) -> Setup:
    """Returns the setup of a command line."""
    from unittest.mock import patch

    with patch("pondertree.view.server.serve") as serve:
        assert main(["view", *arguments]) == 0
    found: Setup = serve.call_args[0][0]
    return found


def complaint_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["view", *arguments]) != 0
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_options_that_a_file_has_itself_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "u.tree")
    UCT(seed=1).tree(ConnectFour()).simulate(20).save(path)
    for option in (["--moves", "4"], ["--algorithm", "uct"], ["--seed", "3"], ["--threads", "2"], ["--max-depth", "5"]):
        assert f"{option[0]}: not for the file of a tree" in complaint_of(capsys, path, *option)
    assert "--player: the search of this tree has no" in complaint_of(capsys, path, "--player", "connect4")
    assert "there is no such file" in complaint_of(capsys, "nofile.tree")
    assert "the tree is of connect4" in complaint_of(capsys, "othello", "--tree", path)
    assert command_of(path, "--simulations", "70").settings.simulations == 70
    assert command_of("connect4", "--tree", path).settings.simulations == 1000


def test_tree_of_the_bundled_player_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "az.tree")
    search = AlphaZero(load_for_one_tree("connect4"), seed=1, c_puct=2.0)
    search.tree(ConnectFour()).simulate(30).save(path)
    expected = search.with_seed(1, 0).tree(ConnectFour()).simulate(60).result()
    for arguments in ([path], [path, "--player", "connect4"]):
        setup = command_of(*arguments)
        assert setup.read_only == ""
        assert setup.settings.preset == "alphazero"
        assert setup.settings.parameters["c_puct"] == 2.0
        assert (setup.tree.simulate(30).result().visits == expected.visits).all()
    other = str(tmp_path / "other.tree")
    constant = AlphaZero(lambda batch: (None, [0.25] * len(batch)), seed=1)
    constant.tree(ConnectFour()).simulate(30).save(other)
    setup = command_of(other)
    assert "give --player" in setup.read_only
    assert [each.name for each in setup.algorithms] == ["alphazero"]
    assert setup.settings.parameters["evaluator"] == "not in the file"
    assert "is not the evaluator" in complaint_of(capsys, other, "--player", "connect4")


def test_tree_of_a_game_in_python_is_opened_with_its_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "deep.tree")
    game = f"{Deep.__module__}:Deep"
    tree = UCT(seed=1, max_depth=3).tree(Deep()).simulate(20)
    tree.advance(2)
    tree.save(path)
    assert "--tree" in complaint_of(capsys, path)
    setup = command_of(game, "--tree", path)
    assert setup.read_only == ""
    assert setup.tree.state == tree.state
    tree.simulate(10)
    assert (setup.tree.simulate(10).result().visits == tree.result().visits).all()
    with session_of(setup) as session:
        call(session, lambda: session.play(action=1))


def test_page_offers_what_the_command_takes() -> None:
    setup = command_of(f"{Deep.__module__}:Deep", "--algorithm", "alphazero")
    assert setup.settings.preset == "alphazero"
    assert setup.settings.simulations == 400
