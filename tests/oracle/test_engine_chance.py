"""Games with chance: the engine against the reference implementation, and both against exact values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chance_games import Reroll
from tests.support.engine_alphazero import Table, key_of
from tests.support.random_games import GAMES, distances
from tests.support.terms import check_terms
from tests.support.traces import first_difference

import pondertree
from pondertree.game import CHANCE
from pondertree.random import fold
from pondertree.reference import alphazero, gumbel, uct
from pondertree.testing.tabular import TabularGame


class PlayerTable(Table):
    """A network whose values are one number per player, never asked about chance nodes."""

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        assert all(state.to_play != CHANCE for state in states)
        policy, _ = super().evaluate_states(states)
        return policy, np.array([self.values(state) for state in states])

    def values(self, state: Any) -> list[float]:
        key = fold(self.seed, key_of(state.observation()))
        first = self.value(fold(key, 0))
        if state.num_players == 2 and state.zero_sum:
            return [first, -first]
        return [self.value(fold(key, player)) for player in range(state.num_players)]


TABLE = PlayerTable()


def pairs(seed: int, **options: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Returns makers of (reference search, engine search) by preset."""
    return {
        "uct": (
            lambda: uct.MCTS(seed=seed, **options),
            lambda: pondertree.UCT(seed=seed, trace=True, **options),
        ),
        "uct_evaluated": (
            lambda: uct.MCTS(seed=seed, evaluator=TABLE, max_depth=2, **options),
            lambda: pondertree.UCT(seed=seed, evaluator=TABLE, max_depth=2, trace=True, **options),
        ),
        "alphazero": (
            lambda: alphazero.MCTS(TABLE, seed=seed, fpu=("parent", 0.2), **options),
            lambda: pondertree.AlphaZero(TABLE, seed=seed, fpu=("parent", 0.2), trace=True, **options),
        ),
        "gumbel": (
            lambda: gumbel.MCTS(TABLE, seed=seed, max_num_considered_actions=3, **options),
            lambda: pondertree.Gumbel(TABLE, seed=seed, max_num_considered_actions=3, trace=True, **options),
        ),
    }


PRESETS = list(pairs(0))


def compare(engine: pondertree.Node, reference: Any) -> int:
    """Compares all nodes; returns the number of chance nodes."""
    chances, stack = 0, [(engine, reference)]
    while stack:
        ours, theirs = stack.pop()
        visited = theirs.visit_count and theirs.is_chance
        known = [outcome for outcome, _, _ in theirs.outcomes()] if visited else list(theirs.children)
        assert list(ours.children) == known
        assert ours.proven == theirs.proven
        if theirs.proven is not None:
            assert ours.distance == theirs.distance
        if theirs.end is None and theirs.visit_count:
            assert ours.to_play == theirs.to_play
        if theirs.is_chance and theirs.visit_count:
            chances += 1
            assert ours.is_chance
            assert theirs.proven is not None or ours.visit_count == sum(c.visit_count for c in ours.children.values())
            assert [child.prior for child in ours.children.values()] == [p for _, p, _ in theirs.outcomes()]
        for action, child in theirs.children.items():
            mine = ours.children[action]
            assert (mine.visit_count, mine.in_flight, child.in_flight) == (child.visit_count, 0, 0)
            assert mine._edge["sum"] == child.total_for_chooser
            stack.append((mine, child))
    return chances


def assert_equal(state: Any, preset: str, simulations: int, seed: int, **options: Any) -> int:
    """Runs both searches and compares traces, results and trees; returns the number of chance nodes."""
    make_reference, make_engine = pairs(seed, **options)[preset]
    search, tree = make_reference(), make_engine().tree(state)
    theirs = search.tree(state, trace=True)
    for count in (simulations // 3, simulations - simulations // 3):
        search.simulate(theirs, count)
        tree.simulate(count)
    difference = first_difference(tree.trace(), theirs.trace)
    assert difference is None, f"{difference} (a: engine, b: reference)"
    check_terms(tree.trace())
    ours, reference = tree.result(), search.result(theirs)
    assert {action: int(ours.visits[action]) for action in reference.visits} == reference.visits
    assert (ours.action, ours.proven, ours.simulations) == (reference.action, reference.proven, reference.simulations)
    assert ours.value == reference.value
    for action, q in reference.q.items():
        assert ours.q[action] == q or (np.isnan(q) and np.isnan(ours.q[action]))
    assert {a: ours.policy[a] for a in reference.policy} == pytest.approx(reference.policy, abs=1e-9)
    return compare(ours.root, reference.root)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("number", range(0, 200, 10))
def test_engine_matches_reference_on_games_with_chance(preset: str, number: int) -> None:
    """Each of the 200 games with one of the eight combinations of options, another one in every preset."""
    chances = 0
    for each in range(number, number + 10):
        combination = each + PRESETS.index(preset)
        chances += assert_equal(
            GAMES[each].start(),
            preset,
            40 + each % 50,
            each,
            in_flight=(1, 4)[combination % 2],
            solve=bool(combination // 2 % 2),
            chance=("balanced", "sample")[combination // 4 % 2],
        )
    assert chances > 0


@settings(max_examples=60, deadline=None)
@given(
    number=st.integers(0, 199),
    preset=st.sampled_from(PRESETS),
    seed=st.integers(0, 2**64 - 1),
    simulations=st.integers(1, 150),
    in_flight=st.sampled_from([1, 1, 2, 8]),
    solve=st.booleans(),
    chance=st.sampled_from(["balanced", "sample"]),
    chance_width=st.sampled_from([1, 3, 36]),
)
def test_engine_matches_reference_with_any_options(
    number: int,
    preset: str,
    seed: int,
    simulations: int,
    in_flight: int,
    solve: bool,
    chance: str,
    chance_width: int,
) -> None:
    options = {"in_flight": in_flight, "solve": solve, "chance": chance, "chance_width": chance_width}
    assert_equal(GAMES[number].start(), preset, simulations, seed, **options)


@settings(max_examples=30, deadline=None)
@given(
    number=st.integers(0, 10**6),
    seed=st.integers(0, 2**32),
    simulations=st.integers(1, 80),
    forced_depth=st.integers(0, 3),
    minimax_depth=st.integers(0, 3),
    in_flight=st.sampled_from([1, 4]),
)
def test_look_ahead_stops_at_chance(
    number: int, seed: int, simulations: int, forced_depth: int, minimax_depth: int, in_flight: int
) -> None:
    state = TabularGame(number, turn_order="double", chance=0.4).start()
    options = {"forced_depth": forced_depth, "minimax_depth": minimax_depth, "in_flight": in_flight}
    assert_equal(state, "uct", simulations, seed, **options)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("in_flight", [1, 3])
def test_tree_is_reused_over_an_outcome(preset: str, in_flight: int) -> None:
    """After an action and an outcome the subtree is kept, and the engine goes on as the reference does."""
    reused = 0
    for each in GAMES[:60]:
        make_reference, make_engine = pairs(1, in_flight=in_flight, solve=False)[preset]
        search, tree, state = make_reference(), make_engine().tree(each.start()), each.start()
        theirs = search.tree(state, trace=True)
        for _ in range(3):
            search.simulate(theirs, 60)
            tree.simulate(60)
            assert first_difference(tree.trace(), theirs.trace) is None
            action = int(tree.result().action)
            expected = tree.result().root.children[action]
            while True:
                state = state.play(action)
                if state.is_terminal:
                    break
                tree.advance(action)
                if hasattr(search, "advance"):
                    search.advance(theirs, action)
                if state.to_play != CHANCE:
                    break
                assert tree.waits_for_outcome()
                with pytest.raises(ValueError, match="chance node"):
                    tree.simulate(1)
                with pytest.raises(ValueError, match="chance node"):
                    tree.result()
                action = max(expected.children, key=lambda outcome: expected.children[outcome].visit_count)
                expected = expected.children[action]
            if state.is_terminal or not hasattr(search, "advance"):
                break
            assert not tree.waits_for_outcome()
            if expected.visit_count > 1 and not expected.is_terminal:
                reused += 1
                assert tree.result().root.visit_count == expected.visit_count
    assert reused > 0 or preset.startswith("uct")


def test_threads_and_batches_do_not_change_trees() -> None:
    states = [TabularGame(seed, chance=0.4).start() for seed in range(12)]
    states = [state for state in states if not state.is_terminal]
    for options in ({}, {"in_flight": 4}, {"chance": "sample"}):
        found = [
            [result.visits.tolist() for result in pondertree.UCT(200, seed=3, threads=threads, **options).run(states)]
            for threads in (1, 2)
        ]
        alone = [pondertree.UCT(200, **options).run(state, seeds=5).visits.tolist() for state in states]
        batch = pondertree.UCT(200, **options).run(states, seeds=[5] * len(states))
        assert found[0] == found[1]
        assert [result.visits.tolist() for result in batch] == alone


@pytest.mark.parametrize("chance", ["balanced", "sample"])
def test_values_converge_to_exact_ones(chance: str) -> None:
    """The mean error of the root against expectimax, over games of every class."""
    numbers = range(0, len(GAMES), 7)
    few, many = (float(np.mean(distances(count, numbers, chance=chance))) for count in (1_000, 10_000))
    assert many <= 0.05
    assert many < few


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("chance", ["balanced", "sample"])
def test_reroll_ends_and_matches_reference(preset: str, in_flight: int, chance: str) -> None:
    """The most probable outcome leads to another throw, which the balanced choice alone would follow for ever."""
    for seed in range(5):
        assert assert_equal(Reroll(), preset, 200, seed, in_flight=in_flight, chance=chance) > 1


def test_reroll_has_its_expected_value() -> None:
    result = pondertree.UCT(3000, seed=1).run(Reroll())
    assert result.q[1] == pytest.approx(0.5, abs=0.05)
    assert result.action == 1
