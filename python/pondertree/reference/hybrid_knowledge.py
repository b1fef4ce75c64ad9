"""What the hybrid search learns of quiet moves while it runs: killers by ply, and a history by player and move."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from pondertree._core import checks_first, ending, ending_line
from pondertree.chess.config import ChessConfig
from pondertree.chess.mate import mate_search
from pondertree.chess.move_ordering import MoveCategory
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


def plies(moves: int) -> int:
    """Mate in n moves is 2n - 1 plies."""
    return 2 * moves - 1


def look_for_mate(node: MctsNode, knowledge: ChessConfig) -> None:
    """Looks a new position up in the tables of endings, then for a mate by checks, for a bounded time.

    Trap: the specification asks for a score of exactly 1000000 or -1000000. The first was never what it got, and the
    second a search of checks alone cannot know: it finds mates, and without one it says nothing.
    """
    known = ending(node.state) if knowledge.endings else None
    if known is not None:
        # A drawn ending is valued as one, and not proven: its moves may still set problems.
        node.mate = known if known[0] != 0 else None
    elif knowledge.mate_depth > 0:
        found = checks_first(node.state, knowledge.mate_depth, knowledge.mate_budget)
        node.mate = None if found is None else (1, plies(found[0]))


def mate_values(node: MctsNode) -> list[float]:
    """What a mate that was found is worth to White and to Black."""
    assert node.mate is not None, "a mate was found"
    value = float(node.mate[0] if node.to_play == 0 else -node.mate[0])
    return [value, -value]


def decide_root(root: MctsNode, knowledge: ChessConfig) -> None:
    """Looks the root up in the tables of endings; searches it for mates for or against the player to move, all moves of
    both sides; then by checks alone.

    If there is one, the root is proven, its answer is the shortest mate or the longest defence, and nothing is left to
    simulate.
    """
    known = ending(root.state) if knowledge.endings else None
    if known is not None:
        _decide_by_table(root, *known)
        return
    if knowledge.root_depth == 0:
        return
    found = mate_search(root.state, knowledge.root_depth, knowledge.root_budget)
    if found.kind == "mated_in":
        assert found.n is not None, "a mate has a length"
        _decide_every_move(root, found.n, knowledge.root_budget)
    elif found.kind == "mate_in":
        assert found.n is not None, "a mate has a length"
        assert found.action is not None, "a mate has a first move"
        _decide_move(root, found.action, plies(found.n))
    else:
        by_checks = checks_first(root.state, knowledge.root_depth, knowledge.mate_budget)
        if by_checks is not None:
            moves, action = by_checks
            _decide_move(root, action, plies(moves))


def _decide_by_table(root: MctsNode, value: int, distance: int) -> None:
    """The first of the shortest mates, in the order of the game; or how long each losing move lasts."""
    if value == 1:
        _decide_move(root, ending_line(root.state)[0], distance)
    elif value == -1:
        lengths = {}
        for action in [*root.children, *root.list_actions()]:
            known = ending(root.state.play(action))
            assert known is not None, "every move of a lost ending leads to a won one"
            lengths[action] = known[1]
        _decide_every_length(root, lengths)


def _decide_move(root: MctsNode, action: int, distance: int) -> None:
    """The move mates in so many plies. Mate in one leads to an ordinary end."""
    root.try_move(action).decide(-1, distance - 1)
    root.categories[action] = MoveCategory.ForcedMate
    root.proven, root.distance = 1, distance


def _decide_every_move(root: MctsNode, moves: int, budget: int) -> None:
    """After each move the other side mates within so many moves: how long each of them lasts is found out.

    Where the budget is too small for one of them, nothing is decided.
    """
    lengths = {}
    for action in [*root.children, *root.list_actions()]:
        answer = mate_search(root.state.play(action), moves, budget)
        if answer.n is None:
            return
        lengths[action] = plies(answer.n)
    _decide_every_length(root, lengths)


def _decide_every_length(root: MctsNode, lengths: dict[int, int]) -> None:
    """After each move the other side mates in so many plies."""
    for action, length in lengths.items():
        root.try_move(action).decide(1, length)
    root.proven, root.distance = -1, 1 + max(child.distance for child in root.children.values())
