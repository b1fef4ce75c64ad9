"""Single simulations on the page equal the trace of the same search."""

from __future__ import annotations

from typing import Any

import pytest
from tests.view.browser.test_numbers import shown

import pondertree
from pondertree.games import Chess, ConnectFour

STEPS = 40
SEARCHES = {
    "uct": (("connect4", "--algorithm", "uct"), lambda: pondertree.UCT(seed=11, trace=True).tree(ConnectFour())),
    "hybrid": (("chess", "--algorithm", "hybrid"), lambda: pondertree.Hybrid(seed=11, trace=True).tree(Chess())),
}
READ_STEP = """() => {
    const terms = box => Object.fromEntries(
        [...box?.querySelectorAll('[data-term]') ?? []].map(each => [each.dataset.term, each.dataset.value]));
    return {
        simulation: Number(document.querySelector('[data-testid=step-simulation]').dataset.value),
        values: [...document.querySelectorAll('[data-testid^=step-value-]')].map(each => Number(each.dataset.value)),
        choices: [...document.querySelectorAll('.choice')].map(choice => ({
            chosen: Number(choice.dataset.chosen),
            how: choice.dataset.how,
            shared: terms(choice.querySelector('[data-kind=shared]')),
            edges: Object.fromEntries([...choice.querySelectorAll('tbody tr')].map(row => [row.dataset.action, {
                ...terms(choice.querySelector('[data-kind=common]')), ...terms(row)}])),
            marked: [...choice.querySelectorAll('tr[aria-current]')].map(row => Number(row.dataset.action)),
        })),
    };
}"""


def assert_terms(given: dict[str, str], expected: dict[str, Any]) -> None:
    assert set(given) == set(expected)
    for name, value in expected.items():
        if value is None:
            assert given[name] == "", name
        elif isinstance(value, bool | str):
            assert given[name] == (value if isinstance(value, str) else str(value).lower()), name
        else:
            assert float(given[name]) == shown(value), name


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_steps_equal_the_trace(serve, open_page, algorithm):
    arguments, plant = SEARCHES[algorithm]
    view = open_page(serve(*arguments, "--seed", "11"))
    tree = plant()
    tree.simulate(STEPS)
    for row in tree.trace():
        view.page.keyboard.press("s")
        view.wait(
            "number => document.querySelector('[data-testid=step-simulation]')?.dataset.value === String(number)",
            row["simulation"] + 1,  # the page counts from one
        )
        step = view.page.evaluate(READ_STEP)
        assert step["values"] == [shown(value) for value in row["values"]]
        assert [choice["chosen"] for choice in step["choices"]] == row["path"]
        for choice, terms in zip(step["choices"], row["terms"], strict=True):
            edges = {str(edge["action"]): edge for edge in terms["edges"]}
            assert set(choice["edges"]) == set(edges)
            assert choice["how"] == terms["how"]
            left_out = ("edges", "player", "how")
            assert_terms(choice["shared"], {name: value for name, value in terms.items() if name not in left_out})
            for action, edge in edges.items():
                expected = {"score": None, **{name: value for name, value in edge.items() if name != "action"}}
                assert_terms(choice["edges"][action], expected)
            assert choice["marked"] == [choice["chosen"]]
        view.idle(row["simulation"] + 1)


def test_path_of_a_step_is_highlighted_and_arrows_follow(serve, open_page):
    view = open_page(serve("connect4", "--algorithm", "uct", "--seed", "3"))
    view.simulate(500)
    view.press("step")
    view.wait("document.querySelectorAll('.choice').length > 1")
    assert view.page.locator("#panel-step").is_visible()
    view.page.keyboard.press("s")
    view.idle(502)
