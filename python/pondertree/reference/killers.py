"""What the hybrid search learns of quiet moves while it runs: killers by ply, and a history by player and move."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from pondertree.chess.categories import MoveCategory
from pondertree.reference.hybrid_node import MctsNode

QUIET: Final = (
    MoveCategory.KillerMove1,
    MoveCategory.KillerMove2,
    MoveCategory.Check,
    MoveCategory.HistoryHeuristic,
    MoveCategory.OtherQuiet,
)
"""Neither mates, nor queens, nor captures: those are known to be good or bad without having been met before."""

Killers = tuple[int | None, int | None]


@dataclass(slots=True)
class Learned:
    """Killers and history of one tree.

    Trap: the specification has both and does not say where they come from. Alpha-beta search learns from cutoffs, of
    which a tree search has none. Here a quiet move was good in a simulation that brought its mover more than its
    position is worth on average (history), and it is a killer if its own mean is above that after a few visits.
    """

    killers: dict[int, Killers] = field(default_factory=dict)
    """By ply from the first root of the tree: the latest one first."""
    history: tuple[dict[int, float], dict[int, float]] = field(
        default_factory=lambda: (defaultdict(float), defaultdict(float))
    )
    """By player: how often each move was good."""
    root_ply: int = 0
    """The ply of the present root."""

    def killers_at(self, node: MctsNode) -> Killers:
        """The killers among the moves from a node."""
        return self.killers.get(self.root_ply + len(node.path()), (None, None))

    def learn(self, leaf: MctsNode, value: float, killer_visits: int) -> None:
        """Learns from a simulation to `leaf` that has brought `value` to the player to move there, and is backed up."""
        node = leaf
        while node.parent is not None:
            node = node.parent
        for depth, action in enumerate(leaf.path()):
            child = node.children[action]
            if child.category in QUIET:
                mean = node.mean_value if node.parent is None else node.total_value / node.visits
                if (value if node.to_play == leaf.to_play else -value) > mean:
                    self.history[node.to_play][action] += 1.0
                if child.visits >= killer_visits and child.total_for_chooser / child.visits > mean:
                    self._add_killer(self.root_ply + depth, action)
            node = child

    def _add_killer(self, ply: int, action: int) -> None:
        first, _ = self.killers.get(ply, (None, None))
        if first != action:
            self.killers[ply] = (action, first)

    def advance(self) -> None:
        """The root has moved on by a ply: killers stay those of their plies, the history fades."""
        self.root_ply += 1
        for scores in self.history:
            for action in scores:
                scores[action] /= 2.0
