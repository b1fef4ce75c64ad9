"""Completed Q: what every move of a node is worth, tried or not, and the policy that is better for knowing it.

Danihelka et al. 2022, "Policy improvement by planning with Gumbel": sections 3 and 4, the mixed value in appendix D.
Names and numbers are those of the authors' library mctx, so that trees can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pondertree.random import Random, add_up
from pondertree.reference.node import PriorNode
from pondertree.reference.policy import normalised

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


LEAST_SCORE = -1e9
"""That of a move which its prior rules out: still a number, so that it can be compared."""


def considered_visits(moves: int, simulations: int) -> list[int]:
    """How many visits the move chosen in each simulation must have had: the table of sequential halving.

    All moves have their turns, then the better half of them as many turns in all, and so on down to two.
    """
    if moves <= 1:
        return list(range(simulations))
    rounds = math.ceil(math.log2(moves))
    table: list[int] = []
    visits = 0
    while len(table) < simulations:
        turns = max(1, simulations // (rounds * moves))
        for _ in range(turns):
            table.extend([visits] * moves)
            visits += 1
        moves = max(2, moves // 2)
    return table[:simulations]


def gumbel_number(random: Random) -> float:
    """A draw from the Gumbel distribution, from a number strictly between 0 and 1."""
    uniform = ((random.next_u64() >> 11) + 0.5) / (1 << 53)
    return -math.log(-math.log(uniform))


@dataclass(slots=True)
class Schedule:
    """How the simulations of one call are spent at the root."""

    begun: int
    """How many simulations the tree had when it began."""
    considered: list[int]
    """By simulation: the visits that the move chosen must have had since."""
    base: dict[int, int]
    """By action: the visits it had when the schedule began."""
    draws: dict[int, float]
    """By action: its Gumbel number plus its logit, of which the greatest is 0."""

    @classmethod
    def of(cls, root: PriorNode, begun: int, considered: list[int], numbers: dict[int, float]) -> Schedule:
        """A schedule that begins now, with these Gumbel numbers."""
        base = {action: child.visit_count for action, child in root.children.items()}
        return cls(begun, considered, base, draws_of(root, numbers))

    @classmethod
    def none(cls, root: PriorNode) -> Schedule:
        """What an answer is made of where no schedule has begun: all visits count, and no Gumbel numbers."""
        return cls(0, [], dict.fromkeys(root.children, 0), draws_of(root, dict.fromkeys(root.children, 0.0)))

    def score(self, child: PriorNode, bonus: Bonus) -> float:
        """g + logit + sigma(q) of a move."""
        return max(LEAST_SCORE, self.draws[child.action or 0] + bonus.of(child))

    def scores(self, root: PriorNode, bonus: Bonus, moves: Sequence[int]) -> dict[int, float]:
        """The scores of those of `moves` that may come next: the tried ones, and of the others the best draw.

        Moves never tried have the same visits and the same bonus, so that they differ by their draws alone.
        """
        untried = [action for action in moves if not root.children[action].is_tried]
        next_one = max(untried, key=lambda action: (self.draws[action], -action), default=None)
        return {
            action: self.score(root.children[action], bonus)
            for action in moves
            if root.children[action].is_tried or action == next_one
        }

    def choose(self, root: PriorNode, scores: dict[int, float], number: int) -> int:
        """The move to follow in the simulation that is the `number`-th of the tree; the lowest among equals.

        Only moves that had as many visits as the table says come into question. Where proofs have taken all of them:
        those nearest below, and if there are none, nearest above.
        """
        wanted = self.considered[number - self.begun]

        def rank(action: int) -> tuple[int, int]:
            visits = started(root.children[action]) - self.base[action]
            if visits == wanted:
                return (2, 0)
            return (1, visits) if visits < wanted else (0, -visits)

        return max(scores, key=lambda action: (rank(action), scores[action], -action))

    def answer(self, root: PriorNode, bonus: Bonus, moves: Sequence[int]) -> int:
        """The move to play: of those visited most in this schedule the best by score; the lowest of equals."""

        def rank(action: int) -> tuple[int, float, int]:
            child = root.children[action]
            return (child.visit_count - self.base[action], self.score(child, bonus), -action)

        return max(moves, key=rank)


def draws_of(root: PriorNode, numbers: dict[int, float]) -> dict[int, float]:
    """Gumbel numbers plus logits, the greatest logit taken for 0; minus infinity where the prior is 0."""
    logits = {
        action: math.log(child.prior) if child.prior > 0.0 else -math.inf for action, child in root.children.items()
    }
    most = max(logits.values())
    return {action: numbers[action] + (logit - most) for action, logit in logits.items()}
