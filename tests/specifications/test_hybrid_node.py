"""Hybrid chess: the fields and methods of `MctsNode`."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.specifications.positions import (
    BLACK_TO_MOVE,
    MATE_IN_ONE,
    MATE_IN_ONE_FOR_BLACK,
    MIDDLEGAME,
    QUIET,
)
from tests.specifications.support import walk

import pondertree
from pondertree.chess import (
    MoveCategory,
    Pesto,
    PestoPolicy,
    categorize,
)
from pondertree.games import Chess
from pondertree.reference import hybrid
from pondertree.reference.hybrid import MctsNode


def grown(fen: str = MIDDLEGAME, simulations: int = 60, **options: Any) -> Any:
    """A tree of the reference without mate search, which keeps the node for node description simple."""
    search = hybrid.MCTS(**{"mate_search_depth": 0, "num_simulations": simulations, **options})
    tree = search.tree(Chess(fen))
    search.simulate(tree, simulations)
    return tree.root


# --- 4.2. MctsNode ------------------------------------------------------------------------------------------------


def child_of(root: Any) -> Any:
    return next(iter(root.children.values()))


def test_node_id_is_unique() -> None:
    nodes = walk(grown())
    assert len({node.id for node in nodes}) == len(nodes)


def test_node_state_is_the_position() -> None:
    root = grown()
    assert root.state == Chess(MIDDLEGAME)
    assert child_of(root).state == Chess(MIDDLEGAME).play(child_of(root).action)


def test_node_parent_leads_to_the_root() -> None:
    root = grown()
    assert root.parent is None
    assert child_of(root).parent is root


def test_node_children_are_the_explored_ones_by_action() -> None:
    root = grown(simulations=5)
    assert len(root.children) == 5
    assert [child.action for child in root.children.values()] == list(root.children)


def test_node_action_is_the_move_from_the_parent() -> None:
    root = grown()
    assert root.action is None
    assert child_of(root).action in Chess(MIDDLEGAME).legal_actions()


def test_node_visits_count_simulations() -> None:
    root = grown(simulations=25)
    assert (root.visits, MctsNode.new_root(Chess()).visits) == (26, 0)


def test_node_total_value_is_for_the_player_to_move() -> None:
    """In [-1, 1] for the player to move at the node, so that a choice needs no case for Black."""
    for fen in (MIDDLEGAME, BLACK_TO_MOVE):
        root = grown(fen, simulations=1)
        child = child_of(root)
        assert root.total_value == pytest.approx(root.nn_value - child.nn_value)
        assert child.total_value == child.nn_value


@pytest.mark.parametrize(("fen", "move"), [(MATE_IN_ONE, "h5f7"), (MATE_IN_ONE_FOR_BLACK, "a8a1")])
def test_node_exact_value_is_for_the_player_to_move(fen: str, move: str) -> None:
    """A checkmated player has lost, White or Black: -1 in both cases. Elsewhere there is no exact value."""
    state = Chess(fen)
    root = MctsNode.new_root(state)
    assert root.terminal_or_mate_value is None
    action = state.parse_action(move)
    assert MctsNode.new_child(state.play(action), action, root, 1.0).terminal_or_mate_value == -1.0
    engine = pondertree.Hybrid(num_simulations=80, mate_search_depth=0, seed=1).run(state).root
    assert engine.children[action].terminal_or_mate_value == -1.0


def test_node_nn_value_is_for_the_player_to_move() -> None:
    for fen in (MIDDLEGAME, BLACK_TO_MOVE):
        assert grown(fen, simulations=1).nn_value == pytest.approx(Pesto().value(Chess(fen)))
        assert pondertree.Hybrid(num_simulations=1).run(Chess(fen)).root.nn_value == Pesto().value(Chess(fen))
    assert MctsNode.new_root(Chess()).nn_value is None


def test_node_priors_are_those_of_all_legal_moves() -> None:
    assert MctsNode.new_root(Chess()).priors is None
    root = grown(QUIET)
    assert root.priors == pytest.approx(dict.fromkeys(Chess().legal_actions(), 1 / 20))


def test_node_unexplored_moves_are_listed_by_category() -> None:
    root = grown(simulations=3)
    listed = {action: kind for kind, actions in root.unexplored_moves_by_cat.items() for action in actions}
    legal = set(Chess(MIDDLEGAME).legal_actions())
    assert set(listed) | set(root.children) == legal
    assert all(kind is root.categories[action] for action, kind in listed.items())


def test_node_tracks_the_current_priority_category() -> None:
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    assert root.current_priority_category is MoveCategory.ForcedMate
    root.store_priors_and_categorize_moves(PestoPolicy().evaluate(root.state)[0])
    while (action := root.get_best_unexplored_move()) is not None:
        assert root.current_priority_category is root.categories[action]


def test_node_policy_prior_is_that_of_its_move() -> None:
    root = grown()
    assert all(child.policy_prior == root.priors[action] for action, child in root.children.items())


def test_new_root_initialises_the_fields() -> None:
    root = MctsNode.new_root(Chess())
    assert (root.visits, root.total_value, root.parent, root.action, root.children) == (0, 0.0, None, None, {})
    assert root.unexplored_moves_by_cat == {}, "not categorised before the evaluation"


def test_new_child_takes_its_prior() -> None:
    root = MctsNode.new_root(Chess())
    action = Chess().parse_action("e2e4")
    child = MctsNode.new_child(Chess().play(action), action, root, 0.125)
    assert (child.policy_prior, child.parent, child.action, child.visits) == (0.125, root, action, 0)


def test_store_priors_and_categorize_moves_needs_no_move_generator() -> None:
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    priors = PestoPolicy().evaluate(root.state)[0]
    root.store_priors_and_categorize_moves(priors)
    assert root.priors == priors
    assert root.categories == categorize(Chess(MIDDLEGAME))


def evaluated_root() -> Any:
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    root.store_priors_and_categorize_moves(PestoPolicy().evaluate(root.state)[0])
    root.backpropagate(0.0)
    return root


def test_puct_value_matches_hand_computed_value() -> None:
    root = evaluated_root()
    child = root.add_child(root.get_best_unexplored_move())
    child.backpropagate(0.25)
    child.backpropagate(0.75)
    prior = 1 / len(root.state.legal_actions())
    assert child.puct_value(1.5) == pytest.approx(-(0.25 + 0.75) / 2 + 1.5 * prior * math.sqrt(3) / (1 + 2))


def test_backpropagate_adds_a_visit_and_the_value_up_to_the_root() -> None:
    root = evaluated_root()
    child = root.add_child(root.get_best_unexplored_move())
    child.backpropagate(0.5)
    assert (child.visits, child.total_value) == (1, 0.5)
    assert (root.visits, root.total_value) == (2, -0.5)


def test_is_fully_explored_when_no_unexplored_move_is_left() -> None:
    root = evaluated_root()
    while root.unexplored_moves_by_cat:
        assert not root.is_fully_explored()
        root.get_best_unexplored_move()
    assert root.is_fully_explored()


def test_advance_priority_category_goes_to_the_next_and_tells_the_end() -> None:
    root = evaluated_root()
    seen = []
    while root.advance_priority_category():
        seen.append(root.current_priority_category)
        while root.current_priority_category in root.unexplored_moves_by_cat:
            root.get_best_unexplored_move()
    assert seen == sorted(set(categorize(root.state).values()))
    assert root.advance_priority_category() is False


def test_get_best_unexplored_move_removes_it_from_the_current_category() -> None:
    root = evaluated_root()
    action = root.get_best_unexplored_move()
    assert root.categories[action] == min(root.categories.values())
    assert all(action not in actions for actions in root.unexplored_moves_by_cat.values())
    while root.get_best_unexplored_move() is not None:
        pass
    assert root.get_best_unexplored_move() is None
