"""Gumbel's improved policy, its random numbers, and sequential halving."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.exact_models import TabularDecisionModel
from tests.support.models import TableModel
from tests.support.search_helpers import every_node, fingerprint

import pondertree
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour
from pondertree.random import GUMBEL, Random, fold, tree_key
from pondertree.reference import gumbel
from pondertree.reference.gumbel import considered_visits
from pondertree.reference.sequential_halving import gumbel_variate

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

ONE = np.array([1])


class Bandit:
    """Actions that are worth what they are, for ever: exact values, and the prior's own value at the root."""

    def __init__(self, logits: Any, worth: Any) -> None:
        self.logits, self.worth = np.asarray(logits, dtype=np.float64), np.asarray(worth, dtype=np.float64)

    @property
    def prior(self) -> Any:
        weights = np.exp(self.logits - self.logits.max())
        return weights / weights.sum()

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        rows = len(observations)
        value = self.prior @ self.worth
        return np.full((rows, 1), np.nan), np.tile(self.logits, (rows, 1)), np.full(rows, value)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """The value of the first action stays."""
        value = np.where(np.isnan(hidden_states[:, 0]), self.worth[actions], hidden_states[:, 0])
        return value[:, None], np.zeros(len(value)), np.zeros((len(value), len(self.logits))), value


bandits = st.integers(1, 12).flatmap(
    lambda size: st.builds(
        Bandit,
        st.lists(st.floats(-4.0, 4.0), min_size=size, max_size=size),
        st.lists(st.floats(-1.0, 1.0), min_size=size, max_size=size),
    )
)


# --- Policy improvement -------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(bandits, st.integers(2, 20), st.integers(0, 10**6), st.sampled_from([1, 4, 16]))
def test_improved_policy_has_a_higher_value(bandit: Bandit, simulations: int, seed: int, considered: int) -> None:
    """With exact values the improved policy is worth at least as much as the prior, from two simulations on.

    That is a theorem where moves never tried are completed by the value of the root (Danihelka et al. 2022, section 4).
    """
    result = pondertree.Gumbel(
        bandit,
        simulations,
        max_num_considered_actions=considered,
        use_mixed_value=False,
        discount=1.0,
        seed=seed,
    ).run(observation=[0.0])
    assert result.policy @ bandit.worth >= bandit.prior @ bandit.worth - 1e-6
    tried = result.visits > 0
    assert result.q[tried] == pytest.approx(bandit.worth[tried]), "the values were exact"


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("simulations", [2, 4, 16])
def test_action_improves_on_average(simulations: int, mixed: bool) -> None:
    """The action to play is worth more than one drawn from the prior, where it stays clear of chance."""
    gains = []
    for seed in range(4):
        numbers = np.random.default_rng(seed)
        bandit = Bandit(numbers.normal(size=8), numbers.uniform(-1.0, 1.0, 8))
        search = pondertree.Gumbel(bandit, simulations, use_mixed_value=mixed, discount=1.0, seed=seed)
        results = search.run(observation=[[0.0]] * 300)
        prior = bandit.prior @ bandit.worth
        gains.append(np.mean([bandit.worth[result.action] for result in results]) - prior)
        assert np.mean([result.policy @ bandit.worth for result in results]) > prior
    assert min(gains) > 0.05
    assert simulations < 16 or min(gains) > 0.2


def test_improved_policy_by_hand() -> None:
    """softmax(logits + sigma(completed Q)), sigma and the mixed value as mctx has them."""
    bandit = Bandit([1.0, 0.0, -0.5, 0.2], [0.1, 0.7, -0.3, 0.4])
    result = pondertree.Gumbel(bandit, 3, gumbel_scale=0.0, discount=1.0, seed=1).run(
        observation=[0.0], legal_actions=[0, 1, 3]
    )
    prior = np.exp(bandit.logits[[0, 1, 3]])
    prior /= prior.sum()
    visits, q = result.visits[[0, 1, 3]], result.q[[0, 1, 3]]
    assert visits.tolist() == [1, 1, 1]
    raw = bandit.prior @ bandit.worth
    mixed = (raw + 3 * (prior @ q) / prior.sum()) / 4
    low, high = min(*q, mixed), max(*q, mixed)  # with an action missing, the mixed value counts
    sigma = (50 + 1) * 0.1 * (q - low) / (high - low)
    expected = prior * np.exp(sigma)
    assert result.policy[[0, 1, 3]] == pytest.approx(expected / expected.sum(), abs=1e-6)
    assert result.policy[2] == 0.0
    assert result.action == [0, 1, 3][np.argmax(np.log(prior) + sigma)]
    assert result.policy_at(1.0) == pytest.approx(result.policy)
    assert result.policy_at(0.5) == pytest.approx(result.policy**2 / (result.policy**2).sum())
    assert result.policy_at(0.0).argmax() == result.action


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=100)
@given(
    st.integers(1, 40),
    st.sampled_from([0.0, 1.0, 1e12]),
    st.sampled_from([0.0, 0.1, 1e6]),
    st.sampled_from([0.0, 50.0, 1e9]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 1.0, 1e9]),
    st.integers(0, 1000),
)
def test_improved_policy_sums_to_one(
    simulations: int, size: float, scale: float, init: float, rescale: bool, mixed: bool, noise: float, seed: int
) -> None:
    """Never NaN, at any size of values, logits and weights."""
    numbers = np.random.default_rng(seed)
    logits = np.where(numbers.random(6) < 0.5, numbers.normal(size=6), numbers.choice([-1e9, -1e30, 80.0], 6))
    search = pondertree.Gumbel(
        Bandit(logits, size * numbers.uniform(-1.0, 1.0, 6)),
        simulations,
        value_scale=scale,
        maxvisit_init=init,
        rescale_values=rescale,
        use_mixed_value=mixed,
        gumbel_scale=noise,
        seed=seed,
    )
    result = search.run(observation=[0.0])
    for policy in (result.policy, result.policy_at(0.01), result.policy_at(1e9), result.policy_at(0.0)):
        assert np.isfinite(policy).all()
        assert (policy >= 0.0).all()
        assert policy.sum() == pytest.approx(1.0)
    assert result.visits.sum() == simulations
    assert 0 <= search.tree(observation=[0.0]).result(temperature=1.0).action < 6, "before any simulation, too"


def test_gumbel_temperature_applies_to_the_improved_policy() -> None:
    search = pondertree.Gumbel(Bandit([0.0] * 3, [0.0, 0.1, 0.05]), 6, value_scale=0.02, seed=1)
    sampled = search.run(observation=[[0.0]] * 900, temperature=1.0)
    expected = np.mean([result.policy for result in sampled], axis=0)
    drawn = np.bincount([result.action for result in sampled], minlength=3) / 900
    assert np.abs(drawn - expected).max() < 0.06
    assert all(
        result.visits[result.action] == result.visits.max() for result in search.run(observation=[[0.0]] * 50)
    ), "greedy unless told otherwise"
    assert search.search(observation=[0.0], temperature=0.0) in range(3)


# --- Gumbel numbers -----------------------------------------------------------------------------------------------


def test_gumbel_numbers_are_given_or_drawn() -> None:
    model = TableModel(9)
    for seed in range(5):
        legal = [8, 1, 4, 5, 2]
        drawn = pondertree.Gumbel(model, 20, seed=seed).run(observation=ONE, legal_actions=legal)
        random = Random(fold(tree_key(seed, 0, 0), 0), GUMBEL)
        numbers = np.zeros(9)
        for action in sorted(legal):
            numbers[action] = gumbel_variate(random)
        given_ones = pondertree.Gumbel(model, 20, gumbel=numbers, seed=99).run(observation=ONE, legal_actions=legal)
        assert fingerprint(given_ones) == fingerprint(drawn), "those drawn from the lowest action on"
    one = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[4] * 100.0).run(observation=ONE)
    assert one.visits.argmax() == 4
    rows = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[[7, 2]] * 100.0).run(observation=[[1], [1]])
    assert [result.visits.argmax() for result in rows] == [7, 2]
    tree = pondertree.Gumbel(model, 1, gumbel=np.eye(9)[4] * 100.0).tree(observation=ONE)
    tree.simulate()
    tree.advance(4)
    assert tree.simulate().result().action == 4, "given ones hold for every plan"
    half = pondertree.Gumbel(model, 20, gumbel=numbers, gumbel_scale=0.5).run(observation=ONE, legal_actions=legal)
    same = pondertree.Gumbel(model, 20, gumbel=numbers / 2).run(observation=ONE, legal_actions=legal)
    assert fingerprint(half) == fingerprint(same)


def test_gumbel_scale_zero_is_deterministic() -> None:
    model, state = TableModel(9, levels=3), ConnectFour()
    for options, noise in (({"gumbel_scale": 0.0}, None), ({}, False)):
        for about, by in (({"observation": ONE}, model), ({"state": state}, Uniform())):
            prints = {
                fingerprint(pondertree.Gumbel(by, 24, seed=seed, **options).run(**about, add_noise=noise))
                for seed in range(6)
            }
            assert len(prints) == 1
    drawn = {pondertree.Gumbel(Uniform(), 24, seed=seed).run(state, add_noise=True).action for seed in range(12)}
    assert len(drawn) > 1
    search = pondertree.Gumbel(Uniform(), 8, seed=1)
    assert len({search.search(state, add_noise=False) for _ in range(5)}) == 1
    assert len({search.search(state) for _ in range(12)}) > 1


# --- Sequential halving -------------------------------------------------------------------------------------------


def planned(moves: int, simulations: int) -> list[int]:
    """How often moves are tried by the table, the most tried first."""
    counts = [0] * moves
    for visits in considered_visits(moves, simulations):
        counts[counts.index(visits)] += 1
    return sorted(counts, reverse=True)


@pytest.mark.parametrize("simulations", [1, 2, 7, 16, 50, 200])
@pytest.mark.parametrize("considered", [1, 2, 5, 16])
@pytest.mark.parametrize("in_flight", [1, 3, 8])
def test_visits_follow_the_sequential_halving_table(simulations: int, considered: int, in_flight: int) -> None:
    search = pondertree.Gumbel(
        TabularDecisionModel(2, states=9, actions=20), simulations, considered, in_flight=in_flight, seed=simulations
    )
    result = search.run(observation=[0])
    tried = sorted(result.visits[result.visits > 0].tolist(), reverse=True)
    assert tried == [count for count in planned(considered, simulations) if count]
    assert all(node.in_flight == 0 for node in every_node(result.root))
    assert result.visits[result.action] == result.visits.max()


def test_each_simulate_call_schedules_anew() -> None:
    tree = pondertree.Gumbel(TabularDecisionModel(2, states=9, actions=20), max_num_considered_actions=4, seed=1).tree(
        observation=[0]
    )
    before = np.zeros(20, dtype=np.int64)
    for count in (16, 2, 16, 1):
        visits = tree.simulate(count).result().visits
        since = visits - before
        assert sorted(since[since > 0].tolist(), reverse=True) == [n for n in planned(4, count) if n]
        assert since[tree.result().action] == since.max(), "the answer is of the last plan"
        before = visits.copy()
    tree.advance(tree.result().action)
    retained = tree.result().visits
    since = tree.simulate(16).result().visits - retained
    assert sorted(since[since > 0].tolist(), reverse=True) == planned(4, 16)


def test_time_limit_cuts_the_schedule_short() -> None:
    """The answer is the best by score of those visited most, as in a plan of that length that was cut there."""
    model = TableModel(12, seed=4)

    def slow(hidden: Any, actions: Any) -> Any:
        time.sleep(0.003)
        return model.recurrent_inference(hidden, actions)

    slowly = pondertree.models.FunctionModel(model.initial_inference, slow)
    result = pondertree.Gumbel(slowly, 500, time_limit=0.12, seed=1).run(observation=ONE)
    assert 1 <= result.simulations < 60
    reference = gumbel.MCTS(model, seed=1)
    tree = reference.tree(observation=ONE)
    reference.simulate(tree, 500, cut=result.simulations)
    theirs = reference.result(tree)
    assert dict(enumerate(result.visits.tolist())) == theirs.visits
    assert result.action == theirs.action
    assert result.visits[result.action] == result.visits.max()
    assert {action: result.policy[action] for action in theirs.policy} == pytest.approx(theirs.policy)
    whole = pondertree.Gumbel(model, 500, seed=1).run(observation=ONE)
    assert whole.simulations == 500
    assert pondertree.Gumbel(slowly, 500, time_limit=1e-6).run(observation=ONE).simulations == 1
    forest = pondertree.Gumbel(slowly, 40, seed=1).tree(observation=ONE)
    assert forest.simulate(seconds=60.0).result().simulations == 40, "time alone does not lift the number"
