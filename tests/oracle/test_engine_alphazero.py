"""AlphaZero: the engine against the reference implementation."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_alphazero import MATE_IN_ONE, Table, compare_nodes, key_of
from tests.support.search_helpers import fingerprint, random_position
from tests.support.solvers import minimax_value
from tests.support.terms import check_terms
from tests.support.traces import first_difference

import pondertree
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour
from pondertree.random import fold
from pondertree.reference import alphazero
from pondertree.testing.tabular import TabularGame

KING_AND_PAWN = "8/8/8/8/8/5k2/5p2/5K2 b - - 0 1"


TEMPERATURES = (0.0, 1e-9, 0.5, 1.0, 1e9)


@dataclass
class Pair:
    """One search in the reference implementation and in the engine, there with and without a trace."""

    state: Any
    network: Any
    seed: int
    options: dict[str, Any]
    theirs: Any = None

    def __post_init__(self) -> None:
        theirs = self.network if self.theirs is None else self.theirs
        self.reference = alphazero.MCTS(theirs, seed=self.seed, **self.options)
        self.tree = self.reference.tree(self.state, trace=True)
        self.engines = [
            pondertree.AlphaZero(self.network, seed=self.seed, trace=trace, **self.options).tree(self.state)
            for trace in (True, False)
        ]

    def simulate(self, count: int, add_noise: bool | None = None) -> alphazero.Result:
        self.reference.simulate(self.tree, count, add_noise)
        for engine in self.engines:
            engine.simulate(count, add_noise=add_noise)
        difference = first_difference(self.engines[0].trace(), self.tree.trace or [])
        assert difference is None, f"{difference} (a: engine, b: reference)"
        check_terms(self.engines[0].trace())
        assert fingerprint(self.engines[0].result()) == fingerprint(self.engines[1].result())
        for temperature in TEMPERATURES:
            self.compare(temperature)
        result = self.reference.result(self.tree)
        zero_sum = result.root.chooser_value is None and self.reference.discount == 1.0
        compare_nodes(self.engines[1].result().root, result.root, zero_sum=zero_sum)
        return result

    def compare(self, temperature: float) -> None:
        theirs = self.reference.result(self.tree, temperature)
        for engine in self.engines:
            ours = engine.result(temperature=temperature)
            assert ours.simulations == theirs.simulations
            assert {a: int(ours.visits[a]) for a in theirs.visits} == theirs.visits
            assert ours.action == theirs.action
            assert ours.proven == theirs.proven
            assert ours.value == theirs.value
            for action, q in theirs.q.items():
                assert ours.q[action] == q or (math.isnan(q) and math.isnan(ours.q[action]))
            assert {a: ours.policy[a] for a in theirs.policy} == pytest.approx(theirs.policy, abs=1e-12)
            if not theirs.root.children:
                continue
            best = self.reference.result(self.tree).action
            shares = alphazero.policy_at(theirs.root, temperature, best)
            assert {a: ours.policy_at(temperature)[a] for a in shares} == pytest.approx(shares, abs=1e-12)

    def advance(self, action: int) -> None:
        self.reference.advance(self.tree, action)
        for engine in self.engines:
            engine.advance(action)


def assert_equal(state: Any, simulations: int, seed: int, network: Any = None, **options: Any) -> alphazero.Result:
    noise = options.pop("add_noise", None)
    theirs = options.pop("theirs", None)
    return Pair(state, network or Table(), seed, options, theirs).simulate(simulations, noise)


GAMES = st.builds(
    TabularGame,
    seed=st.integers(0, 10**6),
    players=st.sampled_from([1, 2, 2, 2, 3, 4]),
    branching=st.sampled_from([(1, 4), (2, 7), (1, 20)]),
    depth=st.sampled_from([(2, 6), (1, 3), (4, 9)]),
    turn_order=st.sampled_from(["alternate", "random", "double"]),
    rewards=st.booleans(),
)


TABLES = st.builds(
    Table,
    kind=st.sampled_from(["logits", "logits", "probabilities", "even"]),
    levels=st.sampled_from([2, 3, 5, 1001]),
    seed=st.integers(0, 100),
    ruled_out=st.booleans(),
)


OPTIONS = st.fixed_dictionaries(
    {
        "c_puct": st.sampled_from([0.0, 0.3, 1.0, 1.5, 4.0]),
        "fpu": st.sampled_from([0.0, 0.0, -1.0, 0.25, ("parent", 0.0), ("parent", 0.3)]),
        "parent_visits": st.sampled_from(["node", "edges"]),
        "forced_playouts": st.sampled_from([0.0, 0.0, 2.0, 20.0]),
        "dirichlet_alpha": st.sampled_from([0.3, 0.03, 1.0, 2.5, ("total", 10.83), ("total", 0.5)]),
        "dirichlet_epsilon": st.sampled_from([0.25, 0.25, 1.0]),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 1, 2, 8]),
    }
)


SEEDS = st.integers(0, 2**64 - 1)


@settings(max_examples=300)
@given(
    game=GAMES,
    network=TABLES,
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 120),
    noise=st.sampled_from([None, True]),
)
def test_engine_matches_reference_on_random_games(
    game: TabularGame, network: Table, options: dict[str, Any], seed: int, simulations: int, noise: bool | None
) -> None:
    state = game.start()
    if not state.is_terminal:
        assert_equal(state, simulations, seed, network, add_noise=noise, **options)


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=150)
@given(
    game=GAMES,
    network=TABLES,
    options=OPTIONS,
    seed=SEEDS,
    moves=st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from([None, True, True, False]), st.integers(0, 10**6)), max_size=6
    ),
)
def test_engine_matches_reference_with_tree_reuse(
    game: TabularGame,
    network: Table,
    options: dict[str, Any],
    seed: int,
    moves: list[tuple[int, bool | None, int]],
) -> None:
    """With and without noise, by the best move or by a possibly unvisited one."""
    state = game.start()
    if state.is_terminal:
        return
    pair = Pair(state, network, seed, options)
    for count, noise, number in moves:
        result = pair.simulate(count, noise)
        if number % 4 == 0:
            continue  # the same root again: fresh noise, or none
        legal = state.legal_actions()
        action = result.action if number % 3 else legal[number % len(legal)]
        state = state.play(action)
        if state.is_terminal:
            return
        pair.advance(action)


@pytest.mark.parametrize("turn_order", ["alternate", "double"])
@pytest.mark.parametrize("value", [-1, 0, 1])
def test_engine_matches_reference_at_proven_roots(value: int, turn_order: Any) -> None:
    """The shortest win, a drawing move by visits, the longest defence."""
    games = [TabularGame(seed, branching=(2, 4), depth=(1, 3), turn_order=turn_order) for seed in range(1000)]
    decided = [game.start() for game in games if minimax_value(game.start()) == value]
    results = [assert_equal(state, 300, seed, Table(levels=3)) for seed, state in enumerate(decided[:12])]
    # A search may spend all its simulations on a proven draw.
    assert {result.proven for result in results} <= {value, None}
    assert sum(result.proven == value for result in results) > 5


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=80)
@given(
    start=st.sampled_from([game for game, about in COMPILED.items() if game is not Chess and not about.has_chance]),
    plies=st.integers(0, 30),
    network=TABLES,
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 120),
    noise=st.booleans(),
    by_observations=st.booleans(),
)
def test_engine_matches_reference_on_compiled_games(
    start: Any,
    plies: int,
    network: Table,
    options: dict[str, Any],
    seed: int,
    simulations: int,
    noise: bool,
    by_observations: bool,
) -> None:
    state = random_position(start, plies, seed)
    by_observations = by_observations and network.kind == "logits" and not network.ruled_out
    ours = functools.partial(observe, network, state.num_actions) if by_observations else network
    pair = Pair(state, ours, seed, options, network)
    result = pair.simulate(simulations, noise)
    after = state.play(result.action)
    if not after.is_terminal:
        pair.advance(result.action)
        pair.simulate(simulations // 2, noise)


def observe(network: Table, num_actions: int, observations: Any) -> tuple[Any, Any]:
    """The table as a function of observations."""
    keys = [fold(network.seed, key_of(row)) for row in observations]
    return np.array([network.numbers(key, num_actions) for key in keys]), np.array(
        [network.value(fold(key, 0)) for key in keys]
    )


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=60)
@given(
    start=st.sampled_from([game for game, about in COMPILED.items() if game is not Chess and not about.has_chance]),
    plies=st.integers(0, 30),
    which=st.sampled_from(["Uniform", "Rollout"]),
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 120),
    noise=st.booleans(),
)
def test_engine_matches_reference_with_compiled_evaluators(
    start: Any, plies: int, which: str, options: dict[str, Any], seed: int, simulations: int, noise: bool
) -> None:
    state = random_position(start, plies, seed)
    pair = Pair(state, getattr(pondertree.evaluators, which)(), seed, options, getattr(alphazero, which)())
    result = pair.simulate(simulations, noise)
    after = state.play(result.action)
    if not after.is_terminal:
        pair.advance(result.action)
        pair.simulate(simulations // 2, noise)


@settings(max_examples=60)
@given(
    game=GAMES,
    which=st.sampled_from(["Uniform", "Rollout"]),
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 80),
)
def test_compiled_evaluators_match_reference_on_python_games(
    game: TabularGame, which: str, options: dict[str, Any], seed: int, simulations: int
) -> None:
    state = game.start()
    if not state.is_terminal:
        network = getattr(pondertree.evaluators, which)()
        assert_equal(state, simulations, seed, network, theirs=getattr(alphazero, which)(), **options)


@pytest.mark.parametrize("noise", [None, True])
@pytest.mark.parametrize("in_flight", [1, 2, 8])
@pytest.mark.parametrize("fen", [None, MATE_IN_ONE, KING_AND_PAWN])
def test_engine_matches_reference_on_chess(fen: str | None, in_flight: int, noise: bool | None) -> None:
    assert_equal(Chess(fen), 100, 11, in_flight=in_flight, add_noise=noise)


@pytest.mark.parametrize(
    "options",
    [
        {"fpu": -0.5},
        {"fpu": ("parent", 0.2)},
        {"parent_visits": "edges", "c_puct": 1.5},
        {"dirichlet_alpha": ("total", 10.83), "add_noise": True},
        {"solve": False},
        {"network": Table("probabilities")},
    ],
)
def test_engine_matches_reference_for_each_option(options: dict[str, Any]) -> None:
    assert_equal(Chess(MATE_IN_ONE), 80, 3, **options)
    assert_equal(ConnectFour(), 200, 4, **options)


def test_claimable_draws_are_ends_below_root() -> None:
    repeated = Chess()
    for move in ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"]:
        repeated = repeated.play(repeated.parse_action(move))
    assert_equal(repeated, 400, 1, c_puct=4.0)
    slow = assert_equal(Chess("k7/8/8/8/8/8/8/6RK w - - 98 80"), 300, 2)
    assert any(grandchild.end for child in slow.root.children.values() for grandchild in child.children.values())


@pytest.mark.parametrize("in_flight", [1, 8])
def test_engine_matches_reference_in_chess_game_with_reuse_and_noise(in_flight: int) -> None:
    pair = Pair(Chess(), Table(levels=21), 5, {"in_flight": in_flight})
    for _ in range(4):
        pair.advance(pair.simulate(40, True).action)
    pair.simulate(20, False)
    pair.simulate(20, None)
