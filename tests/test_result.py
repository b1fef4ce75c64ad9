"""`SearchResult`: its fields, and the effect of a proven root."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.search_helpers import PythonGame, after, random_position
from tests.support.solvers import solve

import pondertree
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

TEMPERATURES = [1.0, 0.1, 0.0, 1e-9, 1e9, 1e-300, 5e-324]

STATES = st.one_of(
    st.builds(
        random_position, st.sampled_from([TicTacToe, ConnectFour, Othello]), st.integers(0, 40), st.integers(0, 999)
    ),
    st.builds(lambda seed, players: TabularGame(seed, players=players).start(), st.integers(0, 999), st.integers(1, 4)),
    st.builds(lambda seed: TabularGame(seed, rewards=True, turn_order="random").start(), st.integers(0, 999)),
    st.builds(lambda plies: PythonGame(random_position(TicTacToe, plies, plies)), st.integers(0, 6)),
)


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@settings(max_examples=120)
@given(state=STATES, simulations=st.integers(0, 150), solved=st.booleans(), in_flight=st.sampled_from([1, 3]))
def test_result_fields_match_the_tree(state: Any, simulations: int, solved: bool, in_flight: int) -> None:
    tree = pondertree.UCT(seed=1, solve=solved, in_flight=in_flight).tree(state).simulate(simulations)
    result = tree.result()
    size = (state.num_actions,)
    legal = list(state.legal_actions())
    illegal = np.setdiff1d(np.arange(state.num_actions), legal)
    assert type(result.action) is int
    assert result.action in legal
    assert result.visits.shape == result.policy.shape == result.q.shape == size
    assert result.visits.dtype == np.int64
    assert result.policy.dtype == result.q.dtype == np.float64
    assert result.visits.sum() == result.simulations <= simulations
    assert result.simulations == simulations or result.proven is not None
    assert not result.visits[illegal].any()
    assert np.isnan(result.q[illegal]).all()
    assert (np.isnan(result.q) == (result.visits == 0)).all()
    for tau in TEMPERATURES:
        policy = result.policy_at(tau)
        assert policy.shape == size
        assert np.isfinite(policy).all()
        assert (policy >= 0).all()
        assert policy.sum() == pytest.approx(1.0)
        assert not policy[illegal].any()
    assert result.policy_at(0.0)[result.action] == 1.0
    assert result.policy.tolist() == result.policy_at(1.0).tolist()
    assert type(result.value) is float
    assert np.isfinite(result.value)
    if not hasattr(state, "rewards"):
        assert abs(result.value) <= 1.0 + 1e-12
        assert np.nanmax(np.abs(result.q), initial=0.0) <= 1.0 + 1e-12
    assert result.proven in (None, -1, 0, 1)
    if result.proven is not None:
        assert result.value == result.proven
    elif simulations:
        assert result.value == pytest.approx(np.nansum(result._view.edges(0)[2]) / simulations)
    assert result.elapsed >= 0.0
    assert result.memory > 0
    text = getattr(state, "action_to_string", str)
    assert result.move == text(result.action) == result.pv[0]
    assert "SearchResult" in repr(result)


@settings(max_examples=60)
@given(state=STATES, simulations=st.integers(1, 200))
def test_principal_variation_is_legal(state: Any, simulations: int) -> None:
    result = pondertree.UCT(simulations, seed=1).run(state)
    for number, move in enumerate(result.pv):
        texts = {getattr(state, "action_to_string", str)(action): action for action in state.legal_actions()}
        assert move in texts
        if number == 0:
            assert texts[move] == result.action
        state = state.play(texts[move])
    assert result.pv


def test_moves_are_texts_of_the_game() -> None:
    assert pondertree.UCT(50, seed=1).run(ConnectFour()).move in [str(column) for column in range(1, 8)]
    result = pondertree.UCT(50, seed=1, max_depth=2).run(Chess())
    assert result.move == Chess().action_to_string(result.action)
    assert after(Chess(), " ".join(result.pv)) is not None


def test_policy_at_is_visits_to_the_power_of_the_inverse_temperature() -> None:
    result = pondertree.UCT(500, seed=1, solve=False).run(ConnectFour())
    for tau in (0.3, 0.5, 1.0, 2.0):
        weights = result.visits.astype(float) ** (1.0 / tau)
        assert np.allclose(result.policy_at(tau), weights / weights.sum())
    assert np.allclose(result.policy_at(1e9), 1 / 7, atol=1e-6)
    assert result.policy_at(1e-9).max() == pytest.approx(1.0)


def test_temperature_samples_from_the_policy() -> None:
    results = pondertree.UCT(40, seed=1, solve=False).run([ConnectFour()] * 3000, temperature=1.0)
    drawn = Counter(result.action for result in results)
    expected = np.mean([result.policy for result in results], axis=0)
    for action in range(7):
        assert drawn[action] / 3000 == pytest.approx(expected[action], abs=4 * np.sqrt(0.25 / 3000))
    cooler = pondertree.UCT(40, seed=1, solve=False).run([ConnectFour()] * 1000, temperature=0.3)
    best = np.mean([result.visits[result.action] for result in cooler])
    assert best > np.mean([result.visits[result.action] for result in results]) + 0.3


# --- Proven results ---------------------------------------------------------------------------------------------


def decided(value: int, count: int) -> list[Any]:
    """Random tabular games whose exact value is `value` for the player to move, with a choice to make."""
    found: list[Any] = []
    seed = 0
    while len(found) < count:
        state = TabularGame(seed, branching=(2, 4), depth=(2, 5)).start()
        if not state.is_terminal and solve(state)[0] == value:
            found.append(state)
        seed += 1
    return found


def outcome(state: Any, action: int) -> tuple[float, int]:
    """The exact value of an action for the player to move, and its plies to the end."""
    child = state.play(action)
    value, plies = solve(child)
    return (value if child.to_play == state.to_play else -value), plies + 1


@pytest.mark.parametrize("value", [1, 0, -1])
def test_proven_root_has_an_exact_value(value: int) -> None:
    for state in decided(value, 15):
        for temperature in (None, 1.0, 1e9):
            result = pondertree.UCT(20_000, seed=3).run(state, temperature=temperature)
            assert result.proven == value
            assert result.value == value
            assert result.simulations < 20_000, "a decided root ends the search"
            outcomes = {action: outcome(state, action) for action in state.legal_actions()}
            chosen = outcomes[result.action]
            assert chosen[0] == value
            distance = result.root.distance
            if value == 1:
                # The search stops at the first win it proves: the shortest of those it knows.
                assert result.policy[result.action] == result.policy_at(1e9)[result.action] == 1.0
                child = result.root.children[result.action]
                assert child.distance is not None
                assert distance == child.distance + 1
                assert chosen[1] <= distance
            elif value == 0:
                drawing = [action for action, (v, _) in outcomes.items() if v == 0]
                assert np.flatnonzero(result.policy).tolist() == sorted(drawing)
            else:
                longest = max(plies for _, plies in outcomes.values())
                assert chosen[1] == longest == distance


def test_shortest_proven_win_is_chosen() -> None:
    """Once the win in one is tried it is the answer, however the search went on before."""
    for seed in range(30):
        state = random_position(ConnectFour, 10 + seed, seed)
        wins = [action for action in state.legal_actions() if state.play(action).returns()[state.to_play] == 1]
        result = pondertree.UCT(3000, seed=seed).run(state, temperature=1.0)
        if wins:
            assert result.action in wins
            assert result.proven == 1
            assert result.root.distance == 1


def test_policy_excludes_proven_losses() -> None:
    seen = 0
    for seed in range(300):
        state = random_position(ConnectFour, 8 + seed % 20, seed)
        result = pondertree.UCT(400, seed=seed).run(state, temperature=1.0)
        if result.proven is not None:
            continue
        lost = [action for action, child in result.root.children.items() if child.proven == 1]
        seen += len(lost)
        for action in lost:
            assert result.q[action] == -1.0
            assert result.visits[action] > 0, "visits stay as they were counted"
            assert all(result.policy_at(tau)[action] == 0.0 for tau in TEMPERATURES)
            assert result.action != action
    assert seen > 20


def test_without_solve_nothing_is_proven() -> None:
    result = pondertree.UCT(3000, seed=1, solve=False).run(after(ConnectFour(), "1 2 1 2 1 2"))
    assert result.proven is None
    assert result.simulations == 3000
    assert result.visits.argmax() == 0


def test_result_is_read_only() -> None:
    result = pondertree.UCT(200, seed=1).run(ConnectFour(), temperature=1.0)
    again = pondertree.UCT(200, seed=1).run(ConnectFour(), temperature=1.0)
    for name in ("policy", "visits", "q"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, name)[:] = 9
    for name in ("action", "value", "policy", "visits", "q", "moves", "pv", "root", "move", "anything"):
        with pytest.raises(AttributeError, match="read-only"):
            setattr(result, name, 1)
        with pytest.raises(AttributeError, match="read-only"):
            delattr(result, name)
    result.pv.clear()
    result.moves.clear()
    result.policy_at(0.5)[:] = 9  # a new array each time
    assert (result.action, result.value, result.pv, result.moves) == (again.action, again.value, again.pv, again.moves)
    assert result.policy.tolist() == again.policy.tolist()
    assert result.visits.copy().flags.writeable
