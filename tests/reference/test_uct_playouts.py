"""Virtual loss, playouts, evaluators and playout policies of the UCT reference."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.solvers import minimax_value
from tests.support.uct import LOSS, WIN, Tree2, check_tree, nodes_of, seeds

from pondertree.games.playout import evaluate, random_playout, simulate_leaves
from pondertree.random import PLAYOUT, Random
from pondertree.reference.uct import MCTS
from pondertree.testing.tabular import TabularGame, TabularState

# --- Virtual loss -----------------------------------------------------------------------------------------------------


class Counting:
    """An evaluator that records the states it evaluates."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def evaluate_states(self, states: list[Any]) -> tuple[None, list[float]]:
        self.batches.append(states)
        return None, [0.0 for _ in states]


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 16), st.integers(1, 80), st.booleans())
def test_batches_are_bounded_and_conserve_visits(seed: int, in_flight: int, limit: int, rewards: bool) -> None:
    state = TabularGame(seed, depth=(2, 9), branching=(2, 4), rewards=rewards).start()
    evaluator = Counting()
    result = MCTS(limit, evaluator=evaluator, seed=seed, in_flight=in_flight, solve=False).run(state, trace=True)
    check_tree(result)
    assert result.simulations == limit
    assert all(1 <= len(batch) <= in_flight for batch in evaluator.batches)
    calls = [s for batch in evaluator.batches for s in batch]
    assert len(set(calls)) == len(calls)  # no leaf is evaluated twice
    assert result.trace is not None
    assert [row["simulation"] for row in result.trace] == list(range(limit))
    assert len(calls) == sum(not _state_at(state, row["path"]).is_terminal for row in result.trace)


def _state_at(state: Any, path: list[int]) -> Any:
    for action in path:
        state = state.play(action)
    return state


def test_virtual_loss_is_applied_and_reverted() -> None:
    state = TabularGame(6, depth=(9, 9), branching=(3, 3)).start()
    search = MCTS(in_flight=8, solve=False)
    tree = search.tree(state)
    search.simulate(tree, 30)
    settled = [(node.visit_count, node.total_value) for node in nodes_of(tree.root)]
    pending = search._collect_leaves(tree, limit=38)
    assert 1 < len(pending) <= 8
    assert tree.root.in_flight == len(pending) == sum(c.in_flight for c in tree.root.children.values())
    assert tree.simulations == 30
    for child in tree.root.children.values():
        n, w, f = child.visit_count, child.total_value, child.in_flight
        expected = (w - f) / (n + f) + 1.0 * math.sqrt(2.0 * math.log(30 + len(pending)) / (n + f))
        assert child.score(30 + len(pending), 1.0) == expected
    for pending_leaf in pending:
        assert pending_leaf.leaf.is_pending
        search._mark_in_flight(pending_leaf.leaf, -1)
    assert all(node.in_flight == 0 for node in nodes_of(tree.root))
    old = [node for node in nodes_of(tree.root) if node.visit_count]
    assert [(node.visit_count, node.total_value) for node in old] == settled


def test_leaf_in_flight_is_no_loss_with_rewards() -> None:
    state = TabularGame(6, depth=(9, 9), branching=(3, 3), rewards=True).start()
    search = MCTS(in_flight=8)
    tree = search.tree(state)
    search.simulate(tree, 30)
    pending = search._collect_leaves(tree, limit=38)
    child = max(tree.root.children.values(), key=lambda c: c.in_flight)
    visits = child.visit_count + child.in_flight
    assert child.in_flight > 0
    parent_visits = 30 + len(pending)
    expected = child.total_value / visits + math.sqrt(2.0 * math.log(parent_visits) / visits)
    assert child.score(parent_visits, 1.0) == expected


def test_single_line_of_play_has_batches_of_one() -> None:
    # Every descent after the first collides with the leaf in flight, so each batch has one.
    evaluator = Counting()
    chain = TabularGame(0, depth=(30, 30), branching=(1, 1)).start()
    result = MCTS(20, evaluator=evaluator, in_flight=5).run(chain)
    check_tree(result)
    assert [len(batch) for batch in evaluator.batches] == [1] * 20


# --- Playouts, evaluators, policies -----------------------------------------------------------------------------------


def test_playout_matches_documented_random_draws() -> None:
    state = TabularGame(21, depth=(6, 9), branching=(2, 4)).start()
    random = Random(5, PLAYOUT)
    expected: TabularState = state
    while not expected.is_terminal:
        legal = expected.legal_actions()
        expected = expected.play(legal[random.choose(len(legal))])
    values, final = random_playout(state, Random(5, PLAYOUT))
    assert final == expected
    assert values == expected.returns()
    values, final = random_playout(state, Random(5, PLAYOUT), max_depth=3)
    assert values is None
    assert final.path == expected.path[:3]  # type: ignore[attr-defined]
    # A game that ends at the last move is not cut.
    assert random_playout(state, Random(5, PLAYOUT), len(expected.path))[0] == expected.returns()
    assert random_playout(expected, Random(5, PLAYOUT), 0)[0] == expected.returns()


def test_playout_sums_rewards() -> None:
    state = TabularGame(22, players=3, depth=(4, 4), rewards=True).start()
    values, final = random_playout(state, Random(1, PLAYOUT))
    assert values == final.returns()
    ((cut),) = simulate_leaves([(state, 0, 77)], max_depth=2)
    _, middle = random_playout(state, Random(77, PLAYOUT), 2)
    assert cut == middle.returns()  # rewards until the cut
    ((valued),) = simulate_leaves([(state, 0, 77)], 2, lambda s: [1.0, 2.0, 3.0])
    assert valued == pytest.approx([c + v for c, v in zip(cut, [1.0, 2.0, 3.0], strict=True)])


def test_evaluator_evaluates_leaf_or_cut_position() -> None:
    state = TabularGame(23, depth=(9, 9), branching=(2, 2)).start()
    calls: list[Any] = []

    def evaluator(position: Any) -> float:
        calls.append(position)
        return 0.25

    for max_depth in (None, 0):
        calls.clear()
        assert simulate_leaves([(state, 1, 5)], max_depth, evaluator) == [[0.25, -0.25]]
        assert calls == [state]
    calls.clear()
    assert simulate_leaves([(state, 1, 5)], 3, evaluator) == [[-0.25, 0.25]]  # player 1 is to move after 3 plies
    assert [len(position.path) for position in calls] == [3]
    assert simulate_leaves([(state, 1, 5)], 3) == [[0.0, 0.0]]
    calls.clear()
    values = simulate_leaves([(state, 1, 5)], 9, evaluator)
    assert not calls
    assert values[0] in ([1.0, -1.0], [0.0, 0.0], [-1.0, 1.0])


def test_evaluator_values_are_for_player_to_move() -> None:
    one, three = TabularGame(1, players=1).start(), TabularGame(1, players=3).start()
    first = TabularGame(1).start()
    second = first.play(first.legal_actions()[0])
    assert evaluate(lambda s: 0.5, [first, second]) == [[0.5, -0.5], [-0.5, 0.5]]
    assert evaluate(lambda s: (0.5, 0.1), [second]) == [[0.5, 0.1]]
    assert evaluate(lambda s: 0.5, [one]) == [[0.5]]
    assert evaluate(lambda s: [1, 2, 3], [three]) == [[1.0, 2.0, 3.0]]
    with pytest.raises(ValueError, match="1 values for 3 players"):
        evaluate(lambda s: 0.5, [three])
    with pytest.raises(ValueError, match="not finite"):
        evaluate(lambda s: math.nan, [first])

    class Short:
        def evaluate_states(self, states: list[Any]) -> tuple[None, list[float]]:
            return None, []

    with pytest.raises(ValueError, match="0 values for 1 states"):
        evaluate(Short(), [first])


def test_evaluator_and_policy_may_return_arrays() -> None:
    np = pytest.importorskip("numpy")

    class Network:
        def evaluate_states(self, states: list[Any]) -> tuple[Any, Any]:
            return np.zeros((len(states), 9)), np.full(len(states), 0.5, dtype=np.float32)

    state = TabularGame(2, depth=(4, 6)).start()
    assert evaluate(Network(), [state]) == [[0.5, -0.5]]
    assert evaluate(lambda s: np.array(0.5), [state]) == [[0.5, -0.5]]
    check_tree(MCTS(50, playout_policy=lambda s: np.int64(s.legal_actions()[0])).run(state))
    check_tree(MCTS(50, playout_policy=lambda s: np.ones(len(s.legal_actions()))).run(state))


def test_exact_evaluator_determines_move() -> None:
    for seed in range(10):
        state = TabularGame(seed, depth=(4, 4), branching=(2, 3), turn_order="random").start()
        result = MCTS(500, 0.7, evaluator=minimax_value, solve=False).run(state)
        child = state.play(result.action)
        assert minimax_value(child) * (1 if child.to_play == state.to_play else -1) == minimax_value(state)


def constant(answer: Any) -> Any:
    """A policy with a constant output."""
    return lambda state: answer


def test_playout_policy_returns_action_or_weights() -> None:
    state = TabularGame(24, depth=(6, 6), branching=(4, 4)).start()

    def first(s: Any) -> int:
        return int(s.legal_actions()[0])

    final = random_playout(state, Random(1, PLAYOUT), policy=first)[1]
    expected = state
    while not expected.is_terminal:
        expected = expected.play(expected.legal_actions()[0])
    assert final == expected
    # Weights: x = uniform * sum, and the first running sum above x. A weight of 0 is never drawn.
    counts = [0, 0, 0, 0]
    for key in range(2000):
        x = Random(key, PLAYOUT).uniform() * 4.0
        index = 1 if x < 1.0 else 3
        _, after = random_playout(state, Random(key, PLAYOUT), 1, lambda s: [0.0, 1.0, 0.0, 3.0])
        assert after == state.play(state.legal_actions()[index])
        counts[index] += 1
    assert 400 < counts[1] < 600
    for wrong in ([1.0], [0.0] * 4, [1.0, -1.0, 1.0, 1.0], [math.nan] * 4):
        with pytest.raises(ValueError, match="weights"):
            random_playout(state, Random(0, PLAYOUT), policy=constant(wrong))
    with pytest.raises(ValueError, match="returned 99: it must be one of the legal actions"):
        random_playout(state, Random(0, PLAYOUT), policy=lambda s: 99)


def test_own_playout_is_called_for_chooser() -> None:
    calls: list[tuple[int, int | None]] = []

    class Own(Tree2):
        def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
            calls.append((perspective_player, max_depth))
            return 0.75

    leaf = Own("n1", {"a": WIN, "b": LOSS})
    assert simulate_leaves([(leaf, 0, 1)], 7) == [[0.75, -0.75]]
    assert simulate_leaves([(leaf, 1, 1)]) == [[-0.75, 0.75]]
    assert calls == [(0, 7), (1, None)]
    calls.clear()
    assert simulate_leaves([(leaf, 0, 1)], None, lambda s: 0.5) == [[-0.5, 0.5]]
    assert not calls
    three = Own("n1", {"a": WIN, "b": LOSS}, num_players=3)
    assert simulate_leaves([(three, 0, 1)]) == [[0.75, 0.75, 0.75]]
    assert [player for player, _ in calls] == [0, 1, 2]
    result = MCTS(1).run(Tree2("n0", {"a": leaf}))
    assert result.values == {0: 0.75}
