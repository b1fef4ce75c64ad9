"""The engine's Hybrid equals the plain Python twin: visit for visit, category for category, mate for mate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.test_engine_alphazero import Table
from tests.reference.test_hybrid import ENDGAME, MATE_IN_ONE, MIDDLEGAME, PRIORITIES, TACTICS, forced_mates, mirror
from tests.support.trees import after, fingerprint, random_position

import pondertree
from pondertree.chess import MoveScores, PestoPolicy
from pondertree.games import Chess
from pondertree.random import fold
from pondertree.reference import hybrid as twin
from pondertree.reference.answer import policy_at
from pondertree.reference.trace import first_difference

TEMPERATURES = (0.0, 1.0, 1e9)
PROMOTIONS = "8/PPP4k/8/8/8/8/4Kppp/8 w - - 0 1"


@dataclass
class Pair:
    """The same tree in the twin and in the engine, there recorded and not recorded: recording takes another path."""

    state: Any
    options: dict[str, Any]
    threads: int = 1

    def __post_init__(self) -> None:
        # The engine's default is what matches have shown to be strong, the twin's is the specification's.
        self.options = {"priority": "strict", "move_scores": None, **self.options}
        names = {"category_weights": "weights"}
        told = {names.get(name, name): value for name, value in self.options.items()}
        scores = told.pop("move_scores")
        self.twin = twin.MCTS(**told, move_scores=None if scores is None else scores.compiled)
        self.tree = self.twin.tree(self.state, trace=True)
        self.engines = [
            pondertree.Hybrid(trace=trace, threads=self.threads, **self.options).tree(self.state)
            for trace in (True, False)
        ]

    def simulate(self, count: int) -> twin.Result:
        self.twin.simulate(self.tree, count)
        for engine in self.engines:
            engine.simulate(count)
        difference = first_difference(self.engines[0].trace(), self.tree.trace or [])  # type: ignore[arg-type]
        assert difference is None, f"{difference} (a: engine, b: twin)"
        assert fingerprint(self.engines[0].result()) == fingerprint(self.engines[1].result())
        for temperature in TEMPERATURES:
            self.compare(temperature)
        compare_nodes(self.engines[1].result().root, self.tree.root)
        return self.twin.result(self.tree)

    def compare(self, temperature: float) -> None:
        theirs = self.twin.result(self.tree, temperature)
        best = self.twin.result(self.tree).action
        shares = policy_at(theirs.root, temperature, best)
        for engine in self.engines:
            ours = engine.result(temperature=temperature)
            assert ours.simulations == theirs.simulations
            assert {action: int(ours.visits[action]) for action in theirs.visits} == theirs.visits
            assert (ours.action, ours.proven, ours.value) == (theirs.action, theirs.proven, theirs.value)
            for action, q in theirs.q.items():
                # A move that mate search has decided has an exact value before its first visit.
                child = theirs.root.children.get(action)
                if child is None or child.visits > 0:
                    assert ours.q[action] == q or (math.isnan(q) and math.isnan(ours.q[action]))
            assert {action: ours.policy[action] for action in theirs.policy} == pytest.approx(theirs.policy, abs=1e-12)
            assert {action: ours.policy_at(temperature)[action] for action in shares} == pytest.approx(shares)

    def advance(self, action: int) -> None:
        self.twin.advance(self.tree, action)
        for engine in self.engines:
            engine.advance(action)


def compare_nodes(engine: pondertree.Node, root: twin.MctsNode) -> None:
    """Every node and every move: order, visits, sums, priors, categories, exact values, nothing in flight."""
    assert engine.visit_count == root.visits
    assert engine.total_value == pytest.approx(root.total_value, abs=1e-9)
    stack = [(engine, root)]
    while stack:
        ours, theirs = stack.pop()
        assert (ours.proven, ours.to_play) == (theirs.proven, theirs.to_play)
        assert ours.terminal_or_mate_value == theirs.terminal_or_mate_value
        assert ours.nn_value == theirs.nn_value
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        # The moves of a root that was never evaluated have no priors, and those never tried are not shown.
        never_tried = (theirs.unexplored or []) if theirs.priors is not None else []
        assert list(ours.children) == [*theirs.children, *never_tried]
        for action, mine in ours.children.items():
            if theirs.categories and action in theirs.categories:
                assert mine.category in (theirs.categories[action], None)
            if theirs.priors is not None:
                assert mine.prior == theirs.priors[action]
            assert mine.in_flight == 0
            child = theirs.children.get(action)
            if child is None:
                assert mine.visit_count == 0
                continue
            assert mine.visit_count == child.visits
            assert mine._edge["sum"] == child.total_for_chooser
            assert mine.total_value == child.total_value
            stack.append((mine, child))


def assert_equal(state: Any, simulations: int, *, threads: int = 1, **options: Any) -> twin.Result:
    return Pair(state, options, threads).simulate(simulations)


@dataclass(frozen=True)
class MoveTable:
    """A policy network in the specification's form; some moves get no prior. With few `levels` there are many ties."""

    levels: int = 1001

    def evaluate(self, state: Any) -> tuple[dict[int, float], float]:
        legal = state.legal_actions()
        key = fold(0, sum(action * action for action in legal))
        priors = {action: float(fold(key, action) % self.levels) for action in legal if fold(key, action) % 5}
        return priors, key % self.levels / (self.levels - 1)


#: Scores without sense, of which all features have some.
SHARP = MoveScores([place * 7919 % 3001 - 1500 for place in range(len(MoveScores().weights))])

FENS = [None, MATE_IN_ONE, TACTICS, MIDDLEGAME, ENDGAME, PROMOTIONS, *forced_mates(2)[:3], *forced_mates(3)[:3]]
POSITIONS = st.one_of(
    st.sampled_from(FENS).map(Chess),
    st.sampled_from(FENS[1:]).map(lambda fen: Chess(mirror(fen))),
    st.builds(random_position, st.just(Chess), st.integers(0, 80), st.integers(0, 10**6)),
)
OPTIONS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PRIORITIES),
        "move_scores": st.sampled_from([None, MoveScores(), SHARP]),
        "mate_search_depth": st.integers(0, 3),
        "exploration_constant": st.sampled_from([0.0, 0.4, 1.5, 4.0]),
        "fpu": st.sampled_from([0.0, -1.0, 0.25, ("parent", 0.0), ("parent", 0.3)]),
        "see_threshold": st.sampled_from([0, 0, 50, 400]),
        "quiescence": st.booleans(),
        "solve": st.booleans(),
        "in_flight": st.integers(1, 8),
        "seed": st.integers(0, 2**64 - 1),
    }
)


# --- Any position, any option -----------------------------------------------------------------------------------


@settings(max_examples=150)
@given(state=POSITIONS, options=OPTIONS, threads=st.integers(1, 2), simulations=st.integers(1, 150))
def test_engine_matches_reference_for_random_positions_and_options(
    state: Any, options: dict[str, Any], threads: int, simulations: int
) -> None:
    assert_equal(state, simulations, threads=threads, **options)


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=80)
@given(
    state=POSITIONS,
    options=OPTIONS,
    threads=st.integers(1, 2),
    moves=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 10**6)), max_size=6),
)
def test_engine_matches_reference_with_tree_reuse(
    state: Any, options: dict[str, Any], threads: int, moves: list[tuple[int, int]]
) -> None:
    """Along the answer, or along a move that was perhaps never tried; killers are kept, history fades."""
    pair = Pair(state, options, threads)
    for count, number in moves:
        result = pair.simulate(count)
        if number % 5 == 0:
            continue  # the same root again
        legal = state.legal_actions()
        action = result.action if number % 4 else legal[number % len(legal)]
        state = state.play(action)
        if state.is_terminal:
            return
        pair.advance(action)


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=60)
@given(
    state=POSITIONS,
    options=OPTIONS,
    evaluator=st.sampled_from([None, Table(), Table(levels=3), Table("probabilities", 5), Table("even", 3)]),
    levels=st.sampled_from([3, 1001]),
    simulations=st.integers(1, 80),
)
def test_engine_matches_reference_with_evaluators_and_policy_networks(
    state: Any, options: dict[str, Any], evaluator: Any, levels: int, simulations: int
) -> None:
    options = {name: value for name, value in options.items() if name != "quiescence"}
    said = {"policy_network": MoveTable(levels)} if evaluator is None else {"evaluator": evaluator}
    pair = Pair(state, {**said, **options})
    result = pair.simulate(simulations)
    if not state.play(result.action).is_terminal:
        pair.advance(result.action)
        pair.simulate(simulations // 2)


# --- One thing at a time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("fen", [None, TACTICS, MIDDLEGAME, mirror(TACTICS)])
def test_engine_matches_reference_for_each_priority(fen: str | None, priority: str | None) -> None:
    assert_equal(Chess(fen), 400, priority=priority, seed=11)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("solve", [True, False])
def test_engine_matches_reference_for_each_mate_search_depth(depth: int, solve: bool) -> None:
    for moves in (2, 3):
        for fen in forced_mates(moves)[:5]:
            assert_equal(Chess(fen), 150, mate_search_depth=depth, solve=solve, seed=2)
            assert_equal(Chess(mirror(fen)), 150, mate_search_depth=depth, solve=solve, seed=2, in_flight=3)


@pytest.mark.parametrize("in_flight", range(1, 9))
def test_engine_matches_reference_for_each_batch_size(in_flight: int) -> None:
    for threads in (1, 2):
        assert_equal(Chess(TACTICS), 200, threads=threads, in_flight=in_flight, seed=5, mate_search_depth=2)


@pytest.mark.parametrize("quiescence", [True, False])
@pytest.mark.parametrize("fpu", [0.0, -0.5, ("parent", 0.2)])
def test_engine_matches_reference_for_quiescence_and_fpu(quiescence: bool, fpu: Any) -> None:
    for priority in PRIORITIES:
        assert_equal(Chess(MIDDLEGAME), 150, priority=priority, quiescence=quiescence, fpu=fpu, seed=4)


def test_engine_matches_reference_with_move_scores() -> None:
    for scores in (MoveScores(), SHARP):
        for fen in (TACTICS, MIDDLEGAME, ENDGAME, PROMOTIONS):
            options: dict[str, Any] = {"priority": "prior", "move_scores": scores, "seed": 8}
            assert_equal(Chess(fen), 200, **options)
            assert_equal(Chess(fen), 100, evaluator=Table(levels=3), in_flight=4, **options)


def test_engine_matches_reference_with_category_weights() -> None:
    weights = (5.0, 3.0, 0.1, 7.0, 1.0, 0.3, 11.0, 2.0, 1.0, 1e-3)
    for evaluator in (None, Table(levels=3)):
        options = {"evaluator": evaluator, "category_weights": weights, "priority": "prior", "seed": 8}
        assert_equal(Chess(TACTICS), 200, **options)


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_engine_matches_reference_in_game_with_tree_reuse(priority: str | None, in_flight: int) -> None:
    pair = Pair(Chess(MIDDLEGAME), {"priority": priority, "in_flight": in_flight, "seed": 9, "mate_search_depth": 2})
    for _ in range(6):
        pair.advance(pair.simulate(80).action)
    pair.simulate(80)


@pytest.mark.parametrize("solve", [True, False])
def test_engine_plays_mate_to_its_end(solve: bool) -> None:
    """Nothing is kept of a mate: each root is searched anew, whatever was known of it."""
    for fen in forced_mates(3)[:5]:
        state = Chess(fen)
        pair = Pair(state, {"solve": solve, "seed": 1})
        for distance in (5, 4, 3, 2, 1):
            result = pair.simulate(10)
            assert (result.root.distance, result.simulations) == (distance, 0)
            state = state.play(result.action)
            if distance > 1:
                pair.advance(result.action)
        assert state.termination == "checkmate"


@pytest.mark.parametrize("solve", [True, False])
def test_engine_matches_reference_for_mate_found_at_reused_root(solve: bool) -> None:
    """The opponent walks into a mate that the tree below has searched without seeing it to the end."""
    for fen in forced_mates(2)[:40]:
        for before in predecessors(Chess(fen)):
            pair = Pair(before, {"solve": solve, "seed": 3, "mate_search_depth": 2, "priority": "tactical"})
            pair.simulate(150)
            for action in before.legal_actions():
                if pair.tree.root.proven is None and mates_in_two(before.play(action)):
                    pair.advance(action)
                    pair.simulate(5)
                    mating = pair.twin.result(pair.tree).action
                    if not before.play(action).play(mating).is_terminal:
                        pair.advance(mating)
                        pair.simulate(5)
                    break


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_engine_matches_reference_for_loss_found_at_reused_root(priority: str | None, solve: bool) -> None:
    """The mate is a move too long to be seen, and is played all the same: the other side then sees that it is lost."""
    late = 0
    for fen in forced_mates(3)[:12]:
        state = Chess(fen)
        mating = pondertree.chess.mate_search(state, 3).action
        assert mating is not None
        pair = Pair(state, {"solve": solve, "seed": 3, "mate_search_depth": 1, "priority": priority})
        if pair.simulate(150).proven is None:
            pair.advance(mating)
            late += pair.tree.root.visits > 0
            assert pair.simulate(5).proven == -1
            pair.advance(pair.twin.result(pair.tree).action)
            assert pair.simulate(5).proven == 1
    assert late > 3 or solve


def predecessors(state: Any) -> list[Any]:
    """The same pieces with the other side to move, if that is a position."""
    board, turn, *rest = state.fen().split()
    try:
        before = Chess(" ".join([board, "b" if turn == "w" else "w", *rest]))
    except ValueError:
        return []
    return [] if before.is_terminal else [before]


def mates_in_two(state: Any) -> bool:
    return not state.is_terminal and pondertree.chess.mate_search(state, 2).kind == "mate_in"


def test_engine_matches_reference_on_draws_in_tree() -> None:
    repeated = after(Chess(), "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1")
    slow = Chess("k7/8/8/8/8/8/8/6RK w - - 97 80")
    for priority in PRIORITIES:
        assert_equal(repeated, 200, priority=priority, seed=6)
        assert_equal(slow, 300, priority=priority, seed=6, mate_search_depth=1)
        pair = Pair(repeated, {"priority": priority, "seed": 6})
        pair.simulate(100)
        pair.advance(repeated.parse_action("f6g8"))
        pair.simulate(50)


def test_pesto_policy_matches_pesto() -> None:
    """The engine knows it, and does not take its values through the range from 0 to 1, where they would be rounded."""
    options: dict[str, Any] = {"seed": 7, "mate_search_depth": 2, "num_simulations": 200}
    for quiescence in (True, False):
        pesto = pondertree.Hybrid(quiescence=quiescence, **options).run(Chess(TACTICS))
        policy = pondertree.Hybrid(policy_network=PestoPolicy(quiescence=quiescence), **options).run(Chess(TACTICS))
        assert fingerprint(pesto) == fingerprint(policy)


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("in_flight", [1, 6])
def test_threads_and_batches_do_not_change_tree(priority: str | None, in_flight: int) -> None:
    options: dict[str, Any] = {"priority": priority, "in_flight": in_flight, "num_simulations": 200, "seed": 1}
    states = [Chess(fen) for fen in (None, TACTICS, MIDDLEGAME)]

    def trees(threads: int) -> list[Any]:
        return [fingerprint(result) for result in pondertree.Hybrid(threads=threads, **options).run(states)]

    assert trees(1) == trees(2)
    alone = [pondertree.Hybrid(threads=2, **options).run(state, seeds=[row]) for row, state in enumerate(states)]
    together = pondertree.Hybrid(threads=2, **options).run(states, seeds=list(range(len(states))))
    assert list(map(fingerprint, alone)) == list(map(fingerprint, together))
