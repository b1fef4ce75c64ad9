"""Invariants of trees of `Hybrid`: statistics, categories, independence of threads and processes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hybrid import ENDGAME, MIDDLEGAME, PRIORITIES, TACTICS, mirror
from tests.support.policy_networks import FakeNetwork, pseudo_random
from tests.support.search_helpers import every_node, fingerprint, random_position

import pondertree
from pondertree.chess import MoveCategory, Pesto, categorize, mate_search
from pondertree.games import Chess

QUIET = (MoveCategory.KillerMove1, MoveCategory.KillerMove2, MoveCategory.HistoryHeuristic)


OPTIONS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PRIORITIES),
        "mate_search_depth": st.integers(0, 3),
        "exploration_constant": st.sampled_from([0.0, 0.5, 1.5, 5.0]),
        "see_threshold": st.sampled_from([0, 100, 5000]),
        "fpu": st.sampled_from([0.0, -1.0, ("parent", 0.2)]),
        "quiescence": st.booleans(),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 7]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


@settings(max_examples=50)
@given(
    options=OPTIONS,
    plies=st.integers(0, 90),
    game=st.integers(0, 10**6),
    simulations=st.integers(1, 250),
    network=st.sampled_from([None, None, pseudo_random]),
)
def test_tree_invariants_hold_for_random_settings(
    options: dict[str, Any], plies: int, game: int, simulations: int, network: Any
) -> None:
    state = random_position(Chess, plies, game)
    fen, legal = state.fen(), state.legal_actions()
    by = {} if network is None else {"policy_network": FakeNetwork(network)}
    result = pondertree.Hybrid(num_simulations=simulations, **by, **options).run(state)
    assert (state.fen(), state.legal_actions()) == (fen, legal)
    assert result.action in legal
    assert result.policy.sum() == pytest.approx(1.0)
    assert not np.isnan(result.policy).any()
    assert result.visits.sum() == result.simulations
    assert result.simulations == simulations or result.proven is not None
    assert abs(result.value) <= 1.0
    assert result.root.visit_count == (result.simulations + 1 if result.root.nn_value is not None else 0)
    for node in every_node(result.root):
        check_node(node, options)
    again = pondertree.Hybrid(num_simulations=simulations, threads=2, **by, **options).run(state)
    assert fingerprint(again) == fingerprint(result)


def check_node(node: pondertree.Node, options: dict[str, Any]) -> None:
    assert node.in_flight == 0
    assert abs(node.total_value) <= node.visit_count
    assert abs(node.q_value) <= 1.0
    below = sum(child.visit_count for child in node.children.values())
    exact = node.terminal_or_mate_value
    if node.visit_count == 0:
        # Unvisited, or proven by the mate search at the root.
        assert node.nn_value is None
        assert not node.children or (node.parent is None and exact is not None)
    elif node.nn_value is None:
        assert exact is not None, "only exact nodes are not evaluated"
        assert (len(node.children), node.total_value) == (0, exact * node.visit_count)
    else:
        assert not node.state.is_terminal
        assert -1.0 <= node.nn_value <= 1.0
        assert sorted(node.children) == sorted(node.state.legal_actions())
        assert sum(child.prior for child in node.children.values()) == pytest.approx(1.0, abs=1e-5)
        assert node.visit_count == 1 + below or (exact is not None and node.visit_count > below)
    if node.proven is not None and not node.is_terminal:
        assert node.distance is not None
        if node.distance <= 3:
            answer = mate_search(node.state, 2)
            kind = {1: "mate_in", -1: "mated_in"}.get(node.proven, answer.kind)
            assert answer.kind == kind, "proven mates are mates"
    check_categories(node, options)


def check_categories(node: pondertree.Node, options: dict[str, Any]) -> None:
    """Categories match `categorize`, except for killers and history scores collected by the search."""
    if options["priority"] is None or node.nn_value is None:
        assert options["priority"] is not None or node.category is None
        return
    plain = categorize(node.state, see_threshold=options["see_threshold"])
    for action, child in node.children.items():
        categories = {plain[action]}
        if plain[action] in (MoveCategory.Check, MoveCategory.OtherQuiet) and node.parent is not None:
            categories |= set(QUIET[: 2 if plain[action] is MoveCategory.Check else 3])
        if node.parent is None and child.proven == -1:
            categories.add(MoveCategory.ForcedMate)
        assert child.category in categories
    tried = [child for child in node.children.values() if child.visit_count]
    if options["priority"] == "strict" and len(tried) < len(node.children):
        # Unvisited moves remain, so that all moves are in category order.
        assert [child.category for child in node.children.values()] == sorted(
            child.category for child in node.children.values() if child.category is not None
        )
        assert all(child.visit_count <= 1 for child in tried)


@pytest.mark.parametrize("priority", PRIORITIES[:3])
def test_root_categories_match_categorize(priority: str) -> None:
    for fen in (None, TACTICS, mirror(TACTICS), MIDDLEGAME, ENDGAME):
        for threshold in (0, 120):
            search = pondertree.Hybrid(
                priority=priority, see_threshold=threshold, mate_search_depth=0, num_simulations=300, seed=1
            )
            tree = search.tree(Chess(fen)).simulate(300)
            root = tree.result().root
            categories = categorize(Chess(fen), see_threshold=threshold)
            assert {action: child.category for action, child in root.children.items()} == categories
            assert root.category is None
            assert root.nn_value == Pesto().value(Chess(fen))
            for child in root.children.values():
                expected = Pesto().value(child.state) if child.visit_count and not child.is_terminal else None
                assert child.nn_value == expected
            # A reused root keeps the categories it got as a leaf.
            tree.advance(tree.result().action)
            for action, child in tree.result().root.children.items():
                assert isinstance(child.category, MoveCategory)
                assert action in child.parent.state.legal_actions()  # type: ignore[union-attr]


def test_nodes_of_other_searches_have_no_category() -> None:
    for search in (
        pondertree.Hybrid(priority=None, num_simulations=20),
        pondertree.AlphaZero(Pesto(), 20),
        pondertree.UCT(20),
    ):
        assert all(node.category is None for node in every_node(search.run(Chess(TACTICS)).root))


def test_strict_and_tactical_select_in_category_order_before_scores() -> None:
    state = Chess(TACTICS)
    categories = categorize(state)
    promising = sum(kind <= MoveCategory.Check for kind in categories.values())
    for priority, first in (("strict", len(categories)), ("tactical", promising)):
        search = pondertree.Hybrid(priority=priority, mate_search_depth=0, num_simulations=first + 1, trace=True)
        tree = search.tree(state).simulate(first + 1)
        rows = tree.trace()
        opened = [categories[row["path"][0]] for row in rows[:first]]
        assert opened == sorted(opened)
        assert all(row["scores"] == [None] for row in rows[:first])
        assert rows[first]["scores"][0] is not None
        assert len(rows[first]["scores"][0]) == len(categories)
    for other in ("prior", None):
        tree = pondertree.Hybrid(priority=other, mate_search_depth=0, trace=True).tree(state).simulate(50)
        assert all(scores is not None for row in tree.trace() for scores in row["scores"])


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize("network", [None, pseudo_random])
def test_tree_is_independent_of_threads(network: Any, in_flight: int) -> None:
    states = [Chess(fen) for fen in (None, TACTICS, MIDDLEGAME)]
    for priority in PRIORITIES:
        by = {} if network is None else {"policy_network": FakeNetwork(network)}
        options: dict[str, Any] = {"priority": priority, "in_flight": in_flight, "num_simulations": 150, "seed": 1}
        alone, many = (
            [fingerprint(result) for result in pondertree.Hybrid(threads=threads, **by, **options).run(states)]
            for threads in (1, 3)
        )
        assert alone == many
        one, two = (pondertree.Hybrid(threads=n, **by, **options).run(states[1], seeds=5) for n in (1, 2))
        assert fingerprint(one) == fingerprint(two)


def test_results_equal_across_processes() -> None:
    program = (
        "import pondertree; from pondertree.games import Chess\n"
        f"r = pondertree.Hybrid(num_simulations=400, in_flight=4, threads=2, seed=3).run(Chess({MIDDLEGAME!r}))\n"
        "print(r.action, r.value.hex(), r.visits.nonzero()[0].tolist(), r.visits[r.visits > 0].tolist())"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8").stdout
    here = pondertree.Hybrid(num_simulations=400, in_flight=4, seed=3).run(Chess(MIDDLEGAME))
    expected = [here.action, here.value.hex(), here.visits.nonzero()[0].tolist(), here.visits[here.visits > 0].tolist()]
    assert printed.strip() == " ".join(map(str, expected))


def test_random_numbers_differ_between_rows_and_calls() -> None:
    """Without categories all moves of the initial position are equivalent: the first one is random."""
    search = pondertree.Hybrid(
        policy_network=FakeNetwork(lambda state: ({}, 0.5)), priority=None, num_simulations=3, seed=1
    )
    rows = [tuple(result.visits.nonzero()[0]) for _ in range(2) for result in search.run([Chess()] * 8)]
    assert len(set(rows)) > 8
