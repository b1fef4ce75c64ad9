"""Move categories and the history table of the hybrid chess reference."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from tests.support.hybrid import MATE_IN_ONE, MIDDLEGAME, TACTICS, Table, nodes_of

from pondertree.chess import MoveCategory, categorize
from pondertree.games import Chess
from pondertree.reference.hybrid import MCTS, HistoryTable, MctsNode
from pondertree.reference.priors import float32

# --- Categories -------------------------------------------------------------------------------------------------------


def test_moves_are_expanded_by_category_then_prior() -> None:
    search = MCTS(policy_network=Table(), mate_search_depth=0)
    tree = search.tree(Chess(TACTICS), trace=True)
    moves = len(tree.root.state.legal_actions())
    search.simulate(tree, moves)
    root = tree.root
    kinds = categorize(root.state)
    assert [kinds[action] for action in root.children] == sorted(kinds.values())
    assert len(set(kinds.values())) > 3
    assert root.priors is not None
    assert sorted(root.children, key=lambda action: (kinds[action], -root.priors[action])) == list(root.children)  # type: ignore[index]
    assert [row["scores"] for row in tree.trace or []] == [[None]] * moves


def test_strict_explores_every_move_before_any_second_visit() -> None:
    search = MCTS(mate_search_depth=0)
    tree = search.tree(Chess(TACTICS))
    moves = len(tree.root.state.legal_actions())
    search.simulate(tree, moves)
    assert [child.visits for child in tree.root.children.values()] == [1] * moves
    search.simulate(tree, 400)
    for node in nodes_of(tree.root):
        if any(child.visits > 1 for child in node.children.values()) and node.proven is None:
            assert node.is_fully_explored()
            assert not node.unexplored


def test_tactical_expands_tactical_moves_before_scoring_all() -> None:
    search = MCTS(mate_search_depth=0, priority="tactical")
    tree = search.tree(Chess(TACTICS), trace=True)
    kinds = categorize(tree.root.state)
    promising = [action for action, kind in kinds.items() if kind <= MoveCategory.Check]
    assert 0 < len(promising) < len(kinds)
    search.simulate(tree, len(promising) + 1)
    rows = tree.trace or []
    assert sorted(row["path"][0] for row in rows[:-1]) == sorted(promising)
    assert all(row["scores"] == [None] for row in rows[:-1])
    # From here on all moves compete by score, visited or not.
    assert {action for action, _ in rows[-1]["scores"][0] or []} == set(kinds)
    assert tree.root.is_fully_explored()
    assert tree.root.unexplored


@pytest.mark.parametrize("priority", ["prior", None])
def test_no_category_is_eager_with_prior_or_no_priority(priority: str | None) -> None:
    search = MCTS(mate_search_depth=0, priority=priority)
    tree = search.tree(Chess(TACTICS), trace=True)
    search.simulate(tree, 100)
    assert all(scores is not None for row in tree.trace or [] for scores in row["scores"])
    assert all(node.is_fully_explored() for node in nodes_of(tree.root))


def test_category_weights_apply_after_ordering() -> None:
    weights = (9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.5)
    state = Chess(TACTICS)
    search = MCTS(policy_network=Table(), mate_search_depth=0, priority="prior", weights=weights)
    tree = search.tree(state)
    search.simulate(tree, 1)
    root = tree.root
    kinds = categorize(state)
    plain, _ = Table().evaluate(state)
    total = math.fsum(plain[action] * weights[kinds[action]] for action in kinds)
    assert root.priors is not None
    for action, prior in root.priors.items():
        assert prior == pytest.approx(plain[action] * weights[kinds[action]] / total, rel=1e-6)
        assert prior == float32(prior)
    order = sorted(state.legal_actions(), key=lambda action: (kinds[action], -plain[action]))
    assert list(root.priors) == order


def test_moves_keep_game_order_without_priority() -> None:
    tree = (search := MCTS(mate_search_depth=0, priority=None)).tree(Chess())
    search.simulate(tree, 1)
    assert tree.root.priors is not None
    assert list(tree.root.priors) == Chess().legal_actions()
    assert tree.root.categories == {}
    assert tree.history.scores == ({}, {})


# --- History table ----------------------------------------------------------------------------------------------------


def line(values: dict[str, tuple[float, int]], root_value: float) -> tuple[MctsNode, HistoryTable]:
    """A root with visited moves: by move, the value per visit for the chooser and the visits."""
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    root.nn_value = root_value
    legal = root.state.legal_actions()
    root.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    root.backpropagate(root_value)
    for move, (value, visits) in values.items():
        child = root.try_move(root.state.parse_action(move))
        for _ in range(visits):
            child.backpropagate(-value)
    return root, HistoryTable()


def test_killer_is_quiet_move_above_mean_of_position() -> None:
    root, learned = line({"h2h3": (0.5, 4), "a2a3": (0.4, 3), "a1b1": (-0.5, 9), "d2d3": (0.6, 4)}, 0.0)
    number = {move: root.state.parse_action(move) for move in ("h2h3", "a2a3", "a1b1", "d2d3")}
    child = {move: root.children[action] for move, action in number.items()}
    learned.update(child["a2a3"], -0.4, 4)
    assert learned.killers == {}, "three visits are too few"
    learned.update(child["a1b1"], 0.5, 4)
    assert learned.killers == {}, "worse than the position"
    learned.update(child["h2h3"], -0.5, 4)
    assert learned.killers == {0: (number["h2h3"], None)}
    learned.update(child["h2h3"], -0.5, 4)
    assert learned.killers == {0: (number["h2h3"], None)}, "it is the first already"
    learned.update(child["d2d3"], -0.6, 4)
    assert learned.killers == {0: (number["d2d3"], number["h2h3"])}
    # Each simulation above the mean adds 1, whatever the mean of the move.
    assert learned.scores[0] == {number["a2a3"]: 1.0, number["h2h3"]: 2.0, number["d2d3"]: 1.0}
    assert learned.scores[1] == {}


def test_history_compares_with_mean_of_root_and_inner_node() -> None:
    root, learned = line({"h2h3": (0.5, 3)}, -0.1)
    child = root.children[root.state.parse_action("h2h3")]
    assert root.mean_value == pytest.approx((-0.1 + 3 * 0.5) / 4)
    child.nn_value = -0.5
    legal = child.state.legal_actions()
    child.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    reply = child.state.parse_action("h7h6")
    leaf = child.try_move(reply)
    leaf.backpropagate(0.2)
    # For Black, who replied, the simulation's value is -0.2, above the position's mean of -0.425.
    assert child.total_value / child.visits == pytest.approx(-0.425)
    learned.update(leaf, 0.2, 1)
    assert learned.scores[1] == {reply: 1.0}
    assert learned.killers[1] == (reply, None)
    # For White it is 0.2, below the mean of the root, but the mean of h2h3 is still above it.
    assert learned.scores[0] == {}
    assert learned.killers[0] == (child.action, None)


def test_captures_do_not_update_history_table() -> None:
    root = MctsNode.new_root(Chess(TACTICS))
    legal = root.state.legal_actions()
    root.nn_value = -0.9
    root.store_priors_and_categorize_moves(dict.fromkeys(legal, 1.0 / len(legal)))
    root.backpropagate(-0.9)
    learned = HistoryTable()
    for action, kind in root.categories.items():
        child = root.try_move(action)
        child.backpropagate(-0.5)
        learned.update(child, -0.5, 1)
        assert (action in learned.scores[0]) == (kind in (3, 4, 6, 7, 8))
    assert learned.killers[0][0] in learned.scores[0]


def test_leaves_use_history_table_and_advance_halves_it() -> None:
    search = MCTS(mate_search_depth=0, priority="tactical")
    tree = search.tree(Chess(MIDDLEGAME))
    search.simulate(tree, 400)
    kinds = Counter(kind for node in nodes_of(tree.root) for kind in node.categories.values())
    assert kinds[MoveCategory.KillerMove1] > 10
    assert kinds[MoveCategory.HistoryHeuristic] > 100
    killers, history = dict(tree.history.killers), [dict(scores) for scores in tree.history.scores]
    search.advance(tree, search.result(tree).action)
    assert tree.history.root_ply == 1
    assert tree.history.killers == killers
    assert [{action: 2.0 * score for action, score in scores.items()} for scores in tree.history.scores] == history
    # The moves of the root are those of ply 1 now.
    assert tree.history.killers_at(tree.root) == killers.get(1, (None, None))


def test_terminal_leaves_do_not_update_history_table() -> None:
    search = MCTS(mate_search_depth=0, solve=False)
    tree = search.tree(Chess(MATE_IN_ONE))
    mate = tree.root.state.parse_action("h5f7")
    search.simulate(tree, 1)
    before = [dict(scores) for scores in tree.history.scores]
    while tree.root.children.get(mate) is None or tree.root.children[mate].visits < 3:
        before = [dict(scores) for scores in tree.history.scores]
        visits = tree.root.children[mate].visits if mate in tree.root.children else 0
        search.simulate(tree, 1)
        if mate in tree.root.children and tree.root.children[mate].visits > visits:
            assert [dict(scores) for scores in tree.history.scores] == before
