"""Mates in the tree of the hybrid search: a short look at every new position, a longer one at the root."""

from __future__ import annotations

from ponderosa._core import checks_first
from ponderosa.chess.categories import MoveCategory
from ponderosa.chess.mate import mate_search
from ponderosa.knowledge import Knowledge
from ponderosa.reference.hybrid_node import MctsNode


def plies(moves: int) -> int:
    """Mate in n moves is 2n - 1 plies."""
    return 2 * moves - 1


def look_for_mate(node: MctsNode, knowledge: Knowledge) -> None:
    """Looks for a mate by checks at a new position, for a bounded time.

    Trap: the specification asks for a score of exactly 1000000 or -1000000. The first was never what it got, and the
    second a search of checks alone cannot know: it finds mates, and without one it says nothing.
    """
    if knowledge.mate_depth > 0:
        found = checks_first(node.state, knowledge.mate_depth, knowledge.mate_budget)
        node.mate_in = None if found is None else found[0]


def decide_root(root: MctsNode, knowledge: Knowledge) -> None:
    """Searches the root for mates for or against the player to move, all moves of both sides; then by checks alone.

    If there is one, the root is proven, its answer is the shortest mate or the longest defence, and nothing is left to
    simulate.
    """
    found = mate_search(root.state, knowledge.root_depth, knowledge.root_budget)
    if found.kind == "mated_in":
        assert found.n is not None, "a mate has a length"
        _decide_every_move(root, found.n, knowledge.root_budget)
    elif found.kind == "mate_in":
        assert found.n is not None, "a mate has a length"
        assert found.action is not None, "a mate has a first move"
        _decide_move(root, found.action, found.n)
    else:
        by_checks = checks_first(root.state, knowledge.root_depth, knowledge.mate_budget)
        if by_checks is not None:
            moves, action = by_checks
            _decide_move(root, action, moves)


def _decide_move(root: MctsNode, action: int, moves: int) -> None:
    """The move mates in so many moves. Mate in one leads to an ordinary end."""
    root.try_move(action).decide(-1, plies(moves) - 1)
    root.categories[action] = MoveCategory.ForcedMate
    root.proven, root.distance = 1, plies(moves)


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
    for action, length in lengths.items():
        root.try_move(action).decide(1, length)
    root.proven, root.distance = -1, 1 + max(child.distance for child in root.children.values())
