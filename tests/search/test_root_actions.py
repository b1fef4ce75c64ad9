"""`root_actions` in every search, compared with the reference implementation."""

from __future__ import annotations

from typing import Any

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_uct import compare_nodes
from tests.support.exact_models import ExactBatchModel, RandomOutputs
from tests.support.search_helpers import PythonGame, after, fingerprint, random_position
from tests.support.traces import first_difference

import pondertree
from pondertree.chess import MCTS, ChessGame
from pondertree.errors import InvalidActionError, InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.reference import alphazero, gumbel, hybrid, muzero, uct
from pondertree.testing.tabular import TabularGame

POSITIONS = st.one_of(
    st.builds(
        random_position, st.sampled_from([TicTacToe, ConnectFour, Othello]), st.integers(0, 20), st.integers(0, 999)
    ),
    st.builds(
        lambda seed, players, rewards: TabularGame(seed, players=players, rewards=rewards, branching=(2, 4)).start(),
        st.integers(0, 999),
        st.integers(1, 4),
        st.booleans(),
    ),
    st.builds(lambda plies: PythonGame(random_position(TicTacToe, plies, plies)), st.integers(0, 6)),
)
CHESS = st.builds(random_position, st.just(Chess), st.integers(0, 40), st.integers(0, 999))


class Hashed:
    """Logits and values, one per player, that look random and depend on the legal actions and the player alone."""

    def evaluate_states(self, states: Any) -> tuple[Any, Any]:
        logits, values = [], []
        for state in states:
            numbers = np.random.default_rng([state.to_play, *state.legal_actions()])
            logits.append(numbers.integers(-128, 129, state.num_actions) / 64)
            row = numbers.integers(-64, 65, state.num_players) / 64
            values.append([row[0], -row[0]] if state.num_players == 2 and not hasattr(state, "rewards") else row)
        return np.array(logits), np.array(values)


def subset(data: st.DataObject, state: Any) -> list[int]:
    """Some of the legal actions, in any order."""
    return data.draw(st.lists(st.sampled_from(list(state.legal_actions())), min_size=1, unique=True), "root_actions")


def assert_same(engine_tree: Any, reference: Any, reference_tree: Any, actions: list[int]) -> None:
    """Descents, visits, values, proofs and the answer are equal; nothing happens outside of `actions`."""
    engine, expected = engine_tree.result(), reference.result(reference_tree)
    difference = first_difference(engine_tree.trace(), reference_tree.trace or [])
    assert difference is None, f"{difference} (a: engine, b: reference)"
    assert (engine.simulations, engine.action, engine.proven) == (
        expected.simulations,
        expected.action,
        expected.proven,
    )
    assert engine.value == pytest.approx(expected.value, abs=1e-12)
    assert {action: int(engine.visits[action]) for action in expected.visits} == expected.visits
    assert {action: engine.policy[action] for action in expected.policy} == pytest.approx(expected.policy, abs=1e-9)
    outside = np.setdiff1d(np.arange(len(engine.visits)), actions)
    assert engine.action in actions
    assert not engine.visits[outside].any()
    assert not engine.policy[outside].any()
    assert np.isnan(engine.q[outside]).all()
    assert engine.policy.sum() == pytest.approx(1.0)
    assert {move.action for move in engine.moves} <= set(actions)


@settings(max_examples=150)
@given(
    state=POSITIONS,
    data=st.data(),
    simulations=st.integers(1, 80),
    solve=st.booleans(),
    in_flight=st.sampled_from([1, 3]),
    forced=st.sampled_from([0, 2]),
    guard=st.sampled_from([0, 2]),
)
def test_uct_matches_reference_with_root_actions(
    state: Any, data: st.DataObject, simulations: int, solve: bool, in_flight: int, forced: int, guard: int
) -> None:
    actions = subset(data, state)
    if state.num_players != 2 or hasattr(state, "rewards"):
        forced = guard = 0
    options: dict[str, Any] = {"seed": 7, "solve": solve, "in_flight": in_flight}
    options |= {"forced_depth": forced, "minimax_depth": guard}
    tree = pondertree.UCT(trace=True, **options).tree(state, root_actions=actions).simulate(simulations)
    reference = uct.MCTS(simulations, **options)
    expected = reference.tree(state, trace=True, root_actions=actions)
    reference.simulate(expected, simulations)
    assert_same(tree, reference, expected, actions)
    compare_nodes(tree.result().root, expected.root)


@settings(max_examples=100)
@given(
    state=POSITIONS,
    data=st.data(),
    simulations=st.integers(1, 60),
    add_noise=st.booleans(),
    in_flight=st.sampled_from([1, 3]),
)
def test_alphazero_matches_reference_with_root_actions(
    state: Any, data: st.DataObject, simulations: int, add_noise: bool, in_flight: int
) -> None:
    actions = subset(data, state)
    search = pondertree.AlphaZero(Hashed(), seed=3, in_flight=in_flight, trace=True)
    tree = search.tree(state, root_actions=actions).simulate(simulations, add_noise=add_noise)
    reference = alphazero.MCTS(Hashed(), seed=3, in_flight=in_flight)
    expected = reference.tree(state, trace=True, root_actions=actions)
    reference.simulate(expected, simulations, add_noise)
    assert_same(tree, reference, expected, actions)
    children = tree.result().root.children
    assert set(children) == set(actions)
    assert sum(child.prior for child in children.values()) == pytest.approx(1.0, abs=1e-5)
    assert sum(child.clean_prior for child in children.values()) == pytest.approx(1.0, abs=1e-5)


@settings(max_examples=80)
@given(state=POSITIONS, data=st.data(), simulations=st.integers(1, 50))
def test_gumbel_matches_reference_with_root_actions(state: Any, data: st.DataObject, simulations: int) -> None:
    actions = subset(data, state)
    search = pondertree.Gumbel(Hashed(), seed=3, max_num_considered_actions=4, trace=True)
    tree = search.tree(state, root_actions=actions).simulate(simulations)
    reference = gumbel.MCTS(Hashed(), seed=3, max_num_considered_actions=4)
    expected = reference.tree(state, trace=True, root_actions=actions)
    reference.simulate(expected, simulations)
    assert_same(tree, reference, expected, actions)


@settings(max_examples=60)
@given(
    plies=st.integers(0, 6),
    seed=st.integers(0, 99),
    data=st.data(),
    simulations=st.integers(1, 50),
    bare=st.booleans(),
    is_gumbel=st.booleans(),
)
def test_model_searches_match_reference_with_root_actions(
    plies: int, seed: int, data: st.DataObject, simulations: int, bare: bool, is_gumbel: bool
) -> None:
    state = random_position(TicTacToe, plies, seed)
    actions = subset(data, state)
    model = ExactBatchModel([state], RandomOutputs())
    root: dict[str, Any] = {"state": state}
    if bare:
        root = {"observation": state.observation(), "legal_actions": state.legal_actions(), "to_play": state.to_play}
    search: Any = pondertree.MuZero(model, seed=3, num_players=2, trace=True)
    reference: Any = muzero.MCTS(ExactBatchModel([state], RandomOutputs()), seed=3, num_players=2)
    if is_gumbel:
        search = pondertree.Gumbel(model=model, seed=3, num_players=2, trace=True)
        reference = gumbel.MCTS(ExactBatchModel([state], RandomOutputs()), seed=3, num_players=2)
    tree = search.tree(**root, root_actions=actions).simulate(simulations)
    expected = reference.tree(**root, trace=True, root_actions=actions)
    reference.simulate(expected, simulations)
    assert_same(tree, reference, expected, actions)


@settings(max_examples=40)
@given(
    state=CHESS,
    data=st.data(),
    simulations=st.integers(1, 40),
    priority=st.sampled_from(["strict", "tactical", "prior", None]),
    in_flight=st.sampled_from([1, 3]),
    evaluated=st.booleans(),
)
def test_hybrid_matches_reference_with_root_actions(
    state: Any, data: st.DataObject, simulations: int, priority: Any, in_flight: int, evaluated: bool
) -> None:
    actions = subset(data, state)
    evaluator = Hashed() if evaluated else None
    options: dict[str, Any] = {"priority": priority, "in_flight": in_flight, "seed": 3, "num_simulations": simulations}
    search = pondertree.Hybrid(evaluator, trace=True, **options)
    tree = search.tree(state, root_actions=actions).simulate(simulations)
    chess_config = search.config(pondertree.game.describe(state)).analysis
    assert chess_config is not None
    reference = hybrid.MCTS(
        evaluator,
        **options,
        move_scores=chess_config.move_scores,
        weights=chess_config.weights,
        root_depth=chess_config.root_depth,
    )
    expected = reference.tree(state, trace=True, root_actions=actions)
    reference.simulate(expected, simulations)
    assert_same(tree, reference, expected, actions)


MATE_IN_ONE = Chess("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1")
SEARCHES: dict[str, Any] = {
    "uct": lambda: pondertree.UCT(60, seed=5),
    "alphazero": lambda: pondertree.AlphaZero(Rollout(), 60, seed=5),
    "gumbel": lambda: pondertree.Gumbel(Uniform(), num_simulations=30, seed=5),
    "hybrid": lambda: pondertree.Hybrid(num_simulations=60, seed=5),
    "chess": lambda: MCTS(Uniform(), 60, seed=5),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_all_legal_root_actions_give_the_tree_of_none(name: str) -> None:
    for state in (Chess(), MATE_IN_ONE, after(Chess(), "e4 e5")):
        plain = SEARCHES[name]().run(state)
        everything = SEARCHES[name]().run(state, root_actions=list(reversed(state.legal_actions())))
        assert fingerprint(plain) == fingerprint(everything)


@pytest.mark.parametrize("name", SEARCHES)
def test_num_simulations_counts_as_without_root_actions(name: str) -> None:
    state = Chess()
    actions = state.legal_actions()[3:9]
    plain, result = SEARCHES[name]().run(state), SEARCHES[name]().run(state, root_actions=actions)
    assert result.simulations == plain.simulations == int(result.visits.sum())
    assert result.root.visit_count == plain.root.visit_count
    assert set(np.flatnonzero(result.visits).tolist()) <= set(actions)


def test_win_outside_root_actions_is_not_proven() -> None:
    mate = MATE_IN_ONE.parse_action("Ra8#")
    others = [action for action in MATE_IN_ONE.legal_actions() if action != mate]
    for search in (pondertree.Hybrid(num_simulations=300, seed=1), pondertree.UCT(300, seed=1)):
        assert search.run(MATE_IN_ONE).proven == 1
        result = search.run(MATE_IN_ONE, root_actions=others)
        assert result.proven is None
        assert result.action in others
        assert search.run(MATE_IN_ONE, root_actions=[mate]).proven == 1


def test_root_restricted_to_a_losing_move_is_lost() -> None:
    state = after(ConnectFour(), "4 1 4 1 4")
    block, other = 3, 0
    search = pondertree.UCT(4000, seed=1)
    assert search.run(state, root_actions=[other]).proven == -1
    result = search.run(state, root_actions=[block, other])
    assert result.action == block
    assert result.q[other] == -1.0


def test_root_actions_may_differ_per_row() -> None:
    search = pondertree.UCT(60, seed=5)
    states = [ConnectFour(), ConnectFour().play(3), ConnectFour()]
    first, second, third = search.run(states, root_actions=[[0, 1], None, (6,)])
    assert set(np.flatnonzero(first.visits).tolist()) == {0, 1}
    assert set(np.flatnonzero(second.visits).tolist()) == set(range(7))
    assert third.action == 6
    for result in search.run(states, root_actions={2, 4}):
        assert set(np.flatnonzero(result.visits).tolist()) == {2, 4}
    for result in search.forest(states, root_actions=np.array([2, 4])).simulate(30).results():
        assert set(np.flatnonzero(result.visits).tolist()) == {2, 4}


def test_root_actions_are_numbers_text_or_chess_moves() -> None:
    board = chess.Board()
    moves = ["e2e4", "Nf3", chess.Move.from_uci("d2d4"), ChessGame(board).get_move_index("c2c4")]
    result = pondertree.Hybrid(num_simulations=60, seed=1).run(board, root_actions=moves)
    tried = {board.san(chess.Move.from_uci(move.move)) for move in result.moves}
    assert tried == {"e4", "Nf3", "d4", "c4"}
    assert result.chess_move in board.legal_moves


@pytest.mark.parametrize("wrap", [lambda state: state, PythonGame], ids=["compiled", "python"])
def test_restricted_tree_advances_by_any_legal_move(wrap: Any) -> None:
    for forced in (0, 2):
        for action in (0, 3):
            search = pondertree.UCT(seed=1, forced_depth=forced)
            tree = search.tree(wrap(ConnectFour()), root_actions=[0, 1]).simulate(60)
            tree.advance(action)
            assert tree.state == wrap(ConnectFour().play(action))
            result = tree.simulate(60).result()
            assert set(np.flatnonzero(result.visits).tolist()) == set(range(7))


def test_restricted_model_tree_advances_by_any_legal_move_of_a_state() -> None:
    state = TicTacToe()
    for action in (0, 4):
        model = ExactBatchModel([state, state.play(action)], RandomOutputs())
        tree = pondertree.MuZero(model, seed=1).tree(state, root_actions=[0, 1]).simulate(20)
        tree.advance(action)
        assert len(tree.simulate(40).result().moves) == 8
    tree = pondertree.MuZero(ExactBatchModel([state], RandomOutputs()), seed=1, num_players=2).tree(
        observation=state.observation(), root_actions=[0, 1]
    )
    tree.simulate(20)
    with pytest.raises(InvalidActionError, match="action 4 is not among root_actions"):
        tree.advance(4)
    tree.advance(0)


@pytest.mark.parametrize(
    ("root_actions", "kind", "words"),
    [
        ([], InvalidArgumentError, "root_actions is empty"),
        ([7], InvalidActionError, r"root_actions has 7, which is not legal.*legal are \[0, 1, 2"),
        ([1, 1], InvalidArgumentError, "root_actions has 1 twice"),
        ([-1], InvalidArgumentError, r"root_actions\[0\] must be at least 0"),
        ([1.5], InvalidArgumentError, r"root_actions\[0\] must be a whole number"),
        (["9"], InvalidActionError, r"root_actions\[0\]"),
        (3, InvalidArgumentError, "root_actions must be a list of actions, not 3"),
        ("3", InvalidArgumentError, "root_actions must be a list of actions"),
        ([[1], [2]], InvalidArgumentError, "root_actions has 2 entries for 1 states"),
        ([[]], InvalidArgumentError, r"root_actions\[0\] is empty"),
        ([None, 3], InvalidArgumentError, "root_actions has 2 entries for 1 states"),
        ([chess.Move.from_uci("e2e4")], InvalidArgumentError, r"root_actions\[0\] is a chess.Move"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda state: state, PythonGame], ids=["compiled", "python"])
def test_wrong_root_actions_are_refused(wrap: Any, root_actions: Any, kind: type[Exception], words: str) -> None:
    state = wrap(ConnectFour())
    for call in (pondertree.UCT(10).run, pondertree.AlphaZero(Uniform(), 10).run, pondertree.UCT(10).tree):
        with pytest.raises(kind, match=words):
            call(state, root_actions=root_actions)


def test_wrong_root_actions_are_refused_by_the_reference() -> None:
    state = ConnectFour()
    for search in (uct.MCTS(5), alphazero.MCTS(alphazero.Uniform(), 5), gumbel.MCTS(alphazero.Uniform(), 5)):
        for wrong in ([], [7], [1, 1]):
            with pytest.raises(ValueError, match="root_actions"):
                search.run(state, root_actions=wrong)  # type: ignore[attr-defined]
