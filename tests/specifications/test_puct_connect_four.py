"""PUCT mathematics: every formula, table and claim, with the preset `AlphaZero.connect_four` and the reference."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.specifications.examples import TEMPERATURE_SCHEDULE
from tests.specifications.support import CONNECT_FOUR_PRESET as PRESET
from tests.specifications.support import CONNECT_FOUR_PRIORS as PRIORS
from tests.specifications.support import Network, scores_at_root, signature_value, traced_alphazero
from tests.specifications.support import traced_connect_four as traced

from pondertree import UCT, AlphaZero, Temperature
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import uct
from pondertree.reference.alphazero import MCTS

each_implementation = pytest.mark.parametrize("kind", ["engine", "reference"])


def q_of(node: Any) -> float:
    """Q(s,a) of the move that leads to a node, for the player who chooses it."""
    return -float(node.q_value)


def position_after(path: Any) -> Any:
    state: Any = ConnectFour()
    for action in path:
        state = state.play(action)
    return state


# --- Core Algorithm -----------------------------------------------------------------------------------------------


@each_implementation
def test_tree_grows_by_one_node_per_simulation(kind: str) -> None:
    def expanded(simulations: int) -> int:
        nodes = [traced(kind, simulations).root]
        for node in nodes:
            nodes.extend(child for child in node.children.values() if child.visit_count)
        return len(nodes)

    assert [expanded(simulations) for simulations in (1, 2, 10, 40)] == [2, 3, 11, 41]


def test_statistic_n_counts_the_visits_of_an_action() -> None:
    result = AlphaZero.connect_four(Network(PRIORS, signature_value), 80, seed=1, solve=False).run(ConnectFour())
    paths = traced("engine", 80).paths()
    assert result.visits.tolist() == [sum(path[0] == column for path in paths) for column in range(7)]


def test_statistic_w_is_the_sum_of_backed_up_values() -> None:
    search = traced("engine", 80)
    for column in range(7):
        expected = sum(row["values"][0] for row in search.trace if row["path"][0] == column)
        assert -search.root.children[column].total_value == pytest.approx(expected)
    sums = MCTS(Network(PRIORS, signature_value), 80, seed=1, solve=False, **PRESET).run(ConnectFour()).values
    assert [-search.root.children[column].total_value for column in range(7)] == pytest.approx(list(sums.values()))


def test_statistic_q_is_w_over_n() -> None:
    result = AlphaZero.connect_four(Network(PRIORS, signature_value), 80, seed=1, solve=False).run(ConnectFour())
    for column, child in result.root.children.items():
        assert result.q[column] == pytest.approx(-child.total_value / child.visit_count)


def test_statistic_p_is_the_networks_probability() -> None:
    root = AlphaZero.connect_four(Network(PRIORS), 1, seed=1).run(ConnectFour()).root
    assert [root.children[column].prior for column in range(7)] == pytest.approx(PRIORS)


# --- PUCT Selection -----------------------------------------------------------------------------------------------


@each_implementation
def test_selection_maximises_q_plus_u(kind: str) -> None:
    before, after = traced(kind, 30), traced(kind, 31)
    scores = {}
    for column, child in before.root.children.items():
        u = 1.5 * child.prior * math.sqrt(30) / (1 + child.visit_count)
        scores[column] = q_of(child) + u
    assert after.paths()[30][0] == max(scores, key=scores.__getitem__)


@each_implementation
def test_exploration_term_matches_hand_computed_value(kind: str) -> None:
    """All values are 0, so that a score is U alone; after one simulation the visited move has N(s,a) = 1."""
    search = traced(kind, 2, lambda state: 0.0)
    assert search.paths()[0] == (0,)
    scores = scores_at_root(search, 1)
    assert scores[0] == pytest.approx(1.5 * 0.4 * math.sqrt(1) / (1 + 1))
    assert scores[1] == pytest.approx(1.5 * 0.2 * math.sqrt(1) / (1 + 0))


@each_implementation
def test_n_of_a_node_is_the_sum_over_its_moves_and_at_least_one(kind: str) -> None:
    search = traced(kind, 12, lambda state: 0.0)
    for simulation in range(12):
        visits = sum(path[0] == 0 for path in search.paths()[:simulation])
        expected = 1.5 * 0.4 * math.sqrt(max(simulation, 1)) / (1 + visits)
        assert scores_at_root(search, simulation)[0] == pytest.approx(expected)


def test_c_puct_is_one_and_a_half_and_more_explores_more() -> None:
    def used(**options: Any) -> int:
        search = AlphaZero.connect_four(Network(PRIORS, signature_value), 60, seed=1, solve=False, **options)
        return int(np.count_nonzero(search.run(ConnectFour()).visits > 2))

    assert AlphaZero.connect_four(Uniform()).c_puct == 1.5
    assert used(c_puct=0.1) < used() < used(c_puct=20.0)


@each_implementation
def test_ucb1_formula_by_hand(kind: str) -> None:
    """`UCT` scores with the 2 inside the root: c_param = c / sqrt(2) is the formula with c."""
    c = 0.8
    options: dict[str, Any] = {"c_param": 0.8 / math.sqrt(2), "seed": 1, "solve": False}
    before: dict[int, tuple[float, int]]
    if kind == "engine":
        tree = UCT(trace=True, **options).tree(TicTacToe())
        tree.simulate(30)
        before = {action: (q_of(child), child.visit_count) for action, child in tree.result().root.children.items()}
        tree.simulate(1)
        scores = tree.trace()[30]["scores"][0]
    else:
        search = uct.MCTS(**options)
        grown = search.tree(TicTacToe(), trace=True)
        search.simulate(grown, 30)
        moves = grown.root.children.items()
        before = {action: (child.total_value / child.visit_count, child.visit_count) for action, child in moves}
        search.simulate(grown, 1)
        scores = (grown.trace or [])[30]["scores"][0]
    assert dict(scores) == pytest.approx({a: q + c * math.sqrt(math.log(30) / n) for a, (q, n) in before.items()})


@each_implementation
def test_puct_replaces_sqrt_log_n_by_sqrt_n(kind: str) -> None:
    """Between N = 4 and N = 16 the bonus of an unvisited move doubles; with sqrt(log N) it would grow by 1.41."""
    search = traced(kind, 17, lambda state: -0.8 if state.to_play else 0.8, c_puct=0.2)
    assert all(path[0] != 6 for path in search.paths())
    grows = scores_at_root(search, 16)[6] / scores_at_root(search, 4)[6]
    assert grows == pytest.approx(math.sqrt(16 / 4))
    assert math.sqrt(math.log(16) / math.log(4)) == pytest.approx(1.414, abs=1e-3)


@each_implementation
def test_puct_weights_the_bonus_by_the_prior(kind: str) -> None:
    """Two unvisited moves differ in their prior alone, and their scores by its ratio."""
    scores = scores_at_root(traced(kind, 1), 0)
    assert scores[0] / scores[1] == pytest.approx(0.4 / 0.2)
    uniform = traced_alphazero(kind, Network([1 / 7] * 7), ConnectFour(), 1, **PRESET)
    assert len({round(score, 12) for score in scores_at_root(uniform, 0).values()}) == 1


@each_implementation
def test_puct_adds_one_to_the_denominator_so_that_unvisited_moves_have_a_score(kind: str) -> None:
    """PUCT scores moves with N(a) = 0; UCB1 cannot, and opens each of them first."""
    assert all(math.isfinite(score) for score in scores_at_root(traced(kind, 1), 0).values())
    trace: Any
    if kind == "engine":
        tree = UCT(seed=1, trace=True).tree(ConnectFour())
        tree.simulate(8)
        trace = tree.trace()
    else:
        search = uct.MCTS(8, seed=1)
        trace = search.run(ConnectFour(), trace=True).trace or []
    assert [row["scores"][0] is None for row in trace] == [True] * 7 + [False]


# --- Value Backup -------------------------------------------------------------------------------------------------


@each_implementation
def test_sign_follows_the_distance_from_the_leaf(kind: str) -> None:
    """A value v of a leaf at depth d is v * (-1)^(d - k) at depth k: by the document's own reasons, not (-1)^d."""
    before, after = traced(kind, 60), traced(kind, 61)
    path, row = after.paths()[60], after.trace[60]
    assert len(path) >= 2
    value = row["values"][position_after(path).to_play]
    for depth in range(len(path) + 1):
        got = after.node(path[:depth]).total_value - before.node(path[:depth]).total_value
        assert got == pytest.approx(value * (-1) ** (len(path) - depth))


@each_implementation
def test_leaf_value_is_for_the_player_to_move_there(kind: str) -> None:
    search = traced(kind, 40)
    for path, row in zip(search.paths(), search.trace, strict=True):
        state = position_after(path)
        assert row["values"][state.to_play] == pytest.approx(signature_value(state))


@each_implementation
def test_parent_of_the_leaf_gets_the_negated_value(kind: str) -> None:
    search = traced(kind, 1)
    child = search.root.children[search.paths()[0][0]]
    own = signature_value(ConnectFour())
    assert search.root.total_value == pytest.approx(own - child.total_value)


@each_implementation
def test_sign_alternates_up_the_tree(kind: str) -> None:
    before, after = traced(kind, 60), traced(kind, 61)
    path = after.paths()[60]
    steps = [
        after.node(path[:depth]).total_value - before.node(path[:depth]).total_value for depth in range(len(path) + 1)
    ]
    assert all(upper == pytest.approx(-lower) for upper, lower in itertools.pairwise(steps))


def updated(kind: str) -> tuple[Any, Any, float]:
    """The first edge of a simulation before and after it, and the value that came back, for who chose the edge."""
    before, after = traced(kind, 60), traced(kind, 61)
    column = after.paths()[60][0]
    return before.root.children[column], after.root.children[column], after.trace[60]["values"][0]


@each_implementation
def test_update_adds_one_to_n(kind: str) -> None:
    before, after, _ = updated(kind)
    assert after.visit_count == before.visit_count + 1


@each_implementation
def test_update_adds_v_to_w(kind: str) -> None:
    before, after, value = updated(kind)
    assert -after.total_value == pytest.approx(-before.total_value + value)


@each_implementation
def test_update_makes_q_the_quotient(kind: str) -> None:
    _, after, _ = updated(kind)
    assert q_of(after) == pytest.approx(-after.total_value / after.visit_count)


# --- Policy Extraction --------------------------------------------------------------------------------------------


def result_of(simulations: int = 80) -> Any:
    return AlphaZero.connect_four(Network(PRIORS, signature_value), simulations, seed=1, solve=False).run(ConnectFour())


@pytest.mark.parametrize("tau", [0.5, 1.7])
def test_policy_is_visits_to_the_power_of_one_over_tau_without_proofs(tau: float) -> None:
    result = result_of()
    powers = [float(n) ** (1 / tau) for n in result.visits]
    assert result.policy_at(tau) == pytest.approx([power / sum(powers) for power in powers])
    win = position_after([3, 0, 3, 0, 3, 0])
    plain, solved = (
        AlphaZero.connect_four(Network(PRIORS), 60, seed=1, solve=solve).run(win) for solve in (False, True)
    )
    assert 0.0 < plain.policy_at(tau)[3] < 1.0
    assert solved.policy_at(tau).tolist() == [float(column == 3) for column in range(7)]


def test_tau_one_is_proportional_to_visits() -> None:
    result = result_of()
    assert result.policy_at(1.0) == pytest.approx(result.visits / 80)


def test_tau_one_tenth_favours_the_most_visited() -> None:
    result = result_of()
    best = int(result.visits.argmax())
    assert result.policy_at(0.1)[best] > result.policy_at(1.0)[best]
    assert result.policy_at(0.1)[best] > 0.9


def test_tau_zero_is_argmax() -> None:
    result = result_of()
    assert result.policy_at(0).tolist() == [float(column == result.visits.argmax()) for column in range(7)]
    moves = {AlphaZero.connect_four(Network(PRIORS), 40, seed=s).search(ConnectFour(), temperature=0) for s in range(5)}
    assert len(moves) == 1


def test_temperature_schedule_is_the_documents() -> None:
    schedule = Temperature(1.0, until=10)
    for move_number in range(42):
        names: dict[str, Any] = {"move_number": move_number}
        exec(TEMPERATURE_SCHEDULE.text, names)
        assert schedule(move_number) == names["tau"]
