"""The page is used by keyboard alone, and every control has a name."""

from __future__ import annotations

from tests.view.browser.live import PHONE


def focused(view) -> str:
    return view.page.evaluate("document.activeElement.id || document.activeElement.dataset.testid || ''")


def test_game_and_search_by_keyboard_alone(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "2", "--simulations", "300"))
    keyboard = view.page.keyboard
    keyboard.press(" ")
    view.idle(300)
    keyboard.press("b")
    start = view.page.evaluate("document.activeElement.dataset.cell")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowDown")
    there = view.page.evaluate("document.activeElement.dataset.cell")
    steps = [float(b) - float(a) for a, b in zip(start.split(","), there.split(","), strict=True)]
    assert steps == [20.0, 20.0], "arrow keys go from cell to cell"
    keyboard.press("Enter")
    view.wait("document.querySelector('#game-moves').dataset.ply === '1'")
    assert view.page.locator("#game-moves button").inner_text() == "b2"
    keyboard.press("t")
    assert focused(view) == "move-text"
    keyboard.type("a3")
    keyboard.press("Enter")
    view.wait("document.querySelector('#game-moves').dataset.ply === '2'")
    keyboard.press("Escape")
    keyboard.press("ArrowLeft")
    view.wait("document.querySelector('#game-moves').dataset.ply === '1'")
    keyboard.press("m")
    view.wait("document.querySelector('#game-moves').dataset.ply === '2'")


def test_tree_and_table_by_keyboard(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "2", "--moves", "4"))
    view.simulate(2000)
    page = view.page
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    assert focused(view) == "tree"
    item = page.locator("#tree-item")
    page.keyboard.press("ArrowDown")
    best = view.page.get_by_test_id("status-best").inner_text()
    view.wait("document.querySelector('#tree-item').getAttribute('aria-level') === '2'")
    assert item.inner_text().startswith(f"{best}: ")
    position = int(item.get_attribute("aria-posinset"))
    page.keyboard.press("ArrowLeft" if position > 1 else "ArrowRight")
    after = position - 1 if position > 1 else 2
    view.wait("place => document.querySelector('#tree-item').getAttribute('aria-posinset') === String(place)", after)
    page.keyboard.press("Enter")
    view.wait("document.querySelector('#tree-item').getAttribute('aria-expanded') === 'false'")
    page.keyboard.press("ArrowDown")
    view.wait("document.querySelector('#tree-item').getAttribute('aria-level') === '3'")
    page.keyboard.press("Home")
    view.wait("document.querySelector('#tree-item').getAttribute('aria-level') === '1'")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.matches('[data-testid=moves] tbody tr')")
    page.keyboard.press("ArrowDown")
    action = page.evaluate("document.activeElement.dataset.action")
    view.wait('action => document.querySelectorAll(`#board .overlay [data-action="${action}"]`).length === 1', action)
    assert page.locator("#board .overlay [data-action]").count() == 1, "the board shows the move of the row alone"
    page.keyboard.press("x")
    view.wait("action => document.querySelector(`[data-testid=move-${action}]`).classList.contains('out')", action)


def test_shortcuts_are_listed_and_focus_returns(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "2"))
    view.page.keyboard.press("?")
    dialog = view.page.get_by_role("dialog")
    dialog.wait_for()
    assert "start or pause" in dialog.inner_text()
    view.page.keyboard.press("Escape")
    assert view.page.get_by_role("dialog").count() == 0


def test_every_control_has_a_name_and_can_be_reached(serve, open_page):
    view = open_page(serve("chess", "--seed", "1", "--simulations", "50"), viewport=PHONE)
    view.press("run")
    view.idle(50)
    for tab in ("moves", "tree", "shares", "step", "node", "settings"):
        view.press(f"tab-{tab}")
        nameless = view.page.evaluate(
            """() => [...document.querySelectorAll('button, select, input, [role=button], [role=tree]')]
                .filter(each => each.checkVisibility())
                .filter(each => !(each.ariaLabel || each.textContent.trim() || each.labels?.length || each.title))
                .map(each => each.outerHTML)"""
        )
        assert nameless == []
        overflow = view.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"the page scrolls sideways with the panel {tab}"


def test_tree_is_folded_zoomed_and_filtered_by_pointer(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "2"))
    view.simulate(5000)
    summary = view.page.locator("#tree-summary")
    view.wait("Number(document.querySelector('#tree-summary').dataset.marks) > 100")
    marks = int(summary.get_attribute("data-marks"))
    box = view.page.locator("#tree canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 34
    view.page.mouse.dblclick(x, y)
    view.wait("document.querySelector('#tree-summary').dataset.marks === '1'")
    assert view.page.locator("#tree-item").get_attribute("aria-expanded") == "false"
    view.page.mouse.dblclick(x, y)
    view.wait("marks => Number(document.querySelector('#tree-summary').dataset.marks) >= marks", marks)
    view.page.mouse.wheel(0, -1500)
    view.wait("marks => Number(document.querySelector('#tree-summary').dataset.marks) !== marks", marks)
    view.press("tree-fit")
    view.page.get_by_test_id("least").fill("9")
    view.wait("marks => Number(document.querySelector('#tree-summary').dataset.marks) < marks / 2", marks)
    smallest = [node.visit_count for node in view.tree().result().root.children.values()]
    assert int(summary.get_attribute("data-marks")) >= 1 + sum(visits >= 500 for visits in smallest)
