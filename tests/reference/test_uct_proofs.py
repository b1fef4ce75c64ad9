"""Proofs in the UCT reference, on random and hand-written games."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.solvers import minimax_value
from tests.support.uct import DRAW, LOSS, WIN, End, Tree2, check_proofs, check_tree, long_way, orders, seeds

from pondertree.random import PLAYOUT, Random
from pondertree.reference.tree import prove_ancestors
from pondertree.reference.uct import MCTS, Result
from pondertree.testing.tabular import TabularGame, TabularState

# --- Proofs -----------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(seeds, orders, st.sampled_from([1, 4]), st.integers(0, 3))
def test_solved_game_matches_minimax(seed: int, order: Any, in_flight: int, forced_depth: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 5), branching=(1, 3)).start()
    value = minimax_value(state)
    search = MCTS(20_000, 2.0, forced_depth=forced_depth, seed=seed, in_flight=in_flight)
    result = search.run(state)
    check_tree(result)
    check_proofs(result.root)
    assert result.proven == result.value == value
    assert result.simulations < 20_000
    # The move preserves the value, and the policy is over such moves alone.
    for action, share in result.policy.items():
        if share > 0.0:
            child = state.play(action)
            exact = minimax_value(child) * (1 if child.to_play == state.to_play else -1)
            assert exact == value
            assert value == -1 or result.q[action] == value
    if value == 1:
        assert result.policy[result.action] == 1.0
    # A proven root does not change.
    tree = search.tree(state)
    search.simulate(tree, 20_000)
    before = tree.simulations
    search.simulate(tree, 50)
    assert tree.simulations == before


def play_out_the_answer(state: TabularState, result: Result) -> None:
    children = result.root.children
    chosen = children[result.action]
    if result.proven == 1:
        assert chosen.distance == min(c.distance for c in children.values() if c.proven_for_chooser == 1)
        assert chosen.distance + 1 == result.root.distance
    elif result.proven == -1:
        assert chosen.distance == max(c.distance for c in children.values())
        assert chosen.distance + 1 == result.root.distance
    elif result.proven == 0:
        drawn = [c.visit_count for c in children.values() if c.proven_for_chooser == 0]
        assert chosen.proven_for_chooser == 0
        assert chosen.visit_count == max(drawn)


@settings(max_examples=100, deadline=None)
@given(seeds, orders)
def test_proven_root_plays_shortest_win_or_longest_defence(seed: int, order: Any) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 6), branching=(1, 4)).start()
    play_out_the_answer(state, MCTS(5000, seed=seed).run(state))


def test_shortest_of_several_wins_is_played() -> None:
    # A search stops at the first proof, so two proven wins are constructed by hand: of 3 plies and of 1.
    search = MCTS()
    tree = search.tree(Tree2("n0", {"slow": long_way(1, 2, WIN), "quick": WIN, "slower": long_way(1, 4, WIN)}))
    root = tree.root
    random = Random(1, PLAYOUT)
    children = {child.action: child for child in (root.expand(random) for _ in range(3))}
    for action, distance in ((0, 2), (1, 0), (2, 4)):
        child = children[action]
        child.visit_count = 1 + distance
        child.proven, child.distance = -1, distance  # for player 1, the player to move there
        assert child.to_play == 1
    prove_ancestors(children[2])
    assert (root.proven, root.distance) == (1, 1)
    assert search._best_action(tree) == 1
    assert search.result(tree).policy == {0: 0.0, 1: 1.0, 2: 0.0}


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 40))
def test_unproven_root_never_plays_proven_loss(seed: int, order: Any, simulations: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 8), branching=(2, 4), end_chance=0.4).start()
    result = MCTS(simulations, seed=seed).run(state)
    if result.proven is not None:
        return
    for action, child in result.root.children.items():
        if child.proven_for_chooser == -1:
            assert action != result.action
            assert result.policy[action] == 0.0
            assert result.q[action] == -1.0
    open_moves = [a for a in result.visits if result.policy[a] > 0.0]
    assert result.visits[result.action] == max(result.visits[a] for a in open_moves)


def test_fractional_results_are_not_proven() -> None:
    start = Tree2("a0", {"x": End(0.5), "y": End(-1.0)})
    result = MCTS(50).run(start)
    assert result.proven is None
    assert result.root.children[1].proven == 1  # for player 1, the player to move
    assert result.root.children[0].proven is None
    assert result.policy == {0: 1.0, 1: 0.0}


# --- Hand-written games -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("solve_it", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_immediate_win_and_block_are_found(player: int, solve_it: bool, in_flight: int) -> None:
    ours, theirs = (WIN, LOSS) if player == 0 else (LOSS, WIN)
    other = 1 - player
    search = MCTS(400, solve=solve_it, in_flight=in_flight)
    quiet = long_way(other, 5, DRAW)
    win_at_once = Tree2(f"n{player}", {"quiet": quiet, "win": ours, "lose": theirs})
    result = search.run(win_at_once)
    assert result.action == 1
    assert max(result.visits, key=lambda a: result.visits[a]) == 1 or result.proven == 1
    assert result.proven == (1 if solve_it else None)

    threat = Tree2(f"t{other}", {"a": quiet, "b": theirs})
    must_block = Tree2(f"n{player}", {"careless": threat, "block": quiet, "careless too": threat})
    result = search.run(must_block)
    assert result.action == 1
    assert result.visits[1] == max(result.visits.values())
    # One move earlier, with a double move, where the sign must not change.
    double = Tree2(f"d{player}", {"first": win_at_once, "other": long_way(other, 4, theirs)})
    result = search.run(double)
    assert result.action == 0
    assert result.visits[0] == max(result.visits.values()) or solve_it
    assert result.q[0] > result.q[1]


def test_sign_depends_on_player_to_move() -> None:
    # Player 0 moves three times in a row, then player 1: the sign does not follow from the depth.
    last = Tree2("n1", {"a": WIN, "b": LOSS})
    start = Tree2("n0", {"a": Tree2("n0", {"a": Tree2("n0", {"a": last, "b": DRAW})}), "b": LOSS})
    result = MCTS(2000, solve=False).run(start)
    node = result.root.children[0].children[0]
    assert result.action == 0
    assert abs(result.q[0]) < 0.2
    assert node.children[1].visit_count > node.children[0].visit_count
    replies = node.children[0].children
    assert replies[1].total_value == replies[1].visit_count  # LOSS of player 0 is a win for player 1, the chooser
    assert replies[0].total_value == -replies[0].visit_count
    assert replies[1].visit_count > replies[0].visit_count
    assert MCTS(2000).run(start).proven == 0
