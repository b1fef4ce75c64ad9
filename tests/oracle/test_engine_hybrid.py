"""Hybrid chess search: the engine against the reference implementation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_alphazero import Table
from tests.support.engine_hybrid import Pair, assert_equal
from tests.support.hybrid import ENDGAME, MATE_IN_ONE, MIDDLEGAME, PRIORITIES, TACTICS, forced_mates, mirror
from tests.support.search_helpers import after, fingerprint, random_position

import pondertree
from pondertree.chess import MoveScores, PestoPolicy
from pondertree.games import Chess
from pondertree.random import fold

PROMOTIONS = "8/PPP4k/8/8/8/8/4Kppp/8 w - - 0 1"


@dataclass(frozen=True)
class MoveTable:
    """A policy network with the specification's interface; some moves get no prior. Few `levels` make many ties."""

    levels: int = 1001

    def evaluate(self, state: Any) -> tuple[dict[int, float], float]:
        legal = state.legal_actions()
        key = fold(0, sum(action * action for action in legal))
        priors = {action: float(fold(key, action) % self.levels) for action in legal if fold(key, action) % 5}
        return priors, key % self.levels / (self.levels - 1)


#: Random scores for all features.
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


# --- Any position, any option -----------------------------------------------------------------------------------------


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
    """By the best move or a possibly unvisited one; killers are kept, history scores halved."""
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


# --- One thing at a time ----------------------------------------------------------------------------------------------


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
    """The subtree of a mate is discarded, and each root has its own mate search."""
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
    """The opponent moves into a mate that the reused subtree has not proven."""
    for fen in forced_mates(2)[:40]:
        for before in predecessors(Chess(fen)):
            pair = Pair(before, {"solve": solve, "seed": 3, "mate_search_depth": 2, "priority": "tactical"})
            pair.simulate(150)
            for action in before.legal_actions():
                if pair.tree.root.proven is None and mates_in_two(before.play(action)):
                    pair.advance(action)
                    pair.simulate(5)
                    mating = pair.reference.result(pair.tree).action
                    if not before.play(action).play(mating).is_terminal:
                        pair.advance(mating)
                        pair.simulate(5)
                    break


@pytest.mark.parametrize("solve", [True, False])
@pytest.mark.parametrize("priority", PRIORITIES)
def test_engine_matches_reference_for_loss_found_at_reused_root(priority: str | None, solve: bool) -> None:
    """The mate is one move beyond the search depth; once it is played, the opponent's root is a proven loss."""
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
            pair.advance(pair.reference.result(pair.tree).action)
            assert pair.simulate(5).proven == 1
    assert late > 3 or solve


def predecessors(state: Any) -> list[Any]:
    """Returns the position with the other side to move, if it is legal."""
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
    """The engine recognises it and skips the conversion from [0, 1], which would round."""
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
    batch = pondertree.Hybrid(threads=2, **options).run(states, seeds=list(range(len(states))))
    assert list(map(fingerprint, alone)) == list(map(fingerprint, batch))
