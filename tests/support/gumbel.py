"""Networks and tree helpers of the Gumbel reference tests."""

from __future__ import annotations

from pondertree.reference.latent_world import Node, RootNode


def node_with(raw: float, moves: list[tuple[float, int, float]], num_actions: int | None = None) -> Node:
    """A node whose moves have the given priors, visits and mean values."""
    node = RootNode()
    node.expand({action: prior for action, (prior, _, _) in enumerate(moves)}, num_actions or len(moves))
    node.raw_value, node.visit_count = raw, 1
    for child, (_, visits, mean) in zip(node.children.values(), moves, strict=True):
        child.visit_count, child.returns, child.is_visited = visits, visits * mean, visits > 0
        node.visit_count += visits
    return node
