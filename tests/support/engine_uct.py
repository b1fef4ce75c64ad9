"""Comparison of UCT trees of the engine and the reference."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.support.terms import check_terms
from tests.support.traces import first_difference

import pondertree
from pondertree.reference.uct import MCTS


def assert_equal(state: Any, simulations: int, seed: int, evaluator: Any = None, **options: Any) -> None:
    """Runs both searches and compares all results; a failure names the first difference of their traces."""
    reference_search = MCTS(simulations, seed=seed, evaluator=evaluator, **options)
    engine_search = pondertree.UCT(simulations, seed=seed, evaluator=evaluator, trace=True, **options)
    reference_tree = reference_search.tree(state, trace=True)
    reference_search.simulate(reference_tree, simulations)
    reference = reference_search.result(reference_tree)
    tree = engine_search.tree(state).simulate()
    engine = tree.result()
    difference = first_difference(tree.trace(), reference_tree.trace or [])
    assert difference is None, f"{difference} (a: engine, b: reference)"
    check_terms(tree.trace())
    assert engine.simulations == reference.simulations
    assert {a: int(engine.visits[a]) for a in reference.visits} == reference.visits
    assert engine.action == reference.action
    assert engine.proven == reference.proven
    assert engine.value == reference.value
    for action, q in reference.q.items():
        assert engine.q[action] == q or (math.isnan(q) and math.isnan(engine.q[action]))
    assert {a: engine.policy[a] for a in reference.policy} == pytest.approx(reference.policy, abs=1e-12)
    compare_nodes(engine.root, reference.root)


def compare_nodes(engine: pondertree.Node, reference: Any) -> None:
    """Compares all nodes: visits, sums for the chooser, proofs, nothing in flight."""
    stack = [(engine, reference)]
    while stack:
        ours, theirs = stack.pop()
        assert list(ours.children) == list(theirs.children)
        assert ours.proven == theirs.proven
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        for action, child in theirs.children.items():
            mine = ours.children[action]
            assert mine.visit_count == child.visit_count
            assert mine._edge["sum"] == child.total_value
            assert mine.in_flight == 0
            assert mine.forced_depth_left == child.forced_depth_left or child.end is not None
            stack.append((mine, child))
