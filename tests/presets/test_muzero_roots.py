"""Roots of MuZero: states, boards and observations in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.models import TableModel
from tests.support.observed_models import Seeing, numbered
from tests.support.search_helpers import PythonGame, fingerprint, random_position

import pondertree
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

# --- Roots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
@pytest.mark.parametrize("wrap", [False, True])
def test_state_root_has_its_own_legal_actions_and_player(start: Any, wrap: bool) -> None:
    """What it looks like, what is legal, whose turn it is, and that there are two players."""
    states = [random_position(start, plies, 1) for plies in (0, 3, 8)]
    model = Seeing(start().num_actions)
    search = pondertree.MuZero(model, 20, discount=1.0, seed=1)
    results = search.run([PythonGame(state) for state in states] if wrap else states)
    assert len(model.seen) == 1, "all roots in one call"
    assert np.array_equal(model.seen[0], np.stack([state.observation() for state in states]))
    for state, result in zip(states, results, strict=True):
        assert sorted(result.root.children) == sorted(state.legal_actions())
        assert result.root.to_play == state.to_play
        assert all(child.to_play == 1 - state.to_play for child in result.root.children.values())
        assert result.move == state.action_to_string(result.action)
        assert result.visits.sum() == result.simulations == 20
        assert result.visits.shape == result.policy.shape == result.q.shape == (state.num_actions,)
        [told] = pondertree.MuZero(model, 20, discount=1.0, num_players=2).run(
            observation=[state.observation()],
            legal_actions=[state.legal_actions()],
            to_play=[state.to_play],
            seeds=[7],
        )
        assert fingerprint(told) == fingerprint(pondertree.MuZero(model, 20, discount=1.0).run(state, seeds=7))


def test_muzero_accepts_a_chess_board() -> None:
    chess = pytest.importorskip("chess")
    board = chess.Board()
    board.push_san("e4")
    search = pondertree.MuZero(Seeing(4672), 20, seed=1)
    result = search.run(board)
    assert chess.Move.from_uci(result.move) in board.legal_moves
    assert result.root.to_play == 1
    assert search.search(board) in board.legal_moves
    move, policy = search.get_policy(board, temperature=0.0, add_noise=True)
    assert move in board.legal_moves
    assert policy.sum() == pytest.approx(1.0)
    tree = search.tree(board)
    tree.simulate(10)
    tree.advance(move)
    assert tree.state.to_play == 0
    assert board.fen().startswith("rnbqkbnr/pppppppp/8/8/4P3"), "the board stays as it is"


def test_observations_are_accepted_in_every_form() -> None:
    model = TableModel(4)
    search = pondertree.MuZero(model, 15, num_players=2)
    alone = search.run(observation=np.array([3]), legal_actions=[2, 0], to_play=1, seeds=5)
    assert isinstance(alone, pondertree.SearchResult)
    assert list(alone.root.children) in ([2, 0], [0, 2])
    assert alone.root.to_play == 1
    mask = [True, False, True, False]
    same = [
        search.run(observation=[3], legal_actions=np.array([2, 0]), to_play=np.int64(1), seeds=5),
        *search.run(observation=[[3]], legal_actions=[[2, 0]], to_play=[1], seeds=[5]),
        *search.run(observation=[np.array([3])], legal_actions=[(2, 0)], to_play=1, seeds=[5]),
        *search.run(observation=np.array([[3]]), legal_actions=[[2, 0]], to_play=[1], seeds=[5]),
    ]
    assert {fingerprint(result) for result in same} == {fingerprint(alone)}
    masked = [
        search.run(observation=[3], legal_actions=mask, to_play=1, seeds=5),
        search.run(observation=[3], legal_actions=np.array(mask), to_play=1, seeds=5),
        *search.run(observation=np.array([[3]]), legal_actions=np.array([mask]), to_play=[1], seeds=[5]),
        search.run(observation=[3], legal_actions=[0, 2], to_play=1, seeds=5),
    ]
    assert len({fingerprint(result) for result in masked}) == 1, "a mask lists actions from the lowest on"
    everything = search.run(observation=[3], seeds=5)
    assert fingerprint(everything) == fingerprint(search.run(observation=[3], legal_actions=range(4), seeds=5))
    assert search.run(observation=[]) == []
    mixed = search.run(observation=numbered(3, 4), legal_actions=[None, [1]])
    assert [len(result.root.children) for result in mixed] == [4, 1]


def test_forest_takes_an_array_of_observations() -> None:
    """The same as a list of its rows; what the model does with them is not seen by the caller."""

    class Careless(TableModel):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            answer = super().initial_inference(np.array(observations))
            observations[:] = -1
            return answer

    rows = np.array([[3], [4], [3]])
    listed = pondertree.MuZero(TableModel(4), 30, seed=2).forest(observation=list(rows)).simulate()
    search = pondertree.MuZero(Careless(4), 30, seed=2)
    forest = search.forest(observation=rows).simulate()
    assert rows.tolist() == [[3], [4], [3]]
    assert [fingerprint(result) for result in forest.results()] == [fingerprint(result) for result in listed.results()]
    assert len(forest) == 3
    assert forest.state(1).observation.tolist() == [4]
    forest.reset(1, observation=np.array([7]))
    forest.advance(0, 2, observation=np.array([8]))
    assert [forest.state(index).observation.tolist() for index in range(3)] == [[8], [7], [3]]
    assert forest.state(-1) is forest.state(2)
    assert [root.observation.tolist() for root in forest._states] == [[8], [7], [3]]
    assert [root.observation.tolist() for root in forest._states[1:]] == [[7], [3]]
    seeded = search.forest(observation=rows, seeds=[5, 6, 5]).simulate().results()
    assert fingerprint(seeded[0]) == fingerprint(seeded[2])
    assert [result.seed for result in seeded] == [5, 6, 5]


@pytest.mark.parametrize(
    ("form", "also"),
    [
        (lambda rows: rows.astype(">i4"), {}),
        (lambda rows: np.asfortranarray(np.repeat(rows, 3, axis=1))[:, ::-1], {}),
        (lambda rows: rows.astype(object), {}),
        (lambda rows: rows, {"to_play": 0}),
        (lambda rows: rows, {"to_play": [0, 0, 0]}),
        (lambda rows: rows, {"legal_actions": [None] * 3}),
        (lambda rows: rows, {"legal_actions": np.ones((3, 4), dtype=bool)}),
    ],
)
def test_array_of_observations_equals_the_list_of_its_rows(form: Any, also: Any) -> None:
    rows = form(np.array([[3], [4], [3]]))
    search = pondertree.MuZero(TableModel(4), 30)
    both = [
        search.forest(observation=given, seeds=[1, 2, 3], **also).simulate().results() for given in (rows, list(rows))
    ]
    assert [fingerprint(result) for result in both[0]] == [fingerprint(result) for result in both[1]]


def test_invalid_array_of_observations_is_refused() -> None:
    search = pondertree.MuZero(TableModel(4), 30, seed=2)
    with pytest.raises(InvalidArgumentError, match=r"an array with one axis is one of them: use tree\(\)"):
        search.forest(observation=np.array([3, 4]))
    for empty in (np.zeros((0, 1)), []):
        with pytest.raises(InvalidArgumentError, match="observation is empty: give at least one"):
            search.forest(observation=empty)
    with pytest.raises(InvalidArgumentError, match="legal_actions has 2 entries for 3 observations"):
        search.forest(observation=np.array([[3], [4], [3]]), legal_actions=[0, 1])

    class Picture(TableModel):
        def initial_inference(self, observations: Any) -> tuple[Any, ...]:
            if observations.ndim != 4:
                raise ValueError(f"expected 4 dimensions, not {observations.ndim}")
            return super().initial_inference(observations[:, 0, 0])

    with pytest.raises(EvaluationError, match=r"read as 3 observations of shape \(8, 8\); for one of them use tree"):
        pondertree.MuZero(Picture(4), 30, seed=2).forest(observation=np.zeros((3, 8, 8)))


def test_search_and_get_policy_take_observations() -> None:
    search = pondertree.MuZero(TableModel(4), 30, seed=2)
    assert search.search(observation=[3], legal_actions=[1, 2]) in (1, 2)
    action, policy = search.get_policy(observation=[3], legal_actions=[1, 2], temperature=0.0)
    assert action == policy.argmax()
    assert policy[[0, 3]].tolist() == [0.0, 0.0]
    tree = search.tree(observation=[3], legal_actions=[1])
    assert tree.simulate(5).result().action == 1
    forest = search.forest(observation=numbered(3, 4), seeds=[1, 2])
    assert len(forest.simulate(5).results()) == 2
