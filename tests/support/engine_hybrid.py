"""Hybrid searches in the engine and the reference, in step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.search_helpers import fingerprint
from tests.support.terms import check_terms
from tests.support.traces import first_difference

import pondertree
from pondertree.reference import hybrid
from pondertree.reference.answer import policy_at

TEMPERATURES = (0.0, 1.0, 1e9)


@dataclass
class Pair:
    """One search in the reference implementation and in the engine, there with and without a trace."""

    state: Any
    options: dict[str, Any]
    threads: int = 1

    def __post_init__(self) -> None:
        # The engine defaults to the strongest setting, the reference to the specification's.
        self.options = {"priority": "strict", "move_scores": None, **self.options}
        names = {"category_weights": "weights"}
        options = {names.get(name, name): value for name, value in self.options.items()}
        scores = options.pop("move_scores")
        self.reference = hybrid.MCTS(**options, move_scores=None if scores is None else scores.compiled)
        self.tree = self.reference.tree(self.state, trace=True)
        self.engines = [
            pondertree.Hybrid(trace=trace, threads=self.threads, **self.options).tree(self.state)
            for trace in (True, False)
        ]

    def simulate(self, count: int) -> hybrid.Result:
        self.reference.simulate(self.tree, count)
        for engine in self.engines:
            engine.simulate(count)
        difference = first_difference(self.engines[0].trace(), self.tree.trace or [])
        assert difference is None, f"{difference} (a: engine, b: reference)"
        check_terms(self.engines[0].trace())
        assert fingerprint(self.engines[0].result()) == fingerprint(self.engines[1].result())
        for temperature in TEMPERATURES:
            self.compare(temperature)
        compare_nodes(self.engines[1].result().root, self.tree.root)
        return self.reference.result(self.tree)

    def compare(self, temperature: float) -> None:
        theirs = self.reference.result(self.tree, temperature)
        best = self.reference.result(self.tree).action
        shares = policy_at(theirs.root, temperature, best)
        for engine in self.engines:
            ours = engine.result(temperature=temperature)
            assert ours.simulations == theirs.simulations
            assert {action: int(ours.visits[action]) for action in theirs.visits} == theirs.visits
            assert (ours.action, ours.proven, ours.value) == (theirs.action, theirs.proven, theirs.value)
            for action, q in theirs.q.items():
                # A move proven by mate search has an exact value before its first visit.
                child = theirs.root.children.get(action)
                if child is None or child.visits > 0:
                    assert ours.q[action] == q or (math.isnan(q) and math.isnan(ours.q[action]))
            assert {action: ours.policy[action] for action in theirs.policy} == pytest.approx(theirs.policy, abs=1e-12)
            assert {action: ours.policy_at(temperature)[action] for action in shares} == pytest.approx(shares)

    def advance(self, action: int) -> None:
        self.reference.advance(self.tree, action)
        for engine in self.engines:
            engine.advance(action)


def compare_nodes(engine: pondertree.Node, root: hybrid.MctsNode) -> None:
    """Compares all nodes: order, visits, sums, priors, categories, exact values, nothing in flight."""
    assert engine.visit_count == root.visits
    assert engine.total_value == pytest.approx(root.total_value, abs=1e-9)
    stack = [(engine, root)]
    while stack:
        ours, theirs = stack.pop()
        assert (ours.proven, ours.to_play) == (theirs.proven, theirs.to_play)
        assert ours.terminal_or_mate_value == theirs.terminal_or_mate_value
        assert ours.nn_value == theirs.nn_value
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        # The moves of an unevaluated root have no priors, and unvisited ones are not listed.
        never_tried = (theirs.unexplored or []) if theirs.priors is not None else []
        assert list(ours.children) == [*theirs.children, *never_tried]
        for action, mine in ours.children.items():
            if theirs.categories and action in theirs.categories:
                assert mine.category in (theirs.categories[action], None)
            if theirs.priors is not None:
                assert mine.prior == theirs.priors[action]
            assert mine.in_flight == 0
            child = theirs.children.get(action)
            if child is None:
                assert mine.visit_count == 0
                continue
            assert mine.visit_count == child.visits
            assert mine._edge["sum"] == child.total_for_chooser
            assert mine.total_value == child.total_value
            stack.append((mine, child))


def assert_equal(state: Any, simulations: int, *, threads: int = 1, **options: Any) -> hybrid.Result:
    return Pair(state, options, threads).simulate(simulations)
