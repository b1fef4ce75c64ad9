"""The UCT reference: invariants on random games, convergence and edge cases."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.solvers import best_play, minimax_value
from tests.support.traces import first_difference
from tests.support.uct import ORDERS, WIN, End, Tree2, check_proofs, check_tree, games, nodes_of, worth

from pondertree.random import ANSWER, Random, fold, tree_key
from pondertree.reference.uct import MCTS
from pondertree.testing.tabular import TabularGame, TabularState

options = st.fixed_dictionaries(
    {
        "num_simulations": st.integers(0, 120),
        "c_param": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        "max_depth": st.sampled_from([None, 0, 1, 3]),
        "minimax_depth": st.integers(0, 3),
        "forced_depth": st.integers(0, 3),
        "seed": st.integers(0, 2**64 - 1),
        "solve": st.booleans(),
        "in_flight": st.sampled_from([1, 2, 3, 8, 50]),
    }
)


# --- Invariants -------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(games, options)
def test_uct_invariants_hold_on_random_games(game: TabularGame, chosen: dict[str, Any]) -> None:
    result = MCTS(**chosen).run(game.start())
    check_tree(result)
    if result.proven is None:
        assert result.simulations == chosen["num_simulations"]
    if game.is_zero_sum and chosen["solve"]:
        check_proofs(result.root)
    else:
        assert all(node.proven is None for node in nodes_of(result.root))


@settings(max_examples=100, deadline=None)
@given(games, options)
def test_same_seed_gives_same_tree(game: TabularGame, chosen: dict[str, Any]) -> None:
    first = MCTS(**chosen).run(game.start(), 3, 4, trace=True)
    second = MCTS(**chosen).run(copy.copy(game).start(), 3, 4, trace=True)
    assert first.trace is not None
    assert second.trace is not None
    assert first_difference(first.trace, second.trace) is None
    assert (first.action, first.visits, first.values) == (second.action, second.visits, second.values)


@settings(max_examples=60, deadline=None)
@given(games, options, st.integers(0, 60))
def test_split_simulations_equal_one_run(game: TabularGame, chosen: dict[str, Any], part: int) -> None:
    search = MCTS(**{**chosen, "in_flight": 1})
    whole = search.run(game.start())
    tree = search.tree(game.start())
    part = min(part, search.num_simulations)
    search.simulate(tree, part)
    search.simulate(tree, search.num_simulations - part)
    parts = search.result(tree)
    assert (whole.action, whole.visits, whole.values) == (parts.action, parts.visits, parts.values)


def test_calls_rows_and_seeds_have_distinct_random_numbers() -> None:
    state = TabularGame(5, branching=(4, 4), depth=(8, 8)).start()
    search = MCTS(60, seed=1)
    rows = [(0, 0), (1, 0), (0, 1)]
    visits = [search.run(state, call, row).visits for call, row in rows] + [MCTS(60, seed=2).run(state).visits]
    assert len({tuple(v.values()) for v in visits}) == 4


def test_search_increments_call_number() -> None:
    state = TabularGame(5, branching=(4, 4), depth=(8, 8)).start()
    search, again = MCTS(20, seed=1), MCTS(20, seed=1)
    outputs = [search.search(state) for _ in range(10)]
    assert outputs == [again.run(state, call).action for call in range(10)]
    assert len(set(outputs)) > 1


def test_tree_is_identical_in_another_process() -> None:
    code = (
        "from pondertree.reference.uct import MCTS; from pondertree.testing.tabular import TabularGame; "
        "print(sorted(MCTS(200, seed=9, in_flight=3).run(TabularGame(77, depth=(3, 8)).start()).values.items()))"
    )
    results = []
    for hash_seed in ("1", "2"):
        environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        results.append(done.stdout)
    assert results[0] == results[1]
    assert results[0].strip()


# --- Convergence ------------------------------------------------------------------------------------------------------


def test_visits_converge_to_minimax_without_proofs() -> None:
    right = total = 0
    for seed in range(60):
        order = ORDERS[seed % 3]
        state = TabularGame(seed, turn_order=order, depth=(2, 4), branching=(2, 3)).start()
        value = minimax_value(state)
        result = MCTS(2000, 0.7, seed=seed, solve=False).run(state)
        child = state.play(result.action)
        exact = minimax_value(child) * (1 if child.to_play == state.to_play else -1)
        total += 1
        right += exact == value
        assert abs(result.q[result.action] - value) < 0.25
    assert right == total


def is_clear_cut(state: TabularState, gap: float) -> bool:
    """Returns whether in every position the best move is better by `gap`.

    Otherwise a player is nearly indifferent, whose choice may decide a general-sum game for the others.
    """
    if state.is_terminal:
        return True
    ranked = sorted((worth(state, action) for action in state.legal_actions()), reverse=True)
    clear = len(ranked) == 1 or ranked[0] - ranked[1] >= gap
    return clear and all(is_clear_cut(state.play(action), gap) for action in state.legal_actions())


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("rewards", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_visits_converge_to_best_play_with_any_number_of_players(players: int, rewards: bool, order: Any) -> None:
    starts = (
        TabularGame(seed, players, (2, 2), (3, 3), order, rewards, zero_sum=False).start() for seed in range(10_000)
    )
    clear_cut = (state for state in starts if is_clear_cut(state, 0.25))
    for _, state in zip(range(8), clear_cut, strict=False):
        result = MCTS(2000, 0.7, seed=state.game.seed).run(state)
        check_tree(result)
        assert worth(state, result.action) == best_play(state)[state.to_play]
        assert result.q[result.action] == pytest.approx(worth(state, result.action), abs=0.2)


def test_reward_counts_for_move_that_earns_it() -> None:
    game = TabularGame(4, players=2, rewards=True, depth=(1, 1), branching=(4, 4))
    state = game.start()
    result = MCTS(200).run(state)
    for action in state.legal_actions():
        own = state.play(action).rewards()[state.to_play]  # type: ignore[attr-defined]
        # With rewards the value of an end is 0: its returns() must not count too.
        assert result.q[action] == pytest.approx(own)
    assert result.q[result.action] == pytest.approx(best_play(state)[state.to_play])


def test_deep_game_does_not_exceed_recursion_limit() -> None:
    chain = TabularGame(1, depth=(1050, 1050), branching=(1, 1)).start()
    result = MCTS(1100, max_depth=1).run(chain)
    assert result.proven is not None
    assert result.root.distance == 1050
    assert result.simulations == 1050
    assert len(repr(result.root)) < 1000
    wide_model = TabularGame(2, depth=(1000, 1000), branching=(2, 2)).start()
    check_tree(MCTS(10).run(wide_model))


# --- Results and edge cases -------------------------------------------------------------------------------------------


def test_zero_simulations_give_uniform_policy() -> None:
    state = TabularGame(9, branching=(4, 4), depth=(5, 5)).start()
    legal = state.legal_actions()
    outputs = set()
    for seed in range(40):
        result = MCTS(0, seed=seed).run(state)
        assert set(result.policy.values()) == {0.25}
        assert all(math.isnan(q) for q in result.q.values())
        assert result.value == 0.0
        random = Random(fold(tree_key(seed, 0, 0), 0), ANSWER)
        assert result.action == legal[random.choose(4)]
        outputs.add(result.action)
    assert outputs == set(legal)


def test_wrong_zero_sum_declaration_raises() -> None:
    class Generous(End):
        def returns(self) -> list[float]:
            return [1.0, 1.0]

    with pytest.raises(ValueError, match="zero-sum"):
        MCTS(5).run(Tree2("n0", {"a": Generous(1.0)}))


def test_invalid_arguments_raise() -> None:
    for name, wrong in (
        ("num_simulations", -1),
        ("c_param", math.nan),
        ("max_depth", -2),
        ("minimax_depth", -1),
        ("forced_depth", -1),
        ("in_flight", 0),
    ):
        with pytest.raises(ValueError, match=name):
            MCTS(**{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="over"):
        MCTS(5).run(WIN)
    with pytest.raises(ValueError, match="no legal actions"):
        MCTS(5).run(Tree2("n0", {}))


def test_search_of_fixed_game_is_pinned() -> None:
    # A change here changes the expected results of the engine.
    result = MCTS(100, seed=7).run(TabularGame(42, depth=(5, 9), branching=(2, 4)).start(), call=1, row=2)
    pinned = (result.action, list(result.visits.items()), list(result.values.items()), result.proven)
    assert pinned == (7, [(7, 65), (0, 35)], [(7, 8.0), (0, -1.0)], None)
    result = MCTS(60, 0.5, 2, lambda s: s.observation()[2:4], in_flight=4).run(
        TabularGame(43, zero_sum=False, depth=(5, 9), branching=(2, 4), turn_order="random").start()
    )
    pinned = (result.action, list(result.visits.items()), list(result.values.items()), result.proven)
    assert pinned == (2, [(2, 49), (3, 11)], [(2, 16.76275123618485), (3, 0.3705628465746129)], None)
