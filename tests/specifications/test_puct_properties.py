"""PUCT mathematics: Dirichlet noise, complexity, convergence and virtual loss."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.specifications.support import CONNECT_FOUR_PRESET as PRESET
from tests.specifications.support import CONNECT_FOUR_PRIORS as PRIORS
from tests.specifications.support import Network, scores_at_root, signature_value, traced_alphazero, walk
from tests.specifications.support import traced_connect_four as traced
from tests.support.search_helpers import random_position

from pondertree import AlphaZero
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour, TicTacToe
from pondertree.random import NOISE, Random
from pondertree.reference.alphazero import MCTS, dirichlet

each_implementation = pytest.mark.parametrize("kind", ["engine", "reference"])


# --- Dirichlet Noise ----------------------------------------------------------------------------------------------


def test_noise_makes_a_confident_network_explore() -> None:
    network = Network([0.99988] + [0.00002] * 6)
    plain, noisy = (
        AlphaZero.connect_four(network, 60, seed=1).run(ConnectFour(), add_noise=noise).visits
        for noise in (False, True)
    )
    assert np.count_nonzero(plain) == 1
    assert np.count_nonzero(noisy) > 2


@each_implementation
def test_noised_priors_match_hand_computed_value(kind: str) -> None:
    """With epsilon 1 the priors are the noise itself; with the default they are 3/4 prior and 1/4 of that noise."""

    def priors(epsilon: float) -> list[float]:
        children: Any
        if kind == "engine":
            search = AlphaZero.connect_four(Network(PRIORS), 1, seed=3, dirichlet_epsilon=epsilon)
            children = search.run(ConnectFour(), add_noise=True).root.children
        else:
            reference = MCTS(Network(PRIORS), 1, dirichlet_epsilon=epsilon, seed=3)
            children = reference.run(ConnectFour(), add_noise=True).root.children
        return [children[column].prior for column in range(7)]

    noise = priors(1.0)
    assert sum(noise) == pytest.approx(1.0)
    assert priors(0.25) == pytest.approx([0.75 * p + 0.25 * n for p, n in zip(PRIORS, noise, strict=True)])


def samples(alpha: float, count: int = 7, number: int = 2000) -> Any:
    random = Random(7, NOISE)
    return np.array([dirichlet(alpha, count, random) for _ in range(number)])


def engine_noise(alpha: float, number: int = 300) -> Any:
    """The noise of the engine: the root's priors with epsilon 1."""
    search = AlphaZero.connect_four(Uniform(), 1, seed=5, dirichlet_alpha=alpha, dirichlet_epsilon=1.0)
    roots = [result.root for result in search.run([ConnectFour()] * number, add_noise=True)]
    return np.array([[root.children[column].prior for column in range(7)] for root in roots])


def test_noise_is_a_sample_of_the_dirichlet_distribution() -> None:
    """Mean 1/7, variance (1/7)(6/7) / (7 * 0.3 + 1), covariance of two columns -(1/49) / (7 * 0.3 + 1)."""
    for drawn, tolerance in ((samples(0.3), 0.1), (engine_noise(0.3), 0.25)):
        covariance = np.cov(drawn.T)
        assert drawn.mean(axis=0) == pytest.approx(np.full(7, 1 / 7), abs=0.05)
        assert np.diag(covariance).mean() == pytest.approx((1 / 7) * (6 / 7) / 3.1, rel=tolerance)
        assert covariance[~np.eye(7, dtype=bool)].mean() == pytest.approx(-(1 / 49) / 3.1, rel=tolerance)


@pytest.mark.parametrize(("parameter", "value"), [("dirichlet_epsilon", 0.25), ("dirichlet_alpha", 0.3)])
def test_connect_four_preset_has_the_noise_parameter(parameter: str, value: float) -> None:
    assert getattr(AlphaZero.connect_four(Uniform()), parameter) == value


def test_dirichlet_samples_are_probability_vectors() -> None:
    for drawn in (samples(0.3, number=300), engine_noise(0.3)):
        assert drawn.min() >= 0.0
        assert drawn.sum(axis=1) == pytest.approx(np.ones(300), abs=1e-6)
        assert len({tuple(row) for row in drawn}) == 300


def test_alpha_above_one_clusters_near_uniform() -> None:
    for drawn in (samples(50.0), engine_noise(50.0)):
        assert np.abs(drawn - 1 / 7).mean() < 0.02
        assert drawn.max() < 0.4


def test_alpha_one_is_uniform_over_the_simplex() -> None:
    """Then one coordinate of seven is above t with probability (1 - t)^6."""
    for drawn, tolerance in ((samples(1.0), 0.02), (engine_noise(1.0), 0.04)):
        for t in (0.05, 0.1, 0.2, 0.4):
            assert (drawn > t).mean() == pytest.approx((1 - t) ** 6, abs=tolerance)


def test_alpha_below_one_clusters_near_corners() -> None:
    for drawn in (samples(0.05), engine_noise(0.05)):
        assert np.median(drawn.max(axis=1)) > 0.85
        assert (drawn < 0.01).mean() > 0.6


def test_alpha_of_the_document_emphasises_one_or_two_actions() -> None:
    for drawn in (samples(0.3), engine_noise(0.3)):
        top_two = np.sort(drawn, axis=1)[:, -2:].sum(axis=1)
        assert np.median(top_two) > 0.75
        assert (top_two > 0.5).mean() > 0.95


# --- Simulation Complexity ----------------------------------------------------------------------------------------


@each_implementation
def test_simulation_selects_expands_and_backs_up_along_one_path(kind: str) -> None:
    """The nodes that a simulation changes are those of its path: depth + 1, of which the last one is new."""
    for simulations in (5, 50, 200):
        before, after = traced(kind, simulations), traced(kind, simulations + 1)
        path = after.paths()[simulations]
        changed = [path[:depth] for depth in range(len(path) + 1)]
        for each in changed[:-1]:
            assert after.node(each).visit_count == before.node(each).visit_count + 1
        total = sum(node.visit_count for node in walk(after.root)) - sum(node.visit_count for node in walk(before.root))
        assert total == len(path) + 1


@each_implementation
def test_simulation_costs_one_evaluation_and_one_choice_per_level(kind: str) -> None:
    network = Network(PRIORS, signature_value)
    search = traced_alphazero(kind, network, ConnectFour(), 200, **PRESET)
    assert all(len(row["scores"]) == len(row["path"]) for row in search.trace)
    assert len(network.evaluated) == 201
    assert max(map(len, search.paths())) < 20


def test_batched_inference_divides_the_calls_of_the_network() -> None:
    network = Network(PRIORS, signature_value)
    AlphaZero.connect_four(network, 128, in_flight=16, seed=1).run(ConnectFour())
    assert sum(network.batches) == 129
    assert len(network.batches) < 129 / 4


def test_search_costs_the_number_of_simulations() -> None:
    def evaluations(simulations: int) -> int:
        network = Network(PRIORS, signature_value)
        AlphaZero.connect_four(network, simulations, seed=1).run(ConnectFour())
        return len(network.evaluated)

    assert [evaluations(simulations) for simulations in (50, 100, 200)] == [51, 101, 201]


# --- Convergence Properties ---------------------------------------------------------------------------------------


def minimax(state: Any) -> float:
    """The exact value for the player to move."""
    if state.is_terminal:
        return float(state.returns()[state.to_play])
    return max(-minimax(state.play(action)) for action in state.legal_actions())


POSITIONS = [random_position(TicTacToe, 2 + seed % 3, seed) for seed in range(8)]
BUDGETS = (100, 1000, 10_000)


def converged(kind: str, state: Any, simulations: int) -> tuple[float, float]:
    """(how far the best move's Q is from the minimax value, the share of visits of optimal moves), without proofs."""
    options: dict[str, Any] = {"seed": 1, "solve": False, **PRESET}
    exact = minimax(state)
    optimal = [action for action in state.legal_actions() if -minimax(state.play(action)) == exact]
    if kind == "engine":
        result: Any = AlphaZero(Uniform(), simulations, **options).run(state)
    else:
        result = MCTS(Network([1 / 9] * 9), simulations, **options).run(state)
    return abs(result.q[result.action] - exact), sum(result.visits[a] for a in optimal) / simulations


@each_implementation
def test_q_values_converge_to_minimax_values(kind: str) -> None:
    budgets = BUDGETS if kind == "engine" else BUDGETS[:2]
    errors = [np.mean([converged(kind, state, budget)[0] for state in POSITIONS]) for budget in budgets]
    assert all(later < earlier for earlier, later in itertools.pairwise(errors)), errors
    if kind == "engine":
        assert max(converged(kind, state, BUDGETS[-1])[0] for state in POSITIONS) < 0.1


@each_implementation
def test_visits_concentrate_on_optimal_actions(kind: str) -> None:
    budgets = BUDGETS if kind == "engine" else BUDGETS[:2]
    shares = [np.mean([converged(kind, state, budget)[1] for state in POSITIONS]) for budget in budgets]
    assert all(later > earlier for earlier, later in itertools.pairwise(shares)), shares
    if kind == "engine":
        assert min(converged(kind, state, BUDGETS[-1])[1] for state in POSITIONS) > 0.95


def test_priors_initialise_the_search() -> None:
    """One simulation plays the move that the network likes best."""
    for best in range(7):
        network = Network([0.4 if column == best else 0.1 for column in range(7)])
        assert AlphaZero.connect_four(network, 1, seed=1).run(ConnectFour()).action == best


def test_search_corrects_a_network_that_is_wrong() -> None:
    """The network likes every move better than the winning one; a few hundred simulations find it all the same."""
    state = ConnectFour()
    for move in ("4", "1", "4", "1", "4", "1"):
        state = state.play(state.parse_action(move))
    network = Network([0.1663, 0.1663, 0.1663, 0.0022, 0.1663, 0.1663, 0.1663])
    result = AlphaZero.connect_four(network, 800, seed=1, solve=False).run(state)
    assert result.root.children[3].prior < 0.01
    assert result.action == 3


def test_more_simulations_play_stronger_and_cost_more() -> None:
    shares, calls = [], []
    for simulations in (30, 300, 3000):
        network = Network([1 / 9] * 9)
        shares.append(np.mean([converged("engine", state, simulations)[1] for state in POSITIONS]))
        AlphaZero(network, min(simulations, 300), seed=1, solve=False, **PRESET).run(TicTacToe())
        calls.append(len(network.evaluated))
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]
    assert calls[0] < calls[1]


# --- Virtual Loss -------------------------------------------------------------------------------------------------


@each_implementation
def test_virtual_loss_reduces_q_and_leaves_nothing_behind(kind: str) -> None:
    search = traced(kind, 64, in_flight=8)
    for node in walk(search.root):
        if node.children:
            assert node.visit_count == 1 + sum(child.visit_count for child in node.children.values())
    values = {row["values"][0] for row in search.trace}
    assert max(map(abs, values)) <= 0.9, "no loss was backed up"


@each_implementation
def test_virtual_loss_formula(kind: str) -> None:
    """The second descent of a batch meets one leaf in flight: Q = (0 - 1) / (0 + 1), and both N count it."""
    search = traced(kind, 2, lambda state: 0.0, in_flight=2, c_puct=1.5, parent_visits="node")
    assert search.paths()[0] == (0,)
    scores = scores_at_root(search, 1)
    assert scores[0] == pytest.approx((0.0 - 1) / (0 + 1) + 1.5 * 0.4 * math.sqrt(2) / (1 + 1))
    assert scores[1] == pytest.approx(1.5 * 0.2 * math.sqrt(2))


@each_implementation
def test_virtual_loss_spreads_a_batch_over_different_leaves(kind: str) -> None:
    paths = traced(kind, 48, in_flight=8, value=lambda state: 0.5 if state.to_play else -0.5).paths()
    assert len(set(paths)) == 48, "no leaf is evaluated twice"
    assert len({path[0] for path in paths[:8]}) > 2
