"""AlphaZero in the engine: invariants, and independence of batches and threads."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from tests.support.engine_alphazero import MATE_IN_ONE, Table, compare_nodes
from tests.support.search_helpers import PythonGame, every_node, fingerprint, random_position

import pondertree
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.reference import alphazero

# --- Batches and threads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evaluator", [Table(), pondertree.evaluators.Uniform(), pondertree.evaluators.Rollout()])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_row_does_not_depend_on_batch(evaluator: Any, in_flight: int) -> None:
    states = [random_position(ConnectFour, plies, plies) for plies in range(20)]
    seeds = [7 * row for row in range(20)]
    options: dict[str, Any] = {"num_simulations": 80, "in_flight": in_flight}
    noise = [row % 2 == 0 for row in range(20)]
    batch = pondertree.AlphaZero(evaluator, **options).run(states, seeds=seeds, add_noise=noise)
    for row, result in enumerate(batch):
        alone = pondertree.AlphaZero(evaluator, **options).run(states[row], seeds=seeds[row], add_noise=noise[row])
        assert fingerprint(alone) == fingerprint(result)
        reference = alphazero.MCTS(THEIRS.get(type(evaluator), lambda: evaluator)(), seed=seeds[row], **options)
        theirs = reference.run(states[row], add_noise=noise[row])
        compare_nodes(result.root, theirs.root, zero_sum=True)


THEIRS: dict[type, Any] = {
    pondertree.evaluators.Uniform: alphazero.Uniform,
    pondertree.evaluators.Rollout: alphazero.Rollout,
}


@pytest.mark.parametrize("evaluator", [Table(), pondertree.evaluators.Rollout()])
@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("rows", [1, 9])
def test_threads_do_not_change_tree(evaluator: Any, in_flight: int, rows: int) -> None:
    def trees(threads: int) -> list[Any]:
        search = pondertree.AlphaZero(evaluator, 150, seed=3, threads=threads, in_flight=in_flight)
        return [fingerprint(result) for result in search.run([ConnectFour()] * rows, add_noise=True)]

    one = trees(1)
    assert trees(2) == one
    assert trees(4) == one
    assert len(set(one)) == rows, "every row draws its own numbers"


@pytest.mark.parametrize("start", [start for start, game in COMPILED.items() if not game.has_chance])
@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("solve", [True, False])
def test_compiled_game_gives_same_tree_as_python_game(start: Any, in_flight: int, solve: bool) -> None:
    for plies in (0, 12):
        state = random_position(start, plies, plies)
        search = functools.partial(pondertree.AlphaZero, Table(), 80, seed=8, in_flight=in_flight, solve=solve)
        compiled = search().run(state, add_noise=True)
        assert fingerprint(search().run(PythonGame(state), add_noise=True)) == fingerprint(compiled)


def test_split_simulations_equal_one_run() -> None:
    whole = pondertree.AlphaZero(Table(), seed=4).tree(ConnectFour()).simulate(300, add_noise=True).result()
    pieces = pondertree.AlphaZero(Table(), seed=4).tree(ConnectFour()).simulate(1, add_noise=True)
    for count in (49, 250):
        pieces.simulate(count)
    assert fingerprint(pieces.result()) == fingerprint(whole)


# --- Invariants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("start", [start for start, game in COMPILED.items() if not game.has_chance])
def test_alphazero_invariants_hold(start: Any, noise: bool, in_flight: int) -> None:
    for plies in (0, 9):
        state = random_position(start, plies, 2 * plies)
        tree = pondertree.AlphaZero(Table(), seed=2, in_flight=in_flight).tree(state)
        for _ in range(2):
            result = tree.simulate(60, add_noise=noise).result(temperature=1.0)
            check_invariants(result)
            if tree.state.play(result.action).is_terminal:
                break
            tree.advance(result.action)


def check_invariants(result: pondertree.SearchResult) -> None:
    root = result.root
    assert result.action in root.children
    for node in every_node(root):
        assert node.in_flight == 0
        assert abs(node.q_value) <= 1.0
        assert math.isfinite(node.total_value)
        if node.children:
            below = sum(child.visit_count for child in node.children.values())
            assert node.visit_count == below + 1 or (node.proven is not None and node.visit_count > below)
            assert abs(sum(child.prior for child in node.children.values()) - 1.0) < 1e-6
    assert abs(sum(child.clean_prior for child in root.children.values()) - 1.0) < 1e-6


WINS = [
    # A state and the one move that wins at once, for each player.
    (ConnectFour, "4 1 4 1 4 1", "4"),
    (ConnectFour, "1 4 1 4 2 4 2", "4"),
    (TicTacToe, "a1 b1 a2 b2", "a3"),
    (TicTacToe, "a1 b1 a2 b2 c3", "b3"),
    (lambda: Chess(MATE_IN_ONE), "", "h5f7"),
    (lambda: Chess("r5k1/8/8/8/8/8/5PPP/6K1 b - - 0 1"), "", "a8a1"),
]


BLOCKS = [
    # A state and the one move that does not lose at once, for each player.
    (ConnectFour, "4 1 4 1 4", "4"),
    (ConnectFour, "1 4 1 4 2 4", "4"),
    (TicTacToe, "a1 b2 a2", "a3"),
    (TicTacToe, "c3 b1 a2 b2", "b3"),
]


@pytest.mark.parametrize("evaluator", [pondertree.evaluators.Uniform(), pondertree.evaluators.Rollout()])
@pytest.mark.parametrize(("start", "moves", "best"), WINS + BLOCKS)
def test_wins_and_blocks_are_found_by_both_players(start: Any, moves: str, best: str, evaluator: Any) -> None:
    state = start()
    for move in moves.split():
        state = state.play(state.parse_action(move))
    action = state.parse_action(best)
    letter = pondertree.AlphaZero(evaluator, 600, seed=1, solve=False).run(state)
    assert int(letter.visits.argmax()) == letter.action == action
    assert letter.proven is None
    proven = pondertree.AlphaZero(evaluator, 600, seed=1)
    assert proven.run(state).action == action
    assert (start, moves, best) in BLOCKS or proven.run(state, temperature=1.0).action == action


def test_root_noise_is_weighted_and_on_legal_moves_only() -> None:
    search = pondertree.AlphaZero(Table(), 1, seed=6)
    result = search.run(Chess(), add_noise=True)
    children = result.root.children
    assert sorted(children) == sorted(Chess().legal_actions())
    shares = [child.prior - 0.75 * child.clean_prior for child in children.values()]
    assert all(share >= -1e-7 for share in shares)
    assert sum(abs(share) for share in shares) == pytest.approx(0.25, abs=1e-6)
    assert max(shares) > 2 * 0.25 / len(shares), "it is noise, not a constant"
    assert all(child.prior == child.clean_prior for child in search.run(Chess()).root.children.values())


def test_root_noise_uses_clean_priors_in_reused_tree() -> None:
    tree = pondertree.AlphaZero(Table(), seed=6).tree(Chess())
    priors = set()
    for _ in range(3):
        root = tree.simulate(40, add_noise=True).result().root
        shares = [child.prior - 0.75 * child.clean_prior for child in root.children.values()]
        assert sum(abs(share) for share in shares) == pytest.approx(0.25, abs=1e-6)
        priors.add(tuple(child.prior for child in root.children.values()))
    assert len(priors) == 3
    clean = tree.simulate(1, add_noise=False).result().root
    assert all(child.prior == child.clean_prior for child in clean.children.values())


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("simulations", [1, 2, 50])
@pytest.mark.parametrize("temperature", [0, 1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_policy_is_finite_at_any_temperature_and_budget(simulations: int, temperature: float, solve: bool) -> None:
    search = pondertree.AlphaZero(Table(), simulations, seed=9, solve=solve)
    for state in (TicTacToe(), Chess(MATE_IN_ONE)):
        result = search.run(state, temperature=temperature)
        assert result.visits.sum() == result.simulations <= simulations
        assert result.root.visit_count == result.simulations + 1
        for policy in (result.policy, result.policy_at(temperature)):
            assert np.isfinite(policy).all()
            assert policy.sum() == pytest.approx(1.0)
        assert result.policy[result.action] > 0.0
        assert math.isfinite(result.value)
