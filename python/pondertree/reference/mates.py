"""Mates in the tree of the hybrid search: a short look at every new position, a longer one at the root; and tables."""

from __future__ import annotations

from pondertree._core import checks_first, ending, ending_line
from pondertree.chess.categories import MoveCategory
from pondertree.chess.mate import mate_search
from pondertree.knowledge import Knowledge
from pondertree.reference.hybrid_node import MctsNode


def plies(moves: int) -> int:
    """Mate in n moves is 2n - 1 plies."""
    return 2 * moves - 1


def look_for_mate(node: MctsNode, knowledge: Knowledge) -> None:
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


def decide_root(root: MctsNode, knowledge: Knowledge) -> None:
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
