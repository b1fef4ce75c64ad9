"""The statistics of moves, as plain data for messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.config import LogPuct, Puct, ScoringRule, Ucb1
from pondertree.result import UNPROVEN, SearchResult
from pondertree.view.messages import DECIMALS

#: Moves of a message.
MAX_MOVES = 120


def finite(value: float | None) -> float | None:
    """Returns a number rounded for a message; None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else round(float(value), DECIMALS)


def move_rows(
    result: SearchResult, rule: ScoringRule | None, write: Callable[[int], str], *, node: int = 0, evaluates: bool
) -> list[dict[str, Any]]:
    """Returns the moves at a node by visits, at the root the best one first; expected lines are left empty.

    `evaluates` tells whether the search has an evaluator or a model: playouts are no evaluations of a network.
    """
    edges = result.edges_of(node)
    clean = result.clean_priors if node == 0 else {}
    total = int(edges.visits.sum())
    has_priors = bool(edges.priors.any())
    terms = exploration(rule, edges.visits, edges.priors, result.visits_of(node))
    order = np.argsort(-edges.visits, kind="stable").tolist()
    if node == 0:
        order.remove(result.best_row)
        order.insert(0, result.best_row)
    listed = []
    for row in order[:MAX_MOVES]:
        action, visits, q, u = int(edges.actions[row]), int(edges.visits[row]), finite(edges.q[row]), finite(terms[row])
        proven = None if edges.proven[row] == UNPROVEN else int(edges.proven[row])
        evaluation, plies = result.evaluation_of(node, int(edges.children[row]))
        listed.append(
            {
                "action": action,
                "text": write(action),
                "visits": visits,
                "share": round(visits / max(total, 1), DECIMALS),
                "prior": finite(edges.priors[row]) if has_priors else None,
                "clean_prior": finite(clean.get(action, edges.priors[row])) if has_priors else None,
                "network": finite(evaluation) if evaluates else None,
                "q": q,
                "u": u,
                # MuZero's rule normalises q.
                "score": None if u is None or q is None or isinstance(rule, LogPuct) else round(q + u, DECIMALS),
                "proven": proven,
                "distance": None if proven is None else plies,
                "line": [],
            }
        )
    return listed


def exploration(
    rule: ScoringRule | None, visits: NDArray[np.int64], priors: NDArray[np.float32], total: int
) -> NDArray[np.float64]:
    """Returns the exploration term of each edge of a node with `total` visits; NaN if the rule has none, and before
    the node is evaluated."""
    weight = math.nan
    if rule is not None and rule.has_priors and not priors.any():
        rule = None
    match rule:
        case Ucb1():
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(rule.c_param * np.sqrt(2.0 * math.log(max(total, 1)) / visits))
        case Puct():
            counted = total if rule.parent_visits == "node" else max(total - 1, 1)
            weight = rule.c_puct * math.sqrt(counted)
        case LogPuct():
            weight = (math.log((total + rule.pb_c_base + 1) / rule.pb_c_base) + rule.pb_c_init) * math.sqrt(total)
    return np.asarray(weight * priors.astype(np.float64) / (1.0 + visits))
