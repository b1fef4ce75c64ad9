"""What the scores of a choice are made of, as a trace records it. Computed apart from the selections."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Literal

from pondertree.reference.planning import Scale, mean_for_chooser
from pondertree.trace import ChoiceTerms, EdgeTerms, Scores

if TYPE_CHECKING:
    from pondertree.reference.tree import TreeNode

Record = list[tuple[Scores | None, ChoiceTerms]]
"""The choices of a descent: the compared scores, and what they were made of."""

How = Literal["score", "forced", "halving", "untried", "balanced", "sample"]


def choice(
    node: TreeNode, rule: str, how: How, edges: list[EdgeTerms], shared: ChoiceTerms | None = None
) -> ChoiceTerms:
    """Returns the terms of a choice at `node` among `edges`; `shared` are those of the rule."""
    visits = node.visit_count + node.in_flight
    return {"player": node.to_play, "visits": visits, "rule": rule, "how": how, **(shared or {}), "edges": edges}


def untried(action: int) -> EdgeTerms:
    """Returns the terms of an edge without a child."""
    return {"action": action, "visits": 0, "in_flight": 0, "total": 0.0, "proven": None}


def expected(child: TreeNode | None) -> float | None:
    """Returns Q with virtual loss; None without visits."""
    if child is None or (child.proven_for_chooser is None and child.visit_count + child.in_flight == 0):
        return None
    return child.expected_for_chooser()


def virtual_loss(child: TreeNode | None) -> int:
    """Returns the leaves in flight that Q counts as losses."""
    return 0 if child is None or child.rewards or child.proven_for_chooser is not None else child.in_flight


def scored(terms: EdgeTerms, score: float, excluded: Collection[int]) -> EdgeTerms:
    """Returns the terms with their score, None if the action is among the `excluded`."""
    is_excluded = terms["action"] in excluded
    return {**terms, "excluded": is_excluded, "score": None if is_excluded else score}


def excluded_losses(node: TreeNode) -> set[int]:
    """Returns the proven losses at a node; none if all moves are lost."""
    lost = {action for action, child in node.children.items() if child.proven_for_chooser == -1}
    return lost if len(lost) < len(node.children) + len(node.list_actions()) else set()


def puct(
    node: TreeNode,
    rule: str,
    edges: Iterable[tuple[EdgeTerms, TreeNode | None]],
    weight: float,
    urgency: float,
    forced_visits: dict[int, float] | None = None,
    how: How = "score",
    scale: Scale | None = None,
) -> ChoiceTerms:
    """Returns the terms of PUCT: each score is Q, or the first-play urgency, plus weight * P / (1 + n).

    `scale` normalises Q, but not the urgency, which is on that scale already.
    """
    excluded = excluded_losses(node)
    rows: list[EdgeTerms] = []
    for terms, child in edges:
        q = expected(child) if scale is None else None if child is None else mean_for_chooser(child)
        exploration = weight * terms["prior"] / (1.0 + (terms["visits"] + terms["in_flight"]))
        exploit = urgency if q is None else q if scale is None else (q - scale[0]) * scale[1]
        of_value: EdgeTerms = (
            {"virtual_loss": virtual_loss(child), "q": exploit} if scale is None else {"q": q, "normalized_q": exploit}
        )
        known: EdgeTerms = {
            **terms,
            **of_value,
            "first_play_urgency": q is None,
            "exploration": exploration,
            "forced_visits": (forced_visits or {}).get(terms["action"]),
        }
        rows.append(scored(known, exploit + exploration, excluded))
    shared: ChoiceTerms = {"exploration_weight": weight}
    return choice(node, rule, how, rows, shared if scale is None else {**shared, "low": scale[0], "scale": scale[1]})
