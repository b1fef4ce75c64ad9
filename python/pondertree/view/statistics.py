"""The statistics of moves, as plain data for messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pondertree.config import ScoringRule
from pondertree.games.chance import read_outcomes
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
    """Returns the moves at a node: proven wins, then by visits, at the root the best one first; lines are left empty.

    `evaluates` tells whether the search has an evaluator or a model: playouts are no evaluations of a network.
    """
    edges = result.edges_of(node)
    clean = result.clean_priors if node == 0 else {}
    total = int(edges.visits.sum())
    has_priors = bool(edges.priors.any())
    if result.is_chance(node):  # its visits follow the probabilities
        rule = None
    terms = np.full(len(edges.visits), np.nan)
    if rule is not None and (has_priors or not rule.has_priors):  # before its evaluation, a node has no priors
        terms = rule.exploration(edges.visits, edges.priors, result.visits_of(node))
    adds_terms = rule is not None and not rule.normalises_q
    order = np.lexsort((-edges.visits, edges.proven != 1)).tolist()
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
                "score": round(q + u, DECIMALS) if adds_terms and q is not None and u is not None else None,
                "proven": proven,
                "distance": None if proven is None else plies,
                "line": [],
            }
        )
    return listed


def outcome_rows(state: Any, write: Callable[[int], str]) -> list[dict[str, Any]]:
    """Returns the outcomes of a chance node as moves without a search; their priors are the probabilities."""
    unknown = dict.fromkeys(("clean_prior", "network", "q", "u", "score", "proven", "distance"))
    outcomes = zip(*read_outcomes(state), strict=True)
    return [
        {"action": action, "text": write(action), "visits": 0, "share": 0.0, "prior": finite(probability), **unknown}
        | {"line": []}
        for action, probability in list(outcomes)[:MAX_MOVES]
    ]
