"""Comparison of UCT trees of the engine and the reference."""

from __future__ import annotations

from typing import Any

import pondertree


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
