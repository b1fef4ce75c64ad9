"""What the trees of all searches have in common: how a node stands to those around it, and a search under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from pondertree.games.game_state import is_zero_sum, listed_actions
from pondertree.games.playout import Playouts
from pondertree.reference.trace import TraceRow

if TYPE_CHECKING:
    from pondertree.games.game_state import State


class TreeNode:
    """What a node of any search has, and what follows from it. Each search lists the fields again, in its own order.

    A value has an owner: the player to move at the node, or the **chooser**, who chose the move that leads to it and is
    to move in the parent.
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
    """The move that leads here; None at the root."""
    children: dict[int, Self]
    to_play: int
    visit_count: int
    rewards: list[float] | None
    """What each player got for the move that leads here; None if the game has no rewards."""
    end: list[float] | None
    """The result for each player if the game is over here."""
    in_flight: int
    """How many leaves below this node, or this one, wait for their values."""
    proven: int | None
    """The exact result for the player to move here, once it is known: -1, 0 or +1."""
    distance: int
    """In how many plies a proven result is reached."""

    if TYPE_CHECKING:

        @property
        def state(self) -> State:
            """The position. Some nodes have it as a field, some find it out."""

    @property
    def total_for_chooser(self) -> float:
        """The sum of values for the player who chose the move that leads here."""
        raise NotImplementedError

    @property
    def mean_value(self) -> float:
        """The value of the position for the player to move here, by what its moves brought."""
        raise NotImplementedError

    @property
    def is_waiting(self) -> bool:
        """Whether this is a leaf whose first value is still in flight: nothing can be known below it."""
        return self.parent is not None and self.visit_count == 0 and self.in_flight > 0

    @property
    def chooser(self) -> int:
        """The player who chose the move that leads here."""
        assert self.parent is not None, "nobody chose the root"
        return self.parent.to_play

    @property
    def proven_for_chooser(self) -> int | None:
        """The exact result for the player who chose the move that leads here (None if not known, or at the root)."""
        if self.proven is None or self.parent is None:
            return None
        # The sign follows whose turn it is: after a double move or a pass both players are the same one.
        return self.proven if self.to_play == self.parent.to_play else -self.proven

    def expected_for_chooser(self) -> float:
        """The mean value of the move that leads here, as a descent sees it; exact if proven.

        A leaf in flight counts as a visit, and as a loss where values are plain results in [-1, 1] (with rewards a
        loss has no fixed size). Without it all leaves gathered together would be the same one.
        """
        proven = self.proven_for_chooser
        if proven is not None:
            return float(proven)
        losses = self.in_flight if self.rewards is None else 0
        return (self.total_for_chooser - losses) / (self.visit_count + self.in_flight)

    def exact_values(self) -> list[float] | None:
        """The values for each player if they are known exactly: the game is over, or the result is proven."""
        if self.end is not None or self.proven is None:
            return self.end
        value = float(self.proven)
        return [value, -value] if self.to_play == 0 else [-value, value]

    def legal_actions(self) -> list[int]:
        """The moves from here, in the order in which the game lists them, whether they have a child yet or not."""
        return listed_actions(self.state)

    def list_actions(self) -> list[int]:
        """The moves that have no child yet: none, where all get theirs together."""
        return []

    def sum_of_moves(self) -> tuple[float, int]:
        """What the moves from here brought the player to move, added up in their order, and their visits."""
        total, visits = 0.0, 0
        for child in self.children.values():
            if child.visit_count > 0:
                total += child.total_for_chooser
                visits += child.visit_count
        return total, visits

    def path(self) -> list[int]:
        """The actions from the root to this node."""
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
    """A search under way: its root, the key of its random numbers, and how many simulations are done."""

    root: N
    key: int
    simulations: int = 0
    """Over the whole life of the tree."""
    trace: list[TraceRow] | None = None
    playouts: Playouts = field(default_factory=Playouts)


def note_end(leaf: TreeNode) -> None:
    """A new leaf where the game is over is proven, if its result is one of those that proofs are made of."""
    if leaf.end is not None and is_zero_sum(leaf.state):
        result = leaf.end[leaf.to_play]
        if result in (-1.0, 0.0, 1.0):
            leaf.proven = int(result)


def prove_ancestors(leaf: TreeNode) -> None:
    """Walks up from a proven leaf for as long as each next node is decided by its children.

    A win needs one winning move; anything else needs all moves. The sums of the ancestors are not rewritten.
    """
    node = leaf.parent if leaf.proven is not None else None
    while node is not None and node.proven is None:
        known = [(c.proven_for_chooser, c.distance) for c in node.children.values()]
        results = [(result, distance) for result, distance in known if result is not None]
        wins = [distance for result, distance in results if result == 1]
        if wins:
            node.proven, node.distance = 1, 1 + min(wins)
        elif not node.list_actions() and len(results) == len(known):
            node.proven = max(result for result, _ in results)
            node.distance = 1 + max(distance for result, distance in results if result == node.proven)
        else:
            return
        node = node.parent
