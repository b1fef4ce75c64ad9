"""The tree that all searches share: nodes, values by perspective, and proofs by negamax."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pondertree.games.chance import CHANCE, perspective
from pondertree.games.game_state import is_zero_sum, listed_actions
from pondertree.games.playout import Playouts
from pondertree.trace import EdgeTerms, TraceRow

if TYPE_CHECKING:
    from pondertree.games.game_state import State


class TreeNode:
    """The base class of nodes. Subclasses declare the fields again, in the order of their specification.

    A value has a perspective: that of the player to move at the node, or of the **chooser**, the player to move in the
    parent, who chose the move leading to the node. Where chance moves or chooses, it is that of player 0.
    """

    __slots__ = (
        "action",
        "children",
        "distance",
        "end",
        "in_flight",
        "parent",
        "proven",
        "rewards",
        "to_play",
        "visit_count",
    )

    parent: Self | None
    action: int | None
    """The move leading here; None at the root."""
    children: dict[int, Self]
    to_play: int
    visit_count: int
    rewards: list[float] | None
    """The reward of each player for the move leading here; None in a game without rewards."""
    end: list[float] | None
    """The result for each player at a terminal node."""
    in_flight: int
    """The number of leaves in this subtree that wait for evaluation (virtual visits)."""
    proven: int | None
    """The proven result for the player to move here (`owner`): -1, 0 or +1; None while unproven."""
    distance: int
    """Plies to the end under the proof."""

    if TYPE_CHECKING:

        @property
        def state(self) -> State:
            """The position of the node."""

    @property
    def is_chance(self) -> bool:
        """Whether this is a chance node, whose moves are outcomes."""
        return self.to_play == CHANCE and self.end is None

    @property
    def owner(self) -> int:
        """The player whose values the node has: the player to move; player 0 at a chance node."""
        return perspective(self.to_play)

    def outcomes(self) -> list[tuple[int, float, Self | None]]:
        """Returns (outcome, probability in 32 bits, child) of a chance node: visited outcomes first."""
        raise NotImplementedError

    @property
    def total_for_chooser(self) -> float:
        """The sum of values from the perspective of the chooser."""
        raise NotImplementedError

    @property
    def mean_value(self) -> float:
        """The value for the player to move here, from the statistics of the moves."""
        raise NotImplementedError

    @property
    def is_pending(self) -> bool:
        """Whether this is a leaf whose first evaluation is pending; chance nodes have none."""
        return self.parent is not None and self.visit_count == 0 and self.in_flight > 0 and not self.is_chance

    @property
    def is_new(self) -> bool:
        """Whether this is a leaf that no simulation has completed or is under way to."""
        return self.parent is not None and self.visit_count == 0 and self.in_flight == 0 and not self.is_chance

    @property
    def chooser(self) -> int:
        """The player who chose the move leading here; player 0 for an outcome of chance."""
        assert self.parent is not None, "the root has no chooser"
        return self.parent.owner

    @property
    def proven_for_chooser(self) -> int | None:
        """The proven result from the perspective of the chooser; None if unproven, or at the root."""
        if self.proven is None or self.parent is None:
            return None
        # The sign depends on the players to move: after a double move or a pass they are the same.
        return self.proven if self.owner == self.chooser else -self.proven

    def expected_for_chooser(self) -> float:
        """Returns Q of the move leading here for the chooser, with virtual loss; exact if proven.

        Each leaf in flight counts as a visit and, in games without rewards, as a loss (with rewards, a loss has no
        fixed size). Without virtual visits every descent of a batch would select the same leaf.
        """
        proven = self.proven_for_chooser
        if proven is not None:
            return float(proven)
        losses = self.in_flight if self.rewards is None else 0
        return (self.total_for_chooser - losses) / (self.visit_count + self.in_flight)

    def exact_values(self) -> list[float] | None:
        """Returns the value for each player if the node is terminal or proven, else None."""
        if self.end is not None or self.proven is None:
            return self.end
        value = float(self.proven)
        return [value, -value] if self.owner == 0 else [-value, value]

    def legal_actions(self) -> list[int]:
        """Returns the legal moves in the order of the game, expanded or not."""
        return listed_actions(self.state)

    def list_actions(self) -> list[int]:
        """Returns the moves without a child; none in searches that expand all moves of a node at once."""
        return []

    def sum_of_moves(self) -> tuple[float, int]:
        """Returns (the sum of the values of all moves for the player to move, their visits), added in child order."""
        total, visits = 0.0, 0
        for child in self.children.values():
            if child.visit_count > 0:
                total += child.total_for_chooser
                visits += child.visit_count
        return total, visits

    def edge_terms(self, action: int) -> EdgeTerms:
        """Returns what a trace records of the edge to this node, whatever the rule."""
        return {
            "action": action,
            "visits": self.visit_count,
            "in_flight": self.in_flight,
            "total": self.total_for_chooser,
            "proven": self.proven_for_chooser,
        }

    def path(self) -> list[int]:
        """Returns the actions from the root to this node."""
        path: list[int] = []
        node = self
        while node.parent is not None:
            assert node.action is not None, "only the root has no action"
            path.append(node.action)
            node = node.parent
        return path[::-1]


N = TypeVar("N", bound=TreeNode)


@dataclass(slots=True)
class SearchTree(Generic[N]):
    """The state of a search: its root, the key of its random numbers and the number of simulations done."""

    root: N
    key: int
    simulations: int = 0
    """Over the lifetime of the tree."""
    trace: list[TraceRow] | None = None
    playouts: Playouts = field(default_factory=Playouts)
    low: float = math.inf
    """The lowest mean value that a move has had since the tree was created or advanced, in searches that normalise."""
    high: float = -math.inf
    """The highest."""

    def widen_bounds(self, leaf: N) -> None:
        """Extends the bounds by the mean values of the moves on the path to a leaf, each for its chooser.

        Outcomes of chance, between which nothing is chosen, do not count.
        """
        node = leaf
        while node.parent is not None:
            self._include(node)
            node = node.parent

    def reset_bounds(self) -> None:
        """Computes the bounds of the moves below the root: those of a kept subtree."""
        self.low, self.high = math.inf, -math.inf
        stack = [self.root]
        while stack:
            children = stack.pop().children.values()
            for child in children:
                self._include(child)
            stack.extend(children)

    def _include(self, node: N) -> None:
        if node.visit_count > 0 and not (node.parent is not None and node.parent.is_chance):
            mean = node.total_for_chooser / node.visit_count
            self.low, self.high = min(self.low, mean), max(self.high, mean)


def prove_end(leaf: TreeNode) -> None:
    """Marks a terminal leaf of a zero-sum game as proven, if its result is -1, 0 or +1."""
    if leaf.end is not None and is_zero_sum(leaf.state):
        result = leaf.end[leaf.owner]
        if result in (-1.0, 0.0, 1.0):
            leaf.proven = int(result)


def prove_ancestors(leaf: TreeNode) -> None:
    """Propagates a proof from a leaf towards the root for as long as each next node is decided by its children.

    One winning move proves a win; a draw or a loss requires all moves to be proven. A chance node is proven if all its
    outcomes have the same proven result. Sums of values are not changed.
    """
    node = leaf.parent if leaf.proven is not None else None
    while node is not None and node.proven is None:
        proofs = [(c.proven_for_chooser, c.distance) for c in node.children.values()]
        results = [(result, distance) for result, distance in proofs if result is not None]
        wins = [distance for result, distance in results if result == 1 and not node.is_chance]
        if node.is_chance and len({result for result, _ in results}) != 1:
            return
        if wins:
            node.proven, node.distance = 1, 1 + min(wins)
        elif not node.list_actions() and len(results) == len(proofs):
            node.proven = max(result for result, _ in results)
            node.distance = 1 + max(distance for result, distance in results if result == node.proven)
        else:
            return
        node = node.parent
