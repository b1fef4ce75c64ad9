"""The Gumbel reference: invariants in games and models, tree reuse and proofs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.tabular import Tabular
from tests.support.exact_models import ExactModel, HashedOutputs
from tests.support.gumbel import node_with
from tests.support.search_helpers import after, random_position
from tests.support.solvers import minimax_value
from tests.support.traces import first_difference

from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import alphazero, model
from pondertree.reference.gumbel import MCTS, Result, considered_visits
from pondertree.reference.sequential_halving import (
    QTransform,
    Schedule,
)
from pondertree.testing.tabular import TabularGame

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


class Network:
    """A random policy and random values, keyed by a tabular state."""

    def evaluate_states(self, states: Any) -> tuple[list[list[float]], list[Any]]:
        numbers = [np.random.PCG64(state.key).random_raw(state.num_actions + state.num_players) for state in states]
        units = [(raw >> np.uint64(11)).astype(float) / 2**53 * 4.0 - 2.0 for raw in numbers]
        values = [unit[-state.num_players :] / 2.0 for unit, state in zip(units, states, strict=True)]
        return (
            [unit[: state.num_actions].tolist() for unit, state in zip(units, states, strict=True)],
            [value[:1] if state.zero_sum else value for value, state in zip(values, states, strict=True)],
        )


# --- Invariants -------------------------------------------------------------------------------------------------------


OPTIONS = st.fixed_dictionaries(
    {
        "num_simulations": st.integers(0, 50),
        "max_num_considered_actions": st.sampled_from([1, 2, 5, 16]),
        "gumbel_scale": st.sampled_from([0.0, 1.0]),
        "value_scale": st.sampled_from([0.1, 1.0]),
        "maxvisit_init": st.sampled_from([0, 50]),
        "rescale_values": st.booleans(),
        "use_mixed_value": st.booleans(),
        "seed": st.integers(0, 2**64 - 1),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 8]),
    }
)


GAMES = st.builds(
    TabularGame,
    seed=st.integers(0, 100_000),
    players=st.sampled_from([1, 2, 2, 2, 3]),
    branching=st.sampled_from([(1, 2), (1, 4), (3, 3)]),
    depth=st.sampled_from([(1, 2), (1, 6), (2, 9)]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.sampled_from([False, False, True]),
)


def check_result(result: Result, legal: list[int]) -> None:
    assert result.action in legal
    assert list(result.visits) == list(result.policy) == list(result.q) == legal
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert all(share >= 0.0 for share in result.policy.values())
    assert sum(result.visits.values()) == result.simulations
    nodes = [result.root]
    for node in nodes:
        assert node.in_flight == 0
        below = [child for child in node.children.values() if child.visit_count]
        nodes.extend(below)
        if node.children and node.proven is None:
            assert node.visit_count == 1 + sum(child.visit_count for child in below)


@settings(max_examples=120)
@given(GAMES, OPTIONS, st.sampled_from([0.0, 1e-9, 1.0, 3.0]))
def test_gumbel_invariants_hold_on_random_games(game: TabularGame, chosen: dict[str, Any], temperature: float) -> None:
    state = game.start()
    result = MCTS(Network(), **chosen).run(state, temperature=temperature, trace=True)
    check_result(result, state.legal_actions())
    assert result.simulations == chosen["num_simulations"] or result.proven is not None
    if result.proven is not None:
        assert chosen["solve"]
        assert result.proven == minimax_value(state)
    lost = [a for a, child in result.root.children.items() if child.proven_for_chooser == -1]
    if result.proven != -1:
        assert all(result.policy[action] == 0.0 and action != result.action for action in lost)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    actions=st.sampled_from([1, 3, 12]),
    players=st.sampled_from([1, 2]),
    reward_scale=st.sampled_from([0.0, 1.0, 300.0]),
    levels=st.sampled_from([0, 3]),
    chosen=OPTIONS,
    temperature=st.sampled_from([0.0, 1.0]),
)
def test_gumbel_invariants_hold_in_random_models(
    seed: int, actions: int, players: int, reward_scale: float, levels: int, chosen: dict[str, Any], temperature: float
) -> None:
    table = Tabular(
        seed, 40, actions, reward_scale=reward_scale, levels=levels, discounts=(0.997, 0.0) if seed % 2 else None
    )
    legal = list(range(actions))[:: 1 + seed % 2][::-1]
    search = MCTS(table, num_players=players, **chosen)
    tree = search.tree(observation=[0], legal_actions=legal, trace=True)
    search.simulate(tree, chosen["num_simulations"])
    result = search.result(tree, temperature)
    check_result(result, legal)
    assert result.proven is None
    assert result.simulations == chosen["num_simulations"]
    again = MCTS(table, num_players=players, **chosen).run(observation=[0], legal_actions=legal, trace=True)
    assert first_difference(tree.trace or [], again.trace or []) is None


@settings(max_examples=40)
@given(GAMES, OPTIONS, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10**6)), max_size=4))
def test_advance_keeps_statistics_of_subtree(
    game: TabularGame, chosen: dict[str, Any], moves: list[tuple[int, int]]
) -> None:
    search = MCTS(Network(), **chosen)
    state = game.start()
    tree = search.tree(state)
    for simulations, number in moves:
        base = {action: child.visit_count for action, child in tree.root.children.items()}
        done = tree.simulations
        search.simulate(tree, simulations)
        result = search.result(tree)
        assert result.action in state.legal_actions()
        if tree.schedule is not None and result.proven is None:
            gained = {a: child.visit_count - base.get(a, 0) for a, child in tree.root.children.items()}
            assert sum(gained.values()) == tree.simulations - done == simulations
            if not any(child.proven for child in tree.root.children.values()):
                allowed = sorted(considered_visits(min(search.max_num_considered_actions, len(gained)), simulations))
                assert max(gained.values()) == max(allowed, default=-1) + 1, "the schedule counts from where it began"
        action = state.legal_actions()[number % len(state.legal_actions())]
        state = state.play(action)
        if state.is_terminal:
            return
        known = tree.root.children[action].visit_count if tree.root.children else 0
        search.advance(tree, action)
        assert tree.schedule is None
        assert tree.root.visit_count == known


def test_advance_keeps_statistics_in_model() -> None:
    search = MCTS(Tabular(9, 30, 5), num_players=2)
    tree = search.tree(observation=[0])
    search.simulate(tree, 40)
    action = search.result(tree).action
    known = {a: c.visit_count for a, c in tree.root.children[action].children.items() if c.visit_count}
    search.advance(tree, action, observation=[3], legal_actions=[4, 0, 1])
    result = search.result(tree)
    assert result.visits == {a: known.get(a, 0) for a in (4, 0, 1)}
    assert result.action == max((4, 0, 1), key=lambda a: result.visits[a]), "no schedule yet: all visits count"
    assert len(set(result.visits.values())) > 1
    search.simulate(tree, 12)
    assert search.result(tree).simulations == 12
    gained = [visits - result.visits[a] for a, visits in search.result(tree).visits.items()]
    expected = [0, 0, 0]
    for wanted in considered_visits(3, 12):
        expected[expected.index(wanted)] += 1
    assert sorted(gained) == sorted(expected), "the new schedule counts from where it began"
    assert tree.root.to_play == 1


@pytest.mark.parametrize("cut", [1, 5, 9, 23])
def test_interrupted_schedule_plays_best_of_most_visited(cut: int) -> None:
    table = Tabular(9, 30, 8, reward_scale=1.0)
    search, whole = MCTS(table, seed=4), MCTS(table, 32, seed=4).run(observation=[0], trace=True)
    tree = search.tree(observation=[0], trace=True)
    search.simulate(tree, 32, cut=cut)
    result = search.result(tree)
    assert result.simulations == cut
    assert first_difference(tree.trace or [], (whole.trace or [])[:cut]) is None
    most = [action for action, visits in result.visits.items() if visits == max(result.visits.values())]
    assert tree.schedule is not None
    bonus = search.q_transform.at(tree.root)
    assert result.action == max(most, key=lambda a: tree.schedule.score(tree.root.children[a], bonus))  # type: ignore[union-attr]


def test_top_k_expansion_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for wide_model in (256, 10**9):
        monkeypatch.setattr(model, "TOP_K_THRESHOLD", wide_model)
        search = MCTS(Tabular(6, 200, 300, reward_scale=1.0, logit_scale=4.0), num_players=2, seed=1)
        tree = search.tree(observation=[0], legal_actions=list(range(9)), trace=True)
        search.simulate(tree, 90)
        paths.append([row["path"] for row in tree.trace or []])
        assert (min(len(child.children) for child in tree.root.children.values()) < 300) == (wide_model == 256)
    assert paths[0] == paths[1]


def test_leaves_in_flight_count_in_schedule() -> None:
    """A batch of sixteen leaves visits each move once, as sequential simulations do."""
    visits = [
        MCTS(Tabular(2, 50, 16), 16, in_flight=in_flight, seed=3).run(observation=[0]).visits for in_flight in (1, 16)
    ]
    assert visits[0] == visits[1] == dict.fromkeys(range(16), 1)


# --- Game and perfect model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1001, 3])
@pytest.mark.parametrize(("start", "plies"), [(TicTacToe, 0), (TicTacToe, 4), (ConnectFour, 0), (ConnectFour, 12)])
def test_perfect_model_gives_same_tree_as_game(start: Any, plies: int, levels: int) -> None:
    for seed in range(3):
        state, guess = random_position(start, plies, seed), HashedOutputs(seed, levels)
        real = MCTS(guess, 100, seed=seed, solve=False).run(state)
        imagined = MCTS(ExactModel(state, guess), 100, seed=seed, discount=1.0).run(state)
        assert imagined.visits == real.visits
        assert imagined.policy == pytest.approx(real.policy)
        assert imagined.action == real.action


# --- Proofs -----------------------------------------------------------------------------------------------------------


WINS = [(ConnectFour, "4 1 4 1 4 1", "4"), (ConnectFour, "1 4 1 4 2 4 2", "4"), (TicTacToe, "a1 b1 a2 b2 c3", "b3")]


BLOCKS = [(ConnectFour, "4 1 4 1 4", "4"), (ConnectFour, "1 4 1 4 2 4", "4"), (TicTacToe, "a1 b2 a2", "a3")]


@pytest.mark.parametrize(("start", "moves", "best"), WINS + BLOCKS)
def test_wins_and_blocks_are_found_by_both_players(start: Any, moves: str, best: str) -> None:
    state = after(start(), moves)
    action = state.parse_action(best)
    # Without Gumbel variates, which may prefer another winning move.
    letter = MCTS(alphazero.Uniform(), 300, gumbel_scale=0.0, solve=False).run(state)
    assert letter.proven is None
    assert letter.action == action
    for seed in range(3):
        solved = MCTS(alphazero.Uniform(), 300, seed=seed).run(state)
        assert solved.action == action
        assert solved.policy[action] == max(solved.policy.values())
        if (start, moves, best) in WINS:
            assert solved.proven == 1
            assert solved.policy[action] == 1.0


def test_schedule_selects_among_moves_left_by_proofs() -> None:
    """Moves with two visits are considered; without any, the nearest lower visits, then the nearest higher."""
    node = node_with(0.0, [(0.25, 2, 0.0), (0.25, 1, 0.0), (0.25, 0, 0.0), (0.25, 5, 0.0)])
    none, variates = dict.fromkeys(range(4), 0), {0: 0.0, 1: 1.0, 2: 9.0, 3: 5.0}
    schedule = Schedule(10, [0, 0, 2], none, variates, dict.fromkeys(range(4), 0.0))
    bonus = QTransform().at(node)
    chosen = [
        schedule.choose(node, schedule.scores(node, bonus, moves), 12) for moves in ([0, 1, 2, 3], [1, 2, 3], [3])
    ]
    assert chosen == [0, 1, 3]
    for child in node.children.values():
        child.in_flight += 1  # now the second move has two
    assert schedule.choose(node, schedule.scores(node, bonus, [0, 1, 3]), 12) == 1


def test_drawn_root_plays_drawing_move() -> None:
    games = [TabularGame(seed, branching=(2, 4), depth=(1, 3)) for seed in range(400)]
    drawn = [game.start() for game in games if minimax_value(game.start()) == 0][:40]
    proven = 0
    for seed, state in enumerate(drawn):
        result = MCTS(Network(), 200, seed=seed).run(state, temperature=float(seed % 2))
        if result.proven == 0:
            proven += 1
            for action, share in result.policy.items():
                assert share == 0.0 or minimax_value(state.play(action)) == 0
            assert result.policy[result.action] > 0.0
    assert proven > 5


@dataclass
class Counted:
    """A network that counts its evaluations."""

    sizes: list[int]

    def evaluate_states(self, states: Any) -> tuple[None, list[float]]:
        self.sizes.append(len(states))
        return None, [0.0] * len(states)


def test_proven_root_and_zero_simulations_leave_tree_unchanged() -> None:
    network = Counted([])
    search = MCTS(network)
    tree = search.tree(TicTacToe())
    search.simulate(tree, 0)
    result = search.result(tree)
    assert network.sizes == []
    assert result.action == 0
    assert result.policy == pytest.approx(dict.fromkeys(range(9), 1 / 9))
    won = search.tree(after(TicTacToe(), "a1 b1 a2 b2"))
    search.simulate(won, 100)
    evaluations = len(network.sizes)
    search.simulate(won, 100)
    assert len(network.sizes) == evaluations
    assert search.result(won).proven == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_simulations", -1),
        ("max_num_considered_actions", 0),
        ("gumbel_scale", -1.0),
        ("value_scale", math.nan),
        ("maxvisit_init", -1),
        ("discount", 1.5),
        ("num_players", 0),
        ("in_flight", 0),
    ],
)
def test_invalid_parameters_raise(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        MCTS(Tabular(0, 5, 2), **{name: value})
