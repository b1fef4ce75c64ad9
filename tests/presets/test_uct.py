"""UCT: immediate wins and blocks, small games, convergence of values, and the preset's options."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.support.search_helpers import (
    Hashed,
    PythonGame,
    after,
    fingerprint,
    hashed_value,
    random_position,
    with_threats,
)
from tests.support.solvers import minimax_value

import pondertree
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame

# --- Immediate wins and blocks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["win", "block"])
@pytest.mark.parametrize("mover", [0, 1])
def test_uct_wins_and_blocks_in_connect_four(kind: str, mover: int) -> None:
    positions = with_threats(ConnectFour, kind, mover, 12)
    states = [state for state, _ in positions]
    plain = pondertree.UCT(10_000, seed=1, solve=False).run(states)
    solved = pondertree.UCT(10_000, seed=1).run(states)
    for (_, action), open_result, result in zip(positions, plain, solved, strict=True):
        assert open_result.visits.argmax() == action == open_result.action
        if result.proven != -1:
            assert result.action == action
        if kind == "win":
            assert result.proven == 1


@pytest.mark.parametrize("solve", [True, False])
def test_othello_passes_are_searched(solve: bool) -> None:
    """Near the end, where passes are common, the search agrees with exhaustive play."""
    passing = 64
    passes = 0
    for seed in range(40):
        state = random_position(Othello, 54 + seed % 4, seed)
        if len(state.legal_actions()) < 2:
            continue
        values = {action: -sign_value(state.play(action)) for action in state.legal_actions()}
        passes += any(state.play(action).legal_actions() == [passing] for action in values)
        if len(set(values.values())) < 2:
            continue
        result = pondertree.UCT(4000, seed=seed, solve=solve).run(state)
        assert values[result.action] == max(values.values())
        if result.proven is not None:
            assert result.proven == max(values.values())
    assert passes > 3, "some of these positions have a pass right after"


@cache
def sign_value(state: Any) -> int:
    """The exact result for the player to move, by alpha-beta on the sign."""
    return alpha_beta(state, -1, 1)


def alpha_beta(state: Any, low: int, high: int) -> int:
    if state.is_terminal:
        return int(state.returns()[state.to_play])
    best = -1
    for action in state.legal_actions():
        best = max(best, -alpha_beta(state.play(action), -high, -low))
        low = max(low, best)
        if low >= high:
            break
    return best


# --- Optimal play -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("us", [0, 1])
def test_uct_never_loses_tic_tac_toe(us: int) -> None:
    """Every line of the opponent, with an answer searched once per position."""
    outputs: dict[Any, int] = {}
    stack = [TicTacToe()]
    ends = 0
    while stack:
        state = stack.pop()
        if state.is_terminal:
            ends += 1
            assert state.returns()[us] >= 0.0
        elif state.to_play == us:
            if state not in outputs:
                outputs[state] = pondertree.UCT(2000, seed=11).search(state)
            stack.append(state.play(outputs[state]))
        else:
            stack.extend(state.play(action) for action in state.legal_actions())
    assert ends > 20


# A Connect 4 solver of our own: two bitboards of 7 columns with 7 bits each, alpha-beta with a table.

COLUMNS = range(7)


def to_bitboards(moves: list[int]) -> tuple[int, int, list[int]]:
    """Stones of the player to move, of the other, and the height of each column."""
    boards, heights = [0, 0], [0] * 7
    for ply, column in enumerate(moves):
        boards[ply % 2] |= 1 << (column * 7 + heights[column])
        heights[column] += 1
    return boards[len(moves) % 2], boards[1 - len(moves) % 2], heights


def has_four(stones: int) -> bool:
    for shift in (1, 6, 7, 8):
        pairs = stones & (stones >> shift)
        if pairs & (pairs >> (2 * shift)):
            return True
    return False


def solve_connect_four(mine: int, other: int, heights: list[int], low: int, high: int, table: dict[Any, int]) -> int:
    """-1, 0 or 1 for the player to move, who has not lost yet."""
    playable = [column for column in (3, 2, 4, 1, 5, 0, 6) if heights[column] < 6]
    if not playable:
        return 0
    if any(has_four(mine | 1 << (column * 7 + heights[column])) for column in playable):
        return 1
    key = (mine, other)
    if key in table:
        return table[key]
    best, floor = -1, low
    for column in playable:
        stone = 1 << (column * 7 + heights[column])
        heights[column] += 1
        value = -solve_connect_four(other, mine | stone, heights, -high, -floor, table)
        heights[column] -= 1
        best = max(best, value)
        floor = max(floor, best)
        if floor >= high:
            break
    if low == -1 and high == 1:
        table[key] = best
    return best


def test_uct_plays_late_connect_four_perfectly() -> None:
    import random

    numbers = random.Random(4)
    table: dict[Any, int] = {}
    checked = 0
    while checked < 30:
        moves: list[int] = []
        state = ConnectFour()
        while len(moves) < 27 and not state.is_terminal:
            moves.append(numbers.choice(state.legal_actions()))
            state = state.play(moves[-1])
        if state.is_terminal:
            continue
        while not state.is_terminal:
            values = {}
            for action in state.legal_actions():
                after_it = state.play(action)
                if after_it.is_terminal:
                    values[action] = int(after_it.returns()[state.to_play])
                else:
                    values[action] = -solve_connect_four(*to_bitboards([*moves, action]), -1, 1, table)
            result = pondertree.UCT(10_000, seed=checked).run(state)
            assert values[result.action] == max(values.values()), moves
            if result.proven is not None:
                assert result.proven == max(values.values()), moves
            moves.append(result.action)
            state = state.play(result.action)
        checked += 1


# --- Convergence ------------------------------------------------------------------------------------------------


def convergence(states: list[Any]) -> list[tuple[float, float]]:
    """For 30, 300, 3,000 and 30,000 simulations: mean error of the root's best Q, and share of visits on best moves."""
    rows = []
    for count in (30, 300, 3000, 30_000):
        results = pondertree.UCT(count, seed=2, solve=False, evaluator=None).run(states)
        errors, shares = [], []
        for state, result in zip(states, results, strict=True):
            values = {}
            for action in state.legal_actions():
                child = state.play(action)
                value = minimax_value(child)
                values[action] = value if child.to_play == state.to_play else -value
            exact = max(values.values())
            errors.append(abs(result.value - exact))
            shares.append(sum(result.policy[action] for action, value in values.items() if value == exact))
        rows.append((float(np.mean(errors)), float(np.mean(shares))))
    return rows


def assert_converges(rows: list[tuple[float, float]], error: float, share: float) -> None:
    errors, shares = [e for e, _ in rows], [s for _, s in rows]
    assert errors == sorted(errors, reverse=True), rows
    assert shares == sorted(shares), rows
    assert errors[-1] < error, rows
    assert shares[-1] > share, rows


def test_uct_values_converge_on_tic_tac_toe() -> None:
    assert_converges(convergence([random_position(TicTacToe, 3 + seed % 2, seed) for seed in range(10)]), 0.05, 0.95)


@pytest.mark.parametrize("order", ["alternate", "double"])
def test_uct_values_converge_on_random_games(order: Any) -> None:
    games = [TabularGame(seed, branching=(2, 4), depth=(3, 5), turn_order=order).start() for seed in range(6)]
    assert_converges(convergence(games), 0.05, 0.95)


# --- Options ----------------------------------------------------------------------------------------------------


def test_forced_depth_searches_forced_moves_alone() -> None:
    for state, win in with_threats(ConnectFour, "win", 0, 5):
        result = pondertree.UCT(50, seed=1, solve=False, forced_depth=1).run(state)
        assert np.flatnonzero(result.visits).tolist() == [win]
        assert result.action == win
        assert result.root.forced_depth_left == 1
    for state, block in with_threats(ConnectFour, "block", 1, 5):
        result = pondertree.UCT(50, seed=1, solve=False, forced_depth=2).run(state)
        assert np.flatnonzero(result.visits).tolist() == [block]
        assert result.root.children[block].forced_depth_left == 1


def test_minimax_guard_finds_what_a_small_search_misses() -> None:
    missed = 0
    for mover in (0, 1):
        for state, win in with_threats(ConnectFour, "win", mover, 10):
            assert pondertree.UCT(3, seed=1, solve=False, minimax_depth=1).run(state).action == win
            missed += pondertree.UCT(3, seed=1, solve=False).run(state).action != win
        for state, block in with_threats(ConnectFour, "block", mover, 10):
            assert pondertree.UCT(3, seed=1, solve=False, minimax_depth=2).run(state).action == block
            missed += pondertree.UCT(3, seed=1, solve=False).run(state).action != block
    assert missed > 5


def test_minimax_guard_changes_nothing_without_a_proof() -> None:
    for seed in range(10):
        guarded = pondertree.UCT(200, seed=seed, minimax_depth=3).run(ConnectFour())
        assert fingerprint(guarded) == fingerprint(pondertree.UCT(200, seed=seed).run(ConnectFour()))


@pytest.mark.parametrize("wrap", [False, True])
def test_evaluator_forms_give_the_same_tree(wrap: bool) -> None:
    def function(observations: np.ndarray) -> tuple[None, np.ndarray]:
        assert observations.dtype == np.float32
        return None, np.array([hashed_value(row) for row in observations])

    class OfStates:
        def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
            return None, np.array([hashed_value(state.observation()) for state in states])

    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    prints = [
        fingerprint(pondertree.UCT(100, seed=1, evaluator=evaluator, in_flight=4).run(state))
        for evaluator in (function, Hashed(), OfStates())
    ]
    assert prints[0] == prints[1] == prints[2]
    assert prints[0] != fingerprint(pondertree.UCT(100, seed=1, in_flight=4).run(state))


@pytest.mark.parametrize("wrap", [False, True])
def test_uniform_and_rollout_are_compiled_leaves(wrap: bool) -> None:
    state = PythonGame(ConnectFour()) if wrap else ConnectFour()
    uniform = pondertree.UCT(60, seed=1, evaluator=Uniform()).run(state)
    assert uniform.value == 0.0
    assert uniform.visits.max() - uniform.visits.min() <= 1
    rollout = pondertree.UCT(60, seed=1, evaluator=Rollout()).run(state)
    assert fingerprint(rollout) == fingerprint(pondertree.UCT(60, seed=1).run(state)), "a rollout is UCT's own playout"


def test_compiled_and_python_games_make_the_same_simulations() -> None:
    options_tried: list[dict[str, Any]] = [
        {},
        {"max_depth": 5},
        {"evaluator": Uniform()},
        {"evaluator": Rollout()},
        {"playout_policy": "decisive"},
        {"forced_depth": 1},
        {"forced_depth": 3, "solve": False},
        {"minimax_depth": 2, "in_flight": 3},
    ]
    for options in options_tried:
        for seed in range(5):
            state = random_position(ConnectFour, 7 * seed, seed)
            compiled = pondertree.UCT(80, seed=seed, **options).run(state)
            python = pondertree.UCT(80, seed=seed, **options).run(PythonGame(state))
            assert compiled.visits.tolist() == python.visits.tolist(), options
            assert compiled.value == python.value


@pytest.mark.parametrize("wrap", [False, True])
def test_max_depth_cuts_playouts_at_the_evaluator(wrap: bool) -> None:
    """None and 0: the leaf itself is valued; a depth: the position where the playout is cut; without one, 0."""
    state = PythonGame(Othello()) if wrap else Othello()
    plies: set[int] = set()

    class Noting:
        def evaluate(self, observations: np.ndarray) -> tuple[None, np.ndarray]:
            plies.update(int(row[:2].sum()) - 4 for row in observations)
            return None, np.array([hashed_value(row) for row in observations])

    at_leaf = [pondertree.UCT(30, seed=1, max_depth=depth, evaluator=Noting()).run(state) for depth in (None, 0)]
    assert fingerprint(at_leaf[0]) == fingerprint(at_leaf[1])
    assert min(plies) == 1
    plies.clear()
    pondertree.UCT(4, seed=1, max_depth=6, evaluator=Noting()).run(state)
    assert plies == {7}, "one move in the tree, six in the playout"
    assert pondertree.UCT(30, seed=1, max_depth=3).run(state).value == 0.0


@pytest.mark.parametrize("wrap", [False, True])
def test_playout_policies_bias_playouts(wrap: bool) -> None:
    state = after(ConnectFour(), "4 4 4 4 4 4")
    state = PythonGame(state) if wrap else state
    plain = pondertree.UCT(60, seed=1).run(state)
    assert fingerprint(pondertree.UCT(60, seed=1, playout_policy="random").run(state)) == fingerprint(plain)
    decisive = pondertree.UCT(60, seed=1, playout_policy="decisive").run(state)
    assert fingerprint(decisive) != fingerprint(plain)
    first = pondertree.UCT(60, seed=1, playout_policy=lambda s: s.legal_actions()[0]).run(state)
    weights = pondertree.UCT(60, seed=2, playout_policy=lambda s: [1.0] + [0.0] * (len(s.legal_actions()) - 1)).run(
        state, seeds=first.seed
    )
    again = pondertree.UCT(60, seed=2, playout_policy=lambda s: np.int64(s.legal_actions()[0])).run(
        state, seeds=first.seed
    )
    assert weights.visits.tolist() == again.visits.tolist(), "all weight on one action is that action"


def test_own_playout_of_a_game_is_used() -> None:
    evaluated: list[int] = []

    class Own(PythonGame):
        def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
            evaluated.append(perspective_player)
            return 1.0 if perspective_player == 0 else -1.0

    result = pondertree.UCT(30, seed=1).run(Own(ConnectFour()))
    assert result.value == 1.0
    assert set(evaluated) == {0, 1}, "called for the chooser"


def test_larger_c_param_spreads_visits() -> None:
    spread = [
        pondertree.UCT(500, seed=1, solve=False, c_param=c).run(ConnectFour()).visits.max() for c in (0.0, 0.5, 5.0)
    ]
    assert spread[0] > spread[1] > spread[2]


def test_repr_shows_limit_and_constant() -> None:
    assert repr(pondertree.UCT(5, seed=1)) == "UCT(num_simulations=5, c_param=1.0, seed=1)"
    assert "time_limit=0.5" in repr(pondertree.UCT(time_limit=0.5, seed=1))


def test_uct_finds_mate_in_one_for_both_colours() -> None:
    for fen, mate in (
        ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1a8"),
        ("r5k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1"),
    ):
        state = Chess(fen)
        plain = pondertree.UCT(3000, seed=1, solve=False, max_depth=8).run(state)
        assert plain.visits.argmax() == state.parse_action(mate)
        assert pondertree.UCT(3000, seed=1, max_depth=8).run(state).move == mate
