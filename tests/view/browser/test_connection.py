"""The page survives a restart of the server, and another origin gets nothing."""

from __future__ import annotations


def test_page_reconnects_after_a_restart(serve, open_page):
    server = serve("connect4", "--algorithm", "uct", "--seed", "1")
    view = open_page(server)
    view.simulate(500)
    view.page.keyboard.press("ArrowLeft")
    server.stop()
    view.wait("document.querySelector('#connection').dataset.state === 'waiting'")
    assert "retrying" in view.page.get_by_test_id("connection").inner_text()
    assert view.page.get_by_test_id("run").is_disabled()
    server.start()
    view.wait("document.querySelector('#connection').dataset.state === 'open'")
    view.wait("document.querySelector('[data-testid=status-simulations]').dataset.value === '0'")
    assert all(cells["visits"] == 0 for cells in view.rows().values()), "the tree of the former server is forgotten"
    view.simulate(700)
    assert sum(cells["visits"] for cells in view.rows().values()) == 700
    # Browsers report each failed attempt to connect; nothing else may be there.
    assert all("WebSocket" in complaint or "Failed to load" in complaint for complaint in view.complaints)
    view.complaints.clear()


def test_page_tells_that_the_address_changed(serve, open_page, monkeypatch):
    server = serve("tic-tac-toe", "--algorithm", "uct", "--seed", "1")
    view = open_page(server)
    server.stop()
    monkeypatch.setattr("tests.view.browser.live.TOKEN", "another-token")
    server.start()
    view.wait("document.querySelector('#connection').dataset.state === 'refused'")
    assert "open the address it printed" in view.page.get_by_test_id("connection").inner_text()
    count = len(view.complaints)
    view.page.wait_for_timeout(2_000)
    assert len(view.complaints) == count, "it tries no longer"
    view.complaints.clear()


def test_two_pages_show_one_search(serve, open_page):
    server = serve("connect4", "--algorithm", "uct", "--seed", "4")
    first, second = open_page(server), open_page(server)
    first.simulate(900)
    second.idle(900)
    assert first.rows() == second.rows()
    second.page.get_by_test_id("move-text").fill("4")
    second.page.get_by_test_id("move-text").press("Enter")
    first.wait("document.querySelector('#game-moves').dataset.ply === '1'")
