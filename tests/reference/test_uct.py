"""The twin of UCT: what a search must always satisfy, on games made to be awkward, and its traps one by one."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pondertree.games.lookahead import forced_actions, minimax
from pondertree.games.playout import evaluate, random_playout, simulate_leaves
from pondertree.random import ANSWER, PLAYOUT, Random, fold, tree_key
from pondertree.reference.trace import TraceRow, first_difference
from pondertree.reference.tree import prove_ancestors
from pondertree.reference.uct import MCTS, MCTSNode, Result
from pondertree.testing.tabular import TabularGame, TabularState, best_play, minimax_value, solve

ORDERS: Any = ["alternate", "random", "double"]
orders = st.sampled_from(ORDERS)
seeds = st.integers(0, 100_000)


def nodes_of(root: MCTSNode) -> list[MCTSNode]:
    found = [root]
    for node in found:
        found.extend(node.children.values())
    return found


def check_tree(result: Result) -> None:
    """The invariants of every search, whatever the game and the options."""
    root = result.root
    legal = root.state.legal_actions()
    assert result.action in legal
    assert list(result.visits) == list(result.values) == list(result.policy) == list(result.q) == list(legal)
    assert sum(result.visits.values()) == result.simulations == root.visit_count
    assert sum(result.policy.values()) == pytest.approx(1.0)
    assert all(share >= 0.0 for share in result.policy.values())
    for node in nodes_of(root):
        assert node.in_flight == 0
        assert math.isfinite(node.total_value)
        below = sum(child.visit_count for child in node.children.values())
        if node.parent is None:
            assert node.visit_count == below
        else:
            assert node.visit_count >= 1
            assert node.parent.children[node.action or 0] is node
            assert node.state == node.parent.state.play(node.action or 0)
            if node.rewards is None:
                assert abs(node.total_value) <= node.visit_count
        if node.end is not None:
            assert not node.children
        elif node.parent is not None:
            # A proven node keeps the visits of descents that stopped at it.
            assert node.visit_count == 1 + below or (node.proven is not None and node.visit_count > below)
        for child in node.children.values():
            assert child.forced_depth_left == max(node.forced_depth_left - 1, 0)


def check_proofs(root: MCTSNode) -> None:
    """Every proven node has its exact value, and a distance that some line of play has.

    With forced moves only the value is exact: a move that loses by itself is kept and one that lets the opponent win
    is dropped, so a lost node may count one ply too few.
    """
    for node in nodes_of(root):
        if node.proven is None:
            continue
        value, plies = solve(node.state)  # type: ignore[arg-type]
        assert node.proven == value
        if root.forced_depth_left > 0:
            continue
        # A proof stops at the first win it finds, which need not be the shortest; so no distance is below the exact
        # one. A draw needs all moves, so its distance is exact.
        assert node.distance == plies if value == 0 else node.distance >= plies


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
games = st.builds(
    TabularGame,
    seed=seeds,
    players=st.sampled_from([1, 2, 2, 2, 3]),
    branching=st.sampled_from([(1, 2), (1, 4), (3, 3)]),
    depth=st.sampled_from([(1, 2), (1, 6), (2, 9)]),
    turn_order=orders,
    rewards=st.sampled_from([False, False, True]),
    zero_sum=st.sampled_from([True, True, False]),
)


# --- Invariants -------------------------------------------------------------------------------------------------


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
    answers = [search.search(state) for _ in range(10)]
    assert answers == [again.run(state, call).action for call in range(10)]
    assert len(set(answers)) > 1


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


# --- The rows of the trace, replayed by a second and simpler text -------------------------------------------------


def replay(game: TabularGame, rows: list[TraceRow], c_param: float) -> dict[tuple[int, ...], tuple[int, float]]:
    """Recomputes statistics and scores from the traces alone (one leaf at a time, nothing proven)."""
    visits: dict[tuple[int, ...], int] = defaultdict(int)
    totals: dict[tuple[int, ...], float] = defaultdict(float)
    opened: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        assert row["simulation"] == number
        states = [game.start()]
        for depth, (action, scores) in enumerate(zip(row["path"], row["scores"], strict=True)):
            here = tuple(row["path"][:depth])
            legal = states[-1].legal_actions()
            if scores is None:
                assert depth == len(row["path"]) - 1
                assert action in legal
                assert action not in opened[here]
                opened[here].append(action)
            else:
                assert sorted(opened[here]) == sorted(legal)
                parent_visits = sum(visits[*here, a] for a in legal) + (1 if here else 0)
                expected = [
                    (a, totals[*here, a] / visits[*here, a] + c_param * math.sqrt(2.0 * math.log(parent_visits) / n))
                    for a in opened[here]
                    for n in [visits[*here, a]]
                ]
                assert scores == expected
                assert dict(scores)[action] == max(score for _, score in scores)
            states.append(states[-1].play(action))
        values = row["values"]
        if states[-1].is_terminal:
            assert values == ([0.0] * game.players if game.rewards else states[-1].returns())
        for depth in range(len(row["path"]), 0, -1):
            if game.rewards:
                rewards: list[float] = states[depth].rewards()  # type: ignore[attr-defined]
                values = [r + v for r, v in zip(rewards, values, strict=True)]
            edge = tuple(row["path"][:depth])
            visits[edge] += 1
            totals[edge] += values[states[depth - 1].to_play]
    return {edge: (visits[edge], totals[edge]) for edge in visits}


@settings(max_examples=100, deadline=None)
@given(games, st.sampled_from([0.0, 0.7, 1.4]), st.sampled_from([None, 2]))
def test_trace_replays_to_identical_tree(game: TabularGame, c: float, max_depth: int | None) -> None:
    result = MCTS(150, c, max_depth, seed=game.seed, solve=False).run(game.start(), trace=True)
    assert result.trace is not None
    assert len(result.trace) == 150
    replayed = replay(game, result.trace, c)
    tree = {
        node.state.path: (node.visit_count, node.total_value)  # type: ignore[attr-defined]
        for node in nodes_of(result.root)[1:]
    }
    assert replayed == tree


def test_first_difference_names_simulation_and_depth() -> None:
    state = TabularGame(11, branching=(2, 3), depth=(5, 9)).start()
    rows = MCTS(40, solve=False).run(state, trace=True).trace
    assert rows is not None
    assert first_difference(rows, copy.deepcopy(rows)) is None
    assert "a has 40, b has 30" in (first_difference(rows, rows[:30]) or "")

    changed = copy.deepcopy(rows)
    changed[20]["values"][0] += 0.5
    assert "simulation 20" in (first_difference(rows, changed) or "")
    assert "values backed up" in (first_difference(rows, changed) or "")

    changed = copy.deepcopy(rows)
    scores = changed[25]["scores"][0]
    assert scores is not None
    scores[0] = (scores[0][0], scores[0][1] + 1e-12)
    assert f"simulation 25, depth 0, after actions []: action {scores[0][0]} scores" in (
        first_difference(rows, changed) or ""
    )

    changed = copy.deepcopy(rows)
    changed[0]["path"][0] = 99
    assert "opens action" in (first_difference(rows, changed) or "")
    changed[0]["path"] = []
    assert "b stops, a goes on with action" not in (first_difference(rows, rows) or "")
    assert "stops" in (first_difference(rows, changed) or "")
    changed[0] = {**rows[0], "scores": [[(1, 0.0)]]}
    assert "a opens an action, b chooses by score" in (first_difference(rows, changed) or "")
    changed[0] = {**rows[0], "simulation": 5}
    assert "simulation numbers" in (first_difference(rows, changed) or "")
    assert "in a, " in (first_difference(rows, MCTS(40, 0.5, solve=False).run(state, trace=True).trace or []) or "")


# --- Proven results -----------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(seeds, orders, st.sampled_from([1, 4]), st.integers(0, 3))
def test_solved_game_matches_minimax(seed: int, order: Any, in_flight: int, forced_depth: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 5), branching=(1, 3)).start()
    value = minimax_value(state)
    search = MCTS(20_000, 2.0, forced_depth=forced_depth, seed=seed, in_flight=in_flight)
    result = search.run(state)
    check_tree(result)
    check_proofs(result.root)
    assert result.proven == result.value == value
    assert result.simulations < 20_000
    # The answer keeps the value, and the policy stands on such moves alone.
    for action, share in result.policy.items():
        if share > 0.0:
            child = state.play(action)
            exact = minimax_value(child) * (1 if child.to_play == state.to_play else -1)
            assert exact == value
            assert value == -1 or result.q[action] == value
    if value == 1:
        assert result.policy[result.action] == 1.0
    # A decided root stays as it is.
    tree = search.tree(state)
    search.simulate(tree, 20_000)
    before = tree.simulations
    search.simulate(tree, 50)
    assert tree.simulations == before


def play_out_the_answer(state: TabularState, result: Result) -> None:
    children = result.root.children
    chosen = children[result.action]
    if result.proven == 1:
        assert chosen.distance == min(c.distance for c in children.values() if c.proven_for_chooser == 1)
        assert chosen.distance + 1 == result.root.distance
    elif result.proven == -1:
        assert chosen.distance == max(c.distance for c in children.values())
        assert chosen.distance + 1 == result.root.distance
    elif result.proven == 0:
        drawn = [c.visit_count for c in children.values() if c.proven_for_chooser == 0]
        assert chosen.proven_for_chooser == 0
        assert chosen.visit_count == max(drawn)


@settings(max_examples=100, deadline=None)
@given(seeds, orders)
def test_proven_root_plays_shortest_win_or_longest_defence(seed: int, order: Any) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 6), branching=(1, 4)).start()
    play_out_the_answer(state, MCTS(5000, seed=seed).run(state))


def test_shortest_of_several_wins_is_played() -> None:
    # Searching stops at the first proof, so two wins at once arise only by hand: one of 3 plies, one of 1.
    search = MCTS()
    tree = search.tree(Tree2("n0", {"slow": long_way(1, 2, WIN), "quick": WIN, "slower": long_way(1, 4, WIN)}))
    root = tree.root
    random = Random(1, PLAYOUT)
    children = {child.action: child for child in (root.expand(random) for _ in range(3))}
    for action, distance in ((0, 2), (1, 0), (2, 4)):
        child = children[action]
        child.visit_count = 1 + distance
        child.proven, child.distance = -1, distance  # for player 1, who is to move there
        assert child.to_play == 1
    prove_ancestors(children[2])
    assert (root.proven, root.distance) == (1, 1)
    assert search._best_action(tree) == 1
    assert search.result(tree).policy == {0: 0.0, 1: 1.0, 2: 0.0}


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 40))
def test_unproven_root_never_plays_proven_loss(seed: int, order: Any, simulations: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 8), branching=(2, 4), end_chance=0.4).start()
    result = MCTS(simulations, seed=seed).run(state)
    if result.proven is not None:
        return
    for action, child in result.root.children.items():
        if child.proven_for_chooser == -1:
            assert action != result.action
            assert result.policy[action] == 0.0
            assert result.q[action] == -1.0
    open_moves = [a for a in result.visits if result.policy[a] > 0.0]
    assert result.visits[result.action] == max(result.visits[a] for a in open_moves)


def test_fractional_results_are_not_proven() -> None:
    start = Tree2("a0", {"x": End(0.5), "y": End(-1.0)})
    result = MCTS(50).run(start)
    assert result.proven is None
    assert result.root.children[1].proven == 1  # for player 1, who would be to move
    assert result.root.children[0].proven is None
    assert result.policy == {0: 1.0, 1: 0.0}


# --- A game written out by hand -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """A finished game, with player 0's result; player 1 would be to move."""

    result: float
    to_play: int = 1
    is_terminal: bool = True
    num_players: int = 2
    num_actions: int = 8

    def legal_actions(self) -> list[int]:
        return []

    def play(self, action: int) -> Any:
        raise AssertionError("played on after the end")

    def returns(self) -> list[float]:
        return [self.result, 0.0 - self.result]


@dataclass(frozen=True)
class Tree2:
    """A two-player game by hand: `name` ends in the player to move, `moves` are the following states in order."""

    name: str
    moves: dict[str, Any] = field(hash=False)
    is_terminal: bool = False
    num_players: int = 2
    num_actions: int = 8

    @property
    def to_play(self) -> int:
        return int(self.name[-1])

    def legal_actions(self) -> list[int]:
        return list(range(len(self.moves)))

    def play(self, action: int) -> Any:
        return list(self.moves.values())[action]

    def returns(self) -> list[float]:
        return [0.0, 0.0]


WIN, DRAW, LOSS = End(1.0), End(0.0), End(-1.0)


def long_way(player: int, plies: int, end: Any) -> Any:
    """A line of single moves, players in turn."""
    for ply in reversed(range(plies)):
        end = Tree2(f"way{(player + ply) % 2}", {"on": end})
    return end


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("solve_it", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_immediate_win_and_block_are_found(player: int, solve_it: bool, in_flight: int) -> None:
    ours, theirs = (WIN, LOSS) if player == 0 else (LOSS, WIN)
    other = 1 - player
    search = MCTS(400, solve=solve_it, in_flight=in_flight)
    quiet = long_way(other, 5, DRAW)
    win_at_once = Tree2(f"n{player}", {"quiet": quiet, "win": ours, "lose": theirs})
    result = search.run(win_at_once)
    assert result.action == 1
    assert max(result.visits, key=lambda a: result.visits[a]) == 1 or result.proven == 1
    assert result.proven == (1 if solve_it else None)

    threat = Tree2(f"t{other}", {"a": quiet, "b": theirs})
    must_block = Tree2(f"n{player}", {"careless": threat, "block": quiet, "careless too": threat})
    result = search.run(must_block)
    assert result.action == 1
    assert result.visits[1] == max(result.visits.values())
    # The same one move earlier, with a double move, where the sign must not turn.
    double = Tree2(f"d{player}", {"first": win_at_once, "other": long_way(other, 4, theirs)})
    result = search.run(double)
    assert result.action == 0
    assert result.visits[0] == max(result.visits.values()) or solve_it
    assert result.q[0] > result.q[1]


def test_sign_depends_on_player_to_move() -> None:
    # Player 0 moves three times in a row, then player 1: depth says nothing about whose value it is.
    last = Tree2("n1", {"a": WIN, "b": LOSS})
    start = Tree2("n0", {"a": Tree2("n0", {"a": Tree2("n0", {"a": last, "b": DRAW})}), "b": LOSS})
    result = MCTS(2000, solve=False).run(start)
    node = result.root.children[0].children[0]
    assert result.action == 0
    assert abs(result.q[0]) < 0.2
    assert node.children[1].visit_count > node.children[0].visit_count
    replies = node.children[0].children
    assert replies[1].total_value == replies[1].visit_count  # LOSS of player 0 is a win for player 1, who chose it
    assert replies[0].total_value == -replies[0].visit_count
    assert replies[1].visit_count > replies[0].visit_count
    assert MCTS(2000).run(start).proven == 0


# --- Convergence --------------------------------------------------------------------------------------------------


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


def worth(state: TabularState, action: int) -> float:
    """What an action is worth to the player to move, with best play of all."""
    child = state.play(action)
    rewards = child.rewards() if state.game.rewards else [0.0] * state.num_players  # type: ignore[attr-defined]
    return float(rewards[state.to_play] + best_play(child)[state.to_play])


def is_clear_cut(state: TabularState, gap: float) -> bool:
    """Whether at every position the best move is better by `gap`.

    Otherwise someone is nearly indifferent, and where interests are not opposed that may decide the game for others.
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
        # An end with rewards is worth 0 in itself: its returns() must not be counted as well.
        assert result.q[action] == pytest.approx(own)
    assert result.q[result.action] == pytest.approx(best_play(state)[state.to_play])


def test_deep_game_does_not_exceed_recursion_limit() -> None:
    chain = TabularGame(1, depth=(1050, 1050), branching=(1, 1)).start()
    result = MCTS(1100, max_depth=1).run(chain)
    assert result.proven is not None
    assert result.root.distance == 1050
    assert result.simulations == 1050
    assert len(repr(result.root)) < 1000
    wide = TabularGame(2, depth=(1000, 1000), branching=(2, 2)).start()
    check_tree(MCTS(10).run(wide))


# --- Leaves in flight ---------------------------------------------------------------------------------------------


class Counting:
    """An evaluator that keeps what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def evaluate_states(self, states: list[Any]) -> tuple[None, list[float]]:
        self.batches.append(states)
        return None, [0.0 for _ in states]


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 16), st.integers(1, 80), st.booleans())
def test_batches_are_bounded_and_conserve_visits(seed: int, in_flight: int, limit: int, rewards: bool) -> None:
    state = TabularGame(seed, depth=(2, 9), branching=(2, 4), rewards=rewards).start()
    evaluator = Counting()
    result = MCTS(limit, evaluator=evaluator, seed=seed, in_flight=in_flight, solve=False).run(state, trace=True)
    check_tree(result)
    assert result.simulations == limit
    assert all(1 <= len(batch) <= in_flight for batch in evaluator.batches)
    asked = [s for batch in evaluator.batches for s in batch]
    assert len(set(asked)) == len(asked)  # no leaf is evaluated twice
    assert result.trace is not None
    assert [row["simulation"] for row in result.trace] == list(range(limit))
    assert len(asked) == sum(not _state_at(state, row["path"]).is_terminal for row in result.trace)


def _state_at(state: Any, path: list[int]) -> Any:
    for action in path:
        state = state.play(action)
    return state


def test_virtual_loss_is_applied_and_reverted() -> None:
    state = TabularGame(6, depth=(9, 9), branching=(3, 3)).start()
    search = MCTS(in_flight=8, solve=False)
    tree = search.tree(state)
    search.simulate(tree, 30)
    settled = [(node.visit_count, node.total_value) for node in nodes_of(tree.root)]
    pending = search._collect_leaves(tree, limit=38)
    assert 1 < len(pending) <= 8
    assert tree.root.in_flight == len(pending) == sum(c.in_flight for c in tree.root.children.values())
    assert tree.simulations == 30
    for child in tree.root.children.values():
        n, w, f = child.visit_count, child.total_value, child.in_flight
        expected = (w - f) / (n + f) + 1.0 * math.sqrt(2.0 * math.log(30 + len(pending)) / (n + f))
        assert child.score(30 + len(pending), 1.0) == expected
    for waiting in pending:
        assert waiting.leaf.is_pending
        search._mark_in_flight(waiting.leaf, -1)
    assert all(node.in_flight == 0 for node in nodes_of(tree.root))
    old = [node for node in nodes_of(tree.root) if node.visit_count]
    assert [(node.visit_count, node.total_value) for node in old] == settled


def test_leaf_in_flight_is_no_loss_with_rewards() -> None:
    state = TabularGame(6, depth=(9, 9), branching=(3, 3), rewards=True).start()
    search = MCTS(in_flight=8)
    tree = search.tree(state)
    search.simulate(tree, 30)
    pending = search._collect_leaves(tree, limit=38)
    child = max(tree.root.children.values(), key=lambda c: c.in_flight)
    visits = child.visit_count + child.in_flight
    assert child.in_flight > 0
    parent_visits = 30 + len(pending)
    expected = child.total_value / visits + math.sqrt(2.0 * math.log(parent_visits) / visits)
    assert child.score(parent_visits, 1.0) == expected


def test_single_line_of_play_has_batches_of_one() -> None:
    # Every descent after the first meets the leaf in flight, so each batch holds one.
    evaluator = Counting()
    chain = TabularGame(0, depth=(30, 30), branching=(1, 1)).start()
    result = MCTS(20, evaluator=evaluator, in_flight=5).run(chain)
    check_tree(result)
    assert [len(batch) for batch in evaluator.batches] == [1] * 20


# --- Playouts, evaluators, policies -------------------------------------------------------------------------------


def test_playout_matches_documented_random_draws() -> None:
    state = TabularGame(21, depth=(6, 9), branching=(2, 4)).start()
    random = Random(5, PLAYOUT)
    expected: TabularState = state
    while not expected.is_terminal:
        legal = expected.legal_actions()
        expected = expected.play(legal[random.choose(len(legal))])
    values, final = random_playout(state, Random(5, PLAYOUT))
    assert final == expected
    assert values == expected.returns()
    values, final = random_playout(state, Random(5, PLAYOUT), max_depth=3)
    assert values is None
    assert final.path == expected.path[:3]  # type: ignore[attr-defined]
    # A game that ends with the last move allowed is not cut.
    assert random_playout(state, Random(5, PLAYOUT), len(expected.path))[0] == expected.returns()
    assert random_playout(expected, Random(5, PLAYOUT), 0)[0] == expected.returns()


def test_playout_sums_rewards() -> None:
    state = TabularGame(22, players=3, depth=(4, 4), rewards=True).start()
    values, final = random_playout(state, Random(1, PLAYOUT))
    assert values == final.returns()
    ((cut),) = simulate_leaves([(state, 0, 77)], max_depth=2)
    _, middle = random_playout(state, Random(77, PLAYOUT), 2)
    assert cut == middle.returns()  # rewards so far, and nothing for what is cut off
    ((valued),) = simulate_leaves([(state, 0, 77)], 2, lambda s: [1.0, 2.0, 3.0])
    assert valued == pytest.approx([c + v for c, v in zip(cut, [1.0, 2.0, 3.0], strict=True)])


def test_evaluator_evaluates_leaf_or_cut_position() -> None:
    state = TabularGame(23, depth=(9, 9), branching=(2, 2)).start()
    asked: list[Any] = []

    def evaluator(position: Any) -> float:
        asked.append(position)
        return 0.25

    for max_depth in (None, 0):
        asked.clear()
        assert simulate_leaves([(state, 1, 5)], max_depth, evaluator) == [[0.25, -0.25]]
        assert asked == [state]
    asked.clear()
    assert simulate_leaves([(state, 1, 5)], 3, evaluator) == [[-0.25, 0.25]]  # player 1 is to move after 3 plies
    assert [len(position.path) for position in asked] == [3]
    assert simulate_leaves([(state, 1, 5)], 3) == [[0.0, 0.0]]
    asked.clear()
    values = simulate_leaves([(state, 1, 5)], 9, evaluator)
    assert not asked
    assert values[0] in ([1.0, -1.0], [0.0, 0.0], [-1.0, 1.0])


def test_evaluator_values_are_for_player_to_move() -> None:
    one, three = TabularGame(1, players=1).start(), TabularGame(1, players=3).start()
    first = TabularGame(1).start()
    second = first.play(first.legal_actions()[0])
    assert evaluate(lambda s: 0.5, [first, second]) == [[0.5, -0.5], [-0.5, 0.5]]
    assert evaluate(lambda s: (0.5, 0.1), [second]) == [[0.5, 0.1]]
    assert evaluate(lambda s: 0.5, [one]) == [[0.5]]
    assert evaluate(lambda s: [1, 2, 3], [three]) == [[1.0, 2.0, 3.0]]
    with pytest.raises(ValueError, match="1 values for 3 players"):
        evaluate(lambda s: 0.5, [three])
    with pytest.raises(ValueError, match="not finite"):
        evaluate(lambda s: math.nan, [first])

    class Short:
        def evaluate_states(self, states: list[Any]) -> tuple[None, list[float]]:
            return None, []

    with pytest.raises(ValueError, match="0 values for 1 states"):
        evaluate(Short(), [first])


def test_evaluator_and_policy_may_return_arrays() -> None:
    np = pytest.importorskip("numpy")

    class Network:
        def evaluate_states(self, states: list[Any]) -> tuple[Any, Any]:
            return np.zeros((len(states), 9)), np.full(len(states), 0.5, dtype=np.float32)

    state = TabularGame(2, depth=(4, 6)).start()
    assert evaluate(Network(), [state]) == [[0.5, -0.5]]
    assert evaluate(lambda s: np.array(0.5), [state]) == [[0.5, -0.5]]
    check_tree(MCTS(50, playout_policy=lambda s: np.int64(s.legal_actions()[0])).run(state))
    check_tree(MCTS(50, playout_policy=lambda s: np.ones(len(s.legal_actions()))).run(state))


def test_exact_evaluator_determines_move() -> None:
    for seed in range(10):
        state = TabularGame(seed, depth=(4, 4), branching=(2, 3), turn_order="random").start()
        result = MCTS(500, 0.7, evaluator=minimax_value, solve=False).run(state)
        child = state.play(result.action)
        assert minimax_value(child) * (1 if child.to_play == state.to_play else -1) == minimax_value(state)


def constant(answer: Any) -> Any:
    """A policy with one answer to everything."""
    return lambda state: answer


def test_playout_policy_returns_action_or_weights() -> None:
    state = TabularGame(24, depth=(6, 6), branching=(4, 4)).start()

    def first(s: Any) -> int:
        return int(s.legal_actions()[0])

    final = random_playout(state, Random(1, PLAYOUT), policy=first)[1]
    expected = state
    while not expected.is_terminal:
        expected = expected.play(expected.legal_actions()[0])
    assert final == expected
    # Weights: x = uniform * sum, and the first running sum above x. A weight of 0 is never drawn.
    counts = [0, 0, 0, 0]
    for key in range(2000):
        x = Random(key, PLAYOUT).uniform() * 4.0
        index = 1 if x < 1.0 else 3
        _, after = random_playout(state, Random(key, PLAYOUT), 1, lambda s: [0.0, 1.0, 0.0, 3.0])
        assert after == state.play(state.legal_actions()[index])
        counts[index] += 1
    assert 400 < counts[1] < 600
    for wrong in ([1.0], [0.0] * 4, [1.0, -1.0, 1.0, 1.0], [math.nan] * 4):
        with pytest.raises(ValueError, match="weights"):
            random_playout(state, Random(0, PLAYOUT), policy=constant(wrong))
    with pytest.raises(ValueError, match="chose action 99"):
        random_playout(state, Random(0, PLAYOUT), policy=lambda s: 99)


def test_own_playout_is_called_for_chooser() -> None:
    asked: list[tuple[int, int | None]] = []

    class Own(Tree2):
        def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
            asked.append((perspective_player, max_depth))
            return 0.75

    leaf = Own("n1", {"a": WIN, "b": LOSS})
    assert simulate_leaves([(leaf, 0, 1)], 7) == [[0.75, -0.75]]
    assert simulate_leaves([(leaf, 1, 1)]) == [[-0.75, 0.75]]
    assert asked == [(0, 7), (1, None)]
    asked.clear()
    assert simulate_leaves([(leaf, 0, 1)], None, lambda s: 0.5) == [[-0.5, 0.5]]
    assert not asked
    three = Own("n1", {"a": WIN, "b": LOSS}, num_players=3)
    assert simulate_leaves([(three, 0, 1)]) == [[0.75, 0.75, 0.75]]
    assert [player for player, _ in asked] == [0, 1, 2]
    result = MCTS(1).run(Tree2("n0", {"a": leaf}))
    assert result.values == {0: 0.75}


# --- Forced moves and the minimax guard ---------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(seeds, orders)
def test_forced_moves_preserve_minimax_value(seed: int, order: Any) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 4), branching=(1, 4), end_chance=0.5).start()
    legal = state.legal_actions()
    kept = forced_actions(state, legal)
    assert kept
    assert kept == [action for action in legal if action in kept]
    after = {action: state.play(action) for action in legal}
    worth = {
        action: minimax_value(child) * (1 if child.to_play == state.to_play else -1) for action, child in after.items()
    }
    assert max(worth[action] for action in kept) == max(worth.values())
    dropped = set(legal) - set(kept)
    if dropped:
        assert all(worth[a] == 1 and after[a].is_terminal for a in kept) or all(worth[a] == -1 for a in dropped)


def test_forced_moves_match_hand_computed_positions() -> None:
    quiet = long_way(1, 4, DRAW)
    threat = Tree2("n1", {"a": quiet, "b": LOSS})
    ours_again = Tree2("n0", {"a": LOSS, "b": quiet})
    assert forced_actions(Tree2("n0", {"a": quiet, "b": WIN, "c": LOSS, "d": WIN}), [0, 1, 2, 3]) == [1, 3]
    assert forced_actions(Tree2("n0", {"a": threat, "b": quiet, "c": ours_again, "d": DRAW}), [0, 1, 2, 3]) == [1, 2, 3]
    assert forced_actions(Tree2("n0", {"a": threat, "b": threat}), [0, 1]) == [0, 1]
    # In the tree: looked for while depth is left, and pruned moves are not waited for.
    third = Tree2("n0", {"x": threat, "y": quiet, "z": threat, "w": quiet})
    start = Tree2("n0", {"a": Tree2("n1", {"on": third}), "b": quiet})
    for depth, replies in ((0, [0, 1, 2, 3]), (1, [0, 1, 2, 3]), (2, [0, 1, 2, 3]), (3, [1, 3])):
        result = MCTS(200, solve=False, forced_depth=depth).run(start)
        assert sorted(result.root.children[0].children[0].children) == replies
        check_tree(result)


def brute_verdict(state: Any, depth: int, player: int) -> int:
    """What the guard must say, by the plainest recursion: +1 or -1 only if forced within `depth` plies."""
    if state.is_terminal:
        return int(state.returns()[player])
    if depth == 0:
        return 0
    below = [brute_verdict(state.play(action), depth - 1, player) for action in state.legal_actions()]
    if state.to_play == player:
        return max(below)
    return min(below)


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 6))
def test_minimax_is_exact_within_depth(seed: int, order: Any, depth: int) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 5), branching=(1, 3)).start()
    for action, (verdict, plies) in minimax(state, depth).items():
        child = state.play(action)
        assert verdict == brute_verdict(child, depth - 1, state.to_play)
        assert plies <= depth
        if verdict and depth >= 5:
            assert plies == solve(child)[1] + 1
        # The verdict is known at exactly so many plies, and not with one fewer.
        if verdict:
            assert minimax(state, plies)[action] == (verdict, plies)
            assert minimax(state, plies - 1)[action][0] == 0
        else:
            assert plies == 0


@settings(max_examples=100, deadline=None)
@given(seeds, orders, st.integers(1, 4), st.booleans())
def test_minimax_guard_overrides_only_with_proof(seed: int, order: Any, depth: int, solve_it: bool) -> None:
    state = TabularGame(seed, turn_order=order, depth=(1, 7), branching=(2, 4), end_chance=0.3).start()
    plain = MCTS(6, seed=seed, solve=solve_it).run(state)
    guarded = MCTS(6, seed=seed, solve=solve_it, minimax_depth=depth).run(state)
    assert plain.visits == guarded.visits
    if plain.proven is not None:
        assert guarded.action == plain.action
        return
    verdicts = minimax(state, depth)
    wins = {action: plies for action, (verdict, plies) in verdicts.items() if verdict == 1}
    lost = {action for action, (verdict, _) in verdicts.items() if verdict == -1}
    lost_in_tree = {a for a, child in plain.root.children.items() if child.proven_for_chooser == -1}
    if wins:
        first_shortest = next(a for a in wins if wins[a] == min(wins.values()))
        assert guarded.action == (plain.action if plain.action in wins else first_shortest)
    elif plain.action in lost and set(verdicts) - lost - lost_in_tree:
        rest = set(verdicts) - lost - lost_in_tree
        assert guarded.action in rest
        assert plain.visits[guarded.action] == max(plain.visits[a] for a in rest)
    else:
        assert guarded.action == plain.action


# --- Answers and edges --------------------------------------------------------------------------------------------


def test_zero_simulations_give_uniform_policy() -> None:
    state = TabularGame(9, branching=(4, 4), depth=(5, 5)).start()
    legal = state.legal_actions()
    answers = set()
    for seed in range(40):
        result = MCTS(0, seed=seed).run(state)
        assert set(result.policy.values()) == {0.25}
        assert all(math.isnan(q) for q in result.q.values())
        assert result.value == 0.0
        random = Random(fold(tree_key(seed, 0, 0), 0), ANSWER)
        assert result.action == legal[random.choose(4)]
        answers.add(result.action)
    assert answers == set(legal)


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
    # A change here is a change of what the engine must do.
    result = MCTS(100, seed=7).run(TabularGame(42, depth=(5, 9), branching=(2, 4)).start(), call=1, row=2)
    pinned = (result.action, list(result.visits.items()), list(result.values.items()), result.proven)
    assert pinned == (7, [(7, 65), (0, 35)], [(7, 8.0), (0, -1.0)], None)
    result = MCTS(60, 0.5, 2, lambda s: s.observation()[2:4], in_flight=4).run(
        TabularGame(43, zero_sum=False, depth=(5, 9), branching=(2, 4), turn_order="random").start()
    )
    pinned = (result.action, list(result.visits.items()), list(result.values.items()), result.proven)
    assert pinned == (2, [(2, 49), (3, 11)], [(2, 16.76275123618485), (3, 0.3705628465746129)], None)
