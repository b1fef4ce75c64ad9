"""The engine's AlphaZero equals the plain Python twin: visit for visit, sum for sum, prior for prior, draw for draw."""

from __future__ import annotations

import functools
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.trees import PythonGame, every_node, fingerprint, random_position

import pondertree
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.random import fold
from pondertree.reference import alphazero as twin
from pondertree.reference.trace import first_difference
from pondertree.testing.tabular import TabularGame, minimax_value

MATE_IN_ONE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
KING_AND_PAWN = "8/8/8/8/8/5k2/5p2/5K2 b - - 0 1"
TEMPERATURES = (0.0, 1e-9, 0.5, 1.0, 1e9)


@dataclass(frozen=True)
class Table:
    """A network whose policy and values are a function of what a state looks like.

    With few `levels` many numbers are equal, so that the order in which ties are drawn matters.
    """

    kind: str = "logits"
    levels: int = 1001
    seed: int = 0
    ruled_out: bool = False
    """Some legal moves get the prior 0, but never the first one."""

    @property
    def policy(self) -> str:
        return "probabilities" if self.kind == "probabilities" else "logits"

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        """For the twin and for the engine alike."""
        keys = [fold(self.seed, key_of(state.observation())) for state in states]
        players = states[0].num_players
        one_number_will_do = players == 1 or (players == 2 and not hasattr(states[0], "rewards"))
        values = np.array([[self.value(fold(key, player)) for player in range(players)] for key in keys])
        policy = np.array([self.numbers(key, states[0].num_actions) for key in keys])
        if self.ruled_out:
            for row, state in zip(policy, states, strict=True):
                others = state.legal_actions()[1:]
                row[others] = np.where(row[others] <= row.min() + 0.1, self.never, row[others])
        return None if self.kind == "even" else policy, values[:, 0] if one_number_will_do else values

    @property
    def never(self) -> float:
        return 0.0 if self.kind == "probabilities" else -math.inf

    def value(self, key: int) -> float:
        return (key % self.levels) / (self.levels - 1) * 2.0 - 1.0

    def numbers(self, key: int, count: int) -> Any:
        parts = np.random.default_rng(key).integers(self.levels, size=count) / (self.levels - 1)
        return parts if self.kind == "probabilities" else 4.0 * parts - 2.0


def key_of(observation: Any) -> int:
    return zlib.crc32(np.asarray(observation, dtype=np.float32).tobytes())


@dataclass
class Pair:
    """The same tree in the twin and in the engine, there recorded and not recorded: recording takes another path."""

    state: Any
    network: Any
    seed: int
    options: dict[str, Any]
    theirs: Any = None

    def __post_init__(self) -> None:
        theirs = self.network if self.theirs is None else self.theirs
        self.twin = twin.MCTS(theirs, seed=self.seed, **self.options)
        self.tree = self.twin.tree(self.state, trace=True)
        self.engines = [
            pondertree.AlphaZero(self.network, seed=self.seed, trace=trace, **self.options).tree(self.state)
            for trace in (True, False)
        ]

    def simulate(self, count: int, add_noise: bool | None = None) -> twin.Result:
        self.twin.simulate(self.tree, count, add_noise)
        for engine in self.engines:
            engine.simulate(count, add_noise=add_noise)
        difference = first_difference(self.engines[0].trace(), self.tree.trace or [])  # type: ignore[arg-type]
        assert difference is None, f"{difference} (a: engine, b: twin)"
        assert fingerprint(self.engines[0].result()) == fingerprint(self.engines[1].result())
        for temperature in TEMPERATURES:
            self.compare(temperature)
        result = self.twin.result(self.tree)
        compare_nodes(self.engines[1].result().root, result.root, zero_sum=result.root.chooser_value is None)
        return result

    def compare(self, temperature: float) -> None:
        theirs = self.twin.result(self.tree, temperature)
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
            best = self.twin.result(self.tree).action
            shares = twin.policy_at(theirs.root, temperature, best)
            assert {a: ours.policy_at(temperature)[a] for a in shares} == pytest.approx(shares, abs=1e-12)

    def advance(self, action: int) -> None:
        self.twin.advance(self.tree, action)
        for engine in self.engines:
            engine.advance(action)


def compare_nodes(engine: pondertree.Node, root: twin.Node, *, zero_sum: bool) -> None:
    """Every node and every move: order, visits, sums, priors with and without noise, proofs, nothing in flight."""
    assert engine.visit_count == root.visit_count
    assert engine.total_value == pytest.approx(root.total_value, abs=1e-9)
    stack = [(engine, root)]
    while stack:
        ours, theirs = stack.pop()
        assert ours.proven == theirs.proven
        assert ours.to_play == theirs.to_play
        assert list(ours.children) == list(theirs.children)
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        if theirs.children:
            assert ours.raw_value == theirs.raw_value
        for action, child in theirs.children.items():
            mine = ours.children[action]
            assert mine.prior == child.prior
            if ours.parent is None:
                assert mine.clean_prior == child.clean_prior
            assert (mine.visit_count, mine.in_flight, child.in_flight) == (child.visit_count, 0, 0)
            assert mine._edge["sum"] == child.total_for_chooser
            if child.position is not None:
                exactly = 0.0 if zero_sum else 1e-9
                assert mine.total_value == pytest.approx(child.total_value, rel=0.0, abs=exactly)
                stack.append((mine, child))


def assert_equal(state: Any, simulations: int, seed: int, network: Any = None, **options: Any) -> twin.Result:
    noise = options.pop("add_noise", None)
    theirs = options.pop("theirs", None)
    return Pair(state, network or Table(), seed, options, theirs).simulate(simulations, noise)


# --- Any game, any option ---------------------------------------------------------------------------------------

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
    """With noise or without, along the answer or along a move that was perhaps never tried."""
    state = game.start()
    if state.is_terminal:
        return
    pair = Pair(state, network, seed, options)
    for count, noise, number in moves:
        result = pair.simulate(count, noise)
        if number % 4 == 0:
            continue  # the same root again: noise anew, or out again
        legal = state.legal_actions()
        action = result.action if number % 3 else legal[number % len(legal)]
        state = state.play(action)
        if state.is_terminal:
            return
        pair.advance(action)


@pytest.mark.parametrize("turn_order", ["alternate", "double"])
@pytest.mark.parametrize("value", [-1, 0, 1])
def test_engine_matches_reference_at_proven_roots(value: int, turn_order: Any) -> None:
    """The shortest win, a drawing move by its visits, the longest defence."""
    games = [TabularGame(seed, branching=(2, 4), depth=(1, 3), turn_order=turn_order) for seed in range(1000)]
    decided = [game.start() for game in games if minimax_value(game.start()) == value]
    results = [assert_equal(state, 300, seed, Table(levels=3)) for seed, state in enumerate(decided[:12])]
    # A search may spend its simulations on a proven draw and leave the rest open.
    assert {result.proven for result in results} <= {value, None}
    assert sum(result.proven == value for result in results) > 5


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=80)
@given(
    start=st.sampled_from([TicTacToe, ConnectFour, Othello]),
    plies=st.integers(0, 30),
    network=TABLES,
    options=OPTIONS,
    seed=SEEDS,
    simulations=st.integers(1, 120),
    noise=st.booleans(),
    observed=st.booleans(),
)
def test_engine_matches_reference_on_compiled_games(
    start: Any,
    plies: int,
    network: Table,
    options: dict[str, Any],
    seed: int,
    simulations: int,
    noise: bool,
    observed: bool,
) -> None:
    state = random_position(start, plies, seed)
    observed = observed and network.kind == "logits" and not network.ruled_out
    ours = functools.partial(observe, network) if observed else network
    pair = Pair(state, ours, seed, options, network)
    result = pair.simulate(simulations, noise)
    after = state.play(result.action)
    if not after.is_terminal:
        pair.advance(result.action)
        pair.simulate(simulations // 2, noise)


def observe(network: Table, observations: Any) -> tuple[Any, Any]:
    """The table as a plain function of observations, which is one of the forms the engine takes."""
    keys = [fold(network.seed, key_of(row)) for row in observations]
    count = {9: 9, 42: 7, 64: 65}[observations[0, 0].size]
    return np.array([network.numbers(key, count) for key in keys]), np.array(
        [network.value(fold(key, 0)) for key in keys]
    )


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=60)
@given(
    start=st.sampled_from([TicTacToe, ConnectFour, Othello]),
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
    pair = Pair(state, getattr(pondertree.evaluators, which)(), seed, options, getattr(twin, which)())
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
        assert_equal(state, simulations, seed, network, theirs=getattr(twin, which)(), **options)


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


# --- The engine alone: what must not change a tree ---------------------------------------------------------------


@pytest.mark.parametrize("evaluator", [Table(), pondertree.evaluators.Uniform(), pondertree.evaluators.Rollout()])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_row_does_not_depend_on_batch(evaluator: Any, in_flight: int) -> None:
    states = [random_position(ConnectFour, plies, plies) for plies in range(20)]
    seeds = [7 * row for row in range(20)]
    options: dict[str, Any] = {"num_simulations": 80, "in_flight": in_flight}
    noise = [row % 2 == 0 for row in range(20)]
    together = pondertree.AlphaZero(evaluator, **options).run(states, seeds=seeds, add_noise=noise)
    for row, result in enumerate(together):
        alone = pondertree.AlphaZero(evaluator, **options).run(states[row], seeds=seeds[row], add_noise=noise[row])
        assert fingerprint(alone) == fingerprint(result)
        reference = twin.MCTS(THEIRS.get(type(evaluator), lambda: evaluator)(), seed=seeds[row], **options)
        theirs = reference.run(states[row], add_noise=noise[row])
        compare_nodes(result.root, theirs.root, zero_sum=True)


THEIRS: dict[type, Any] = {pondertree.evaluators.Uniform: twin.Uniform, pondertree.evaluators.Rollout: twin.Rollout}


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


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
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


# --- What a search must always satisfy --------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
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
