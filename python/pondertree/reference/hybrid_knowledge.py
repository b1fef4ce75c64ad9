"""Chess knowledge of the hybrid search: killer moves, history heuristic, and mate search at leaves and at the root."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from pondertree._core import checks_first, ending, ending_line
from pondertree.chess.config import ChessConfig, MoveCategory
from pondertree.chess.mate import mate_search
from pondertree.reference.hybrid_node import MctsNode

QUIET: Final = (
    MoveCategory.KillerMove1,
    MoveCategory.KillerMove2,
    MoveCategory.Check,
    MoveCategory.HistoryHeuristic,
    MoveCategory.OtherQuiet,
)
"""The categories whose moves the history table records: mates, queen promotions and captures are ordered statically."""

Killers = tuple[int | None, int | None]


@dataclass(slots=True)
class HistoryTable:
    """Killer moves and history scores of one tree.

    Trap: the hybrid chess specification uses both without defining their updates. Alpha-beta search updates them at
    cutoffs, which a tree search does not have. Here the history score of a quiet move increases if the simulation's
    value exceeds the mean of the position, and the move becomes a killer if its own mean does after a few visits.
    """

    killers: dict[int, Killers] = field(default_factory=dict)
    """By ply from the first root of the tree, the latest first."""
    scores: tuple[dict[int, float], dict[int, float]] = field(
        default_factory=lambda: (defaultdict(float), defaultdict(float))
    )
    """History scores, by player and move."""
    root_ply: int = 0
    """The ply of the current root."""

    def killers_at(self, node: MctsNode) -> Killers:
        """Returns the killer moves at a node."""
        return self.killers.get(self.root_ply + len(node.path()), (None, None))

    def update(self, leaf: MctsNode, value: float, killer_visits: int) -> None:
        """Updates the table after the backup of `leaf`; `value` is for its player to move."""
        node = leaf
        while node.parent is not None:
            node = node.parent
        for depth, action in enumerate(leaf.path()):
            child = node.children[action]
            if child.category in QUIET:
                mean = node.mean_value if node.parent is None else node.total_value / node.visits
                if (value if node.to_play == leaf.to_play else -value) > mean:
                    self.scores[node.to_play][action] += 1.0
                if child.visits >= killer_visits and child.total_for_chooser / child.visits > mean:
                    self._add_killer(self.root_ply + depth, action)
            node = child

    def _add_killer(self, ply: int, action: int) -> None:
        first, _ = self.killers.get(ply, (None, None))
        if first != action:
            self.killers[ply] = (action, first)

    def advance(self) -> None:
        """Advances the root by a ply: killers keep their plies, history scores are halved."""
        self.root_ply += 1
        for scores in self.scores:
            for action in scores:
                scores[action] /= 2.0


def plies(moves: int) -> int:
    """Returns the plies of a mate in `moves`: 2n - 1."""
    return 2 * moves - 1


def search_mate(node: MctsNode, config: ChessConfig) -> None:
    """Probes the endgame tables for a new position, then runs a bounded mate search by checks.

    Trap: the hybrid chess specification tests for a score of exactly 1000000 or -1000000. Its mate search never returns
    the first, and a search limited to checks cannot prove the second: it finds mates, but cannot exclude them.
    """
    entry = ending(node.state) if config.endings else None
    if entry is not None:
        # A drawn ending is not proven, so that the search still prefers moves that set problems.
        node.mate = entry if entry[0] != 0 else None
    elif config.mate_depth > 0:
        found = checks_first(node.state, config.mate_depth, config.mate_budget)
        node.mate = None if found is None else (1, plies(found[0]))


def mate_values(node: MctsNode) -> list[float]:
    """Returns the values of a mate for White and Black."""
    assert node.mate is not None, "a mate was found"
    value = float(node.mate[0] if node.to_play == 0 else -node.mate[0])
    return [value, -value]


def prove_root(root: MctsNode, config: ChessConfig) -> None:
    """Probes the endgame tables for the root, then runs a full-width mate search for both sides, then one by checks.

    A mate proves the root: the best move is the shortest mate or the longest defence, without simulations.
    """
    entry = ending(root.state) if config.endings else None
    if entry is not None:
        _prove_by_table(root, *entry)
        return
    if config.root_depth == 0:
        return
    found = mate_search(root.state, config.root_depth, config.root_budget)
    if found.kind == "mated_in":
        assert found.n is not None, "a mate has a length"
        _prove_loss(root, found.n, config.root_budget)
    elif found.kind == "mate_in":
        assert found.n is not None, "a mate has a length"
        assert found.action is not None, "a mate has a first move"
        _prove_win(root, found.action, plies(found.n))
    else:
        by_checks = checks_first(root.state, config.root_depth, config.mate_budget)
        if by_checks is not None:
            moves, action = by_checks
            _prove_win(root, action, plies(moves))


def _prove_by_table(root: MctsNode, value: int, distance: int) -> None:
    """Proves the root by a table entry: the first of the shortest mates, or the distance of each losing move."""
    if value == 1:
        _prove_win(root, ending_line(root.state)[0], distance)
    elif value == -1:
        lengths = {}
        for action in [*root.children, *root.list_actions()]:
            reply = ending(root.state.play(action))
            assert reply is not None, "every move of a lost ending leads to a won one"
            lengths[action] = reply[1]
        _set_losing_distances(root, lengths)


def _prove_win(root: MctsNode, action: int, distance: int) -> None:
    """Proves that `action` mates in `distance` plies. A mate in one leads to a terminal node."""
    root.try_move(action).set_proven(-1, distance - 1)
    root.categories[action] = MoveCategory.ForcedMate
    root.proven, root.distance = 1, distance


def _prove_loss(root: MctsNode, moves: int, budget: int) -> None:
    """Proves a loss within `moves` moves by the distance of each move; no proof if the budget is too small for one."""
    lengths = {}
    for action in [*root.children, *root.list_actions()]:
        reply = mate_search(root.state.play(action), moves, budget)
        if reply.n is None:
            return
        lengths[action] = plies(reply.n)
    _set_losing_distances(root, lengths)


def _set_losing_distances(root: MctsNode, lengths: dict[int, int]) -> None:
    """Proves the loss by every move, with its distance in plies."""
    for action, length in lengths.items():
        root.try_move(action).set_proven(1, length)
    root.proven, root.distance = -1, 1 + max(child.distance for child in root.children.values())
