"""Policy targets of PUCT: visits without forced playouts (policy-target pruning, Wu 2019, section 3.2).

The policy target of Gumbel search is its improved policy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pondertree.result import SearchResult


def pruned_policy(result: SearchResult, legal: NDArray[np.uint16], c_puct: float, forced: float) -> NDArray[np.float32]:
    """Returns the pruned visit distribution of a PUCT search over the legal actions."""
    actions, visits, sums, priors, *_ = result.edges
    pruned = np.zeros(len(result.visits), dtype=np.float64)
    pruned[actions] = pruned_visits(visits.astype(np.float64), sums, priors.astype(np.float64), c_puct, forced)
    shares = pruned[legal]
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def pruned_visits(
    visits: NDArray[np.float64], sums: NDArray[np.float64], priors: NDArray[np.float64], c_puct: float, forced: float
) -> NDArray[np.float64]:
    """Subtracts forced visits as long as each move's PUCT score stays below that of the most visited move.

    At most sqrt(forced * P * N) visits of a move were forced. A move left with a single visit loses it.
    """
    total = visits.sum()
    best = int(np.argmax(visits))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(visits > 0, sums / visits, 0.0)
        explore = c_puct * priors * np.sqrt(total + 1.0)
        goal = q[best] + explore[best] / (1.0 + visits[best])
        # The fewest visits that keep Q + explore / (1 + n) at or below the goal.
        needed = np.where(goal > q, np.ceil(explore / np.maximum(goal - q, 1e-12) - 1.0), visits)
    allowed = np.ceil(np.sqrt(forced * priors * total))
    pruned = np.clip(needed, np.maximum(visits - allowed, 0.0), visits)
    pruned[pruned <= 1.0] = 0.0
    pruned[best] = visits[best]
    return pruned
