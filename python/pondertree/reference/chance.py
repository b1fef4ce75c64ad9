"""Chance nodes: the choice of an outcome on the way through them.

A chance node has an edge for every outcome from its first visit on, with the probability as its prior, and no
evaluation of its own: a descent goes on through it to a decision or an end. Values of its edges, its own value and its
proven result are for player 0 (`game.perspective`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pondertree.games.chance import CHANCE, check_chance_ends
from pondertree.random import Random, draw
from pondertree.trace import ChoiceTerms, EdgeTerms, Scores

if TYPE_CHECKING:
    from pondertree.reference.terms import How, Record
    from pondertree.reference.tree import TreeNode


@dataclass(frozen=True, slots=True)
class ChanceRule:
    """How outcomes are chosen: "balanced" at nodes with at most `width` outcomes, otherwise sampled."""

    mode: str = "balanced"
    width: int = 36

    def __post_init__(self) -> None:
        if self.mode not in ("balanced", "sample"):
            raise ValueError(f'chance must be "balanced" or "sample", not {self.mode!r}')
        if self.width < 1:
            raise ValueError(f"chance_width must be at least 1, not {self.width}")

    def choose(self, node: TreeNode, random: Random, record: Record | None) -> int:
        """Returns the outcome of the next descent: argmax P / (n + 1), the lowest outcome of equals, or a sample.

        n counts leaves in flight. Balanced visits are in proportion to the probabilities up to rounding. A sample is
        drawn in the order of the edges: visited outcomes first. The first outcome of a chance node is always a sample:
        each new node would show its most probable, lowest outcome otherwise, which biases all values of few visits, and
        a rule such as "on a 1, roll again" would go on for ever.
        """
        outcomes = node.outcomes()
        is_new = _visits(node) == 0
        if is_new:
            _check_chain(node)
        if self.mode == "sample" or len(outcomes) > self.width or is_new:
            chosen = outcomes[draw([probability for _, probability, _ in outcomes], random)][0]
            scores = None
        else:
            scores = [(outcome, probability / (_visits(child) + 1.0)) for outcome, probability, child in outcomes]
            chosen = max(scores, key=lambda scored: (scored[1], -scored[0]))[0]
        if record is not None:
            record.append((scores, self._terms(node, scores)))
        return chosen

    def _terms(self, node: TreeNode, scores: Scores | None) -> ChoiceTerms:
        """Returns what a trace records of a choice."""
        edges: list[EdgeTerms] = []
        for place, (outcome, probability, child) in enumerate(node.outcomes()):
            edges.append(
                {
                    "action": outcome,
                    "visits": 0 if child is None else child.visit_count,
                    "in_flight": 0 if child is None else child.in_flight,
                    "total": 0.0 if child is None else child.total_for_chooser,
                    "proven": None if child is None else child.proven_for_chooser,
                    "probability": probability,
                    "score": None if scores is None else scores[place][1],
                }
            )
        visits = node.visit_count + node.in_flight
        how: How = "sample" if scores is None else "balanced"
        return {"player": CHANCE, "visits": visits, "rule": "chance", "how": how, "edges": edges}


def _check_chain(node: TreeNode) -> None:
    """Raises `GameContractError` if new chance nodes follow each other for ever."""
    ancestor, in_a_row = node, 1
    while ancestor.parent is not None and ancestor.parent.is_chance and ancestor.parent.visit_count == 0:
        ancestor, in_a_row = ancestor.parent, in_a_row + 1
    check_chance_ends(node.state, in_a_row)


def _visits(child: TreeNode | None) -> int:
    """Returns the visits of an outcome, including leaves in flight."""
    return 0 if child is None else child.visit_count + child.in_flight
