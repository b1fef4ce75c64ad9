"""Completed Q values, the improved policy and sequential halving of Gumbel search.

Danihelka et al. 2022, "Policy improvement by planning with Gumbel": sections 3 to 5, the mixed value in appendix D.
Names and constants follow the authors' library mctx, so that trees can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pondertree.random import Random, add_up
from pondertree.reference.node import PriorNode
from pondertree.reference.priors import normalised
from pondertree.reference.terms import choice, excluded_losses, scored
from pondertree.trace import ChoiceTerms, EdgeTerms

MIN_RANGE = 1e-8
"""Lower bound of the range of Q in rescaling, against division by 0."""
MIN_PRIOR = 2.0**-126
"""The smallest normal float32: the lower bound of priors in the mixed value."""


@dataclass(frozen=True, slots=True)
class TransformedQ:
    """sigma of the moves of one node, added to their logits: sigma(q) = weight * (q - low) / span."""

    weight: float
    low: float
    span: float
    completion: float
    """Q of unvisited moves."""

    def sigma(self, q: float) -> float:
        """Returns sigma of a value."""
        return self.weight * ((q - self.low) / self.span)

    @property
    def unvisited(self) -> float:
        """sigma of an unvisited move."""
        return self.sigma(self.completion)

    def of(self, child: PriorNode) -> float:
        """Returns sigma of the move to `child`."""
        q = value_of(child)
        return self.unvisited if q is None else self.sigma(q)


@dataclass(frozen=True, slots=True)
class QTransform:
    """The parameters of completion and rescaling of Q (mctx: `qtransform_completed_by_mix_value`)."""

    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    rescale_values: bool = True
    use_mixed_value: bool = True

    def at(self, node: PriorNode) -> TransformedQ:
        """Returns the transformed Q of the moves of `node`; leaves in flight count as visits."""
        visited = [child for child in node.children.values() if child.is_visited]
        values = [q for child in visited if (q := value_of(child)) is not None]
        completion = mixed_value(node, visited) if self.use_mixed_value else node.raw_value
        low, span = 0.0, 1.0
        if self.rescale_values:
            # As in mctx, illegal actions count as unvisited: their completed Q extends the range.
            if len(values) < node.num_actions:
                values.append(completion)
            low = min(values)
            span = max(max(values) - low, MIN_RANGE)
        max_visits = max((visits_with_in_flight(child) for child in visited), default=0)
        return TransformedQ((self.maxvisit_init + max_visits) * self.value_scale, low, span, completion)


def value_of(child: PriorNode) -> float | None:
    """Returns Q of a move for the chooser; exact if proven, None if unvisited."""
    proven = child.proven_for_chooser
    if proven is not None:
        return float(proven)
    return child.total_for_chooser / child.visit_count if child.visit_count > 0 else None


def visits_with_in_flight(child: PriorNode) -> int:
    """Returns the visits of a move, including leaves in flight."""
    return child.visit_count + child.in_flight


def mixed_value(node: PriorNode, visited: Sequence[PriorNode]) -> float:
    """Returns the network's value mixed with the prior-weighted mean Q of the visited moves (appendix D)."""
    total = sum(child.visit_count for child in visited)
    if total == 0:
        return node.raw_value
    weighted_q = [(max(MIN_PRIOR, child.prior), q) for child in visited if (q := value_of(child)) is not None]
    priors = add_up(prior for prior, _ in weighted_q)
    mean = add_up(prior * q / priors for prior, q in weighted_q)
    return (node.raw_value + total * mean) / (total + 1)


def improved_policy(children: Sequence[PriorNode], q: TransformedQ) -> list[float]:
    """Returns softmax(logits + sigma(completed Q)) over the moves: the policy target.

    Trap: proofs can leave only moves with prior 0, for which the softmax is undefined; then all priors count as equal.
    """
    nonzero = [child for child in children if child.prior > 0.0]
    most = max(q.of(child) for child in nonzero or children)
    return normalised([_weight(child.prior if nonzero else 1.0, q.of(child) - most) for child in children])


def interior_scores(node: PriorNode, q: TransformedQ) -> dict[int, float]:
    """Returns the improved policy minus the share of visits of each move (section 5, equation 14).

    Selecting its maximum makes visits follow the policy deterministically.
    """
    visits = sum(visits_with_in_flight(child) for child in node.children.values())
    shares = interior_policy(node, q)
    return {
        action: shares[action] - visits_with_in_flight(child) / (1.0 + visits)
        for action, child in node.children.items()
    }


def interior_policy(node: PriorNode, q: TransformedQ) -> dict[int, float]:
    """Returns the improved policy at a node.

    All unvisited moves have the same sigma, so their part of the softmax is the sum of their priors, including those
    without a child.
    """
    visited = {action: child for action, child in node.children.items() if child.is_visited}
    rest = add_up(child.prior for action, child in node.children.items() if action not in visited) + node.tail_prior
    sigmas = {action: q.of(child) for action, child in visited.items()}
    nonzero = [sigmas[action] for action, child in visited.items() if child.prior > 0.0]
    most = max([*nonzero, q.unvisited] if rest > 0.0 else nonzero)
    weights = {action: _weight(child.prior, sigmas[action] - most) for action, child in visited.items()}
    unvisited = math.exp(q.unvisited - most) if rest > 0.0 else 0.0
    total = add_up(weights.values()) + rest * unvisited
    return {
        action: weights[action] / total if action in visited else child.prior * unvisited / total
        for action, child in node.children.items()
    }


def q_terms(child: PriorNode, action: int, q: TransformedQ) -> EdgeTerms:
    """Returns what a trace records of Q of a move."""
    known = value_of(child)
    completed = q.completion if known is None else known
    return {**child.edge_terms(action), "q": known, "completed_q": completed, "sigma": q.of(child)}


def interior_terms(node: PriorNode, q: TransformedQ) -> ChoiceTerms:
    """Returns what the scores of a choice below the root are made of."""
    shares, excluded = interior_policy(node, q), excluded_losses(node)
    visits = sum(visits_with_in_flight(child) for child in node.children.values())
    edges: list[EdgeTerms] = []
    for action, child in node.children.items():
        share = visits_with_in_flight(child) / (1.0 + visits)
        own: EdgeTerms = {"improved_policy": shares[action], "visit_share": share}
        edges.append(scored({**q_terms(child, action, q), **own}, shares[action] - share, excluded))
    return choice(node, "gumbel", "score", edges, shared_terms(q))


def shared_terms(q: TransformedQ) -> ChoiceTerms:
    """Returns the terms that all moves of a node share."""
    return {"mixed_value": q.completion, "sigma_weight": q.weight, "low": q.low, "span": q.span}


def _weight(prior: float, exponent: float) -> float:
    """Returns prior * exp(exponent); 0 for prior 0, where exp may overflow."""
    return prior * math.exp(exponent) if prior > 0.0 else 0.0


MIN_SCORE = -1e9
"""The score of a move with prior 0: finite, so that scores remain comparable."""


def considered_visits(moves: int, simulations: int) -> list[int]:
    """Returns the sequence of visit counts that sequential halving requires of the move selected in each simulation.

    Each phase gives all considered moves the same number of extra visits and keeps the better half, down to two.
    """
    if moves <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(moves))
    table: list[int] = []
    visits = 0
    while len(table) < simulations:
        extra_visits = max(1, simulations // (rounds * moves))
        for _ in range(extra_visits):
            table.extend([visits] * moves)
            visits += 1
        moves = max(2, moves // 2)
    return table[:simulations]


def gumbel_variate(random: Random) -> float:
    """Samples the standard Gumbel distribution by inversion."""
    uniform = ((random.next_u64() >> 11) + 0.5) / (1 << 53)
    return -math.log(-math.log(uniform))


@dataclass(slots=True)
class Schedule:
    """The allocation of the simulations of one call to the moves of the root."""

    first_simulation: int
    """The number of simulations of the tree at the start of the schedule."""
    considered: list[int]
    """By simulation: the visits since the start that the selected move must have."""
    base_visits: dict[int, int]
    """By action: the visits at the start."""
    variates: dict[int, float]
    """By action: the Gumbel variate."""
    logits: dict[int, float]
    """By action: the logit of the prior, with the maximum 0; -inf for prior 0."""

    @classmethod
    def start(
        cls, root: PriorNode, first_simulation: int, considered: list[int], variates: dict[int, float]
    ) -> Schedule:
        """Starts a schedule with the given Gumbel variates."""
        base_visits = {action: child.visit_count for action, child in root.children.items()}
        return cls(first_simulation, considered, base_visits, variates, logits_of(root))

    @classmethod
    def without_simulations(cls, root: PriorNode) -> Schedule:
        """Returns the schedule of a root without simulations: all visits count, and Gumbel variates are 0."""
        return cls(0, [], dict.fromkeys(root.children, 0), dict.fromkeys(root.children, 0.0), logits_of(root))

    def perturbed_logit(self, action: int) -> float:
        """Returns the Gumbel variate plus the logit of a move."""
        return self.variates[action] + self.logits[action]

    def score(self, child: PriorNode, q: TransformedQ) -> float:
        """Returns g + logit + sigma(q) of a move."""
        return max(MIN_SCORE, self.perturbed_logit(child.action or 0) + q.of(child))

    def scores(self, root: PriorNode, q: TransformedQ, moves: Sequence[int]) -> dict[int, float]:
        """Returns the scores of the visited moves and of the unvisited one with the highest perturbed logit.

        Unvisited moves have equal visits and sigma, and differ in their perturbed logits alone.
        """
        unvisited = [action for action in moves if not root.children[action].is_visited]
        best_unvisited = max(unvisited, key=lambda action: (self.perturbed_logit(action), -action), default=None)
        return {
            action: self.score(root.children[action], q)
            for action in moves
            if root.children[action].is_visited or action == best_unvisited
        }

    def choose(self, root: PriorNode, scores: dict[int, float], simulation: int) -> int:
        """Returns the move of a simulation: the highest score among the moves with the considered visits; the lowest of
        equals.

        If proofs have removed all of those, moves with the nearest lower visits are considered, then the nearest
        higher.
        """
        considered = self.considered[simulation - self.first_simulation]
        return max(
            scores, key=lambda action: (_nearness(self._visits(root, action), considered), scores[action], -action)
        )

    def _visits(self, root: PriorNode, action: int) -> int:
        """Returns the visits of a move since the start of the schedule, including leaves in flight."""
        return visits_with_in_flight(root.children[action]) - self.base_visits[action]

    def terms(self, root: PriorNode, q: TransformedQ, simulation: int) -> ChoiceTerms:
        """Returns what the scores of a choice at the root are made of."""
        considered = self.considered[simulation - self.first_simulation]
        excluded = excluded_losses(root)
        nearness = {action: _nearness(self._visits(root, action), considered) for action in root.children}
        nearest = max(rank for action, rank in nearness.items() if action not in excluded)
        edges: list[EdgeTerms] = []
        for action, child in root.children.items():
            own: EdgeTerms = {
                "gumbel": self.variates[action],
                "logit": self.logits[action],
                "scheduled_visits": self._visits(root, action),
                "considered": action not in excluded and nearness[action] == nearest,
            }
            score = max(MIN_SCORE, self.variates[action] + self.logits[action] + q.of(child))
            edges.append(scored({**q_terms(child, action, q), **own}, score, excluded))
        shared = shared_terms(q)
        shared["considered_visits"], shared["considered_actions"] = considered, self.considered.count(considered)
        return choice(root, "gumbel", "halving", edges, shared)

    def best_move(self, root: PriorNode, q: TransformedQ, moves: Sequence[int]) -> int:
        """Returns the highest score among the moves most visited in this schedule; the lowest of equals."""

        def rank(action: int) -> tuple[int, float, int]:
            child = root.children[action]
            return (child.visit_count - self.base_visits[action], self.score(child, q), -action)

        return max(moves, key=rank)


def _nearness(visits: int, considered: int) -> tuple[int, int]:
    """Returns the rank of a move by its visits: the considered ones, the nearest lower, the nearest higher."""
    if visits == considered:
        return (2, 0)
    return (1, visits) if visits < considered else (0, -visits)


def logits_of(root: PriorNode) -> dict[int, float]:
    """Returns the logits of the priors, with the maximum 0; -inf for prior 0."""
    logits = {
        action: math.log(child.prior) if child.prior > 0.0 else -math.inf for action, child in root.children.items()
    }
    most = max(logits.values())
    return {action: logit - most for action, logit in logits.items()}
