"""The hybrid chess reference: invariants, node, tree reuse, draws and colours."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hybrid import (
    ENDGAME,
    MATE_IN_ONE,
    MIDDLEGAME,
    PRIORITIES,
    TACTICS,
    Table,
    forced_mates,
    mirror,
    nodes_of,
)
from tests.support.search_helpers import after, random_position
from tests.support.traces import first_difference

from pondertree.chess import PestoPolicy, mate_search
from pondertree.games import Chess
from pondertree.reference import hybrid_knowledge
from pondertree.reference.hybrid import MCTS, MctsNode, mcts_search, select_leaf_for_expansion


def shape(node: MctsNode) -> Any:
    """Returns the colour-independent content of a tree, for comparing mirrored positions."""
    children = [(action, shape(child)) for action, child in node.children.items()]
    return node.visits, node.total_value, node.proven, node.nn_value, children, node.unexplored


# --- Invariants -------------------------------------------------------------------------------------------------------


OPTIONS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PRIORITIES),
        "mate_search_depth": st.integers(0, 3),
        "exploration_constant": st.sampled_from([0.0, 0.5, 1.5]),
        "fpu": st.sampled_from([0.0, -1.0, ("parent", 0.2)]),
        "quiescence": st.booleans(),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 8]),
        "seed": st.integers(0, 2**64 - 1),
    }
)


@settings(max_examples=40)
@given(OPTIONS, st.integers(0, 60), st.integers(0, 1000), st.integers(0, 120))
def test_hybrid_invariants_hold_in_random_positions(
    options: dict[str, Any], plies: int, game: int, simulations: int
) -> None:
    state = random_position(Chess, plies, game)
    fen = state.fen()
    result = MCTS(num_simulations=simulations, **options).run(state, trace=True)
    assert state.fen() == fen
    assert result.action in state.legal_actions()
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert sum(result.visits.values()) == result.simulations
    assert result.simulations == simulations or result.proven is not None
    again = MCTS(num_simulations=simulations, **options).run(state, trace=True)
    assert first_difference(result.trace or [], again.trace or []) is None
    assert again.action == result.action
    for node in nodes_of(result.root):
        check_node(node, solve=options["solve"])


def check_node(node: MctsNode, *, solve: bool) -> None:
    assert node.in_flight == 0
    assert abs(node.total_value) <= node.visits
    moves = [*node.children, *(node.unexplored or [])]
    below = sum(child.visits for child in node.children.values())
    if node.priors is None:
        assert node.nn_value is None, "an exact node is never evaluated"
        assert node.parent is None or node.terminal_or_mate_value is not None
        return
    assert sorted(moves) == sorted(node.state.legal_actions())
    assert sum(node.priors.values()) == pytest.approx(1.0, abs=1e-5)
    assert node.visits == 1 + below or (node.proven is not None and node.visits > below)
    assert node.mean_value * (1 + below) == pytest.approx(
        node.raw_value - sum(child.total_value for child in node.children.values())
    )
    if node.proven is not None:
        assert solve
        retained = mate_search(node.state, (node.distance + 1) // 2) if node.distance <= 5 else None
        if retained is not None and retained.kind != "unknown":
            assert node.proven == {"mate_in": 1, "mated_in": -1}[retained.kind]


# --- Node and entry point ---------------------------------------------------------------------------------------------


def test_node_methods_match_hand_computed_example() -> None:
    state = Chess(TACTICS)
    root = MctsNode.new_root(state)
    assert root.unexplored_moves_by_cat == {}
    assert root.is_fully_explored()
    assert root.get_best_unexplored_move() is None
    assert select_leaf_for_expansion(root, 1.5) is root, "not evaluated yet"
    priors, value = PestoPolicy().evaluate(state)
    root.nn_value = 2.0 * value - 1.0
    root.store_priors_and_categorize_moves(priors)
    root.backpropagate(root.nn_value)
    assert sum(map(len, root.unexplored_moves_by_cat.values())) == len(priors)
    opened = []
    while not root.is_fully_explored():
        assert select_leaf_for_expansion(root, 1.5) is root
        action = root.get_best_unexplored_move()
        assert action is not None
        assert root.categories[action] == root.current_priority_category
        opened.append(root.categories[action])
        root.add_child(action).backpropagate(0.25)
    assert opened == sorted(opened)
    assert not root.advance_priority_category()
    assert root.get_best_unexplored_move() is None
    assert (root.visits, root.unexplored_moves_by_cat) == (1 + len(priors), {})
    # The value of a child for its player to move is the negative of that for the chooser.
    assert root.total_value == pytest.approx(root.nn_value - 0.25 * len(priors))
    child = root.select_best_child(1.5)
    assert child.puct_value(1.5) == pytest.approx(-0.25 + 1.5 * math.sqrt(root.visits) * child.policy_prior / 2.0)
    assert child.puct_value(1.5) == max(other.puct_value(1.5) for other in root.children.values())
    assert child.parent is root
    assert child.id != root.id


def test_node_is_terminal_only_at_ends_and_claimable_draws() -> None:
    mating = Chess(MATE_IN_ONE)
    root = MctsNode.new_root(mating)
    assert not root.is_terminal()
    mated = root.add_child(mating.parse_action("h5f7"))
    assert mated.is_terminal()
    assert mated.terminal_or_mate_value == -1.0
    quiet = root.add_child(mating.parse_action("a2a3"))
    assert not quiet.is_terminal()
    quiet.set_proven(-1, 3)
    assert quiet.terminal_or_mate_value == -1.0
    assert not quiet.is_terminal(), "proven by mate search, not terminal"
    fifty = MctsNode.new_root(Chess("7k/8/8/8/8/8/R7/K7 w - - 99 90"))
    assert fifty.add_child(fifty.state.parse_action("a2b2")).is_terminal()


def test_mcts_search_matches_specification() -> None:
    with pytest.raises(ValueError, match="limit"):
        mcts_search(Chess())
    assert mcts_search(Chess("7k/5Q2/8/8/8/8/8/K7 b - - 0 1"), iterations=10) is None
    assert mcts_search(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"), time_limit=1.0) is None
    state = Chess(MATE_IN_ONE)
    assert mcts_search(state, iterations=1) == state.parse_action("h5f7")
    assert mcts_search(Chess(), Table(), 2, iterations=30) in Chess().legal_actions()
    assert mcts_search(Chess(), time_limit=0.0) in Chess().legal_actions()
    assert mcts_search(Chess(), iterations=40) == MCTS(num_simulations=40).run(Chess()).action


def test_invalid_policy_network_output_raises() -> None:
    class Says:
        def __init__(self, priors: dict[int, float], value: float) -> None:
            self.answer = priors, value

        def evaluate(self, state: Chess) -> tuple[dict[int, float], float]:
            return self.answer

    first, *others = Chess().legal_actions()
    tree = (search := MCTS(policy_network=Says({first: 3.0}, 0.75))).tree(Chess())
    search._prepare_root(tree)
    assert tree.root.priors == dict.fromkeys(others, 0.0) | {first: 1.0}
    assert tree.root.nn_value == 0.5
    for priors, value, message in [
        ({first: 1.0}, 1.5, "from 0 to 1"),
        ({first: 1.0}, math.nan, "from 0 to 1"),
        ({first: -1.0}, 0.5, "negative"),
        ({first: math.nan}, 0.5, "finite"),
        ({4671: 1.0}, 0.5, "not legal"),
    ]:
        with pytest.raises(ValueError, match=message):
            MCTS(policy_network=Says(priors, value)).run(Chess())


@pytest.mark.parametrize(
    "options",
    [
        {"mate_search_depth": -1},
        {"exploration_constant": math.nan},
        {"priority": "loose"},
        {"in_flight": 0},
        {"fpu": ("sibling", 0.1)},
        {"evaluator": Table(), "policy_network": Table()},
    ],
)
def test_invalid_options_raise(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        MCTS(**options)


# --- Tree reuse -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", PRIORITIES)
def test_advance_keeps_subtree(priority: str | None) -> None:
    search = MCTS(mate_search_depth=2, priority=priority)
    tree = search.tree(Chess(MIDDLEGAME))
    for _ in range(4):
        search.simulate(tree, 60)
        result = search.result(tree)
        retained = tree.root.children[result.action]
        visits = retained.visits
        search.advance(tree, result.action)
        if retained.priors is not None:
            assert tree.root is retained
            assert (tree.root.parent, tree.root.action, tree.root.visits) == (None, None, visits)
        assert search.result(tree).simulations == 0
        if tree.root.proven is not None:
            break
    with pytest.raises(ValueError, match="not legal"):
        search.advance(tree, 4671)


def test_advance_discards_subtree_of_proven_mate() -> None:
    """For mates found in the tree and at the root, even if the move was searched before."""
    for fen in forced_mates(3)[:6]:
        search = MCTS(mate_search_depth=0, solve=False)
        tree = search.tree(Chess(fen))
        search.simulate(tree, 200)
        searcher = MCTS(mate_search_depth=3)
        hybrid_knowledge.prove_root(tree.root, searcher.chess_config)
        action = searcher.result(tree).action
        assert tree.root.proven == 1
        searcher.advance(tree, action)
        assert (tree.root.visits, tree.root.children, tree.root.proven) == (0, {}, None)
        searcher.simulate(tree, 1)
        assert (tree.root.proven, tree.root.distance) == (-1, 4)
        searcher.advance(tree, searcher.result(tree).action)
        searcher.simulate(tree, 1)
        assert (tree.root.proven, tree.root.distance) == (1, 3)


def test_mate_search_at_root_runs_again_after_advance() -> None:
    fen = next(fen for fen in forced_mates(2) if len(Chess(fen).legal_actions()) > 20)
    search = MCTS(mate_search_depth=2)
    tree = search.tree(Chess(fen))
    for distance in (3, 2, 1):
        search.simulate(tree, 1)
        assert tree.root.distance == distance
        last = search.result(tree).action
        if distance > 1:
            search.advance(tree, last)
    with pytest.raises(ValueError, match="over"):
        search.advance(tree, last)


# --- Draws and colours ------------------------------------------------------------------------------------------------


def test_repetition_is_draw_below_root_and_searched_at_root() -> None:
    state = after(Chess(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    back = state.parse_action("f6g8")
    search = MCTS(mate_search_depth=0)
    tree = search.tree(state)
    search.simulate(tree, 60)
    child = tree.root.children[back]
    assert (child.end, child.proven, child.nn_value, child.children) == ([0.0, 0.0], 0, None, {})
    assert child.total_value == 0.0
    search.advance(tree, back)
    assert (tree.root.end, tree.root.visits) == (None, 0)
    search.simulate(tree, 10)
    assert search.result(tree).simulations == 10


def test_fifty_move_rule_is_draw_below_root() -> None:
    state = Chess("k7/8/8/8/8/8/8/6RK w - - 99 80")
    result = MCTS(mate_search_depth=0, num_simulations=40).run(state)
    assert (result.proven, result.value) == (0, 0.0)
    assert all(child.end == [0.0, 0.0] for child in result.root.children.values())


@pytest.mark.parametrize("priority", ["strict", "tactical", "prior"])
@pytest.mark.parametrize("fen", [TACTICS, MIDDLEGAME, ENDGAME, *forced_mates(3)[:2]])
def test_search_is_symmetric_in_colour(fen: str, priority: str) -> None:
    """Actions are encoded from the mover's perspective, and all priors of the network differ."""
    for depth in (0, 1, 3):
        trees = []
        for colours in (fen, mirror(fen)):
            search = MCTS(policy_network=Table(), mate_search_depth=depth, priority=priority)
            tree = search.tree(Chess(colours))
            search.simulate(tree, 150)
            trees.append((shape(tree.root), tree.history.killers, tree.history.scores[tree.root.to_play]))
        if trees[0][0][0]:  # a root proven by mate search keeps the order of the game
            assert trees[0] == trees[1]
        else:
            assert trees[0][0][2] == trees[1][0][2] is not None


def test_split_simulations_equal_one_run() -> None:
    search = MCTS(seed=3)
    whole, pieces = search.tree(Chess(MIDDLEGAME)), search.tree(Chess(MIDDLEGAME))
    search.simulate(whole, 120)
    for count in (1, 50, 69):
        search.simulate(pieces, count)
    assert shape(pieces.root) == shape(whole.root)
