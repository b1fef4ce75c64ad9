"""Selection of the AlphaZero reference: PUCT, first-play urgency and virtual loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.alphazero import Fixed, Network, check_tree
from tests.support.solvers import best_play

from pondertree.games import ConnectFour
from pondertree.reference.alphazero import (
    MCTS,
    Node,
    Uniform,
)
from pondertree.testing.tabular import TabularGame, TabularState


def test_puct_scores_match_hand_computed_values() -> None:
    """Two moves with priors 3/4 and 1/4 and value -0.5 for the chooser: the scores of the first two descents."""
    network = Fixed([3.0, 1.0], 0.5, "probabilities")
    state = TabularGame(3, branching=(2, 2), depth=(9, 9), action_space=2).start()
    first, second = (0, 1)
    rows = MCTS(network, 3, c_puct=2.0, seed=1).run(state, trace=True).trace
    assert rows is not None
    scores = [dict(row["scores"][0] or []) for row in rows]
    assert scores[0] == {first: 2.0 * 0.75, second: 2.0 * 0.25}
    assert scores[1] == {first: -0.5 + 2.0 * math.sqrt(2) * 0.75 / 2, second: 2.0 * math.sqrt(2) * 0.25}
    assert rows[0]["path"] == [first]
    edges = MCTS(network, 1, c_puct=2.0, seed=1, parent_visits="edges").run(state, trace=True).trace
    assert edges is not None
    assert dict(edges[0]["scores"][0] or []) == {first: 1.5, second: 0.5}, "at the first choice priors count"


def test_each_term_of_puct_matches_hand_computed_values() -> None:
    """A losing move, a winning move and an unvisited one; the first two with leaves in flight."""
    state = ConnectFour()
    root = Node(1.0)
    root.set_state(state)
    root.visit_count, root.in_flight, root.raw_value = 10, 3, 0.5
    root.expand({0: 0.5, 1: 0.25, 2: 0.25})
    bad, good, untried = root.children.values()
    for child, visits, total, flying in ((bad, 6, 3.0, 2), (good, 3, -1.5, 1)):
        child.set_state(state.play(child.action or 0))
        child.visit_count, child.total_value, child.in_flight = visits, total, flying
    explore = 2.0 * math.sqrt(13)
    expected = {0: (-3.0 - 2) / 8 + explore * 0.5 / 9, 1: (1.5 - 1) / 4 + explore * 0.25 / 5, 2: explore * 0.25}
    assert MCTS(Uniform(), c_puct=2.0)._scores(root) == pytest.approx(expected)
    edges = MCTS(Uniform(), c_puct=2.0, parent_visits="edges")._scores(root)
    assert edges[2] == pytest.approx(2.0 * math.sqrt(12) * 0.25)
    parent = MCTS(Uniform(), c_puct=2.0, fpu=("parent", 0.1))._scores(root)
    assert parent[2] == pytest.approx((0.5 - 3.0 + 1.5) / 10 - 0.1 + explore * 0.25)
    good.proven = -1  # lost for the player to move there, won for the chooser
    assert MCTS(Uniform(), c_puct=2.0)._scores(root)[1] == pytest.approx(1.0 + explore * 0.25 / 5)
    bad.proven = 1
    assert list(MCTS(Uniform(), c_puct=2.0)._scores(root)) == [1, 2], "a move that loses is passed over"
    untried.set_state(state.play(2))
    good.proven = untried.proven = 1
    assert list(MCTS(Uniform(), c_puct=2.0)._scores(root)) == [0, 1, 2], "unless all do"


def test_ties_are_broken_at_random() -> None:
    state = ConnectFour()
    firsts = [MCTS(Uniform(), 1, seed=seed).run(state).root for seed in range(200)]
    tried = [next(iter(root.children)) for root in firsts]
    assert all(15 < tried.count(action) < 45 for action in range(7)), "each of seven about 29 times"


def test_unvisited_move_has_value_of_fpu() -> None:
    state = TabularGame(3, branching=(3, 3), depth=(9, 9)).start()

    def first_scores(**settings: Any) -> list[float]:
        rows = MCTS(Fixed([0.0] * 7, 0.5), 1, c_puct=0.0, **settings).run(state, trace=True).trace
        return [score for _, score in (rows or [])[0]["scores"][0] or []]

    assert first_scores() == [0.0] * 3
    assert first_scores(fpu=-1.0) == [-1.0] * 3
    assert first_scores(fpu=("parent", 0.2)) == [0.5 - 0.2] * 3, "the root's value for its player to move"


def test_values_are_negated_only_if_player_changes() -> None:
    """In a double move the player does not change, so the value is not negated."""
    for order, sign in (("alternate", -1.0), ("double", 1.0)):
        state = TabularGame(4, branching=(2, 2), depth=(9, 9), turn_order=order).start()  # type: ignore[arg-type]
        result = MCTS(Fixed([0.0] * 5, 0.5), 1, seed=2).run(state)
        (child,) = [child for child in result.root.children.values() if child.visit_count]
        assert child.total_value == 0.5
        assert child.total_for_chooser == 0.5 * sign
        assert result.root.total_value == 0.5 + 0.5 * sign


@settings(max_examples=60)
@given(
    st.builds(
        TabularGame,
        seed=st.integers(0, 100_000),
        players=st.sampled_from([1, 2, 3]),
        depth=st.just((1, 2)),
        branching=st.just((2, 3)),
        turn_order=st.sampled_from(["alternate", "random", "double"]),
        rewards=st.booleans(),
        zero_sum=st.just(False),
    )
)
def test_best_move_is_found_with_uniform_priors(game: TabularGame) -> None:
    """The most visited move is near-optimal for its player, with any number of players and any turn order."""
    state: TabularState = game.start()
    result = MCTS(Uniform(), 300, c_puct=2.0, seed=1, solve=False).run(state)
    player = state.to_play

    def worth(action: int) -> float:
        child = state.play(action)
        rewards = child.rewards()[player] if hasattr(child, "rewards") else 0.0
        return float(best_play(child)[player] + rewards)

    best = max(worth(action) for action in state.legal_actions())
    # Means converge slowly; in 1500 such games the largest error was 0.36, below that of a wrong sign.
    assert worth(result.action) > best - 0.7


def test_virtual_loss_is_for_the_chooser() -> None:
    """Virtual loss spreads a batch over the moves, and is reverted."""
    network = Network()
    state = TabularGame(8, branching=(4, 4), depth=(9, 9)).start()
    result = MCTS(network, 64, in_flight=8, seed=1).run(state)
    assert network.sizes[0] == 1, "the root is evaluated alone"
    assert max(network.sizes) == 8
    assert sum(network.sizes) == 65
    check_tree(result)
