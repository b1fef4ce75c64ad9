"""The AlphaZero reference: invariants on random games, names and defaults, and each trap of its specification."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.alphazero import Fixed, Network, check_tree, nodes_of
from tests.support.solvers import minimax_value
from tests.support.traces import first_difference

from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.random import NOISE, Random
from pondertree.reference.alphazero import (
    MCTS,
    Node,
    Rollout,
    Uniform,
    dirichlet,
    float32,
    policy_at,
    priors_of,
)
from pondertree.testing.tabular import TabularGame

MATE_IN_ONE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"


games = st.builds(
    TabularGame,
    seed=st.integers(0, 100_000),
    players=st.sampled_from([1, 2, 2, 2, 3]),
    branching=st.sampled_from([(1, 2), (1, 4), (3, 3)]),
    depth=st.sampled_from([(1, 2), (1, 6), (2, 9)]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.sampled_from([False, False, True]),
    zero_sum=st.sampled_from([True, True, False]),
)


options = st.fixed_dictionaries(
    {
        "num_simulations": st.integers(0, 80),
        "c_puct": st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        "fpu": st.sampled_from([0.0, -1.0, ("parent", 0.2)]),
        "parent_visits": st.sampled_from(["node", "edges"]),
        "dirichlet_alpha": st.sampled_from([0.3, ("total", 10.83)]),
        "seed": st.integers(0, 2**64 - 1),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 8]),
    }
)


# --- Invariants -------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(games, options, st.booleans(), st.sampled_from([0.0, 1e-9, 1.0, 1e9]))
def test_alphazero_invariants_hold_on_random_games(
    game: TabularGame, chosen: dict[str, Any], noise: bool, temperature: float
) -> None:
    state = game.start()
    result = MCTS(Network(), **chosen).run(state, temperature=temperature, add_noise=noise)
    check_tree(result)
    assert state == game.start(), "the state passed in is unchanged"
    assert sum(result.visits.values()) == result.simulations
    if result.proven is None:
        assert result.simulations == chosen["num_simulations"]
    for node in nodes_of(result.root):
        if node.proven is not None:
            assert chosen["solve"]
            assert node.proven == minimax_value(node.state)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(games, options)
def test_same_seed_gives_same_tree(game: TabularGame, chosen: dict[str, Any]) -> None:
    first = MCTS(Network(), **chosen).run(game.start(), 3, 4, trace=True, add_noise=True)
    second = MCTS(Network(), **chosen).run(game.start(), 3, 4, trace=True, add_noise=True)
    assert first.trace is not None
    assert second.trace is not None
    assert first_difference(first.trace, second.trace) is None
    assert (first.action, first.visits, first.values) == (second.action, second.visits, second.values)


@settings(max_examples=60)
@given(games, options, st.lists(st.integers(0, 10**6), max_size=5), st.sampled_from([True, None, False]))
def test_advance_keeps_statistics_of_subtree(
    game: TabularGame, chosen: dict[str, Any], numbers: list[int], noise: bool | None
) -> None:
    search = MCTS(Network(), **chosen)
    tree = search.tree(game.start())
    done = 0
    for number in numbers:
        search.simulate(tree, 30, noise)
        check_tree(search.result(tree))
        done = tree.simulations
        legal = tree.root.state.legal_actions()
        action = legal[number % len(legal)]
        if tree.root.state.play(action).is_terminal:
            with pytest.raises(ValueError, match="over"):
                search.advance(tree, action)
            return
        before = tree.root.children[action] if tree.root.children else None
        known = None if before is None else (before.visit_count, before.total_value, before.q_value)
        search.advance(tree, action)
        assert tree.simulations == done
        assert tree.root.parent is None
        assert known in (None, (tree.root.visit_count, tree.root.total_value, tree.root.q_value))
        assert all(child.prior == child.clean_prior for child in tree.root.children.values())


def test_calls_and_rows_have_distinct_random_numbers() -> None:
    search = MCTS(Uniform(), 40, seed=3)
    state = TabularGame(5, branching=(4, 4), depth=(8, 8)).start()
    trees = {
        tuple(search.run(state, call, row, add_noise=True).visits.values()) for call in range(3) for row in range(3)
    }
    assert len(trees) == 9
    assert len({search.search(state) for _ in range(20)}) > 1, "the calls of an object are numbered"


def test_tree_is_identical_in_another_process() -> None:
    program = (
        "from pondertree.games import ConnectFour; from pondertree.reference.alphazero import MCTS, Rollout;"
        "r = MCTS(Rollout(), 60, seed=9).run(ConnectFour(), add_noise=True, temperature=1.0);"
        "print(r.action, list(r.visits.values()), [c.prior for c in r.root.children.values()])"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)
    }
    result = MCTS(Rollout(), 60, seed=9).run(ConnectFour(), add_noise=True, temperature=1.0)
    priors = [child.prior for child in result.root.children.values()]
    expected = f"{result.action} {list(result.visits.values())} {priors}\n"
    assert {answer.decode() for answer in outputs} == {expected}


# --- Names and defaults -----------------------------------------------------------------------------------------------


def test_names_and_defaults_match_specification() -> None:
    search = MCTS(neural_network=Uniform())
    assert (search.num_simulations, search.c_puct) == (100, 1.0)
    assert (search.dirichlet_alpha, search.dirichlet_epsilon) == (0.3, 0.25)
    node = Node(prior=0.5)
    assert (node.prior, node.visit_count, node.total_value, node.children, node.q_value) == (0.5, 0, 0.0, {}, 0.0)
    node.visit_count, node.total_value = 4, -1.0
    assert node.q_value == -0.25


def test_search_and_get_policy_return_move_and_visit_distribution() -> None:
    state = Chess()
    move, policy = MCTS(Uniform(), 50).get_policy(state, temperature=1.0, add_noise=True)
    assert move in state.legal_actions()
    assert len(policy) == 4672
    assert sum(policy) == pytest.approx(1.0)
    assert all(share == 0.0 for action, share in enumerate(policy) if action not in set(state.legal_actions()))
    assert MCTS(Uniform(), 50).search(state) in state.legal_actions()


def test_finished_game_raises() -> None:
    state = TicTacToe()
    for action in (0, 3, 1, 4, 2):
        state = state.play(action)
    with pytest.raises(ValueError, match="over"):
        MCTS(Uniform()).search(state)


@pytest.mark.parametrize("simulations", [0, 1])
def test_policy_is_finite_with_few_simulations(simulations: int) -> None:
    """In the AlphaZero chess specification one simulation only expands the root, and the policy is 0 / 0."""
    result = MCTS(Uniform(), simulations, seed=1).run(TicTacToe(), temperature=1.0)
    assert sum(result.visits.values()) == simulations
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert result.value == 0.0
    assert result.root.visit_count == (simulations + 1 if simulations else 0)


# --- Traps ------------------------------------------------------------------------------------------------------------


WINS = [
    (ConnectFour, "4 1 4 1 4 1", "4"),
    (ConnectFour, "1 4 1 4 2 4 2", "4"),
    (lambda: Chess(MATE_IN_ONE), "", "h5f7"),
    (lambda: Chess("r5k1/8/8/8/8/8/5PPP/6K1 b - - 0 1"), "", "a8a1"),
]


BLOCKS = [(ConnectFour, "4 1 4 1 4", "4"), (ConnectFour, "1 4 1 4 2 4", "4")]


@pytest.mark.parametrize(("start", "moves", "best"), WINS + BLOCKS)
def test_wins_and_blocks_are_found_by_both_players(start: Any, moves: str, best: str) -> None:
    state = start()
    for move in moves.split():
        state = state.play(state.parse_action(move))
    action = state.parse_action(best)
    letter = MCTS(Uniform(), 400, seed=1, solve=False).run(state)
    assert letter.proven is None
    assert max(letter.visits, key=lambda a: letter.visits[a]) == letter.action == action
    solved = MCTS(Uniform(), 400, seed=1).run(state, temperature=0.0)
    assert solved.action == action
    if (start, moves, best) in WINS:
        assert solved.proven == 1
        assert solved.policy[action] == 1.0


def test_root_noise_is_weighted_and_on_legal_moves_only() -> None:
    search = MCTS(Fixed([0.0] * 4672), 1, seed=2)
    root = search.run(Chess(), add_noise=True).root
    shares = [child.prior - 0.75 * child.clean_prior for child in root.children.values()]
    assert len(shares) == 20
    assert all(share >= -1e-7 for share in shares)
    assert sum(abs(share) for share in shares) == pytest.approx(0.25, abs=1e-6)
    assert max(shares) > 0.03


def test_root_noise_does_not_accumulate_in_reused_tree() -> None:
    search = MCTS(Fixed([0.1 * action for action in range(7)]), seed=2)
    tree = search.tree(ConnectFour())
    seen = set()
    for _ in range(3):
        search.simulate(tree, 20, True)
        children = tree.root.children.values()
        assert sum(abs(c.prior - 0.75 * c.clean_prior) for c in children) == pytest.approx(0.25, abs=1e-6)
        seen.add(tuple(c.prior for c in children))
    assert len(seen) == 3
    search.simulate(tree, 1, False)
    assert all(child.prior == child.clean_prior for child in tree.root.children.values())


def test_total_concentration_is_divided_by_number_of_moves() -> None:
    assert MCTS(Uniform(), dirichlet_alpha=("total", 10.83)).alpha == 10.83
    a = MCTS(Uniform(), 1, dirichlet_alpha=("total", 2.1), seed=4).run(ConnectFour(), add_noise=True)
    b = MCTS(Uniform(), 1, dirichlet_alpha=0.3, seed=4).run(ConnectFour(), add_noise=True)
    assert [c.prior for c in a.root.children.values()] == pytest.approx([c.prior for c in b.root.children.values()])


@pytest.mark.parametrize(("alpha", "count"), [(0.3, 7), (1.0, 4), (5.0, 3)])
def test_dirichlet_samples_have_expected_moments(alpha: float, count: int) -> None:
    random = Random(6, NOISE)
    draws = [dirichlet(alpha, count, random) for _ in range(4000)]
    assert all(sum(draw) == pytest.approx(1.0) for draw in draws)
    firsts = [draw[0] for draw in draws]
    mean = sum(firsts) / len(firsts)
    variance = sum((first - mean) ** 2 for first in firsts) / len(firsts)
    assert mean == pytest.approx(1 / count, abs=0.02)
    assert variance == pytest.approx((count - 1) / (count**2 * (count * alpha + 1)), rel=0.12)


def test_dirichlet_with_tiny_alpha_is_finite() -> None:
    draw = dirichlet(1e-4, 30, Random(1, NOISE))
    assert sum(draw) == pytest.approx(1.0)
    assert all(math.isfinite(share) for share in draw)


def test_priors_are_masked_and_normalised() -> None:
    assert priors_of([2, 0], [0.0, 99.0, 0.0]) == {2: 0.5, 0: 0.5}
    assert priors_of([0, 1], [1.0, 3.0, 96.0], "probabilities") == {0: 0.25, 1: 0.75}
    assert priors_of([0, 1], [0.0, 0.0, 1.0], "probabilities") == {0: 0.5, 1: 0.5}
    assert priors_of([0, 1, 2], [0.0, -math.inf, 0.0]) == {0: 0.5, 1: 0.0, 2: 0.5}
    assert priors_of([0, 1], [5000.0, 5000.0]) == {0: 0.5, 1: 0.5}
    assert priors_of([4, 5, 6], None) == dict.fromkeys([4, 5, 6], float32(1 / 3))


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([math.nan, 0.0], "logits"),
        ([math.inf, 0.0], "logits"),
        ([-math.inf, -math.inf], "logits"),
        ([-1.0, 2.0], "probabilities"),
        ([0.0, 0.0], "odds"),
    ],
)
def test_invalid_policy_raises(numbers: list[float], kind: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        priors_of([0, 1], numbers, kind)


def test_float32_rounds_to_single_precision() -> None:
    assert float32(0.1) == 0.10000000149011612
    assert float32(1e39) == math.inf
    assert float32(-1e39) == -math.inf


def test_temperature_does_not_overflow() -> None:
    root = MCTS(Network(), 60, seed=2, solve=False).run(TabularGame(8, branching=(4, 4), depth=(9, 9)).start()).root
    visits = {action: child.visit_count for action, child in root.children.items()}
    best = max(visits, key=lambda action: visits[action])
    assert policy_at(root, 1.0, best) == pytest.approx({a: n / 60 for a, n in visits.items()})
    squares = sum(n * n for n in visits.values())
    assert policy_at(root, 0.5, best) == pytest.approx({a: n * n / squares for a, n in visits.items()})
    for tau in (0.0, 1e-300, 1e-9):
        assert policy_at(root, tau, best)[best] == 1.0
    tried = sum(n > 0 for n in visits.values())
    for tau in (1e9, 1e300):
        assert policy_at(root, tau, best) == pytest.approx({a: (n > 0) / tried for a, n in visits.items()}, abs=1e-6)


def test_sampled_moves_follow_policy() -> None:
    search = MCTS(Uniform(), 30, seed=7, solve=False)
    state = ConnectFour()
    tree = search.tree(state)
    search.simulate(tree, 30)
    shares = search.result(tree).policy
    counts = dict.fromkeys(shares, 0)
    for key in range(3000):
        tree.key = key
        counts[search.result(tree, 1.0).action] += 1
    assert all(abs(counts[action] / 3000 - shares[action]) < 0.04 for action in shares)


def test_proven_loss_is_never_sampled() -> None:
    """Connect 4 with a threat to block: every other move is a proven loss."""
    state = ConnectFour()
    for move in (3, 0, 3, 0, 3):
        state = state.play(move)
    search = MCTS(Uniform(), 300, seed=1)
    tree = search.tree(state)
    search.simulate(tree, 300)
    result = search.result(tree)
    lost = [action for action, child in tree.root.children.items() if child.proven_for_chooser == -1]
    assert len(lost) == 6
    assert all(result.policy[action] == 0.0 for action in lost)
    for key in range(50):
        tree.key = key
        assert search.result(tree, 1e9).action == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_simulations", -1),
        ("c_puct", -0.1),
        ("c_puct", math.nan),
        ("dirichlet_alpha", 0.0),
        ("dirichlet_alpha", ("sum", 1.0)),
        ("dirichlet_epsilon", 1.5),
        ("fpu", math.inf),
        ("fpu", ("child", 0.1)),
        ("parent_visits", "both"),
        ("in_flight", 0),
    ],
)
def test_invalid_parameters_raise(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        MCTS(Uniform(), **{name: value})


def test_advance_by_illegal_move_raises() -> None:
    search = MCTS(Uniform())
    with pytest.raises(ValueError, match="legal"):
        search.advance(search.tree(ConnectFour()), 7)
