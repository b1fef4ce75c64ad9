"""Proven results, which the specification does not have: found at ends of the game, and handed up the tree."""

from __future__ import annotations

from pondertree.reference.state import is_zero_sum
from pondertree.reference.tree import TreeNode


def note_end(leaf: TreeNode) -> None:
    """A new leaf where the game is over is proven, if its result is one of those that proofs are made of."""
    if leaf.end is not None and is_zero_sum(leaf.state):
        result = leaf.end[leaf.to_play]
        if result in (-1.0, 0.0, 1.0):
            leaf.proven = int(result)


def prove_ancestors(leaf: TreeNode) -> None:
    """Walks up from a proven leaf for as long as each next node is decided by its children.

    A win needs one winning move; anything else needs all moves. The sums of the ancestors are not rewritten.
    """
    node = leaf.parent if leaf.proven is not None else None
    while node is not None and node.proven is None:
        known = [(c.proven_for_chooser, c.distance) for c in node.children.values()]
        results = [(result, distance) for result, distance in known if result is not None]
        wins = [distance for result, distance in results if result == 1]
        if wins:
            node.proven, node.distance = 1, 1 + min(wins)
        elif not node.list_actions() and len(results) == len(known):
            node.proven = max(result for result, _ in results)
            node.distance = 1 + max(distance for result, distance in results if result == node.proven)
        else:
            return
        node = node.parent
