"""Planning with rewards: discounts, backup of the best move's value, and values on the scale of the tree.

Scores such as UCB1's compare values with an exploration term for values in [0, 1]. Rewards have any size, so
`normalize="tree"` maps the mean values of a tree to [0, 1] by their bounds, as MuZero does (Schrittwieser et al. 2020,
appendix B, equation 5). `backup="max"` is MaxUCT (Keller & Helmert 2013, "Trial-based heuristic tree search for finite
horizon MDPs"): a position is worth its best move, where the mean of all visits includes those of worse moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree.reference.tree import SearchTree, TreeNode
from pondertree.validation import number

Scale = tuple[float, float]
"""The offset and the factor of normalisation."""


def scale_of(tree: SearchTree[Any]) -> Scale:
    """Returns the offset and the factor of normalisation. Without two different values, all are worth 0.

    The factor is exact under powers of two, and the offset takes away a constant that every episode ends with.
    """
    return (tree.low, 1.0 / (tree.high - tree.low)) if tree.high > tree.low else (0.0, 0.0)


def mean_for_chooser(child: TreeNode) -> float | None:
    """Returns Q of a move, exact if proven, and None without visits; leaves in flight do not count."""
    proven = child.proven_for_chooser
    if proven is not None:
        return float(proven)
    return child.total_for_chooser / child.visit_count if child.visit_count > 0 else None


def normalized(mean: float | None, scale: Scale) -> float:
    """Returns a mean value on the scale of the tree; the lowest, 0, where the first visit is in flight."""
    low, factor = scale
    return 0.0 if mean is None else (mean - low) * factor


def best_value(node: TreeNode) -> float | None:
    """Returns the highest mean value of the visited moves of a node, at a chance node the mean of all; or None."""
    if node.is_chance:
        total, visits = node.sum_of_moves()
        return total / visits if visits else None
    means = [child.total_for_chooser / child.visit_count for child in node.children.values() if child.visit_count > 0]
    return max(means) if means else None


def value_of(node: TreeNode, backup: str) -> float:
    """Returns the value of a node for its player to move: the mean of its visits, or that of its best visited move."""
    best = best_value(node) if backup == "max" else None
    return node.mean_value if best is None else best


def discount_of(state: Any, own: float) -> float:
    """Returns the discount of a search in the game of a state: its `own` or, where that is 1, that of the game."""
    declared = float(getattr(state, "discount", 1.0))
    if own != 1.0 and declared not in (1.0, own):
        raise ValueError(f"discount is {own} in the search, but {declared} in the game: give it to one of them")
    return declared if own == 1.0 else own


def before_move(node: TreeNode, values: Sequence[float], discount: float) -> list[float]:
    """Returns the values of the move that led to `node`, one per player: g = reward + discount * g.

    An outcome of chance is no move: it is not discounted.
    """
    if node.parent is not None and node.parent.is_chance:
        discount = 1.0
    if node.rewards is None:
        return [discount * v for v in values]
    # A reward counts for the move that earns it and for all moves before.
    return [r + discount * v for r, v in zip(node.rewards, values, strict=True)]


def check_planning(normalize: str | None, discount: float, backup: str) -> None:
    """Checks the options of planning."""
    if normalize not in ("tree", None):
        raise ValueError(f'normalize must be "tree" or None, not {normalize!r}')
    if not number(discount, "discount", most=1.0) > 0.0:
        raise ValueError(f"discount must be above 0 and at most 1, not {discount}")
    if backup not in ("mean", "max"):
        raise ValueError(f'backup must be "mean" or "max", not {backup!r}')


def check_players(backup: str, num_players: int) -> None:
    """Refuses the backup of maxima where several players maximise different values."""
    if backup == "max" and num_players != 1:
        raise ValueError(f'backup="max" is for games of one player; this one has {num_players}')


def for_each_player(leaf: TreeNode, values: Sequence[float] | float) -> list[float]:
    """Returns one value per player; a single number is from the perspective of the leaf's chooser."""
    if not isinstance(values, (int, float)):
        return list(values)
    if leaf.state.num_players > 2:
        raise ValueError(f"one value for {leaf.state.num_players} players: give one for each")
    player = leaf.to_play if leaf.parent is None else leaf.chooser
    return [float(values) if each == player else -float(values) for each in range(leaf.state.num_players)]
