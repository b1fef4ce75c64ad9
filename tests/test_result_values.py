"""`SearchResult.values`: one number per player, in every kind of game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.exact_models import ExactBatchModel, RandomOutputs, TabularDecisionModel
from tests.support.search_helpers import after

import pondertree
from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import alphazero, uct
from pondertree.testing.tabular import TabularGame

GAMES = st.one_of(
    st.builds(lambda seed, players: TabularGame(seed, players=players), st.integers(0, 999), st.integers(1, 4)),
    st.builds(
        lambda seed, players: TabularGame(seed, players=players, rewards=True, turn_order="random"),
        st.integers(0, 999),
        st.integers(1, 4),
    ),
    st.builds(lambda seed: TabularGame(seed, zero_sum=False, turn_order="double"), st.integers(0, 999)),
)


class PerPlayer:
    """An evaluator whose values differ for each player, with even priors."""

    def __call__(self, state: Any) -> list[float]:
        numbers = np.random.default_rng([state.num_players, state.to_play, *map(int, state.path)])
        return [float(number) for number in numbers.integers(-64, 65, state.num_players) / 64]

    def evaluate_states(self, states: Any) -> tuple[None, Any]:
        return None, np.array([self(state) for state in states])


def root_means(state: Any, trace: list[Any], root_values: list[float] | None) -> list[float]:
    """The mean per player of what the simulations of a trace backed up, rewards on their paths included."""
    sums = np.zeros(state.num_players) if root_values is None else np.array(root_values)
    for row in trace:
        sums += row["values"]
        position = state
        for action in row["path"]:
            position = position.play(action)
            sums += getattr(position, "rewards", lambda: 0.0)()
    return list(sums / max(len(trace) + (root_values is not None), 1))


@settings(max_examples=80)
@given(game=GAMES, simulations=st.integers(1, 120), in_flight=st.sampled_from([1, 3]))
def test_values_match_reference_trace_with_uct(game: TabularGame, simulations: int, in_flight: int) -> None:
    state = game.start()
    result = pondertree.UCT(simulations, seed=5, solve=False, in_flight=in_flight).run(state)
    reference = uct.MCTS(simulations, seed=5, solve=False, in_flight=in_flight).run(state, trace=True)
    assert reference.trace is not None
    assert result.values == pytest.approx(root_means(state, reference.trace, None), abs=1e-12)
    assert result.values[state.to_play] == result.value


@settings(max_examples=60)
@given(players=st.integers(3, 4), rewards=st.booleans(), seed=st.integers(0, 999), simulations=st.integers(0, 80))
def test_values_match_reference_trace_with_an_evaluator(
    players: int, rewards: bool, seed: int, simulations: int
) -> None:
    state = TabularGame(seed, players=players, rewards=rewards).start()
    tree = pondertree.AlphaZero(PerPlayer(), seed=5).tree(state).simulate(max(simulations, 1))
    reference = alphazero.MCTS(PerPlayer(), max(simulations, 1), seed=5).run(state, trace=True)
    assert reference.trace is not None
    expected = root_means(state, reference.trace, PerPlayer()(state))
    assert tree.result().values == pytest.approx(expected, abs=1e-12)


def test_values_of_a_kept_subtree_are_those_of_its_simulations() -> None:
    search = pondertree.UCT(seed=3, c_param=0.3, trace=True)
    tree = search.tree(CoinRow()).simulate(300)
    action = tree.result().action
    rows = [row for row in tree.trace() if row["path"][0] == action and len(row["path"]) > 1]
    tree.advance(action)
    # The first visit of the new root was its own evaluation, which UCT drops from a root.
    expected = np.mean([row["values"] for row in rows], axis=0)
    result = tree.result()
    assert result.values == pytest.approx(list(expected))
    assert result.values[result.root.to_play] == result.value


def test_values_of_three_players_sum_to_one_in_coin_row() -> None:
    result = pondertree.UCT(400, seed=0, c_param=0.2).run(CoinRow())
    assert len(result.values) == 3
    assert sum(result.values) == pytest.approx(1.0)
    assert result.values[0] == result.value


@pytest.mark.parametrize("state", [ConnectFour(), ConnectFour().play(3), TicTacToe()])
def test_values_of_a_zero_sum_game_are_a_number_and_its_negative(state: Any) -> None:
    result = pondertree.UCT(200, seed=1).run(state)
    assert result.values[state.to_play] == result.value
    assert result.values[1 - state.to_play] == -result.value
    assert type(result.values) is tuple


def test_values_of_a_proven_root_are_exact() -> None:
    state = after(ConnectFour(), "4 1 4 1 4 1")
    result = pondertree.UCT(2000, seed=1).run(state)
    assert result.proven == 1
    assert result.values == (1.0, -1.0)


def test_values_before_any_simulation_are_zero() -> None:
    assert pondertree.UCT(seed=1).tree(CoinRow()).result().values == (0.0, 0.0, 0.0)


def test_values_with_a_model_have_one_number_per_player() -> None:
    state = TicTacToe().play(0)
    result = pondertree.MuZero(ExactBatchModel([state], RandomOutputs()), 40, seed=1).run(state)
    assert result.values == (-result.value, result.value)
    alone = pondertree.MuZero(TabularDecisionModel(0), 20, seed=1, num_players=1).run(
        observation=np.zeros(1, np.float32)
    )
    assert alone.values == (alone.value,)
