"""Forced moves and the minimax guard of the UCT reference."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.solvers import minimax_value, solve
from tests.support.uct import DRAW, LOSS, WIN, Tree2, check_tree, long_way, orders, seeds

from pondertree.games.lookahead import forced_actions, minimax
from pondertree.reference.uct import MCTS
from pondertree.testing.tabular import TabularGame


@settings(max_examples=200, deadline=None)
@given(seeds, orders)
def test_forced_moves_preserve_minimax_value(seed: int, order: Any) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 4), branching=(1, 4), end_chance=0.5).start()
    legal = state.legal_actions()
    retained = forced_actions(state, legal)
    assert retained
    assert retained == [action for action in legal if action in retained]
    after = {action: state.play(action) for action in legal}
    worth = {
        action: minimax_value(child) * (1 if child.to_play == state.to_play else -1) for action, child in after.items()
    }
    assert max(worth[action] for action in retained) == max(worth.values())
    dropped = set(legal) - set(retained)
    if dropped:
        assert all(worth[a] == 1 and after[a].is_terminal for a in retained) or all(worth[a] == -1 for a in dropped)


def test_forced_moves_match_hand_computed_positions() -> None:
    quiet = long_way(1, 4, DRAW)
    threat = Tree2("n1", {"a": quiet, "b": LOSS})
    ours_again = Tree2("n0", {"a": LOSS, "b": quiet})
    assert forced_actions(Tree2("n0", {"a": quiet, "b": WIN, "c": LOSS, "d": WIN}), [0, 1, 2, 3]) == [1, 3]
    assert forced_actions(Tree2("n0", {"a": threat, "b": quiet, "c": ours_again, "d": DRAW}), [0, 1, 2, 3]) == [1, 2, 3]
    assert forced_actions(Tree2("n0", {"a": threat, "b": threat}), [0, 1]) == [0, 1]
    # In the tree: within `forced_depth`, and pruned moves do not block full expansion.
    third = Tree2("n0", {"x": threat, "y": quiet, "z": threat, "w": quiet})
    start = Tree2("n0", {"a": Tree2("n1", {"on": third}), "b": quiet})
    for depth, replies in ((0, [0, 1, 2, 3]), (1, [0, 1, 2, 3]), (2, [0, 1, 2, 3]), (3, [1, 3])):
        result = MCTS(200, solve=False, forced_depth=depth).run(start)
        assert sorted(result.root.children[0].children[0].children) == replies
        check_tree(result)


def brute_verdict(state: Any, depth: int, player: int) -> int:
    """Returns the minimax verdict by plain recursion: +1 or -1 only if forced within `depth` plies."""
    if state.is_terminal:
        return int(state.returns()[player])
    if depth == 0:
        return 0
    below = [brute_verdict(state.play(action), depth - 1, player) for action in state.legal_actions()]
    if state.to_play == player:
        return max(below)
    return min(below)


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 6))
def test_minimax_is_exact_within_depth(seed: int, order: Any, depth: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 5), branching=(1, 3)).start()
    for action, (verdict, plies) in minimax(state, depth).items():
        child = state.play(action)
        assert verdict == brute_verdict(child, depth - 1, state.to_play)
        assert plies <= depth
        if verdict and depth >= 5:
            assert plies == solve(child)[1] + 1
        # The verdict needs exactly that many plies.
        if verdict:
            assert minimax(state, plies)[action] == (verdict, plies)
            assert minimax(state, plies - 1)[action][0] == 0
        else:
            assert plies == 0


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 4), st.booleans())
def test_minimax_guard_overrides_only_with_proof(seed: int, order: Any, depth: int, solve_it: bool) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 7), branching=(2, 4), end_chance=0.3).start()
    plain = MCTS(6, seed=seed, solve=solve_it).run(state)
    guarded = MCTS(6, seed=seed, solve=solve_it, minimax_depth=depth).run(state)
    assert plain.visits == guarded.visits
    if plain.proven is not None:
        assert guarded.action == plain.action
        return
    verdicts = minimax(state, depth)
    wins = {action: plies for action, (verdict, plies) in verdicts.items() if verdict == 1}
    lost = {action for action, (verdict, _) in verdicts.items() if verdict == -1}
    lost_in_tree = {a for a, child in plain.root.children.items() if child.proven_for_chooser == -1}
    if wins:
        first_shortest = next(a for a in wins if wins[a] == min(wins.values()))
        assert guarded.action == (plain.action if plain.action in wins else first_shortest)
    elif plain.action in lost and set(verdicts) - lost - lost_in_tree:
        rest = set(verdicts) - lost - lost_in_tree
        assert guarded.action in rest
        assert plain.visits[guarded.action] == max(plain.visits[a] for a in rest)
    else:
        assert guarded.action == plain.action
