"""The statistics of a frame: the status of a search and the moves at its root, as plain data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.config import LogPuct, Puct, ScoringRule, Ucb1
from pondertree.result import UNPROVEN, SearchResult
from pondertree.view.window import DECIMALS, Rows

#: Moves in a frame, moves of them with an expected line while the search runs, and moves of a line.
MAX_MOVES, MAX_LINES, MAX_LINE = 120, 12, 12


def finite(value: float | None) -> float | None:
    """Returns a number rounded for a message; None for NaN."""
    return None if value is None or not math.isfinite(value) else round(float(value), DECIMALS)


def move_rows(
    result: SearchResult,
    rows: Rows,
    state: Any,
    rule: ScoringRule,
    write: Callable[[Any, int], str],
    seconds: float,
) -> list[dict[str, Any]]:
    """Returns the moves at the root, the best one first, then by visits; expected lines that take longer are left out."""
    deadline = time.perf_counter() + seconds
    edges, clean = result.edges, result.clean_priors
    total = max(int(edges.visits.sum()), 1)
    has_priors = bool(edges.priors.any())
    terms = exploration(rule, edges.visits, edges.priors, result.root.visit_count)
    children = below_root(rows)
    order = np.argsort(-edges.visits, kind="stable").tolist()
    best = result.best_row
    order.remove(best)
    listed = []
    for count, row in enumerate([best, *order][:MAX_MOVES]):
        action, visits, q = int(edges.actions[row]), int(edges.visits[row]), finite(edges.q[row])
        evaluation, distance = children.get(action, (None, None))
        proven = int(edges.proven[row])
        has_line = visits > 0 and (count == 0 or time.perf_counter() < deadline)
        u = None if terms is None else finite(terms[row])
        listed.append(
            {
                "action": action,
                "text": write(state, action),
                "visits": visits,
                "share": round(visits / total, DECIMALS),
                "prior": finite(edges.priors[row]) if has_priors else None,
                "clean_prior": finite(clean.get(action, edges.priors[row])) if has_priors else None,
                "network": evaluation,
                "q": q,
                "u": u,
                "score": None if u is None or q is None or isinstance(rule, LogPuct) else round(q + u, DECIMALS),
                "proven": None if proven == UNPROVEN else proven,
                "distance": None if proven == UNPROVEN else distance,
                "line": result.line(row, MAX_LINE, write) if has_line else [],
            }
        )
    return listed


def below_root(rows: Rows) -> dict[int, tuple[float | None, int]]:
    """Returns (the evaluation for the player to move at the root, plies to the end) of the positions after its moves."""
    columns = rows.columns
    below = np.flatnonzero((rows.parents == 0) & (rows.ids != 0)).tolist()
    return {
        int(columns["action"][row]): (finite(columns["evaluation"][row]), int(columns["distance"][row]) + 1)
        for row in below
    }


def exploration(
    rule: ScoringRule, visits: NDArray[np.int64], priors: NDArray[np.float32], total: int
) -> NDArray[np.float64] | None:
    """Returns the exploration term of each edge of a node with `total` visits; None if the rule has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        match rule:
            case Ucb1():
                return np.asarray(rule.c_param * np.sqrt(2.0 * np.log(total) / visits), dtype=np.float64)
            case Puct():
                counted = total if rule.parent_visits == "node" else max(total - 1, 1)
                weight = rule.c_puct * math.sqrt(counted)
            case LogPuct():
                weight = (math.log((total + rule.pb_c_base + 1) / rule.pb_c_base) + rule.pb_c_init) * math.sqrt(total)
            case _:
                return None
        return np.asarray(weight * priors.astype(np.float64) / (1.0 + visits), dtype=np.float64)
