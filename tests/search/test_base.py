"""`run`, `search` and `get_policy`: batches, seeds, limits, threads, reproducibility."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.search_helpers import Hashed, PythonGame, after, every_node, fingerprint, random_position

import pondertree
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

STARTS = list(COMPILED)


def visits(results: list[pondertree.SearchResult]) -> list[list[int]]:
    return [result.visits.tolist() for result in results]


# --- Single states and lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS)
def test_run_of_one_state_returns_one_result(start: Any) -> None:
    state = start()
    result = pondertree.UCT(64, seed=1).run(state)
    assert isinstance(result, pondertree.SearchResult)
    assert result.simulations == 64 == result.visits.sum() == result.root.visit_count
    assert result.action in state.legal_actions()
    assert state == start(), "the state passed in is unchanged"


def test_run_of_a_list_returns_a_list() -> None:
    search = pondertree.UCT(40, seed=1)
    assert search.run([]) == []
    assert search.run(()) == []
    [only] = search.run([ConnectFour()])
    assert only.simulations == 40
    many = search.run(tuple(random_position(ConnectFour, ply, ply) for ply in range(10)))
    assert len(many) == 10
    assert all(result.visits.sum() == result.simulations for result in many)


def test_empty_list_returns_no_results_and_uses_no_call_number() -> None:
    a, b = pondertree.UCT(40, seed=1), pondertree.UCT(40, seed=1)
    a.run([])
    assert a.run(ConnectFour()).visits.tolist() == b.run(ConnectFour()).visits.tolist()


def test_num_simulations_may_differ_per_row() -> None:
    results = pondertree.UCT([10, 20, 30], seed=1).run([ConnectFour()] * 3)
    assert [result.simulations for result in results] == [10, 20, 30]
    assert [int(result.visits.sum()) for result in results] == [10, 20, 30]
    array = pondertree.UCT(np.array([5, 6]), seed=1).run([ConnectFour()] * 2)  # type: ignore[arg-type]
    assert [result.simulations for result in array] == [5, 6]


def test_temperature_may_differ_per_row() -> None:
    """A greedy row takes the most visited move; a hot one takes others too."""
    rows = 200
    search = pondertree.UCT(30, seed=5)
    hot_then_cold = [2.0] * rows + [0.0] * rows
    results = search.run([ConnectFour()] * (2 * rows), temperature=hot_then_cold)
    best = [result.visits[result.action] == result.visits.max() for result in results]
    assert all(best[rows:])
    assert not all(best[:rows])


def test_equal_seeds_give_equal_rows() -> None:
    a, b = pondertree.UCT(50).run([ConnectFour()] * 2, seeds=7)
    assert fingerprint(a) == fingerprint(b)
    assert a.seed == b.seed == 7


# --- Seeds ------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.data())
def test_seeded_row_is_independent_of_the_batch(data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([TicTacToe, ConnectFour, Othello]))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2**64 - 1)), min_size=1, max_size=6))
    counts = data.draw(st.lists(st.integers(1, 60), min_size=len(rows), max_size=len(rows)))
    in_flight = data.draw(st.sampled_from([1, 4]))
    wrap = data.draw(st.booleans())
    states = [random_position(start, plies, seed % 1000) for plies, seed in rows]
    if wrap:
        states = [PythonGame(state) for state in states]
    seeds = [seed for _, seed in rows]
    order = data.draw(st.permutations(range(len(rows))))
    batched = pondertree.UCT(counts, in_flight=in_flight).run(states, seeds=seeds)
    shuffled = pondertree.UCT([counts[i] for i in order], in_flight=in_flight, threads=2).run(
        [states[i] for i in order], seeds=[seeds[i] for i in order]
    )
    for place, row in enumerate(order):
        alone = pondertree.UCT(counts[row], in_flight=in_flight).run(states[row], seeds=seeds[row])
        assert fingerprint(batched[row]) == fingerprint(shuffled[place]) == fingerprint(alone)


def test_drawn_seed_is_reported_and_reproduces_the_search() -> None:
    first = pondertree.UCT(200)
    result = first.run(ConnectFour())
    assert result.seed == first.seed
    again = pondertree.UCT(200, seed=result.seed).run(ConnectFour())
    assert fingerprint(again) == fingerprint(result)
    assert pondertree.UCT(200).seed != first.seed


def test_calls_and_rows_draw_different_random_numbers() -> None:
    search = pondertree.UCT(60, seed=9)
    first, second = search.run([ConnectFour()] * 50), search.run([ConnectFour()] * 50)
    seen = {tuple(row) for row in visits(first) + visits(second)}
    assert len(seen) > 90, "rows and calls draw different numbers"
    again = pondertree.UCT(60, seed=9)
    assert visits(again.run([ConnectFour()] * 50)) == visits(first)
    assert visits(again.run([ConnectFour()] * 50)) == visits(second)


def test_different_seeds_give_different_trees() -> None:
    assert len({tuple(pondertree.UCT(60, seed=seed).run(ConnectFour()).visits.tolist()) for seed in range(30)}) > 25


# --- Limits -----------------------------------------------------------------------------------------------------


def test_time_limit_alone_lifts_default_simulations() -> None:
    result = pondertree.UCT(time_limit=0.25, seed=1).run(TicTacToe(), seeds=3)
    assert result.simulations > 1000 or result.proven is not None
    assert result.visits.sum() == result.simulations
    assert pondertree.UCT(seed=1).run(ConnectFour()).simulations == 1000


@pytest.mark.parametrize("wrap", [False, True])
def test_search_ends_at_its_time_limit(wrap: bool) -> None:
    state = PythonGame(Othello()) if wrap else Othello()
    begun = time.perf_counter()
    result = pondertree.UCT(time_limit=0.2).run(state)
    assert time.perf_counter() - begun < 5.0
    assert result.simulations >= 1
    assert 0.15 < result.elapsed < 5.0


def test_first_limit_reached_ends_the_search() -> None:
    begun = time.perf_counter()
    assert pondertree.UCT(50, time_limit=60.0).run(Othello()).simulations == 50
    assert time.perf_counter() - begun < 30.0
    assert pondertree.UCT(2**32 - 1, time_limit=0.1).run(Othello()).simulations < 2**32 - 1


def test_time_limit_is_shared_among_trees() -> None:
    counts = [result.simulations for result in pondertree.UCT(time_limit=0.4).run([ConnectFour()] * 4)]
    assert min(counts) > 0
    assert max(counts) < 20 * min(counts)


@pytest.mark.parametrize("in_flight", [1, 8])
@pytest.mark.parametrize("evaluated", [False, True])
@pytest.mark.parametrize("wrap", [False, True])
def test_time_limited_search_equals_search_with_as_many_simulations(
    in_flight: int, evaluated: bool, wrap: bool
) -> None:
    """With leaves in flight a batch may not be cut, so the count is that of the last whole batch."""
    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    evaluator = Hashed() if evaluated else None
    timed = pondertree.UCT(time_limit=0.05, in_flight=in_flight, evaluator=evaluator).run(state, seeds=4)
    counted = pondertree.UCT(timed.simulations, in_flight=in_flight, evaluator=evaluator).run(state, seeds=4)
    assert fingerprint(timed) == fingerprint(counted)


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnsearchedWarning")
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("most", [1, 2, 10, 333])
def test_max_nodes_bounds_each_tree(most: int, wrap: bool) -> None:
    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    tree = pondertree.UCT(seed=2, max_nodes=most).tree(state)
    tree.simulate(2000)
    result = tree.result()
    assert sum(1 for _ in every_node(result.root)) <= most
    assert result.simulations < 2000
    assert result.action in state.legal_actions()
    assert not np.isnan(result.policy).any()
    before = fingerprint(result)
    tree.simulate(100)
    assert fingerprint(tree.result()) == before, "a full tree stays as it is"
    tree.advance(result.action)
    retained = sum(1 for _ in every_node(tree.result().root))
    tree.simulate(2000)
    grown = sum(1 for _ in every_node(tree.result().root))
    assert retained <= grown <= most
    if most == 333:
        assert grown > retained, "after a move there is room again"


@pytest.mark.parametrize("state", [ConnectFour(), Chess(), PythonGame(Othello())], ids=["connect4", "chess", "python"])
def test_max_memory_bounds_the_tree(state: Any) -> None:
    limit = 1.0
    most = 3000 if isinstance(state, PythonGame) else 200_000
    tree = pondertree.UCT(seed=2, max_memory=limit, max_depth=4).tree(state)
    tree.simulate(most)
    result = tree.result()
    assert result.memory <= limit * 2**20
    assert result.action in state.legal_actions()
    if not isinstance(state, PythonGame):
        assert 0 < result.simulations < most, "the tree stopped growing"
        assert result.memory > 0.5 * limit * 2**20, "and used what it was given"
        before = result.simulations
        tree.simulate(100)
        assert tree.result().simulations == before
        tree.advance(result.action)
        tree.simulate(100)
        assert tree.result().simulations == 100, "counted from the new root"
        assert tree.result().memory <= limit * 2**20


def test_max_memory_is_shared_by_all_trees_of_a_call() -> None:
    results = pondertree.UCT(100_000, max_memory=2.0, seed=1).run([ConnectFour()] * 4)
    assert sum(result.memory for result in results) <= 2.0 * 2**20
    assert all(result.simulations > 0 for result in results)


def test_minimal_max_memory_still_returns_a_move() -> None:
    result = pondertree.UCT(100, max_memory=1e-6, seed=1).run(ConnectFour())
    assert result.action in range(7)
    assert not np.isnan(result.policy).any()


def test_shortest_time_limit_gives_each_tree_a_simulation() -> None:
    for search in (pondertree.UCT(time_limit=1e-6, seed=1), pondertree.UCT(time_limit=1e-6, seed=1, evaluator=even)):
        results = search.run([ConnectFour()] * 200)
        assert min(result.simulations for result in results) >= 1


def even(observations: np.ndarray) -> tuple[None, np.ndarray]:
    return None, np.zeros(len(observations))


def test_deep_minimax_guard_is_bounded_in_time() -> None:
    begun = time.perf_counter()
    assert pondertree.UCT(20, seed=1, minimax_depth=40).run(Chess()).simulations == 20
    assert time.perf_counter() - begun < 20


# --- Early stop -------------------------------------------------------------------------------------------------


def test_early_stop_keeps_the_move() -> None:
    saved = 0
    for seed in range(60):
        state = random_position(ConnectFour, seed % 20, seed)
        full = pondertree.UCT(600, solve=False).run(state, seeds=seed)
        early = pondertree.UCT(600, solve=False, early_stop=True).run(state, seeds=seed)
        assert early.action == full.action
        assert early.simulations <= full.simulations
        saved += full.simulations - early.simulations
    assert saved > 0, "and it does stop early"


def test_early_stop_changes_the_move_only_where_a_later_proof_would() -> None:
    """The leader of visits cannot be caught by visits; what an early stop gives up is a proof that would come later."""
    for start, seed, plies, count in (
        (TicTacToe, 1081, 1, 800),
        (TicTacToe, 1203, 3, 200),
        (ConnectFour, 1247, 17, 800),
    ):
        state = random_position(start, plies, seed)
        full = pondertree.UCT(count).run(state, seeds=seed)
        early = pondertree.UCT(count, early_stop=True).run(state, seeds=seed)
        late_proof = {m.action: m.proven for m in full.moves} != {m.action: m.proven for m in early.moves}
        assert early.action == full.action or late_proof
        assert early.simulations <= full.simulations


# --- Reproducibility --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 3, 16])
def test_number_of_threads_does_not_change_results(in_flight: int) -> None:
    states = [random_position(start, 2 * ply, ply) for ply in range(6) for start in (ConnectFour, Othello)]
    connect, othello = states[::2], states[1::2]
    for group in (connect, othello, connect[:1]):
        runs = [pondertree.UCT(150, seed=3, threads=threads, in_flight=in_flight).run(group) for threads in (1, 2, 4)]
        prints = [[fingerprint(result) for result in run] for run in runs]
        assert prints[0] == prints[1] == prints[2]


SCRIPT = """
import pondertree, hashlib, numpy as np
from pondertree.games import *
from pondertree.testing.tabular import TabularGame
text = ""
tables = [TabularGame(3).start(), TabularGame(4, players=3).start()]
for state in [TicTacToe(), ConnectFour(), Othello(), Chess(), *tables]:
    for in_flight in (1, 4):
        result = pondertree.UCT(120, seed=6, in_flight=in_flight).run(state, temperature=1.0)
        numbers = (result.visits.tolist(), np.nan_to_num(result.q).tolist(), result.value)
        text += f"{result.action} {numbers!r} {result.pv}"
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_results_are_equal_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().strip()) == 64


# --- The entry points of AlphaZero chess ----------------------------------------------------------------------


def test_search_and_get_policy_return_action_and_visit_shares() -> None:
    state = ConnectFour()
    result = pondertree.UCT(300, seed=8).run(state)
    action = pondertree.UCT(300, seed=8).search(state)
    assert type(action) is int
    assert action == result.action, "UCT's default is greedy"
    chosen, policy = pondertree.UCT(300, seed=8).get_policy(state, temperature=3.0)
    assert chosen in state.legal_actions()
    assert policy.tolist() == result.policy.tolist(), "the policy is the share of visits whatever the temperature"
    assert np.allclose(policy, result.visits / 300)
    assert len({pondertree.UCT(60, seed=seed).search(state, temperature=5.0) for seed in range(40)}) > 3


FINISHED = after(ConnectFour(), "1 2 1 2 1 2 1")


@pytest.mark.parametrize("state", [FINISHED, PythonGame(FINISHED)], ids=["compiled", "python"])
@pytest.mark.parametrize(
    "start",
    [
        lambda search, state: search.run(state),
        lambda search, state: search.run([state]),
        lambda search, state: search.search(state),
        lambda search, state: search.get_policy(state),
        lambda search, state: search.tree(state),
        lambda search, state: search.forest([state]),
    ],
)
def test_finished_game_raises_value_error_in_every_method(state: Any, start: Any) -> None:
    assert state.is_terminal
    with pytest.raises(pondertree.GameOverError, match="the game is over") as caught:
        start(pondertree.UCT(10), state)
    assert isinstance(caught.value, ValueError)


def test_error_names_the_row_of_a_finished_game() -> None:
    with pytest.raises(pondertree.GameOverError, match=r"states\[1\]"):
        pondertree.UCT(10).run([ConnectFour(), FINISHED])


@pytest.mark.parametrize("count", [1, 2, 3, 100])
@pytest.mark.parametrize("wrap", [False, True])
def test_visits_sum_to_simulations(count: int, wrap: bool) -> None:
    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    result = pondertree.UCT(count, seed=1).run(state)
    assert result.simulations == result.visits.sum() == result.root.visit_count == count
    assert sum(child.visit_count for child in result.root.children.values()) == count


def test_single_legal_move_is_returned() -> None:
    state = after(Othello(), [])
    lonely = after(TicTacToe(), [0, 1, 2, 4, 3, 5, 7, 6])
    assert lonely.legal_actions() == [8]
    for solve in (True, False):
        result = pondertree.UCT(20, seed=1, solve=solve).run(lonely)
        assert result.action == 8
        assert result.policy[8] == 1.0
    assert pondertree.UCT(1, c_param=0.0).run(state).simulations == 1


def test_progress_is_called_with_done_and_wanted() -> None:
    for state in (Othello(), PythonGame(TicTacToe())):
        told: list[tuple[int, int]] = []
        pondertree.UCT(120).run([state] * 2, progress=lambda done, wanted, told=told: told.append((done, wanted)))
        assert told
        assert told == sorted(told)
        assert told[-1][0] <= told[-1][1] == 240
