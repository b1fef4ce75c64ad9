"""Completed Q: what every move of a node is worth, tried or not, and the policy that is better for knowing it.

Danihelka et al. 2022, "Policy improvement by planning with Gumbel": sections 3 and 4, the mixed value in appendix D.
Names and numbers are those of the authors' library mctx, so that trees can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pondertree.reference.node import PriorNode
from pondertree.reference.policy import add_up, normalised

LEAST_SPAN = 1e-8
"""Values closer together than this count as so far apart, so that equal ones do not divide by 0."""
LEAST_PRIOR = 2.0**-126
"""The smallest ordinary number of 32 bits: smaller priors count as this much in the mixed value."""


@dataclass(frozen=True, slots=True)
class Bonus:
    """What a node adds to the logits of its moves: sigma(q) = weight * (q - low) / span."""

    weight: float
    low: float
    span: float
    completing: float
    """The value of moves never tried."""

    def sigma(self, q: float) -> float:
        """That of a move with value `q`."""
        return self.weight * ((q - self.low) / self.span)

    @property
    def untried(self) -> float:
        """That of a move never tried."""
        return self.sigma(self.completing)

    def of(self, child: PriorNode) -> float:
        """That of the move to `child`."""
        q = value_of(child)
        return self.untried if q is None else self.sigma(q)


@dataclass(frozen=True, slots=True)
class Completion:
    """How Q is completed and scaled."""

    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    rescale_values: bool = True
    use_mixed_value: bool = True

    def at(self, node: PriorNode) -> Bonus:
        """The bonus of the moves of `node`; leaves in flight count as visits of the most visited move."""
        tried = [child for child in node.children.values() if child.is_tried]
        values = [q for child in tried if (q := value_of(child)) is not None]
        completing = mixed_value(node, tried) if self.use_mixed_value else node.raw_value
        low, span = 0.0, 1.0
        if self.rescale_values:
            # Where actions are missing, legal or not, the completing value is one of those that are scaled.
            if len(values) < node.num_actions:
                values.append(completing)
            low = min(values)
            span = max(max(values) - low, LEAST_SPAN)
        most = max((started(child) for child in tried), default=0)
        return Bonus((self.maxvisit_init + most) * self.value_scale, low, span, completing)


def value_of(child: PriorNode) -> float | None:
    """Q of a move for the player who makes it: exact where it is proven, None where nothing is known."""
    proven = child.proven_for_chooser
    if proven is not None:
        return float(proven)
    return child.total_for_chooser / child.visit_count if child.visit_count > 0 else None


def started(child: PriorNode) -> int:
    """Visits of a move, leaves in flight counted."""
    return child.visit_count + child.in_flight


def mixed_value(node: PriorNode, tried: Sequence[PriorNode]) -> float:
    """The node's own value, mixed with those of its tried moves, weighed by their priors (appendix D)."""
    total = sum(child.visit_count for child in tried)
    if total == 0:
        return node.raw_value
    known = [(max(LEAST_PRIOR, child.prior), q) for child in tried if (q := value_of(child)) is not None]
    priors = add_up(prior for prior, _ in known)
    weighted = add_up(prior * q / priors for prior, q in known)
    return (node.raw_value + total * weighted) / (total + 1)


def improved_policy(children: Sequence[PriorNode], bonus: Bonus) -> list[float]:
    """softmax(logits + bonus) over these moves: the target for a policy network.

    Trap: where the policy rules out all moves that are left, which proofs can bring about, they are alike.
    """
    likely = [child for child in children if child.prior > 0.0]
    most = max(bonus.of(child) for child in likely or children)
    return normalised([_weight(child.prior if likely else 1.0, bonus.of(child) - most) for child in children])


def interior_scores(node: PriorNode, bonus: Bonus) -> dict[int, float]:
    """How far the visits of each move lag behind the improved policy (section 5, equation 14).

    That makes visits follow the policy without any chance. Moves never tried all have the same bonus, so their part of
    the softmax is their priors together, of those that got no child too.
    """
    tried = {action: child for action, child in node.children.items() if child.is_tried}
    rest = add_up(child.prior for action, child in node.children.items() if action not in tried) + node.tail
    bonuses = {action: bonus.of(child) for action, child in tried.items()}
    likely = [bonuses[action] for action, child in tried.items() if child.prior > 0.0]
    most = max([*likely, bonus.untried] if rest > 0.0 else likely)
    weights = {action: _weight(child.prior, bonuses[action] - most) for action, child in tried.items()}
    untried = math.exp(bonus.untried - most) if rest > 0.0 else 0.0
    total = add_up(weights.values()) + rest * untried
    visits = sum(started(child) for child in tried.values())
    return {
        action: weights[action] / total - started(child) / (1.0 + visits)
        if action in tried
        else child.prior * untried / total
        for action, child in node.children.items()
    }


def _weight(prior: float, exponent: float) -> float:
    """prior * exp(exponent). What is ruled out stays so, however good it looks: there exp may overflow."""
    return prior * math.exp(exponent) if prior > 0.0 else 0.0
