"""Games on the page: a whole one against the search, moves of two cells, a choice of promotions, set-up."""

from __future__ import annotations

import pondertree
from pondertree.games import TicTacToe

#: White promotes on e8 or captures on d8.
PROMOTION = "3r3k/4P3/8/8/8/8/8/K7 w - - 0 1"


def moves_of(view) -> list[str]:
    return view.page.eval_on_selector_all("#game-moves button[data-ply]", "all => all.map(each => each.textContent)")


def wait_for_ply(view, ply: int) -> None:
    view.wait("ply => document.querySelector('#game-moves').dataset.ply === String(ply)", ply)


def test_game_is_played_to_its_end_against_the_search(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "2", "--simulations", "200"))
    view.page.get_by_test_id("sides").select_option("0")
    state, ply = TicTacToe(), 0
    while not state.is_terminal:
        # The first free cell: the search wins or draws.
        view.page.locator("#board .cell").first.click()
        ply += 2 if len(state.legal_actions()) > 1 else 1
        view.wait(
            "ply => document.querySelector('#turn').textContent.match(/won|draw|over/i) || "
            "document.querySelector('#game-moves').dataset.ply === String(ply)",
            ply,
        )
        played = moves_of(view)
        state = TicTacToe()
        for text in played:
            state = state.play(state.parse_action(text))
        ply = len(played)
    assert view.page.get_by_test_id("turn").inner_text() == view.server.app.state.hub.session._position.outcome()
    assert view.page.get_by_test_id("run").is_disabled()
    assert view.page.locator("#board .cell").count() == 0
    view.press("go-first")
    wait_for_ply(view, 0)
    assert moves_of(view) == played, "moves that were taken back stay in the list"
    view.page.locator(f'#game-moves button[data-ply="{len(played) - 1}"]').click()
    wait_for_ply(view, len(played) - 1)
    view.press("new-game")
    wait_for_ply(view, 0)
    view.wait("document.querySelectorAll('#game-moves button').length === 0")


def test_click_above_the_cell_of_a_column_plays_it(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "1"))
    box = view.page.locator("#board svg").bounding_box()
    view.page.mouse.click(box["x"] + box["width"] * 2.5 / 7, box["y"] + 20)
    wait_for_ply(view, 1)
    assert moves_of(view) == ["3"]


def test_piece_moves_from_cell_to_cell_and_promotions_are_chosen(serve, open_page):
    view = open_page(serve("chess", "--fen", PROMOTION, "--seed", "1", "--simulations", "50"))
    page = view.page
    cells = {each.get_attribute("data-cell"): each for each in page.locator("#board .cell").all()}
    pawn, target = "90.00,30.00", "90.00,10.00"
    cells[pawn].click()
    assert page.locator("#board .cell.target").count() == 2
    cells[target].click()
    assert page.locator("#chooser button").all_inner_texts() == ["e8=Q+", "e8=R+", "e8=B", "e8=N"]
    page.locator("#chooser button", has_text="e8=N").click()
    wait_for_ply(view, 1)
    assert moves_of(view) == ["e8=N"]
    view.press("flip")
    view.wait("document.querySelector('#board svg > g').getAttribute('transform')?.startsWith('rotate(180')")
    # The white king of a1 is at the upper right, and upright: its base is below its centre.
    box = page.locator("#board svg").bounding_box()
    king = page.locator('#board path[fill="#fff"]').first
    matrix = king.evaluate("each => { const m = each.getCTM(); return [m.a, m.b, m.c, m.d]; }")
    assert matrix[0] > 0
    assert matrix[3] > 0
    place = king.bounding_box()
    assert place["x"] > box["x"] + box["width"] / 2
    assert place["y"] < box["y"] + box["height"] / 2


def test_position_is_set_up_and_errors_are_told_at_the_field(serve, open_page):
    view = open_page(serve("chess", "--seed", "1", "--simulations", "50"))
    page = view.page
    view.press("setup")
    page.get_by_test_id("setup-fen").fill("not a position")
    page.get_by_test_id("setup-fen").press("Enter")
    view.wait("document.querySelector('#fen-error').textContent !== ''")
    error = page.locator("#fen-error").inner_text()
    assert "FEN" in error
    assert "--" not in error, "the page has no options of a command line"
    assert page.get_by_test_id("setup-fen").input_value() == "not a position"
    assert page.get_by_test_id("toast").count() == 0
    page.get_by_test_id("setup-fen").fill(PROMOTION)
    page.get_by_test_id("setup-moves").fill("e7d8q")
    page.get_by_test_id("setup-moves").press("Enter")
    wait_for_ply(view, 1)
    assert moves_of(view) == ["exd8=Q+"]
    page.get_by_test_id("move-text").fill("nonsense")
    page.get_by_test_id("move-text").press("Enter")
    toast = page.get_by_test_id("toast")
    toast.wait_for()
    assert len(moves_of(view)) == 1, "an error loses nothing"
    toast.get_by_role("button").click()
    assert toast.count() == 0
    view.press("setup")
    page.get_by_test_id("setup-moves").fill("e4 e5")
    page.get_by_test_id("setup-moves").press("Enter")
    wait_for_ply(view, 2)
    assert moves_of(view) == ["e4", "e5"], "without a FEN, moves are played from the start"


def test_errors_go_away(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "1"))
    page, toast = view.page, view.page.get_by_test_id("toast")

    def play(text):
        page.get_by_test_id("move-text").fill(text)
        page.get_by_test_id("move-text").press("Enter")

    for text in ("x1", "x2", "x" * 900):
        play(text)
        view.wait("text => document.querySelector('#toasts').textContent.includes(text.slice(0, 20))", text)
    assert toast.count() == 2
    head = page.locator("header").bounding_box()
    for shown in toast.all():
        box = shown.bounding_box()
        assert box["y"] + box["height"] <= head["y"] + head["height"], "it covers no controls"
    page.wait_for_timeout(100)
    play("b2")
    view.wait("document.querySelectorAll('.toast').length === 0")
    play("x4")
    toast.hover()
    page.wait_for_timeout(9_000)
    assert toast.count() == 1, "it stays while it is read"
    page.mouse.move(5, 400)
    view.wait("document.querySelectorAll('.toast').length === 0")


def test_excluded_moves_are_not_searched_and_forced_ones_alone(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "1"))
    toggle = view.page.locator
    toggle('[data-testid="move-4"] [data-toggle="exclude"]').click()
    view.wait("document.querySelector('[data-testid=\"move-4\"]').classList.contains('out')")
    view.simulate(300)
    rows = view.rows()
    assert rows[4]["visits"] == 0
    assert all(cells["visits"] > 0 for action, cells in rows.items() if action != 4)
    toggle('[data-testid="move-2"] [data-toggle="force"]').click()
    view.wait("document.querySelector('[data-testid=\"move-2\"] [data-toggle=force]').ariaPressed === 'true'")
    view.simulate(301)
    assert {action for action, cells in view.rows().items() if cells["visits"]} == {2}


def test_solved_position_and_finished_game_are_told(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--moves", "a1 b1 a2 b2", "--seed", "1"))
    page, run = view.page, view.page.get_by_test_id("run")
    assert run.inner_text() == "Start"
    actions = page.eval_on_selector_all(
        "[data-testid=moves] tbody tr", "all => all.map(row => Number(row.dataset.action))"
    )
    assert actions == [int(action) for action in view.server.app.state.hub.session._position.state.legal_actions()]
    view.press("run")
    view.wait("document.querySelector('#run').textContent.startsWith('Solved')")
    assert run.inner_text() == "Solved: win in 1"
    assert run.is_disabled()
    page.get_by_test_id("move-text").fill("a3")
    page.get_by_test_id("move-text").press("Enter")
    wait_for_ply(view, 5)
    view.wait("document.querySelector('#tree-summary').textContent === 'The game is over'")
    assert page.locator("#panel-moves .empty").inner_text() == "The game is over."
    for name in ("run", "step", "save", "solve"):
        assert page.get_by_test_id(name).is_disabled(), name


def test_limit_that_is_not_positive_is_refused(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "1", "--simulations", "50"))
    limit = view.page.get_by_test_id("limit")
    for text in ("0", "-5", "2.5"):
        limit.fill(text)
        limit.press("Enter")
        view.wait("document.querySelector('#limit').getAttribute('aria-invalid') === 'true'")
        assert limit.is_visible()
        assert "1 or more" in limit.evaluate("each => each.validationMessage")
    limit.fill("60")
    limit.press("Enter")
    view.wait("document.querySelector('#limit').validity.valid")
    view.press("run")
    view.idle(60)


def test_preset_parameters_and_seed_are_changed(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "1"))
    page = view.page
    view.press("tab-settings")
    page.get_by_test_id("preset").select_option("gumbel")
    page.get_by_test_id("seed").fill("77")
    view.press("apply")
    view.wait("document.querySelector('#panel-settings form').getAttribute('aria-busy') === null")
    settings = view.server.app.state.hub.session._settings
    assert (settings.preset, settings.seed) == ("gumbel", 77)
    assert page.get_by_test_id("preset").input_value() == "gumbel"
    page.get_by_test_id("seed").fill("-3")
    view.press("apply")
    assert page.evaluate("document.querySelector('#seed').validity.rangeUnderflow")


def test_saved_tree_is_downloaded(serve, open_page, tmp_path):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "5"))
    view.simulate(300)
    with view.page.expect_download() as download:
        view.press("save")
    path = tmp_path / "search.tree"
    download.value.save_as(path)
    assert pondertree.load_tree(path).result().simulations == 300


def test_game_with_dice_is_played_to_its_end_and_outcomes_are_chosen(serve, open_page):
    view = open_page(serve("pig", "--algorithm", "uct", "--seed", "1", "--simulations", "20"))
    page, session = view.page, view.server.app.state.hub.session
    buttons = page.locator("#move-buttons button")
    # An outcome is drawn after the move. Taken back, it is chosen, or drawn again.
    buttons.filter(has_text="roll").click()
    wait_for_ply(view, 2)
    page.keyboard.press("ArrowLeft")
    wait_for_ply(view, 1)
    assert page.get_by_test_id("turn").inner_text() == "Chance to move"
    assert page.get_by_test_id("run").is_disabled()
    assert buttons.count() == 6
    buttons.filter(has_text="5").click()
    wait_for_ply(view, 2)
    assert moves_of(view) == ["roll", "5"]
    page.keyboard.press("ArrowLeft")
    wait_for_ply(view, 1)
    view.press("search-move")
    wait_for_ply(view, 2)
    view.simulate(200)
    assert view.tree().result().simulations == 200
    view.press("new-game")
    wait_for_ply(view, 0)
    page.get_by_test_id("sides").select_option("0")
    while not session.shown_state()[1].is_terminal:
        ply = len(moves_of(view))
        state = session.shown_state()[1]
        assert state.to_play == 0
        text = str(state)
        turn = int(next(line for line in text.splitlines() if line.startswith("turn")).split()[1])
        # A roll that reaches 100 points leaves no other move than to hold.
        button = buttons.filter(has_text="hold" if turn >= 20 or len(state.legal_actions()) == 1 else "roll")
        while len(moves_of(view)) == ply:
            # The page ignores a move before the answer to the last one.
            button.click()
            page.wait_for_timeout(100)
        view.wait("/^X to move|wins|over/.test(document.querySelector('#turn').textContent)")
    assert page.get_by_test_id("turn").inner_text() == session._position.outcome()
    assert buttons.count() == 0
