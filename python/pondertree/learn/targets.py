"""What a search teaches: the policy that is learned from its root.

Gumbel search gives its improved policy. PUCT gives its visits, less those that were only spent to explore: forced
playouts are taken off again (policy-target pruning, Wu 2019, section 3.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pondertree.result import SearchResult


def pruned_policy(result: SearchResult, legal: NDArray[np.uint16], c_puct: float, forced: float) -> NDArray[np.float32]:
    """The visits of a PUCT search over the legal actions, less what was forced; it sums to 1."""
    actions, visits, sums, priors, *_ = result._view.edges(0)
    kept = np.zeros(len(result.visits), dtype=np.float64)
    kept[actions] = pruned_visits(visits.astype(np.float64), sums, priors.astype(np.float64), c_puct, forced)
    shares = kept[legal]
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def pruned_visits(
    visits: NDArray[np.float64], sums: NDArray[np.float64], priors: NDArray[np.float64], c_puct: float, forced: float
) -> NDArray[np.float64]:
    """Visits, less as many forced ones as leave each move's score below that of the move visited most.

    So many were forced at most: sqrt(forced * P * N). A move that is left with one visit, which says nothing, loses it.
    """
    total = visits.sum()
    best = int(np.argmax(visits))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(visits > 0, sums / visits, 0.0)
        explore = c_puct * priors * np.sqrt(total + 1.0)
        goal = q[best] + explore[best] / (1.0 + visits[best])
        # As few visits as keep Q + explore / (1 + n) at or below the goal.
        needed = np.where(goal > q, np.ceil(explore / np.maximum(goal - q, 1e-12) - 1.0), visits)
    allowed = np.ceil(np.sqrt(forced * priors * total))
    kept = np.clip(needed, np.maximum(visits - allowed, 0.0), visits)
    kept[kept <= 1.0] = 0.0
    kept[best] = visits[best]
    return kept
