"""AlphaZero chess: nodes, PUCT, search algorithm, move selection and Dirichlet noise, in engine and reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.specifications.support import (
    Network,
    Traced,
    scores_at_root,
    signature_value,
    traced_alphazero,
)
from tests.support.search_helpers import PythonGame, every_node

from pondertree import AlphaZero
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.random import NOISE, Random, fold, tree_key
from pondertree.reference.alphazero import MCTS, Node
from pondertree.reference.noise import noised

PRIORS = [0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04]
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"

each_implementation = pytest.mark.parametrize("kind", ["engine", "reference"])


def connect_four(kind: str, simulations: int, value: float = 0.5, **options: Any) -> Traced:
    """A search of Connect 4 in which every position is worth `value` to its player to move."""
    return traced_alphazero(kind, Network(PRIORS, lambda state: value), ConnectFour(), simulations, **options)


def tic_tac_toe(kind: str, simulations: int = 300) -> tuple[Traced, Network]:
    network = Network([0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], signature_value)
    return traced_alphazero(kind, network, TicTacToe(), simulations), network


def state_after(path: tuple[int, ...], state: Any) -> Any:
    for action in path:
        state = state.play(action)
    return state


# --- Overview, Design Decisions, Node Class -----------------------------------------------------------------------


@each_implementation
def test_overview_priors_and_values_come_from_the_network(kind: str) -> None:
    traced = connect_four(kind, 3, value=0.25)
    assert [traced.root.children[column].prior for column in range(7)] == pytest.approx(PRIORS)
    assert {max(row["values"]) for row in traced.trace} == {0.25}


@each_implementation
def test_tree_consists_of_nodes_with_children_dictionaries(kind: str) -> None:
    root = connect_four(kind, 20).root
    assert isinstance(root.children, Mapping)
    assert all(type(child) is type(root) for child in root.children.values())


@each_implementation
def test_transpositions_are_separate_nodes(kind: str) -> None:
    """Positions of tic-tac-toe that are reached in two orders of moves have two nodes with their own statistics."""
    traced, _ = tic_tac_toe(kind, 600)
    first: dict[str, tuple[int, ...]] = {}
    pairs = []
    for path in traced.paths():
        position = repr(state_after(path, TicTacToe()))
        if first.setdefault(position, path) != path:
            pairs.append((traced.node(first[position]), traced.node(path)))
    assert len(pairs) > 20
    assert all(one is not other for one, other in pairs)
    assert any(one.visit_count != other.visit_count for one, other in pairs)


def test_default_search_evaluates_one_leaf_at_a_time_on_one_thread() -> None:
    network = Network(PRIORS)
    search = AlphaZero(network, 20)
    assert (search.threads, search.in_flight) == (1, 1)
    search.run(ConnectFour())
    assert set(network.batches) == {1}


class RecordedGame(PythonGame):
    """Connect 4 in Python that records the positions that are reached by playing."""

    reached: set[Any] = set()  # noqa: RUF012

    def play(self, action: int) -> RecordedGame:
        after = RecordedGame(self.inside.play(action))
        self.reached.add(after.inside)
        return after


@each_implementation
def test_leaf_evaluation_plays_no_rollouts(kind: str) -> None:
    """Every position that is reached by playing is that of a node; a rollout would go on beyond the leaf."""
    RecordedGame.reached.clear()
    traced = traced_alphazero(kind, Network(PRIORS), RecordedGame(ConnectFour()), 50)
    assert RecordedGame.reached == {state_after(path, ConnectFour()) for path in traced.paths()}


def test_node_is_made_from_its_prior() -> None:
    assert Node(0.25).prior == Node(prior=0.25).prior == 0.25


@pytest.mark.parametrize(
    ("field", "value"), [("prior", 0.25), ("visit_count", 0), ("total_value", 0.0), ("children", {})]
)
def test_node_field_has_its_initial_value(field: str, value: Any) -> None:
    assert getattr(Node(prior=0.25), field) == value
    view = AlphaZero(Network(PRIORS), 1, seed=1).run(ConnectFour()).root.children[6]
    assert getattr(view, field) == (pytest.approx(0.04) if field == "prior" else value)


def test_children_are_keyed_by_action_which_a_game_converts_to_a_move() -> None:
    chess = pytest.importorskip("chess")
    from pondertree.chess import ChessGame

    game = ChessGame()
    root = AlphaZero(Uniform(), 30, seed=1).run(game).root
    assert {game.get_move(action) for action in root.children} == set(chess.Board().legal_moves)
    assert all(game.get_move_index(game.get_move(action)) == action for action in root.children)


def test_q_value_is_the_mean_or_zero() -> None:
    node = Node(prior=0.5)
    assert node.q_value == 0.0
    node.visit_count, node.total_value = 4, -1.0
    assert node.q_value == -0.25
    for view in every_node(AlphaZero(Network(PRIORS, signature_value), 60, seed=1).run(ConnectFour()).root):
        assert view.q_value == pytest.approx(view.total_value / view.visit_count if view.visit_count else 0.0)


# --- PUCT Formula -------------------------------------------------------------------------------------------------


@each_implementation
def test_puct_formula_by_hand(kind: str) -> None:
    """Every position is worth 0.5 to its mover: a move tried once has Q = -0.5 for the player who chooses it."""
    traced = connect_four(kind, 2, c_puct=2.0)
    assert scores_at_root(traced, 0) == pytest.approx({a: 2.0 * p for a, p in enumerate(PRIORS)})
    second = scores_at_root(traced, 1)
    assert second.pop(0) == pytest.approx(-0.5 + 2.0 * 0.4 * math.sqrt(2) / (1 + 1))
    assert second == pytest.approx({a: 2.0 * PRIORS[a] * math.sqrt(2) / (1 + 0) for a in range(1, 7)})


@each_implementation
def test_puct_uses_the_negated_mean_value_of_the_child(kind: str) -> None:
    traced = connect_four(kind, 30)
    child = connect_four(kind, 29).root.children[0]
    exploration = child.prior * math.sqrt(30) / (1 + child.visit_count)
    assert scores_at_root(traced, 29)[0] == pytest.approx(-child.q_value + exploration)


@each_implementation
def test_puct_is_proportional_to_the_prior(kind: str) -> None:
    scores = scores_at_root(connect_four(kind, 1), 0)
    assert [scores[column] / scores[0] for column in range(7)] == pytest.approx([p / 0.4 for p in PRIORS])


@each_implementation
def test_puct_counts_the_visits_of_the_parent(kind: str) -> None:
    """The score of an unvisited move grows with the square root of the parent's visits: 1 for its own evaluation."""
    traced = connect_four(kind, 6, value=0.0, c_puct=0.1)
    for simulation in range(6):
        if all(path[0] != 6 for path in traced.paths()[:simulation]):
            assert scores_at_root(traced, simulation)[6] == pytest.approx(0.1 * 0.04 * math.sqrt(simulation + 1))


@each_implementation
def test_puct_counts_the_visits_of_the_child(kind: str) -> None:
    traced = connect_four(kind, 40, value=0.0)
    visits = [sum(path[0] == column for path in traced.paths()[:39]) for column in range(7)]
    expected = {column: PRIORS[column] * math.sqrt(40) / (1 + visits[column]) for column in range(7)}
    assert scores_at_root(traced, 39) == pytest.approx(expected)


@each_implementation
def test_c_puct_is_one_by_default(kind: str) -> None:
    assert scores_at_root(connect_four(kind, 1), 0) == pytest.approx(dict(enumerate(PRIORS)))


@each_implementation
def test_q_values_are_stored_from_each_nodes_perspective(kind: str) -> None:
    """White mates in one: good for White at the root, lost for Black in the child behind the mating move."""
    state = Chess(MATE_IN_ONE)
    traced = traced_alphazero(kind, Uniform() if kind == "engine" else Network([1.0] * 4672), state, 60)
    mate = state.parse_action("a1a8")
    assert traced.root.children[mate].q_value == -1.0
    assert traced.root.q_value > 0.5


# --- Search Algorithm ---------------------------------------------------------------------------------------------


@each_implementation
def test_child_visits_sum_to_num_simulations(kind: str) -> None:
    for simulations in (1, 2, 50):
        root = connect_four(kind, simulations).root
        assert sum(child.visit_count for child in root.children.values()) == simulations
        assert root.visit_count == simulations + 1


@each_implementation
def test_selection_starts_at_the_root(kind: str) -> None:
    traced, _ = tic_tac_toe(kind)
    for simulation, path in enumerate(traced.paths()):
        assert path[0] in scores_at_root(traced, simulation)
        assert set(scores_at_root(traced, simulation)) == set(range(9))


@each_implementation
def test_selection_descends_to_the_highest_score(kind: str) -> None:
    traced, _ = tic_tac_toe(kind)
    assert max(map(len, traced.paths())) > 3
    for row in traced.trace:
        for action, scores in zip(row["path"], row["scores"], strict=True):
            assert dict(scores)[action] == max(score for _, score in scores)


@each_implementation
def test_selection_stops_at_a_node_without_children(kind: str) -> None:
    traced, _ = tic_tac_toe(kind)
    expanded: set[tuple[int, ...]] = {()}
    for path in traced.paths():
        assert path not in expanded
        assert all(path[:depth] in expanded for depth in range(len(path)))
        if not state_after(path, TicTacToe()).is_terminal:
            expanded.add(path)


@each_implementation
def test_terminal_leaves_are_not_expanded_or_evaluated(kind: str) -> None:
    traced, network = tic_tac_toe(kind)
    ends = {path for path in traced.paths() if state_after(path, TicTacToe()).is_terminal}
    assert len(ends) > 5
    assert all(not traced.node(path).children for path in ends)
    assert not any(state.is_terminal for state in network.evaluated)


@each_implementation
def test_each_leaf_is_evaluated_once(kind: str) -> None:
    traced, network = tic_tac_toe(kind)
    leaves = [state_after(path, TicTacToe()) for path in traced.paths()]
    assert network.evaluated == [TicTacToe(), *(leaf for leaf in leaves if not leaf.is_terminal)]


@each_implementation
def test_expansion_creates_a_child_for_each_legal_move(kind: str) -> None:
    traced, _ = tic_tac_toe(kind)
    for path in traced.paths():
        state = state_after(path, TicTacToe())
        if not state.is_terminal:
            assert set(traced.node(path).children) == set(state.legal_actions())


@each_implementation
def test_priors_are_masked_and_normalised(kind: str) -> None:
    """Square 0 is taken, so its 0.2 is shared out: 0.1 / 0.8 for each of the eight others."""
    network = Network([0.2] + [0.1] * 8)
    root = traced_alphazero(kind, network, TicTacToe().play(0), 1).root
    assert {action: child.prior for action, child in root.children.items()} == pytest.approx(
        dict.fromkeys(range(1, 9), 0.125)
    )


@each_implementation
def test_terminal_value_is_the_result_of_the_game(kind: str) -> None:
    traced, _ = tic_tac_toe(kind, 1200)
    results = set()
    for path, row in zip(traced.paths(), traced.trace, strict=True):
        state = state_after(path, TicTacToe())
        if state.is_terminal:
            assert list(row["values"]) == list(state.returns())
            results.add(row["values"][0])
    assert results == {1.0, -1.0, 0.0}


@each_implementation
def test_non_terminal_value_is_the_networks(kind: str) -> None:
    traced, _ = tic_tac_toe(kind, 100)
    for path, row in zip(traced.paths(), traced.trace, strict=True):
        state = state_after(path, TicTacToe())
        if not state.is_terminal:
            assert row["values"][state.to_play] == pytest.approx(signature_value(state))


@each_implementation
def test_backup_reaches_every_node_of_the_path(kind: str) -> None:
    """N of a node is the number of simulations whose path leads through it."""
    traced, _ = tic_tac_toe(kind)
    paths = traced.paths()
    for prefix in {path[:depth] for path in paths for depth in range(1, len(path) + 1)}:
        assert traced.node(prefix).visit_count == sum(path[: len(prefix)] == prefix for path in paths)


@each_implementation
def test_backup_adds_one_visit_and_the_value(kind: str) -> None:
    before, after = (connect_four(kind, simulations, value=0.3) for simulations in (9, 10))
    *way, _ = [after.paths()[9][:depth] for depth in range(len(after.paths()[9]) + 1)]
    for prefix in way:
        old, new = before.node(prefix), after.node(prefix)
        assert new.visit_count == old.visit_count + 1
        assert abs(new.total_value - old.total_value) == pytest.approx(0.3)


@each_implementation
def test_backup_flips_the_sign_at_each_level(kind: str) -> None:
    traced, _ = tic_tac_toe(kind)
    totals: dict[tuple[int, ...], float] = {}
    for path, row in zip(traced.paths(), traced.trace, strict=True):
        value = row["values"][state_after(path, TicTacToe()).to_play]
        for depth in range(len(path), 0, -1):
            totals[path[:depth]] = totals.get(path[:depth], 0.0) + value
            value = -value
    assert {path: traced.node(path).total_value for path in totals} == pytest.approx(totals, abs=1e-9)


# --- Move Selection -----------------------------------------------------------------------------------------------


def search_of(kind: str, **options: Any) -> Any:
    make = AlphaZero if kind == "engine" else MCTS
    return make(Network(PRIORS, signature_value), 80, seed=1, solve=False, **options)


@each_implementation
def test_move_is_selected_by_visits_and_not_by_value(kind: str) -> None:
    """Column 0 has nearly all of the prior and is visited most, although every other move is worth more."""
    network = Network([0.7] + [0.05] * 6, lambda state: 0.0 if state.legal_actions()[0] == 0 else 0.1)
    state = ConnectFour()
    for action in (0, 0, 0, 0, 0):
        state = state.play(action)
    make = AlphaZero if kind == "engine" else MCTS
    result = make(network, 80, c_puct=10.0, seed=1, solve=False).run(state)
    visits, q = (dict(enumerate(each)) if kind == "engine" else each for each in (result.visits, result.q))
    assert result.action == 0 == max(visits, key=visits.__getitem__)
    assert min(q[column] for column in range(1, 7)) > q[0]


@each_implementation
def test_temperature_zero_plays_the_most_visited_move(kind: str) -> None:
    search = search_of(kind)
    result = search.run(ConnectFour(), temperature=0.0)
    visits = [result.root.children[column].visit_count for column in range(7)]
    assert result.action == int(np.argmax(visits))
    assert search.search(ConnectFour(), temperature=0) == int(np.argmax(visits))


@pytest.mark.parametrize("temperature", [0.25, 0.5, 1.0, 2.0])
def test_probabilities_are_visits_to_the_power_of_the_inverse_temperature(temperature: float) -> None:
    from pondertree.reference.alphazero import policy_at

    result = search_of("engine").run(ConnectFour())
    counts = result.visits ** (1 / temperature)
    assert result.policy_at(temperature) == pytest.approx(counts / counts.sum())
    root = search_of("reference").run(ConnectFour()).root
    assert policy_at(root, temperature, 0) == pytest.approx(dict(enumerate(counts / counts.sum())))


# --- Dirichlet Noise ----------------------------------------------------------------------------------------------


def root_priors(noise: bool, seed: int = 1) -> dict[int, Any]:
    search = AlphaZero(Network([1.0] * 4672), 1, seed=seed)
    return dict(search.run(Chess(), add_noise=noise).root.children)


def test_noise_is_optional_and_changes_the_root_priors() -> None:
    assert all(child.prior == child.clean_prior == pytest.approx(1 / 20) for child in root_priors(False).values())
    assert all(child.prior != child.clean_prior for child in root_priors(True).values())


def test_noise_has_the_moments_of_a_dirichlet_over_the_legal_moves() -> None:
    """Twenty legal moves with alpha 0.3: mean 1/20, variance (1/20)(19/20) / (20 * 0.3 + 1)."""
    drawn = []
    for seed in range(300):
        children = root_priors(True, seed).values()
        drawn.append([(child.prior - 0.75 * child.clean_prior) / 0.25 for child in children])
    noise = np.array(drawn)
    assert noise.shape == (300, 20)
    assert noise.min() >= -1e-6
    assert noise.sum(axis=1) == pytest.approx(np.ones(300), abs=1e-5)
    assert noise.mean() == pytest.approx(1 / 20, abs=1e-6)
    assert noise.var() == pytest.approx((1 / 20) * (19 / 20) / 7, rel=0.15)


def test_noise_is_mixed_into_the_priors_by_epsilon() -> None:
    search = MCTS(Network(PRIORS), 1, seed=5)
    tree = search.tree(ConnectFour())
    search.simulate(tree, 1, add_noise=True)
    pure = noised(dict(enumerate(PRIORS)), 0.3, 1.0, Random(fold(tree_key(5, 0, 0), 0), NOISE))
    expected = {column: (1 - 0.25) * prior + 0.25 * pure[column] for column, prior in enumerate(PRIORS)}
    assert {column: child.prior for column, child in tree.root.children.items()} == pytest.approx(expected)
    engine = AlphaZero(Network(PRIORS), 1, seed=5).run(ConnectFour(), add_noise=True).root
    assert {column: child.prior for column, child in engine.children.items()} == pytest.approx(expected)


@pytest.mark.parametrize(("parameter", "value"), [("dirichlet_alpha", 0.3), ("dirichlet_epsilon", 0.25)])
def test_noise_parameter_has_its_default(parameter: str, value: float) -> None:
    for make in (AlphaZero, MCTS):
        assert getattr(make(Network(PRIORS)), parameter) == value


def test_noise_is_added_at_the_root_alone() -> None:
    root = AlphaZero(Network(PRIORS), 100, seed=1).run(ConnectFour(), add_noise=True).root
    below = [node for child in root.children.values() for node in every_node(child) if node is not child]
    assert len(below) > 100
    assert all(node.prior == node.clean_prior for node in below)
