"""Normalised values, discounts and MaxUCT: the engine against the reference implementation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.test_engine_alphazero import GAMES, OPTIONS, TABLES, Pair
from tests.oracle.test_engine_chance import GAMES as CHANCE_GAMES
from tests.oracle.test_engine_chance import assert_equal as assert_chance_equal
from tests.oracle.test_engine_uct import TabularValues
from tests.support import engine_uct
from tests.support.exact_models import TabularDecisionModel

import pondertree
from pondertree.evaluators import Rollout
from pondertree.games import Breakthrough, ConnectFour, Hex, Othello, TicTacToe
from pondertree.reference import alphazero, gumbel
from pondertree.testing.tabular import TabularGame

DISCOUNTS = st.sampled_from([1.0, 1.0, 0.9, 0.5, 1e-3])
PLANNING = st.fixed_dictionaries(
    {
        "normalize": st.sampled_from([None, "tree", "tree"]),
        "discount": DISCOUNTS,
        "backup": st.sampled_from(["mean", "max"]),
    }
)
SEEDS = st.integers(0, 2**64 - 1)


def planning_of(game: Any, planning: dict[str, Any]) -> dict[str, Any]:
    """Returns the options, with the backup of the mean for more than one player."""
    return planning if game.players == 1 else {**planning, "backup": "mean"}


ALONE = st.builds(
    TabularGame,
    seed=st.integers(0, 10**6),
    players=st.sampled_from([1, 1, 1, 2, 3]),
    branching=st.sampled_from([(1, 4), (2, 7)]),
    depth=st.sampled_from([(2, 6), (4, 9)]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.sampled_from([True, True, False]),
)


@settings(max_examples=300)
@given(
    game=ALONE,
    planning=PLANNING,
    seed=SEEDS,
    simulations=st.integers(1, 150),
    c_param=st.sampled_from([0.0, 0.5, 1.0]),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 1, 2, 3, 8]),
    max_depth=st.sampled_from([None, None, 0, 1, 3]),
    evaluated=st.booleans(),
)
def test_uct_matches_reference(
    game: TabularGame, planning: dict[str, Any], seed: int, simulations: int, evaluated: bool, **options: Any
) -> None:
    state = game.start()
    if not state.is_terminal:
        evaluator = TabularValues() if evaluated else None
        engine_uct.assert_equal(state, simulations, seed, evaluator, **planning_of(game, planning), **options)


@settings(max_examples=200)
@given(
    game=st.one_of(ALONE, GAMES),
    network=TABLES,
    planning=PLANNING,
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 120),
    noise=st.sampled_from([None, True]),
    moves=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 40)), max_size=3),
)
def test_alphazero_matches_reference_with_reused_trees(
    game: TabularGame,
    network: Any,
    planning: dict[str, Any],
    options: dict[str, Any],
    seed: int,
    simulations: int,
    noise: bool | None,
    moves: list[tuple[int, int]],
) -> None:
    state: Any = game.start()
    if state.is_terminal:
        return
    pair = Pair(state, network, seed, options | planning_of(game, planning))
    pair.simulate(simulations, noise)
    for number, more in moves:
        legal = state.legal_actions()
        action = legal[number % len(legal)]
        state = state.play(action)
        if state.is_terminal:
            return
        pair.advance(action)
        pair.simulate(more)


@settings(max_examples=60)
@given(game=ALONE, planning=PLANNING, seed=SEEDS, simulations=st.integers(1, 100), in_flight=st.sampled_from([1, 2, 8]))
def test_alphazero_by_playouts_matches_reference(
    game: TabularGame, planning: dict[str, Any], seed: int, simulations: int, in_flight: int
) -> None:
    state = game.start()
    if not state.is_terminal:
        options = {"in_flight": in_flight, **planning_of(game, planning)}
        Pair(state, Rollout(), seed, options, alphazero.Rollout()).simulate(simulations)


@settings(max_examples=60)
@given(
    start=st.sampled_from([TicTacToe, ConnectFour, Othello, Hex, Breakthrough]),
    normalize=st.sampled_from([None, "tree"]),
    discount=DISCOUNTS,
    seed=SEEDS,
    simulations=st.integers(1, 150),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 1, 5]),
    max_depth=st.sampled_from([None, None, 4]),
    evaluated=st.booleans(),
)
def test_uct_matches_reference_on_compiled_games(
    start: Any, seed: int, simulations: int, evaluated: bool, **options: Any
) -> None:
    evaluator = TabularValues() if evaluated else None
    engine_uct.assert_equal(start(), simulations, seed, evaluator, **options)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_alphazero_matches_reference_on_compiled_game(in_flight: int) -> None:
    options = {"in_flight": in_flight, "discount": 0.75, "normalize": "tree", "fpu": ("parent", 0.25)}
    Pair(ConnectFour(), Rollout(), 5, options, alphazero.Rollout()).simulate(400)
    Pair(TicTacToe(), Rollout(), 5, options, alphazero.Rollout()).simulate(400)


@settings(max_examples=60)
@given(game=GAMES, network=TABLES, discount=DISCOUNTS, seed=SEEDS, simulations=st.integers(1, 80))
def test_gumbel_discounts_games_as_reference(
    game: TabularGame, network: Any, discount: float, seed: int, simulations: int
) -> None:
    state = game.start()
    if state.is_terminal:
        return
    theirs = gumbel.MCTS(network, simulations, discount=discount, seed=seed).run(state)
    ours = pondertree.Gumbel(network, simulations, discount=discount, seed=seed).run(state)
    assert {action: int(ours.visits[action]) for action in theirs.visits} == theirs.visits
    assert ours.value == theirs.value
    assert ours.action == theirs.action


def test_gumbel_does_not_discount_games_by_default() -> None:
    assert pondertree.Gumbel(Rollout()).discount == 1.0
    assert pondertree.Gumbel(model=TabularDecisionModel(1)).discount == 0.997


@settings(max_examples=100)
@given(
    number=st.integers(0, 199),
    preset=st.sampled_from(["uct", "uct_evaluated", "alphazero"]),
    planning=PLANNING,
    seed=SEEDS,
    simulations=st.integers(1, 150),
    in_flight=st.sampled_from([1, 1, 2, 8]),
    chance=st.sampled_from(["balanced", "sample"]),
)
def test_engine_matches_reference_on_games_with_chance(
    number: int, preset: str, planning: dict[str, Any], seed: int, simulations: int, in_flight: int, chance: str
) -> None:
    game = CHANCE_GAMES[number]
    game = replace(game, players=1 if number % 3 else game.players)
    options = {"in_flight": in_flight, "chance": chance, **planning_of(game, planning)}
    assert_chance_equal(game.start(), preset, simulations, seed, **options)
