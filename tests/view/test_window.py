"""The window of a tree: bounded, in the order of visits, with the numbers of `Node`."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.view import live_of, setup_of

from pondertree import UCT, AlphaZero, Gumbel, Node, SearchResult
from pondertree.chess.hybrid import Hybrid
from pondertree.evaluators import Rollout
from pondertree.games import Chess, ConnectFour, Hex, Othello
from pondertree.result import UNPROVEN
from pondertree.search.tree import Tree
from pondertree.view.frames import Rows
from pondertree.view.live import LiveSearch
from pondertree.view.window import Window

MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"
SEARCHES = {
    "uct": (UCT(seed=1), ConnectFour()),
    "alphazero": (AlphaZero(Rollout(), seed=2), Othello()),
    "gumbel": (Gumbel(Rollout(), seed=3), Hex(5)),
    "hybrid": (Hybrid(seed=4), Chess()),
    "proofs": (Hybrid(seed=5, mate_search_depth=0), Chess(MATE_IN_TWO)),
}


def window_of(tree: Tree) -> Window:
    state = tree.state
    return Window(state, tree._forest._info, lambda before, action: str(before.action_to_string(action)))


def by_path(window: Window, rows: Rows) -> dict[tuple[int, ...], int]:
    """The rows by their actions from the root."""
    return {tuple(window.path(number)): row for row, number in enumerate(rows.ids.tolist())}


def every_node(root: Node) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every visited position with its path."""
    stack: list[tuple[tuple[int, ...], Node]] = [((), root)]
    while stack:
        path, node = stack.pop()
        yield path, node
        stack.extend(((*path, action), child) for action, child in node.children.items() if child.visit_count)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_number_of_a_row_is_that_of_its_node(name: str) -> None:
    search, state = SEARCHES[name]
    tree = search.tree(state).simulate(1500)
    result, window = tree.result(), window_of(tree)
    rows = window.read(result, 60.0)
    nodes = dict(every_node(result.root))
    found = by_path(window, rows)
    assert found.keys() <= nodes.keys()
    assert len(found) == min(len(nodes), 4000)
    line = tuple(result._view.principal_variation(result.best_row))
    has_priors = bool(result.edges.priors.any())
    for path, row in found.items():
        node = nodes[path]
        visits, q, proven, hidden, on_line = rows.values[row].tolist()
        sign = 1 if node.parent is None or node.to_play == node.parent.to_play else -1
        assert visits == node.visit_count
        assert proven == (UNPROVEN if node.proven is None else sign * node.proven)
        assert q == pytest.approx(sign * (node.q_value if node.proven is None else node.proven), abs=1e-12)
        assert hidden == sum((*path, action) not in found for action in node.children if (*path, action) in nodes)
        assert on_line == (path == line[: len(path)])
        assert rows.terminal[row] == node.is_terminal
        assert rows.players[row] == (node.to_play if node.parent is None else node.parent.to_play)
        assert rows.texts[int(rows.ids[row])] == node.move
        if path:
            assert rows.actions[row] == path[-1]
            assert rows.parents[row] == rows.ids[found[path[:-1]]]
            assert rows.priors[row] == pytest.approx(node.prior) if has_priors else np.isnan(rows.priors[row])


@pytest.mark.parametrize("most", [1, 2, 50, 4000])
def test_rows_are_the_most_visited_positions_parents_first(most: int) -> None:
    tree = UCT(seed=1).tree(ConnectFour()).simulate(20_000)
    window = window_of(tree)
    window.change(nodes=most, follow=False)
    rows = window.read(tree.result(), 60.0)
    assert len(rows.ids) == most
    places = {number: place for place, number in enumerate(rows.ids.tolist())}
    assert all(places[parent] < place for place, parent in enumerate(rows.parents.tolist()) if place)
    visits = sorted((node.visit_count for _, node in every_node(tree.result().root)), reverse=True)
    assert sorted(rows.values[:, 0].tolist(), reverse=True) == visits[:most]


def test_positions_keep_their_numbers_while_the_tree_grows() -> None:
    tree = UCT(seed=1).tree(ConnectFour())
    window, known = window_of(tree), dict[int, tuple[int, ...]]()
    window.change(nodes=100)
    for _ in range(60):
        tree.simulate(200)
        rows = window.read(tree.result(), 60.0)
        assert len(set(rows.ids.tolist())) == len(rows.ids) <= 100
        for number in rows.ids.tolist():
            path = tuple(window.path(number))
            assert known.setdefault(number, path) == path
    assert len(known) > 150
    assert len(window._texts) <= 2 * 100 + 200


def test_fewest_visits_leave_rows_out() -> None:
    tree = UCT(seed=1).tree(ConnectFour()).simulate(5_000)
    window = window_of(tree)
    window.change(least=40, follow=False)
    rows = window.read(tree.result(), 60.0)
    expected = sum(node.visit_count >= 40 for _, node in every_node(tree.result().root))
    assert len(rows.ids) == expected
    assert rows.values[:, 0].min() >= 40


def test_opened_position_shows_all_children_and_closed_one_none() -> None:
    tree = Hybrid(seed=1).tree(Chess()).simulate(4_000)
    window = window_of(tree)
    window.change(least=100, follow=False)
    rows = window.read(tree.result(), 60.0)
    chosen = int(rows.ids[np.argmin(rows.values[:, 0])])
    hidden = int(rows.values[rows.ids == chosen, 3][0])
    assert hidden > 0
    window.change(open=[chosen])
    rows = window.read(tree.result(), 60.0)
    assert (rows.parents[1:] == chosen).sum() >= hidden
    assert rows.values[rows.ids == chosen, 3] == 0
    window.change(close=[chosen])
    rows = window.read(tree.result(), 60.0)
    assert not (rows.parents[1:] == chosen).any()
    assert rows.values[rows.ids == chosen, 3] >= hidden


def test_principal_variation_is_shown_below_the_fewest_visits() -> None:
    tree = UCT(seed=1).tree(ConnectFour()).simulate(3_000)
    window = window_of(tree)
    result = tree.result()
    line = result._view.principal_variation(result.best_row)
    window.change(least=1 << 31)
    rows = window.read(result, 60.0)
    numbers = window.follow_path(line)
    assert len(numbers) == len(line) + 1 == len(rows.ids)
    window.change(follow=False)
    assert len(window.read(result, 60.0).ids) == 1


class Crowd:
    """A game in Python with 2,000 moves, whose texts take some time."""

    num_players, num_actions, to_play = 1, 2000, 0
    written = 0

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth

    @property
    def is_terminal(self) -> bool:
        return self.depth == 2

    def legal_actions(self) -> list[int]:
        return list(range(2000))

    def play(self, action: int) -> Crowd:
        return Crowd(self.depth + 1)

    def returns(self) -> list[float]:
        return [0.0]

    def action_to_string(self, action: int) -> str:
        Crowd.written += 1
        end = time_of_thread() + 0.0003
        while time_of_thread() < end:
            pass
        return f"move {action}"


def time_of_thread() -> float:
    import time

    return time.thread_time()


def test_slow_texts_wait_for_the_next_reading() -> None:
    Crowd.written = 0
    tree = UCT(seed=1).tree(Crowd()).simulate(600)
    window = window_of(tree)
    counts = []
    for _ in range(4):
        rows = window.read(tree.result(), 0.006)
        counts.append(len(rows.ids))
        assert rows.values[0, 3] == 601 - len(rows.ids)
        assert not window.is_complete
    assert counts == sorted(counts)
    assert 2 <= counts[0] < counts[-1] < 601
    rows = window.read(tree.result(), 60.0)
    assert len(rows.ids) == 601
    assert window.is_complete
    assert rows.values[0, 3] == 0
    assert Crowd.written == 600


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The results and nodes that are alive, without the garbage collector."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    for kind in (SearchResult, Node):
        original = kind.__init__

        def record(self: Any, *arguments: Any, original: Any = original) -> None:
            original(self, *arguments)
            alive.add(self)

        monkeypatch.setattr(kind, "__init__", record)
    gc.collect()
    gc.disable()
    yield alive
    gc.enable()


@pytest.mark.parametrize(("game", "algorithm"), [("connect4", "uct"), ("chess", "hybrid"), ("othello", "alphazero")])
def test_no_result_is_held_after_reading(results: Any, game: str, algorithm: str) -> None:
    """A held result would make the engine copy the tree before it grows."""
    live: LiveSearch = live_of(setup_of(game, algorithm))
    live.start(300, None)
    while not live.run_slice(lambda: False):
        live.snapshot(1, 1)
    live.stop()
    snapshot = live.snapshot(1, 2)
    assert snapshot.head["status"]["simulations"] == 300
    for number in (0, *snapshot.rows.ids.tolist()[-3:]):
        live.inspect(number)
    live.value()
    live.best_action()
    assert not list(results)
