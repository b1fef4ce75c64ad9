"""`Forest` and `Tree`: simulate, advance, reset."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.support.forests import made
from tests.support.search_helpers import Hashed, after, fingerprint, random_position

import pondertree
from pondertree.games import ConnectFour, Othello, TicTacToe

BOTH = pytest.mark.parametrize("wrap", [False, True], ids=["compiled", "python"])


def statistics(node: pondertree.Node) -> tuple[Any, ...]:
    """A subtree as plain data, without its root's own visits."""
    return tuple(
        (action, child.visit_count, child.total_value, child.proven, statistics(child))
        for action, child in node.children.items()
    )


# --- Simulate -----------------------------------------------------------------------------------------------------


@BOTH
def test_simulate_takes_a_number_or_seconds(wrap: bool) -> None:
    tree = pondertree.UCT(77, seed=1).tree(made(ConnectFour(), wrap))
    assert tree.result().simulations == 0
    assert tree.simulate(10) is tree
    assert tree.result().simulations == 10
    tree.simulate(0)
    assert tree.result().simulations == 10
    tree.simulate()
    assert tree.result().simulations == 87, "without a number, the search's own holds"
    begun = time.perf_counter()
    tree.simulate(seconds=0.05)
    assert time.perf_counter() - begun < 5.0
    assert tree.result().simulations > 87
    assert tree.result().elapsed >= 0.04


@BOTH
def test_simulate_takes_a_number_per_tree(wrap: bool) -> None:
    forest = pondertree.UCT(seed=1).forest([made(ConnectFour(), wrap)] * 3)
    forest.simulate([5, 0, 20])
    assert [result.simulations for result in forest.results()] == [5, 0, 20]
    forest.simulate(7)
    assert [result.simulations for result in forest.results()] == [12, 7, 27]
    assert len(forest) == 3
    assert forest.result(-1).simulations == 27


@BOTH
@pytest.mark.parametrize("in_flight", [1, 4])
def test_forest_rows_equal_single_trees(wrap: bool, in_flight: int) -> None:
    states = [made(random_position(ConnectFour, ply, ply), wrap) for ply in (0, 9, 20, 30)]
    search = pondertree.UCT(in_flight=in_flight, evaluator=Hashed())
    forest = search.forest(states, seeds=[5, 6, 7, 8])
    forest.simulate([20, 50, 80, 33])
    for row, count in enumerate([20, 50, 80, 33]):
        alone = search.tree(states[row], seeds=5 + row).simulate(count)
        assert fingerprint(forest.result(row)) == fingerprint(alone.result())


def test_results_take_a_temperature_per_tree() -> None:
    forest = pondertree.UCT(seed=1).forest([ConnectFour()] * 2).simulate(50)
    cold = forest.results(temperature=[0.0, 0.0])
    assert [result.action for result in cold] == [result.action for result in forest.results()]


# --- Advance and reset --------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello])
def test_advance_keeps_the_subtree(start: Any, wrap: bool) -> None:
    tree = pondertree.UCT(seed=3).tree(made(start(), wrap)).simulate(400)
    for _ in range(5):
        result = tree.result()
        child = result.root.children[result.action]
        wanted, state = statistics(child), child.state
        if state.is_terminal:
            break
        tree.advance(result.action)
        assert tree.state == state == tree.result().root.state
        assert statistics(tree.result().root) == wanted
        assert tree.result().root.visit_count == sum(c.visit_count for c in child.children.values())
        count = tree.result().simulations
        tree.simulate(100)
        assert tree.result().simulations == count + 100 or tree.result().proven is not None


@BOTH
def test_value_after_advance_is_the_mean_of_the_kept_subtree(wrap: bool) -> None:
    """UCT's root is not evaluated, also where it was a leaf once: its value is that of its edges."""
    state = made(random_position(ConnectFour, 8, 3), wrap)
    for seed in range(5):
        tree = pondertree.UCT(seed=seed, solve=False).tree(state).simulate(30)
        tree.advance(tree.result().action)
        result = tree.result()
        sums = sum(-child.total_value for child in result.root.children.values())
        assert result.value == pytest.approx(sums / result.root.visit_count)
        assert abs(result.root.q_value) <= 1.0


@BOTH
def test_advance_by_an_unvisited_move_starts_a_new_tree(wrap: bool) -> None:
    tree = pondertree.UCT(seed=3).tree(made(ConnectFour(), wrap)).simulate(2)
    untried = next(a for a in tree.state.legal_actions() if a not in tree.result().root.children)
    tree.advance(untried)
    assert tree.state == made(ConnectFour().play(untried), wrap)
    assert tree.result().visits.sum() == 0
    tree.simulate(50)
    assert tree.result().visits.sum() == 50


@BOTH
@pytest.mark.parametrize("action", [0, 6, 7, 65535, 10**9])
def test_advance_refuses_illegal_moves(action: int, wrap: bool) -> None:
    state = after(ConnectFour(), "1 1 1 1 1 1")
    tree = pondertree.UCT(seed=3).tree(made(state, wrap)).simulate(50)
    before = fingerprint(tree.result())
    if action == 6:
        tree.advance(action)
        return
    with pytest.raises(pondertree.InvalidActionError, match=rf"{action} is not legal.*legal are \[1, 2, 3, 4, 5, 6\]"):
        tree.advance(action)
    assert fingerprint(tree.result()) == before
    assert tree.simulate(10).result().simulations == 60


@BOTH
@pytest.mark.parametrize("count", [0, 3, 300])
def test_advance_refuses_moves_that_end_the_game(wrap: bool, count: int) -> None:
    tree = pondertree.UCT(seed=3, solve=False).tree(made(after(ConnectFour(), "1 2 1 2 1 2"), wrap)).simulate(count)
    before = fingerprint(tree.result())
    with pytest.raises(pondertree.GameOverError):
        tree.advance(0)
    assert fingerprint(tree.result()) == before
    assert tree.state == made(after(ConnectFour(), "1 2 1 2 1 2"), wrap)
    assert tree.simulate(5).result().simulations == count + 5


@BOTH
def test_advance_accepts_moves_that_were_not_forced(wrap: bool) -> None:
    """A move that the search did not look at, because another was forced, can still be played."""
    state = made(after(ConnectFour(), "1 2 1 2 1 2"), wrap)
    tree = pondertree.UCT(seed=3, forced_depth=2, solve=False).tree(state).simulate(20)
    assert list(tree.result().root.children) == [0]
    tree.advance(4)
    assert tree.simulate(20).result().action == 1, "the opponent wins at once"


@BOTH
def test_reset_starts_a_new_search(wrap: bool) -> None:
    search = pondertree.UCT(seed=3)
    forest = search.forest([made(ConnectFour(), wrap)] * 2).simulate(40)
    other = fingerprint(forest.result(1))
    state = made(random_position(ConnectFour, 6, 1), wrap)
    forest.reset(0, state)
    assert forest.state(0) == state
    assert forest.result(0).simulations == 0
    assert fingerprint(forest.result(1)) == other
    forest.simulate([30, 0])
    assert forest.result(0).visits.sum() == 30
    forest.reset(0, state)
    forest.simulate([30, 0])
    tree = pondertree.UCT(seed=3).tree(state)
    tree.reset(made(ConnectFour(), wrap))
    assert tree.state == made(ConnectFour(), wrap)


def test_reset_tree_draws_new_random_numbers() -> None:
    tree = pondertree.UCT(seed=3).tree(ConnectFour())
    seen = set()
    for _ in range(10):
        tree.reset(ConnectFour())
        seen.add(tuple(tree.simulate(50).result().visits.tolist()))
    assert len(seen) > 7


def test_repr_names_the_game_and_the_number_of_trees() -> None:
    assert repr(pondertree.UCT(seed=1).forest([TicTacToe()] * 3)) == "<Forest: 3 trees of tic_tac_toe>"
