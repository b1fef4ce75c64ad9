"""The page over time: new games, reloads, restarts, solves, and trees that cannot grow."""

from __future__ import annotations

import pytest

from pondertree import AlphaZero
from pondertree.evaluators import Rollout
from pondertree.games import Chess
from pondertree.view import position, solver

TIC_TAC_TOE = "tic-tac-toe", "--algorithm", "uct", "--simulations", "50", "--seed", "2"
MATE = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"


def wait_for_ply(view, ply: int) -> None:
    view.wait("ply => document.querySelector('#game-moves').dataset.ply === String(ply)", ply)


def wait_for_end(view) -> None:
    view.wait("/win|draw/i.test(document.querySelector('#turn').textContent)")


def play_first_cell(view) -> None:
    view.page.locator("#board .cell").first.click()


def test_new_game_is_played_by_the_search(serve, open_page):
    view = open_page(serve(*TIC_TAC_TOE))
    sides = view.page.get_by_test_id("sides")
    sides.select_option("none")
    wait_for_end(view)
    view.press("new-game")
    view.wait("!/win|draw/i.test(document.querySelector('#turn').textContent)")
    wait_for_end(view)
    sides.select_option("1")
    view.press("new-game")
    wait_for_ply(view, 1)


def test_reload_keeps_the_side_and_taking_back_skips_the_reply(serve, open_page):
    view = open_page(serve(*TIC_TAC_TOE))
    sides = view.page.get_by_test_id("sides")
    sides.select_option("1")
    wait_for_ply(view, 1)
    view.page.reload()
    wait_for_ply(view, 1)
    view.wait("document.querySelector('#sides').value === '1'")
    play_first_cell(view)
    wait_for_ply(view, 3)
    view.press("go-back")
    wait_for_ply(view, 1)
    view.press("go-back")
    wait_for_ply(view, 0)
    sides.select_option("all")
    view.press("go-forward")
    view.press("go-forward")
    wait_for_ply(view, 2)
    view.press("go-back")
    wait_for_ply(view, 1)


def test_restart_of_the_server_is_told(serve, open_page):
    server = serve(*TIC_TAC_TOE)
    view = open_page(server)
    play_first_cell(view)
    wait_for_ply(view, 1)
    server.stop()
    view.wait("document.querySelector('#connection').dataset.state === 'waiting'")
    server.start()
    toast = view.page.get_by_test_id("toast")
    toast.wait_for()
    assert "server was restarted" in toast.inner_text()
    wait_for_ply(view, 0)
    view.complaints.clear()


def test_read_only_tree_says_so(serve, open_page, tmp_path):
    path = str(tmp_path / "r.tree")
    AlphaZero(Rollout(), num_simulations=50, seed=1).run(Chess()).save(path)
    view = open_page(serve(path))
    notice = view.page.get_by_test_id("notice")
    assert notice.inner_text().startswith("Read-only: the file is that of a result")
    for name in ("move-text", "play", "run", "search-move", "save"):
        assert view.page.get_by_test_id(name).is_disabled(), name
    assert open_page(serve(*TIC_TAC_TOE)).page.get_by_test_id("notice").is_hidden()


def test_win_that_is_proven_at_once_comes_first_and_has_an_arrow(serve, open_page):
    view = open_page(serve("chess", "--fen", MATE, "--seed", "1"))
    view.press("run")
    view.wait("document.querySelector('#run').textContent === 'Solved: win in 1'")
    assert view.number("status-simulations") == 0
    first = view.page.locator("[data-testid=moves] tbody tr").first
    assert "Ra8#" in first.inner_text()
    assert "best" in first.get_attribute("class")
    action = first.get_attribute("data-action")
    assert view.page.locator(f'#board .overlay [data-action="{action}"]').count() == 1


def test_solve_is_cancelled_and_not_offered_where_it_takes_minutes(serve, open_page, monkeypatch):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "1"))
    solve = view.page.get_by_test_id("solve")
    assert solve.is_disabled()
    assert "after 7 moves" in solve.get_attribute("title")
    for module in (position, solver):
        monkeypatch.setattr(module, "unsolvable_because", lambda state: "")
    play_first_cell(view)
    wait_for_ply(view, 1)
    solve.click()
    view.wait("document.querySelector('[data-testid=solve]').textContent.includes('Cancel')")
    solve.click()
    view.wait("document.querySelector('[data-testid=solve]').textContent === 'Solve exactly'")
    assert "cancelled" in view.page.get_by_test_id("toast").inner_text()


@pytest.mark.parametrize("is_done", [True, False])
def test_solve_outlives_a_reload(serve, open_page, is_done):
    view = open_page(serve("connect4", "--moves", "4 4 4 4 4 2 2 1 1", "--algorithm", "uct", "--seed", "1"))
    view.press("solve")
    if is_done:
        view.wait("document.querySelector('[data-testid=solve]').textContent === 'Solve exactly'")
    view.page.reload()
    view.wait("document.querySelector('[data-testid=moves] td.solved')?.textContent")
    assert {row["solved"] for row in view.rows().values()} <= {-1, 0, 1}


def test_forced_move_is_excluded_no_longer(serve, open_page):
    view = open_page(serve(*TIC_TAC_TOE))
    toggle = view.page.locator
    toggle('[data-testid="move-4"] [data-toggle="exclude"]').click()
    view.wait("document.querySelector('[data-testid=\"move-4\"]').classList.contains('out')")
    toggle('[data-testid="move-4"] [data-toggle="force"]').click()
    view.wait("document.querySelector('[data-testid=\"move-4\"] [data-toggle=force]').ariaPressed === 'true'")
    settings = view.server.app.state.hub.session._settings
    assert (settings.exclude, settings.force) == ([], [4])


def test_emptied_parameter_is_the_default_and_a_full_tree_is_told(serve, open_page):
    view = open_page(serve(*TIC_TAC_TOE))
    page = view.page
    page.get_by_role("tab", name="Settings").click()
    assert "above 0" in page.locator('label[for="parameter-max_memory"]').inner_text()
    exploration = page.get_by_test_id("parameter-c_param")
    default = exploration.input_value()
    exploration.fill("")
    page.get_by_test_id("parameter-max_nodes").fill("1")
    view.press("apply")
    view.wait("value => document.querySelector('#parameter-c_param').value === value", default)
    view.press("run")
    toast = page.get_by_test_id("toast")
    toast.wait_for()
    assert "the tree is full" in toast.inner_text()
