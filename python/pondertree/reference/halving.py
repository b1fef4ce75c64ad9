"""The root of Gumbel search: moves are drawn without replacement, and sequential halving finds the best of them.

Danihelka et al. 2022, sections 2 and 3; sequential halving is by Karnin et al. 2013.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pondertree.reference.completed import Bonus, started
from pondertree.reference.node import PriorNode
from pondertree.reference.random import Random

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
