"""Sequential halving, Gumbel variates, completed Q and the improved policy of the Gumbel reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.tabular import Tabular
from tests.support.gumbel import node_with

from pondertree.random import GUMBEL, Random
from pondertree.reference.gumbel import MCTS, considered_visits
from pondertree.reference.sequential_halving import (
    QTransform,
    TransformedQ,
    gumbel_variate,
    improved_policy,
    interior_scores,
)

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


# --- Sequential halving -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moves", "simulations", "table"),
    [
        (1, 4, [0, 1, 2, 3]),
        (2, 5, [0, 0, 1, 1, 2]),
        (3, 0, []),
        (16, 2, [0, 0]),
        # Two rounds of four: each of four once; each of two twice.
        (4, 8, [0, 0, 0, 0, 1, 1, 2, 2]),
        # Two rounds of eight: each of four twice; each of two four times.
        (4, 16, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        # A third of twelve is less than one visit for each of five moves: each gets one. Then two are left.
        (5, 12, [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4]),
        # Three rounds of eight: each of eight once, each of four twice, each of two four times.
        (8, 24, [0] * 8 + [1] * 4 + [2] * 4 + [3, 3, 4, 4, 5, 5, 6, 6]),
    ],
)
def test_considered_visits_match_hand_computed_tables(moves: int, simulations: int, table: list[int]) -> None:
    assert considered_visits(moves, simulations) == table


@given(st.integers(1, 40), st.integers(0, 300))
def test_considered_visits_are_always_attainable(moves: int, simulations: int) -> None:
    """In every simulation some move has the considered number of visits."""
    table = considered_visits(moves, simulations)
    assert len(table) == simulations
    visits = [0] * moves
    for wanted in table:
        visits[visits.index(wanted)] += 1
    assert sum(visits) == simulations


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 80), st.integers(1, 20))
def test_root_visits_follow_considered_visits(seed: int, actions: int, simulations: int, most: int) -> None:
    result = MCTS(Tabular(seed, 30, actions), simulations, most).run(observation=[0])
    moves = min(most, actions)
    expected = [0] * actions
    for wanted in considered_visits(moves, simulations):
        expected[expected.index(wanted)] += 1
    assert sorted(result.visits.values()) == sorted(expected)
    assert result.visits[result.action] == max(expected)


# --- Gumbel variates --------------------------------------------------------------------------------------------------


def test_gumbel_variates_have_expected_moments() -> None:
    random = Random(9, GUMBEL)
    numbers = [gumbel_variate(random) for _ in range(20_000)]
    assert sum(numbers) / len(numbers) == pytest.approx(0.5772, abs=0.03)
    assert np.var(numbers) == pytest.approx(math.pi**2 / 6, abs=0.08)


def test_first_move_follows_prior_distribution() -> None:
    """The argmax of Gumbel variate plus logit is a sample of the softmax."""
    table = Tabular(3, 10, 4)
    logits = table.logits[5]  # type: ignore[attr-defined]
    shares = np.exp(logits) / np.exp(logits).sum()
    counts = np.zeros(4)
    for seed in range(1500):
        (action,) = [a for a, n in MCTS(table, 1, seed=seed).run(observation=[5]).visits.items() if n]
        counts[action] += 1
    assert counts / 1500 == pytest.approx(shares, abs=0.05)


def test_given_gumbel_variates_are_scaled() -> None:
    table = Tabular(3, 10, 4)
    for best in range(4):
        numbers = [0.0] * 4
        numbers[best] = 50.0
        assert MCTS(table, 2, gumbel=numbers).run(observation=[5]).action == best
    plain = {MCTS(table, 8, gumbel_scale=0.0, seed=seed).run(observation=[5]).action for seed in range(20)}
    assert len(plain) == 1, "without them there is no chance"
    assert len({MCTS(table, 8, seed=seed).run(observation=[5]).action for seed in range(20)}) > 1


def test_ties_select_lowest_action() -> None:
    class Flat:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            return [0], [[0.0] * 4], [0.0]

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            return [0], [0.0], [[0.0] * 4], [0.0]

    search = MCTS(Flat(), gumbel_scale=0.0)
    tree = search.tree(observation=[0], legal_actions=[3, 1, 2], trace=True)
    search.simulate(tree, 8)
    assert [row["path"] for row in tree.trace or []] == [[1], [2], [3], [1, 0], [2, 0], [1, 1], [2, 1], [1, 2]]
    assert search.result(tree).action == 1


# --- Completed Q ------------------------------------------------------------------------------------------------------


def test_mixed_value_matches_hand_computed_value() -> None:
    """Visited moves: priors 0.5 and 0.2, visits 3 and 1, values 1 and -2; the network's value is 0.3."""
    node = node_with(0.3, [(0.5, 3, 1.0), (0.2, 1, -2.0), (0.3, 0, 0.0)])
    mixed = (0.3 + 4 * (0.5 * 1.0 + 0.2 * -2.0) / 0.7) / 5
    assert QTransform().at(node).completion == pytest.approx(mixed)
    assert QTransform(use_mixed_value=False).at(node).completion == 0.3
    assert QTransform().at(node_with(0.3, [(1.0, 0, 0.0)])).completion == 0.3, "nothing to mix yet"
    bonus = QTransform(0.1, 50).at(node)
    assert bonus == TransformedQ((50 + 3) * 0.1, -2.0, 3.0, bonus.completion)
    assert bonus.sigma(1.0) == pytest.approx(5.3)
    assert bonus.unvisited == pytest.approx(5.3 * (mixed + 2.0) / 3.0)
    assert QTransform(rescale_values=False).at(node).sigma(0.25) == pytest.approx(5.3 * 0.25)
    ruled_out = node_with(0.3, [(0.0, 2, 1.0), (1.0, 0, 0.0)])
    assert QTransform().at(ruled_out).completion == pytest.approx((0.3 + 2 * 1.0) / 3), "a prior of 0 is no NaN"


def test_completed_q_extends_range_if_actions_are_unvisited() -> None:
    """All legal moves have higher values than the network's; with an illegal action, that is the minimum."""
    moves = [(0.5, 1, 0.4), (0.5, 1, 0.6)]
    whole, masked = (QTransform().at(node_with(-1.0, moves, num_actions)) for num_actions in (2, 3))
    assert (whole.low, whole.span) == (0.4, pytest.approx(0.2))
    assert (masked.low, masked.span) == (pytest.approx(0.0), pytest.approx(0.6))


def test_improved_policy_matches_hand_computed_values() -> None:
    node = node_with(0.3, [(0.5, 3, 1.0), (0.2, 1, -2.0), (0.3, 0, 0.0)])
    completion = QTransform()
    bonus = completion.at(node)
    weights = np.array([0.5, 0.2, 0.3]) * np.exp([bonus.sigma(1.0), bonus.sigma(-2.0), bonus.unvisited])
    shares = weights / weights.sum()
    assert improved_policy(list(node.children.values()), bonus) == pytest.approx(shares)
    scores = interior_scores(node, bonus)
    assert list(scores.values()) == pytest.approx(shares - np.array([3, 1, 0]) / 5)
    node.children[0].in_flight = 2
    flying = completion.at(node)
    assert flying.weight == pytest.approx((50 + 5) * 0.1)
    assert interior_scores(node, flying)[1] == pytest.approx(
        improved_policy(list(node.children.values()), flying)[1] - 1 / 7
    )


def test_zero_prior_stays_zero_in_improved_policy() -> None:
    """Values of any size, where exp would overflow or underflow."""
    node = node_with(0.0, [(0.0, 1, 1e6), (1.0, 1, -1e6), (0.0, 0, 0.0)])
    bonus = QTransform(rescale_values=False).at(node)
    assert list(interior_scores(node, bonus).values()) == pytest.approx([-1 / 3, 1 - 1 / 3, 0.0])
    assert improved_policy(list(node.children.values()), bonus) == [0.0, 1.0, 0.0]
    ruled_out = [node.children[0], node.children[2]]
    assert improved_policy(ruled_out, TransformedQ(1.0, 0.0, 1.0, 0.0))[1] == 0.0


def test_interior_visits_follow_improved_policy() -> None:
    """Values here are constant, so the improved policy is too once all moves are visited."""
    rewards, logits = [0.3, 0.2, 0.1, 0.25], [0.0, 1.0, -1.0, 0.5]

    class Bandit:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            return [0], [logits], [0.2]

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            return [0], [rewards[int(actions[0])]], [logits], [0.2], [0.0]

    search = MCTS(Bandit(), maxvisit_init=0, value_scale=0.0)
    tree = search.tree(observation=[0], legal_actions=[0])
    search.simulate(tree, 1000)
    inner = tree.root.children[0]
    shares = np.exp(logits) / np.exp(logits).sum()
    visits = [inner.children[action].visit_count for action in range(4)]
    assert np.abs(np.array(visits) - 999 * shares).max() <= 2.0


def test_few_simulations_improve_policy() -> None:
    """With exact values the search improves on the policy, already with two simulations of two moves (the paper's
    theorem)."""
    random = np.random.default_rng(4)
    rewards, logits = random.normal(size=8), random.normal(size=8)
    shares = np.exp(logits) / np.exp(logits).sum()

    class Bandit:
        def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
            return [0], [logits], [float(shares @ rewards)]

        def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
            return [0], [rewards[int(actions[0])]], [logits], [0.0], [0.0]

    for simulations, moves in ((2, 2), (4, 4), (16, 8)):
        results = [MCTS(Bandit(), simulations, moves, seed=seed).run(observation=[0]) for seed in range(300)]
        played = np.mean([rewards[result.action] for result in results])
        improved = np.mean([sum(p * rewards[a] for a, p in result.policy.items()) for result in results])
        assert played > shares @ rewards + 0.1
        assert improved > shares @ rewards + 0.1
