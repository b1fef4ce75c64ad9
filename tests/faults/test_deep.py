"""Long games: no recursion over plies, so small stacks suffice."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.search_helpers import Corridor, every_node

import pondertree
from pondertree.games import Othello


def in_a_small_thread(work: Callable[[], Any], kibibytes: int = 512) -> Any:
    """Returns the result of `work`, run in a thread with a small stack."""
    outputs: list[Any] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outputs.append(work())
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(kibibytes * 1024)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if errors:
        raise errors[0]
    return outputs[0]


def loads_deep(text: str) -> Any:
    """Raises the recursion limit for `json.loads`."""

    def work() -> Any:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)
        try:
            return json.loads(text)
        finally:
            sys.setrecursionlimit(limit)

    return in_a_small_thread(work, 256 * 1024)


def depth_of(root: pondertree.Node) -> int:
    deepest, level = 0, [root]
    while level:
        level = [child for node in level for child in node.children.values()]
        deepest += 1
    return deepest - 1


@pytest.mark.parametrize("solve", [True, False])
def test_chain_of_thousand_plies_is_searched(solve: bool) -> None:
    """One legal move per ply: every simulation extends the line by one node."""

    def work() -> None:
        uniform = pondertree.evaluators.Uniform()
        tree = pondertree.UCT(seed=1, evaluator=uniform, solve=solve).tree(Corridor(1000)).simulate(1001)
        result = tree.result()
        assert depth_of(result.root) == 1000
        assert len(result.pv) == 1000
        assert result.proven == (-1 if solve else None)
        nodes = list(every_node(result.root))
        assert nodes[-1].state == Corridor(1000, 1000)
        text = result.root.to_json()
        data, levels = loads_deep(text), 0
        while data["children"]:
            [data] = data["children"]
            levels += 1
        assert levels == 1000
        assert len(result.root.to_text(depth=2000).split("\n")) == 1001
        assert result.root.to_dot(depth=2000).count("->") == 1000
        assert result.root.to_svg(depth=2000).count("<rect") == 1000 + 1
        for _ in range(500):
            tree.advance(0)
        assert tree.state == Corridor(1000, 500)
        assert depth_of(tree.result().root) == 500
        assert len(tree.result().pv) == 500

    in_a_small_thread(work)


def test_long_game_with_playouts_is_searched() -> None:
    """A thousand plies with playouts, 512 KiB of stack."""

    def work() -> tuple[int, int]:
        tree = pondertree.UCT(seed=1, max_depth=50).tree(Corridor(1000, width=2)).simulate(60)
        deepest = 0
        for _ in range(40):
            tree.simulate(5)
            tree.advance(0)
            deepest = max(deepest, depth_of(tree.result().root))
        return tree.state.ply, deepest

    ply, deepest = in_a_small_thread(work)
    assert ply == 40
    assert deepest > 0


def test_line_of_five_hundred_plies_is_proven() -> None:
    """Leaving the line loses, so the proof propagates over 500 plies at once."""

    def work() -> pondertree.SearchResult:
        uniform = pondertree.evaluators.Uniform()
        return pondertree.UCT(200_000, seed=1, evaluator=uniform, c_param=0.1).run(Corridor(501, width=2))

    result = in_a_small_thread(work)
    assert result.proven == 1
    assert result.action == 0
    assert result.root.distance == 501
    assert len(result.pv) == 501


def test_compiled_game_fits_small_thread_stack() -> None:
    for threads, in_flight in ((1, 1), (2, 8)):
        search = pondertree.UCT(2000, seed=1, threads=threads, in_flight=in_flight)
        assert in_a_small_thread(lambda search=search: search.run(Othello())).simulations == 2000


def test_state_of_last_node_is_computed_without_recursion() -> None:
    """Its state is computed first, without recursion from child to parent."""
    uniform = pondertree.evaluators.Uniform()
    node = pondertree.UCT(5001, evaluator=uniform).run(Corridor(5000)).root
    while node.children:
        [node] = node.children.values()
    assert node.state == Corridor(5000, 5000)
