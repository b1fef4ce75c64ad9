"""Compiled games with chance, one player and rewards: the engine against the reference implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.test_engine_chance import assert_equal
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree.evaluators import Rollout, Uniform
from pondertree.game import CHANCE, COMPILED
from pondertree.random import Random, draw

STOCHASTIC = [game.state for game in COMPILED.values() if game.max_outcomes > 0]


def position(start: Any, seed: int, plies: int) -> Any:
    """Returns a decision after random moves and outcomes."""
    random, state = Random(seed, 1), start
    found = None
    for _ in range(plies + 40):
        if state.is_terminal:
            break
        if state.to_play != CHANCE:
            found = state
            if plies <= 0:
                break
            legal = state.legal_actions()
            state = state.play(legal[random.choose(len(legal))])
        else:
            outcomes = state.chance_outcomes()
            state = state.play(outcomes[draw([p for _, p in outcomes], random)][0])
        plies -= 1
    assert found is not None
    return found


@settings(max_examples=25, deadline=None)
@given(
    start=st.sampled_from(STOCHASTIC),
    seed=st.integers(0, 10**6),
    plies=st.integers(0, 120),
    preset=st.sampled_from(["uct", "uct_evaluated", "alphazero", "gumbel"]),
    simulations=st.integers(1, 40),
    in_flight=st.sampled_from([1, 1, 3, 8]),
    solve=st.booleans(),
    chance=st.sampled_from(["balanced", "sample"]),
    chance_width=st.sampled_from([4, 36]),
)
def test_engine_matches_reference_on_compiled_games(
    start: Any,
    seed: int,
    plies: int,
    preset: str,
    simulations: int,
    in_flight: int,
    solve: bool,
    chance: str,
    chance_width: int,
) -> None:
    state = position(start(), seed, plies)
    options = {"in_flight": in_flight, "solve": solve, "chance": chance, "chance_width": chance_width}
    if preset == "uct":
        # Whole random games take the reference hundreds of moves.
        options["max_depth"] = (0, 5, 20)[simulations % 3]
    if preset.startswith("uct") and simulations % 2 and state.num_players == 2:
        options |= {"forced_depth": 2, "minimax_depth": 2}
    assert_equal(state, preset, simulations, seed, **options)


@pytest.mark.parametrize("start", STOCHASTIC)
@pytest.mark.parametrize("options", [{}, {"in_flight": 4}, {"chance": "sample"}])
def test_tree_is_reused_saved_and_independent_of_threads(start: Any, options: dict[str, Any], tmp_path: Path) -> None:
    state = position(start(), 3, 10)
    for search in (
        pondertree.UCT(seed=2, **options),
        pondertree.AlphaZero(Rollout(), seed=2, **options),
        pondertree.Gumbel(Uniform(), seed=2, **options),
    ):
        tree, random = search.tree(state).simulate(200), Random(5, 1)
        for _ in range(3):
            root, action = tree.result().root, int(tree.result().action)
            expected = root.children[action]
            tree.advance(action)
            while tree.waits_for_outcome():
                outcomes = tree.state.chance_outcomes()
                action = outcomes[draw([p for _, p in outcomes], random)][0]
                expected = expected.children[action]
                tree.advance(action)
            if isinstance(search, pondertree.UCT):
                assert tree.result().root.visit_count == sum(c.visit_count for c in expected.children.values())
            elif expected.visit_count:
                assert tree.result().root.visit_count == expected.visit_count
            tree.simulate(100)
            tree.save(tmp_path / "tree")
            loaded = pondertree.load_tree(tmp_path / "tree")
            assert fingerprint(loaded.simulate(50).result()) == fingerprint(tree.simulate(50).result())
    states = [position(start(), seed, 6) for seed in range(6)]
    one, two = (pondertree.UCT(150, seed=1, threads=threads, **options).run(states) for threads in (1, 2))
    assert [fingerprint(result) for result in one] == [fingerprint(result) for result in two]


@pytest.mark.parametrize("start", STOCHASTIC)
def test_limits_of_compiled_games(start: Any) -> None:
    state = position(start(), 1, 4)
    for options in ({}, {"in_flight": 4}):
        result = pondertree.UCT(5000, seed=1, max_nodes=300, **options).run(state)
        assert 100 < result.num_positions <= 300
        small = pondertree.UCT(50_000, seed=1, max_memory=0.25, **options).run(state)
        assert small.memory <= 0.25 * 2**20
        assert np.isfinite(small.value)


def test_chance_roots_of_compiled_games_are_refused() -> None:
    for start in STOCHASTIC:
        state = position(start(), 1, 3)
        while state.to_play != CHANCE:
            state = state.play(state.legal_actions()[0])
        with pytest.raises(ValueError, match="chance node"):
            pondertree.UCT(10).run(state)
