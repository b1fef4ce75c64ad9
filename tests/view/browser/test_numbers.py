"""Every number on the page equals that of `pondertree.Node` and of the result, in six decimals."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pondertree
from pondertree.games import ConnectFour
from pondertree.view.details import ATTRIBUTES


def shown(value: Any) -> float | None:
    """Returns a value as messages have it."""
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def test_numbers_equal_the_node_s(serve, open_page):
    moves, simulations = "4 4 3", 3000
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "7", "--moves", moves))
    view.simulate(simulations)
    state = ConnectFour()
    for move in moves.split():
        state = state.play(state.parse_action(move))
    result = pondertree.UCT(num_simulations=simulations, seed=7).run(state)
    root = result.root
    for action, cells in view.rows().items():
        child = root.children[action]
        sign = 1 if child.to_play == root.to_play else -1
        exact = None if child.proven is None else sign * child.proven
        assert cells["visits"] == child.visit_count
        assert cells["share"] == shown(child.visit_count / simulations)
        assert cells["q"] == shown(sign * child.q_value if exact is None else exact)
        assert cells.get("proven") == exact
        if exact is not None:
            assert cells["proven_distance"] == child.distance + 1
        assert cells["score"] == pytest.approx(cells["q"] + cells["u"], abs=2e-6)
    assert set(view.rows()) == set(root.children)
    assert view.number("status-simulations") == result.simulations == simulations
    assert view.number("status-nodes") == result.num_positions
    assert view.number("status-value") == shown(result.value)
    assert view.number("status-best") == result.action
    mean, deepest = result.depths()
    view.wait("document.querySelector('[data-testid=status-depth]').dataset.value")  # follows the first frame
    assert view.number("status-depth") == shown(mean)
    assert view.number("status-max-depth") == deepest


def test_priors_and_evaluations_equal_the_node_s(serve, open_page):
    simulations = 400
    view = open_page(serve("connect4", "--algorithm", "alphazero", "--seed", "3", "--simulations", str(simulations)))
    view.press("run")
    view.idle(simulations)
    root = view.tree().result().root
    rows = view.rows()
    assert sum(cells["visits"] for cells in rows.values()) in (simulations, simulations - 1)
    for action, cells in rows.items():
        child = root.children[action]
        assert cells["visits"] == child.visit_count
        assert cells["prior"] == shown(child.prior)
        if "clean_prior" in cells:
            assert cells["clean_prior"] == shown(child.clean_prior)
        assert cells["q"] == (shown(-child.q_value) if child.visit_count else None)
        network = None if child.nn_value is None else -child.nn_value
        assert cells["network"] == shown(network)


def test_selected_node_equals_the_node(serve, open_page):
    view = open_page(serve("tic-tac-toe", "--algorithm", "uct", "--seed", "5"))
    view.simulate(500)
    page = view.page
    result = view.tree().result()
    page.focus("#tree")
    node = result.root
    for depth in range(3):
        page.keyboard.press("ArrowDown")
        node = max(node.children.values(), key=lambda child: child.visit_count)
        view.wait(f"document.querySelector('[data-testid=node-path]')?.textContent.split('›').length === {depth + 1}")
        assert view.number("node-visit_count") == node.visit_count
        assert page.get_by_test_id("node-path").inner_text().split(" › ")[-1] == node.move
        for name in ATTRIBUTES:
            value = getattr(node, name)
            text = page.get_by_test_id(f"node-{name}").get_attribute("data-value")
            if isinstance(value, bool | str):
                assert text == (str(value).lower() if isinstance(value, bool) else value)
            else:
                assert (float(text) if text else None) == shown(value), name


def test_shares_and_evaluations_are_drawn(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "7", "--moves", "4 4"))
    view.simulate(2000)
    view.press("tab-shares")
    view.wait("document.querySelectorAll('#panel-shares .keys li').length === 7")
    shares = view.page.eval_on_selector_all(
        "#panel-shares .keys li",
        "all => all.map(each => [each, each.querySelector('[data-value]')])"
        ".map(([each, share]) => [Number(each.dataset.action), Number(share.dataset.value)])",
    )
    root = view.tree().result().root
    assert dict(shares) == {action: shown(root.children[action].visit_count / 2000) for action, _ in shares}
    assert view.page.locator("#panel-shares canvas").count() == 1
    assert view.page.get_by_test_id("evaluation").get_attribute("data-points") == "1"
