"""UCT: the four steps, the node, UCB1, expansion, simulation, back-propagation and the choice of an action."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from tests.games.test_dict_state import Nim
from tests.specifications.examples import BACKPROPAGATION, BEST_CHILD
from tests.specifications.support import Traced
from tests.support.search_helpers import PythonGame, after

import pondertree
from pondertree import UCT, playout
from pondertree.games import ConnectFour, TicTacToe
from pondertree.reference import uct
from pondertree.reference.uct import MCTS, MCTSNode, forced_actions

each_implementation = pytest.mark.parametrize("kind", ["engine", "reference"])
WIN = ("4 1 4 1 4 1", "4")
"""Moves of Connect 4, and the move that wins after them."""
BLOCK = ("4 1 4 1 4", "4")


def traced(kind: str, simulations: int, state: Any = None, **options: Any) -> Traced:
    """A search of tic-tac-toe without proofs, by the engine or the reference."""
    options = {"seed": 1, "solve": False, **options}
    state = TicTacToe() if state is None else state
    if kind == "engine":
        tree = UCT(trace=True, **options).tree(state)
        tree.simulate(simulations)
        return Traced(tree.trace(), tree.result().root)
    search = MCTS(**options)
    grown = search.tree(state, trace=True)
    search.simulate(grown, simulations)
    return Traced(list(grown.trace or []), grown.root)


def q_of(kind: str, child: Any) -> float:
    """The mean value of a move for the player who chooses it."""
    total = -child.total_value if kind == "engine" else child.total_value
    return float(total / child.visit_count)


def by_hand(iterations: int = 200, c_param: float = 1.0) -> MCTSNode:
    """The four steps in the document's names."""
    mcts, root = MCTS(c_param=c_param, solve=False), MCTSNode(TicTacToe())
    for iteration in range(iterations):
        node = mcts._select(root)
        if not node.state.is_terminal:
            node = node.expand()
        mcts._backpropagate(node, playout(node.state, node.chooser, seed=iteration))
    return root


def drawing() -> MCTSNode:
    """The tree that the document draws: a1 with 3 of 5 and a2 with 2 of 5."""
    root = MCTSNode(TicTacToe(), visit_count=10)
    for value in (3.0, 2.0):
        child = root.expand()
        child.visit_count, child.total_value = 5, value
    return root


# --- Overview -----------------------------------------------------------------------------------------------------


def test_iteration_runs_select_expand_simulate_backpropagate() -> None:
    root = by_hand()
    assert root.visit_count == 200 == sum(child.visit_count for child in root.children.values())
    assert MCTS().search(TicTacToe()) in range(9)


@each_implementation
def test_selection_follows_the_highest_score_to_a_leaf(kind: str) -> None:
    for row in traced(kind, 300).trace:
        for action, scores in zip(row["path"], row["scores"], strict=True):
            if scores is not None:
                assert dict(scores)[action] == max(score for _, score in scores)


@each_implementation
def test_expansion_opens_one_action_per_iteration(kind: str) -> None:
    """The last step of a path is opened without a score, and only that one; at an end of the game none is."""
    for row in traced(kind, 200).trace:
        opened = [scores is None for scores in row["scores"]]
        assert opened[:-1] == [False] * (len(opened) - 1)
        assert opened[-1] or after(TicTacToe(), row["path"]).is_terminal


@each_implementation
def test_simulation_is_random_or_by_a_policy(kind: str) -> None:
    """Random playouts from one position have different results; with a policy that is fixed they have one."""

    def first(state: Any) -> int:
        return int(state.legal_actions()[0])

    def values(**options: Any) -> set[float]:
        rows = [traced(kind, 1, seed=seed, **options).trace[0] for seed in range(30)]
        return {row["values"][0] for row in rows if row["path"] == rows[0]["path"]}

    assert len(values()) > 1
    assert len(values(playout_policy=first)) == 1


@each_implementation
def test_backpropagation_updates_every_node_of_the_path(kind: str) -> None:
    search = traced(kind, 150)
    for prefix in {path[:depth] for path in search.paths() for depth in range(1, len(path) + 1)}:
        assert search.node(prefix).visit_count == sum(path[: len(prefix)] == prefix for path in search.paths())


def test_tree_consists_of_mcts_nodes() -> None:
    nodes = [traced("reference", 50).root]
    for node in nodes:
        nodes.extend(node.children.values())
    assert len(nodes) == 51
    assert all(type(node) is MCTSNode for node in nodes)


FIELDS = ("state", "parent", "forced_depth_left", "children", "visit_count", "total_value")


def test_node_is_a_dataclass_with_slots_and_the_documents_fields_first() -> None:
    assert dataclasses.is_dataclass(MCTSNode)
    assert not hasattr(MCTSNode(TicTacToe()), "__dict__")
    assert tuple(field.name for field in dataclasses.fields(MCTSNode))[:6] == FIELDS


def test_node_state_may_be_a_dict() -> None:
    """A dict, with the functions of the game beside it."""
    start = {"stones": 7, "player": 0}
    search = MCTS(300, game=Nim(), seed=1)
    root: Any = search.run(start).root
    assert isinstance(root.state, dict)
    assert dict(root.state) == start
    assert dict(root.children[3].state) == {"stones": 4, "player": 1}
    assert search.search(start) == 3


@pytest.mark.parametrize(("name", "value"), [("parent", None), ("visit_count", 0), ("total_value", 0.0)])
def test_node_field_has_its_initial_value(name: str, value: Any) -> None:
    root = MCTSNode(TicTacToe())
    assert getattr(root, name) == value
    assert getattr(root.expand(), name) == (root if name == "parent" else value)


def test_node_forced_depth_left_starts_at_forced_depth() -> None:
    assert MCTSNode(TicTacToe()).forced_depth_left == 0
    assert MCTS(forced_depth=3).tree(TicTacToe()).root.forced_depth_left == 3


def test_node_children_map_actions_to_nodes() -> None:
    root = MCTSNode(TicTacToe())
    assert root.children == {}
    child = root.expand()
    assert root.children == {child.action: child}


def test_edge_statistics_are_kept_in_the_child_behind_the_edge() -> None:
    """In the reference they are fields of the child, which one edge leads to; they are those of the choice."""
    root = by_hand(100)
    assert root.visit_count == sum(child.visit_count for child in root.children.values())
    engine = UCT(100, seed=1, solve=False).run(TicTacToe())
    assert engine.visits.tolist() == [engine.root.children[action].visit_count for action in range(9)]


def test_children_are_indexed_by_their_action() -> None:
    root = traced("reference", 60).root
    for action, child in root.children.items():
        assert child.action == action
        assert child.state == root.state.play(action)
    assert set(UCT(60, seed=1).run(TicTacToe()).root.children) == set(range(9))


# --- Selection ----------------------------------------------------------------------------------------------------


@each_implementation
def test_select_descends_while_fully_expanded_and_not_terminal(kind: str) -> None:
    search = traced(kind, 400)
    opened: dict[tuple[int, ...], set[int]] = {}
    for row in search.trace:
        path = tuple(row["path"])
        for depth, scores in enumerate(row["scores"]):
            state = after(TicTacToe(), path[:depth])
            complete = opened.get(path[:depth], set()) == set(state.legal_actions())
            assert (scores is not None) == complete
            assert not state.is_terminal
            opened.setdefault(path[:depth], set()).add(path[depth])


@each_implementation
def test_ucb1_exploitation_is_the_mean_value(kind: str) -> None:
    """With c_param = 0 the score is the mean value alone."""
    before, row = traced(kind, 60, c_param=0.0), traced(kind, 61, c_param=0.0).trace[60]
    expected = {action: q_of(kind, child) for action, child in before.root.children.items()}
    assert dict(row["scores"][0]) == pytest.approx(expected)


@each_implementation
def test_ucb1_exploration_has_the_two_inside_the_root(kind: str) -> None:
    """What c_param = 1 adds to the mean value."""
    before, row = traced(kind, 60, c_param=1.0), traced(kind, 61, c_param=1.0).trace[60]
    for action, score in row["scores"][0]:
        child = before.root.children[action]
        expected = math.sqrt(2 * math.log(60) / child.visit_count)
        assert score - q_of(kind, child) == pytest.approx(expected)


def test_ucb1_score_is_the_documents_code() -> None:
    root = by_hand(120)
    for child in root.children.values():
        for c_param in (0.0, 0.7, 1.0, 2.0):
            names: dict[str, Any] = {"child": child, "parent_visits": root.visit_count, "c_param": c_param}
            exec(BEST_CHILD.text, {"sqrt": math.sqrt, "ln": math.log}, names)
            assert child.score(root.visit_count, c_param) == pytest.approx(names["score"])
    assert root.best_child(0.7) is max(root.children.values(), key=lambda child: child.score(root.visit_count, 0.7))


def test_ties_are_broken_at_random() -> None:
    root = MCTSNode(TicTacToe(), visit_count=9)
    while root.list_actions():
        root.expand().update(0.5)
    drawn = [root.best_child(1.0).action for _ in range(900)]
    assert all(60 < drawn.count(action) < 140 for action in range(9)), "each about 100 times"
    firsts = {UCT(1, seed=seed).run(TicTacToe()).action for seed in range(60)}
    assert firsts == set(range(9))


def test_best_child_compares_win_rates_and_exploration() -> None:
    root = drawing()
    first, second = root.children.values()
    assert root.best_child(1.0) is first, "3/5 against 2/5 with the same bonus"
    second.visit_count, second.total_value = 2, 0.8
    assert root.best_child(0.0) is first
    assert root.best_child(1.0) is second, "the same 2/5 of fewer visits has the greater bonus"


def test_drawn_tree_has_its_win_rates() -> None:
    assert [child.total_value / child.visit_count for child in drawing().children.values()] == [3 / 5, 2 / 5]


# --- Expansion ----------------------------------------------------------------------------------------------------


def test_expand_applies_a_remaining_action_and_adds_a_child() -> None:
    root, seen = MCTSNode(TicTacToe()), set()
    for _ in range(9):
        child: Any = root.expand()
        assert child.action not in seen
        assert child.state == TicTacToe().play(child.action)
        seen.add(child.action)
    assert seen == set(root.children) == set(range(9))


def test_child_inherits_the_forced_depth_counter() -> None:
    node = MCTSNode(TicTacToe(), forced_depth_left=2)
    counters = []
    for _ in range(4):
        counters.append(node.forced_depth_left)
        node = node.expand()
    assert counters == [2, 1, 0, 0]
    engine = UCT(300, forced_depth=2, seed=1, solve=False).run(TicTacToe()).root
    assert (engine.forced_depth_left, engine.children[0].forced_depth_left) == (2, 1)


@each_implementation
def test_forced_moves_prune_the_others(kind: str) -> None:
    for moves, best in (WIN, BLOCK):
        state = after(ConnectFour(), moves)
        action = state.parse_action(best)
        assert forced_actions(state, state.legal_actions()) == [action]
        root = traced(kind, 40, state, forced_depth=1).root
        assert [move for move, child in root.children.items() if child.visit_count] == [action]
        assert len(traced(kind, 40, state).root.children) == 7


@each_implementation
def test_iteration_adds_one_leaf(kind: str) -> None:
    def size(simulations: int) -> int:
        nodes = [traced(kind, simulations).root]
        for node in nodes:
            nodes.extend(child for child in node.children.values() if child.visit_count)
        return len(nodes)

    assert [size(simulations) for simulations in (1, 5, 30)] == [2, 6, 31]


# --- Simulation ---------------------------------------------------------------------------------------------------


class OwnPlayout(PythonGame):
    """Tic-tac-toe with a playout of its own, which records what it is evaluated."""

    evaluated: list[tuple[int, int | None]] = []  # noqa: RUF012

    def simulateRandomPlayout(self, perspective_player: int, max_depth: int | None) -> float:  # noqa: N802
        self.evaluated.append((perspective_player, max_depth))
        return 0.5


@each_implementation
def test_playout_of_the_game_is_used_for_the_player_who_chose(kind: str) -> None:
    OwnPlayout.evaluated.clear()
    search = traced(kind, 9, OwnPlayout(TicTacToe()), max_depth=4)
    assert OwnPlayout.evaluated == [(0, 4)] * 9
    assert all(q_of(kind, child) == 0.5 for child in search.root.children.values())


@each_implementation
def test_evaluation_function_values_where_the_depth_cuts(kind: str) -> None:
    """At depth 0 the leaf itself, at depth 2 the position two moves later; without one a cut playout is a draw."""
    seen: list[int] = []

    def count(states: Any) -> Any:
        seen.extend(9 - len(state.legal_actions()) for state in states)
        return None, [0.25] * len(states)

    class Counting:
        def evaluate_states(self, states: Any) -> Any:
            return count(states)

    for depth in (0, 2):
        seen.clear()
        traced(kind, 9, max_depth=depth, evaluator=Counting())
        assert seen == [1 + depth] * 9
    assert {row["values"][0] for row in traced(kind, 9, max_depth=2).trace} == {0.0}


def test_playout_is_in_minus_one_to_one_for_the_perspective_player() -> None:
    start = TicTacToe()
    values = [playout(start, 0, seed=seed) for seed in range(60)]
    assert set(values) == {1.0, 0.0, -1.0}
    assert [playout(start, 1, seed=seed) for seed in range(60)] == [-value for value in values]
    for moves, winner in (([0, 3, 1, 4, 2], 0), ([8, 0, 3, 1, 7, 2], 1)):
        won = after(start, moves)
        assert (playout(won, winner), playout(won, 1 - winner)) == (1.0, -1.0)


# --- Back-propagation ---------------------------------------------------------------------------------------------


@each_implementation
def test_sign_follows_whose_turn_it_is(kind: str) -> None:
    """W of each move is the sum of the values for the player who chose it, which alternates in tic-tac-toe."""
    search = traced(kind, 120)
    totals: dict[tuple[int, ...], float] = {}
    for path, row in zip(search.paths(), search.trace, strict=True):
        for depth in range(1, len(path) + 1):
            totals[path[:depth]] = totals.get(path[:depth], 0.0) + row["values"][(depth - 1) % 2]
    for path, total in totals.items():
        assert q_of(kind, search.node(path)) * search.node(path).visit_count == pytest.approx(total)


def test_back_propagation_loop_runs_as_written() -> None:
    def path_of_nodes() -> list[MCTSNode]:
        path = [MCTSNode(TicTacToe())]
        for _ in range(4):
            path.append(path[-1].expand())
        return path

    ours, document = path_of_nodes(), path_of_nodes()
    MCTS()._backpropagate(ours[-1], 0.75)
    exec(BACKPROPAGATION.text, {"node": document[-1], "value": 0.75})
    assert [node.visit_count for node in ours] == [node.visit_count for node in document] == [1] * 5
    assert [node.total_value for node in ours[1:]] == [node.total_value for node in document[1:]]
    assert abs(ours[0].total_value) == abs(document[0].total_value)


# --- Choosing an Action, Relationship to the Code -----------------------------------------------------------------


@each_implementation
def test_best_action_has_the_most_visits_unless_another_is_proven(kind: str) -> None:
    make: Any = UCT if kind == "engine" else MCTS
    for start in (TicTacToe(), after(TicTacToe(), [0, 3, 1, 4])):
        result = make(300, seed=1, solve=False).run(start)
        visits = {action: child.visit_count for action, child in result.root.children.items()}
        assert result.action == max(visits, key=visits.__getitem__)
    solved = [make(9, seed=seed).run(after(TicTacToe(), [0, 3, 1, 4])) for seed in range(20)]
    assert {result.action for result in solved} == {2}
    assert any(result.root.children[2].visit_count == 1 < result.simulations for result in solved)


@each_implementation
def test_minimax_overrides_only_with_a_proof(kind: str) -> None:
    """One simulation cannot see the win or the threat; minimax proves both. At the start it proves nothing."""
    make: Any = UCT if kind == "engine" else MCTS
    for moves, best in (WIN, BLOCK):
        state = after(ConnectFour(), moves)
        for seed in range(6):
            assert make(1, minimax_depth=2, seed=seed, solve=False).run(state).action == state.parse_action(best)
    for seed in range(6):
        plain, guarded = (make(50, minimax_depth=depth, seed=seed).run(ConnectFour()).action for depth in (0, 3))
        assert plain == guarded


def test_search_runs_all_iterations() -> None:
    class Counted(MCTS):
        selections = 0

        def _select(self, *arguments: Any) -> MCTSNode:
            self.selections += 1
            return super()._select(*arguments)

    search = Counted(70, solve=False)
    assert search.search(TicTacToe()) in range(9)
    assert search.selections == 70
    assert pondertree.UCT(70, solve=False).run(TicTacToe()).simulations == 70


def test_best_child_selects_by_ucb1() -> None:
    root = drawing()
    assert root.best_child(c_param=1.0) is root.best_child() is next(iter(root.children.values()))


def test_expand_adds_a_child_without_arguments() -> None:
    root = MCTSNode(TicTacToe())
    child: Any = root.expand()
    assert root.children[child.action] is child
    assert child.parent is root


def test_select_walks_until_expansion_is_needed() -> None:
    mcts, root = MCTS(solve=False), MCTSNode(TicTacToe())
    assert mcts._select(root) is root
    while root.list_actions():
        assert mcts._select(root) is root
        mcts._backpropagate(root.expand(), 0.0)
    assert mcts._select(root).parent is root


def test_backpropagate_updates_the_path() -> None:
    root = MCTSNode(TicTacToe())
    child = root.expand()
    other = root.expand()
    MCTS()._backpropagate(child, 1.0)
    assert (child.visit_count, child.total_value, root.visit_count, other.visit_count) == (1, 1.0, 1, 0)


def test_best_action_picks_the_final_move() -> None:
    root = by_hand(300)
    assert MCTS(solve=False)._best_action(root) == max(root.children.values(), key=lambda c: c.visit_count).action
    assert uct.MCTS is MCTS
