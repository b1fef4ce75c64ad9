"""UCT: the engine against the reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_uct import assert_equal

import pondertree
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour
from pondertree.random import fold
from pondertree.testing.tabular import TabularGame


class TabularValues:
    """An evaluator whose values are a function of the state's text."""

    def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
        rows = []
        for state in states:
            key = fold(0, hash(tuple(np.asarray(state.observation(), dtype=np.float64).ravel().tolist())) & (2**64 - 1))
            rows.append([(fold(key, player) % 2001 - 1000) / 1000.0 for player in range(state.num_players)])
        values = np.array(rows)
        one_number_will_do = values.shape[1] == 1 or (values.shape[1] == 2 and not hasattr(states[0], "rewards"))
        return None, values[:, 0] if one_number_will_do else values


GAMES = st.builds(
    TabularGame,
    seed=st.integers(0, 10**6),
    players=st.sampled_from([1, 2, 2, 2, 3, 4]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.booleans(),
)


@settings(max_examples=300)
@given(
    game=GAMES,
    seed=st.integers(0, 2**64 - 1),
    simulations=st.integers(1, 120),
    c_param=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 1, 2, 3, 8]),
    max_depth=st.sampled_from([None, None, 0, 1, 3]),
    evaluated=st.booleans(),
)
def test_engine_matches_reference_on_random_games(
    game: TabularGame,
    seed: int,
    simulations: int,
    c_param: float,
    solve: bool,
    in_flight: int,
    max_depth: int | None,
    evaluated: bool,
) -> None:
    state = game.start()
    if state.is_terminal:
        return
    assert_equal(
        state,
        simulations,
        seed,
        TabularValues() if evaluated else None,
        c_param=c_param,
        solve=solve,
        in_flight=in_flight,
        max_depth=max_depth,
    )


@settings(max_examples=120)
@given(
    game=st.builds(TabularGame, seed=st.integers(0, 10**6), turn_order=st.sampled_from(["alternate", "double"])),
    seed=st.integers(0, 2**32),
    simulations=st.integers(1, 80),
    forced_depth=st.integers(0, 3),
    minimax_depth=st.integers(0, 3),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 4]),
)
def test_engine_matches_reference_with_forced_moves_and_minimax_guard(
    game: TabularGame, seed: int, simulations: int, forced_depth: int, minimax_depth: int, solve: bool, in_flight: int
) -> None:
    state = game.start()
    if state.is_terminal:
        return
    assert_equal(
        state,
        simulations,
        seed,
        forced_depth=forced_depth,
        minimax_depth=minimax_depth,
        solve=solve,
        in_flight=in_flight,
    )


@settings(max_examples=60)
@given(
    start=st.sampled_from([game for game, about in COMPILED.items() if game is not Chess and not about.has_chance]),
    opening=st.lists(st.integers(0, 10**6), max_size=30),
    seed=st.integers(0, 2**64 - 1),
    simulations=st.integers(1, 150),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 1, 2, 7]),
    max_depth=st.sampled_from([None, None, 2, 8]),
    evaluated=st.booleans(),
    forced_depth=st.sampled_from([0, 0, 2]),
    minimax_depth=st.sampled_from([0, 0, 2]),
)
def test_engine_matches_reference_on_compiled_games(
    start: Any,
    opening: list[int],
    seed: int,
    simulations: int,
    solve: bool,
    in_flight: int,
    max_depth: int | None,
    evaluated: bool,
    forced_depth: int,
    minimax_depth: int,
) -> None:
    """Playouts in the engine draw the same moves as the reference."""
    state = start()
    for number in opening:
        legal = state.legal_actions()
        after = state.play(legal[number % len(legal)])
        if after.is_terminal:
            break
        state = after
    assert_equal(
        state,
        simulations,
        seed,
        TabularValues() if evaluated else None,
        solve=solve,
        in_flight=in_flight,
        max_depth=max_depth,
        forced_depth=forced_depth,
        minimax_depth=minimax_depth,
    )


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize(
    "fen",
    [None, "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", "8/8/8/8/8/5k2/5p2/5K2 b - - 0 1"],
)
def test_engine_matches_reference_on_chess_with_evaluator(fen: str | None, in_flight: int) -> None:
    assert_equal(Chess(fen), 300, 11, TabularValues(), in_flight=in_flight)


def test_engine_matches_reference_with_python_playout_policy() -> None:
    def prefer_the_middle(state: Any) -> list[float]:
        return [1.0 / (1 + abs(action - 3)) for action in state.legal_actions()]

    assert_equal(ConnectFour(), 120, 3, playout_policy=prefer_the_middle)
    assert_equal(TabularGame(5).start(), 120, 3, playout_policy=lambda state: max(state.legal_actions()))


def test_split_simulations_equal_one_run() -> None:
    whole = pondertree.UCT(seed=4).tree(ConnectFour()).simulate(500).result()
    pieces = pondertree.UCT(seed=4).tree(ConnectFour())
    for n in (1, 99, 250, 150):
        pieces.simulate(n)
    assert (pieces.result().visits == whole.visits).all()
