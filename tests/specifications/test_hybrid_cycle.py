"""Hybrid chess: `mcts_search` and the cycle of selection, mate check, evaluation and backpropagation."""

from __future__ import annotations

import inspect
import time
from datetime import timedelta
from typing import Any

import pytest
from tests.specifications.positions import (
    BACK_RANK,
    BLACK_TO_MOVE,
    CHECKMATE,
    MATE_IN_ONE,
    MATE_IN_ONE_FOR_BLACK,
    MATE_IN_TWO,
    MATED_IN_ONE,
    MIDDLEGAME,
    NEAR_STALEMATE,
    STALEMATE,
)
from tests.specifications.support import RecordedPolicy, hybrid_tree, walk

import pondertree
from pondertree.chess import (
    PestoPolicy,
    categorize,
    mate_search,
    mcts_search,
)
from pondertree.games import Chess
from pondertree.reference import hybrid
from pondertree.reference.hybrid import MctsNode, select_leaf_for_expansion

SEARCHES = {"engine": mcts_search, "reference": hybrid.mcts_search}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


# --- 5.3. MCTS Cycle: the signature -------------------------------------------------------------------------------


@each_search
def test_mcts_search_takes_the_root_state(search: Any) -> None:
    assert next(iter(inspect.signature(search).parameters)) == "root_state"
    state = Chess(MATE_IN_ONE)
    assert search(root_state=state, iterations=5) == search(state, iterations=5) == state.parse_action("h5f7")


@each_search
def test_mcts_search_needs_no_move_generator(search: Any) -> None:
    names = list(inspect.signature(search).parameters)
    assert names[:5] == ["root_state", "policy_network", "mate_search_depth", "iterations", "time_limit"]


@each_search
def test_mcts_search_takes_a_policy_network(search: Any) -> None:
    class LastMove:
        def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
            return {state.legal_actions()[-1]: 1.0}, 0.5

    chosen = search(Chess(), policy_network=LastMove(), iterations=60, priority=None)
    assert chosen == Chess().legal_actions()[-1]


@each_search
def test_mcts_search_takes_the_depth_of_mate_search(search: Any) -> None:
    """Without mate search the network is evaluated; with it the root is decided at once."""
    for depth, evaluated in ((0, True), (3, False)):
        policy = RecordedPolicy()
        search(Chess(MATE_IN_TWO), policy, mate_search_depth=depth, iterations=20)
        assert bool(policy.evaluated) is evaluated


@each_search
def test_mcts_search_takes_a_number_of_iterations(search: Any) -> None:
    policy = RecordedPolicy()
    search(Chess(), policy, 0, iterations=30)
    assert len(policy.evaluated) == 31, "the root and one new node per iteration"
    assert inspect.signature(search).parameters["iterations"].default is None


@each_search
def test_mcts_search_takes_a_time_limit(search: Any) -> None:
    assert inspect.signature(search).parameters["time_limit"].default is None
    for limit in (0.05, timedelta(milliseconds=50)):
        began = time.monotonic()
        assert search(Chess(), time_limit=limit) in Chess().legal_actions()
        assert time.monotonic() - began < 30.0


@each_search
def test_mcts_search_returns_a_legal_move_or_none(search: Any) -> None:
    assert search(Chess(MIDDLEGAME), iterations=20) in Chess(MIDDLEGAME).legal_actions()
    assert search(Chess(STALEMATE), iterations=20) is None
    assert search(Chess(CHECKMATE), iterations=20) is None


def test_new_root_does_not_categorise_yet() -> None:
    root = MctsNode.new_root(Chess(MIDDLEGAME))
    assert (root.categories, root.unexplored_moves_by_cat, root.priors) == ({}, {}, None)


@each_search
def test_mcts_search_without_a_limit_is_refused(search: Any) -> None:
    with pytest.raises(ValueError, match="limit"):
        search(Chess())


# --- 5.3. MCTS Cycle: selection and mate check --------------------------------------------------------------------


def test_iteration_selects_by_select_leaf_for_expansion(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(node: Any, exploration_constant: float, *more: Any) -> Any:
        calls.append(exploration_constant)
        return select_leaf_for_expansion(node, exploration_constant, *more)

    monkeypatch.setattr(hybrid, "select_leaf_for_expansion", counted)
    hybrid_tree(MIDDLEGAME, 25, exploration_constant=1.25)
    assert calls == [1.25] * 25


def test_mate_search_runs_once_per_node(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(hybrid, "search_mate", lambda node, knowledge: looked.append(node.id))
    tree = hybrid_tree(MIDDLEGAME, 150, mate_search_depth=2)
    assert len(looked) == len(set(looked)) == 150
    assert set(looked) == {node.id for node in walk(tree.root)[1:]}


def test_terminal_state_is_checked_before_mate_search(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(hybrid, "search_mate", lambda node, knowledge: looked.append(node.state))
    tree = hybrid_tree(MATE_IN_ONE, 120, mate_search_depth=2, solve=False)
    assert any(node.state.is_terminal for node in walk(tree.root))
    assert looked
    assert not any(state.is_terminal for state in looked)


def test_stalemate_is_a_draw() -> None:
    """0 on the scale from -1 to 1, which is the document's 0.5 on its scale from 0 to 1."""
    state = Chess(NEAR_STALEMATE)
    stalemates = [a for a in state.legal_actions() if state.play(a).is_terminal and state.play(a).returns()[0] == 0]
    assert stalemates
    reference = hybrid_tree(NEAR_STALEMATE, 60).root
    engine = pondertree.Hybrid(num_simulations=60, mate_search_depth=0, endings=False, priority="strict").run(state)
    for root in (reference, engine.root):
        assert [root.children[action].terminal_or_mate_value for action in stalemates] == [0.0] * len(stalemates)


@pytest.mark.parametrize(
    ("fen", "move"), [(MATE_IN_ONE, "h5f7"), (MATE_IN_ONE_FOR_BLACK, "a8a1")], ids=["white", "black"]
)
def test_checkmate_is_lost_for_the_side_to_move(fen: str, move: str) -> None:
    root = hybrid_tree(fen, 200, solve=False).root
    mated = root.children[root.state.parse_action(move)]
    assert (mated.terminal_or_mate_value, mated.is_terminal()) == (-1.0, True)
    assert mated.visits == max(child.visits for child in root.children.values())


def leaves_with_mate(**options: Any) -> tuple[Any, RecordedPolicy]:
    """A tree in which White mates on the back rank after nearly every move of Black."""
    policy = RecordedPolicy()
    tree = hybrid_tree(BACK_RANK, 60, mate_search_depth=2, solve=False, policy_network=policy, **options)
    return tree, policy


def test_mate_search_runs_at_leaves_to_its_depth() -> None:
    """Mate in two by checks is found at a leaf with depth 2, and not with depth 1."""
    found = {}
    for depth in (1, 2):
        root = hybrid_tree("r6k/5ppp/8/8/8/4R3/4RPPP/6K1 b - - 0 1", 20, mate_search_depth=depth, solve=False).root
        found[depth] = {child.distance for child in root.children.values() if child.mate is not None}
    assert found[1] == {1}
    assert found[2] == {1, 3}, "plies: mate in two moves is three"


def test_mate_found_at_a_leaf_is_won_for_the_side_to_move() -> None:
    tree, _ = leaves_with_mate()
    found = [node for node in walk(tree.root) if node.mate is not None]
    assert len(found) > 3
    assert all(node.terminal_or_mate_value == 1.0 and not node.state.is_terminal for node in found)


def test_mate_search_in_the_tree_never_claims_to_be_mated() -> None:
    """It looks at checks alone, so that it cannot prove a loss; `mate_search` itself does, at full width."""
    tree, _ = leaves_with_mate()
    assert not any(node.mate is not None and node.mate[0] < 0 for node in walk(tree.root))
    assert mate_search(Chess(MATED_IN_ONE), 2).score == -1_000_000
    assert pondertree.Hybrid(num_simulations=30).run(Chess(MATED_IN_ONE)).proven == -1


def test_leaf_without_mate_has_no_exact_value() -> None:
    tree = hybrid_tree(MIDDLEGAME, 40, mate_search_depth=2)
    quiet = [node for node in walk(tree.root) if node.mate is None and node.end is None]
    assert len(quiet) > 30
    assert all(node.terminal_or_mate_value is None for node in quiet)


# --- 5.3. MCTS Cycle: expansion, evaluation, backpropagation ------------------------------------------------------


def test_exact_value_is_backed_up_from_the_leaf_itself() -> None:
    tree, policy = leaves_with_mate()
    for row in tree.trace:
        node = tree.root
        for action in row["path"]:
            node = node.children[action]
        if node.mate is not None:
            assert row["values"][node.to_play] == 1.0
            assert (node.children, node.nn_value) == ({}, None)
            assert node.state.fen() not in policy.evaluated


def test_leaf_is_evaluated_once() -> None:
    policy = RecordedPolicy()
    tree = hybrid_tree(MIDDLEGAME, 100, policy_network=policy)
    assert len(policy.evaluated) == 101
    assert policy.evaluated == [
        tree.root.state.fen(),
        *(state_after(tree.root.state, row["path"]).fen() for row in tree.trace),
    ]


def state_after(state: Any, path: Any) -> Any:
    for action in path:
        state = state.play(action)
    return state


def test_value_is_kept_for_the_player_to_move() -> None:
    """The network's v in [0, 1] becomes 2v - 1 for the player to move, whatever colour."""
    for fen in (MIDDLEGAME, BLACK_TO_MOVE):
        root = hybrid_tree(fen, 1, policy_network=PestoPolicy()).root
        assert root.nn_value == pytest.approx(2 * PestoPolicy().evaluate(Chess(fen))[1] - 1)


def test_nn_value_is_stored_in_the_leaf() -> None:
    tree = hybrid_tree(MIDDLEGAME, 20, policy_network=PestoPolicy())
    for node in walk(tree.root):
        assert node.nn_value == pytest.approx(2 * PestoPolicy().evaluate(node.state)[1] - 1)


def test_priors_and_categories_are_stored_after_the_evaluation() -> None:
    for node in walk(hybrid_tree(MIDDLEGAME, 20, policy_network=PestoPolicy()).root):
        assert node.priors == pytest.approx(PestoPolicy().evaluate(node.state)[0])
        assert set(node.categories) == set(node.state.legal_actions())


def test_value_of_an_evaluated_leaf_is_backed_up_from_it() -> None:
    tree = hybrid_tree(MIDDLEGAME, 30, policy_network=PestoPolicy())
    for row in tree.trace:
        state = state_after(tree.root.state, row["path"])
        assert row["values"][state.to_play] == pytest.approx(2 * PestoPolicy().evaluate(state)[1] - 1)


def test_expansion_opens_the_highest_priority_move() -> None:
    kinds = categorize(Chess(MIDDLEGAME))
    engine = pondertree.Hybrid(priority="strict", mate_search_depth=0, trace=True, move_scores=None).tree(
        Chess(MIDDLEGAME)
    )
    engine.simulate(10)
    for trace in (hybrid_tree(MIDDLEGAME, 10).trace, engine.trace()):
        first = [kinds[row["path"][0]] for row in trace]
        assert first == sorted(kinds.values())[:10]


def test_expansion_applies_the_move_to_a_new_state() -> None:
    tree = hybrid_tree(MIDDLEGAME, 60)
    for node in walk(tree.root)[1:]:
        assert node.state == node.parent.state.play(node.action)
    assert tree.root.state == Chess(MIDDLEGAME)


def test_move_that_the_policy_leaves_out_has_prior_zero() -> None:
    class SomeMoves:
        def evaluate(self, state: Any) -> tuple[dict[Any, float], float]:
            return dict.fromkeys(state.legal_actions()[:3], 1.0), 0.5

    named = set(Chess().legal_actions()[:3])
    engine = pondertree.Hybrid(policy_network=SomeMoves(), num_simulations=40, priority="strict").run(Chess()).root
    for root in (hybrid_tree(Chess().fen(), 40, policy_network=SomeMoves()).root, engine):
        for action, child in root.children.items():
            assert child.prior == pytest.approx(1 / 3 if action in named else 0.0)


def test_new_child_is_linked_to_its_parent() -> None:
    tree = hybrid_tree(MIDDLEGAME, 5)
    for action, child in tree.root.children.items():
        assert (child.parent, child.action, child.policy_prior) == (tree.root, action, tree.root.priors[action])


def test_new_child_is_checked_for_ends_and_mates_before_it_is_evaluated() -> None:
    """A checkmated or mating child never gets a static score, which would stay in its mean."""
    policy = RecordedPolicy()
    tree = hybrid_tree(MATE_IN_ONE, 50, policy_network=policy, mate_search_depth=2, solve=False)
    mated = tree.root.children[tree.root.state.parse_action("h5f7")]
    assert (mated.nn_value, mated.total_value / mated.visits) == (None, -1.0)
    assert mated.state.fen() not in policy.evaluated


def test_evaluated_node_is_never_returned_fully_explored() -> None:
    """The case that the document calls an error or an edge case does not occur: such a node is descended from."""
    tree = hybrid_tree(MIDDLEGAME, 300)
    for _ in range(30):
        leaf: Any = select_leaf_for_expansion(tree.root, 1.5)
        if leaf.priors is None or leaf.terminal_or_mate_value is not None:
            break
        assert not leaf.is_fully_explored()
        leaf.add_child(leaf.get_best_unexplored_move()).backpropagate(0.0)


def test_backpropagation_follows_each_iteration() -> None:
    for simulations in (1, 17, 80):
        root = hybrid_tree(MIDDLEGAME, simulations).root
        assert root.visits == simulations + 1
        assert sum(child.visits for child in root.children.values()) == simulations


def test_iterations_are_counted() -> None:
    tree = hybrid_tree(MIDDLEGAME, 40)
    assert (tree.simulations, len(tree.trace)) == (40, 40)
    assert pondertree.Hybrid(num_simulations=40).run(Chess(MIDDLEGAME)).simulations == 40


def test_best_move_has_the_most_visits_unless_another_is_proven() -> None:
    mate = Chess(MATE_IN_ONE).parse_action("h5f7")
    for make in (pondertree.Hybrid, hybrid.MCTS):
        for fen in (MIDDLEGAME, MATE_IN_ONE):
            result = make(num_simulations=300, mate_search_depth=0, seed=1, solve=False).run(Chess(fen))
            visits = {action: child.visit_count for action, child in result.root.children.items()}
            assert visits[result.action] == max(visits.values()) > 1
        solved = make(num_simulations=300, mate_search_depth=0, priority="strict", seed=1).run(Chess(MATE_IN_ONE))
        assert (solved.action, solved.proven, solved.root.children[mate].visit_count) == (mate, 1, 1)


def test_iteration_expands_one_child() -> None:
    for simulations in (1, 2, 30, 100):
        assert len(walk(hybrid_tree(MIDDLEGAME, simulations).root)) == simulations + 1
