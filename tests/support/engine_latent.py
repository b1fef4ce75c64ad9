"""MuZero and Gumbel searches in the engine and the reference, in step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import fingerprint
from tests.support.terms import check_terms
from tests.support.traces import first_difference

import pondertree

TEMPERATURES = (0.0, 0.5, 1.0, 1e9)


@dataclass
class Pair:
    """One search in the reference implementation and in the engine, there with and without a trace."""

    reference: Any
    searches: list[Any]
    inputs: dict[str, Any]
    noise: bool = True
    tree: Any = None
    engines: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = self.reference.tree(trace=True, **self.inputs)
        self.engines = [search.tree(**self.inputs) for search in self.searches]

    def simulate(self, count: int, add_noise: bool | None = None) -> Any:
        self.reference.simulate(self.tree, count, *([add_noise] if self.noise else []))
        for engine in self.engines:
            engine.simulate(count, add_noise=add_noise)
        difference = first_difference(self.engines[0].trace(), self.tree.trace)
        assert difference is None, f"{difference} (a: engine, b: reference)"
        check_terms(self.engines[0].trace())
        assert fingerprint(self.engines[0].result()) == fingerprint(self.engines[1].result())
        for temperature in TEMPERATURES:
            theirs = self.reference.result(self.tree, temperature)
            ours = self.engines[1].result(temperature=temperature)
            assert ours.simulations == theirs.simulations
            assert {action: int(ours.visits[action]) for action in theirs.visits} == theirs.visits
            assert (ours.action, ours.proven) == (theirs.action, theirs.proven)
            assert ours.value == pytest.approx(theirs.value, abs=1e-9)
            assert {action: ours.policy[action] for action in theirs.policy} == pytest.approx(theirs.policy, abs=1e-12)
            assert np.isfinite(ours.policy).all()
            assert ours.policy.sum() == pytest.approx(1.0)
        compare_nodes(self.engines[1].result().root, self.reference.result(self.tree).root)
        return self.reference.result(self.tree)

    def advance(self, action: int, **inputs: Any) -> None:
        self.reference.advance(self.tree, action, **inputs)
        for engine in self.engines:
            engine.advance(action, **inputs)


def compare_nodes(engine: pondertree.Node, root: Any) -> None:
    """Compares all nodes: order, visits, priors, players to move, nothing in flight."""
    stack = [(engine, root)]
    while stack:
        ours, theirs = stack.pop()
        assert ours.visit_count == theirs.visit_count
        assert list(ours.children) == list(theirs.children)
        for action, child in ours.children.items():
            other = theirs.children[action]
            assert child.prior == pytest.approx(other.prior, abs=1e-12)
            assert child.in_flight == 0
            assert child.visit_count == other.visit_count
            if child.visit_count:
                assert child.to_play == other.to_play
                stack.append((child, other))
