"""Gumbel as users call it: games and models, mates, proven results."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_latent import Pair
from tests.support.exact_models import ExactBatchModel, LargeActionModel, RandomOutputs, TabularDecisionModel
from tests.support.models import TableModel
from tests.support.observed_models import assert_same_tree
from tests.support.search_helpers import PythonGame, after, fingerprint, random_position, with_threats

import pondertree
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.reference import gumbel

# Most models here have no number of players, which does not matter for one.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


ONE = np.array([1])


# --- Parameters ---------------------------------------------------------------------------------------------------


def test_gumbel_has_the_parameters_and_defaults_of_mctx() -> None:
    promised = {
        "num_simulations": 32,
        "max_num_considered_actions": 16,
        "gumbel_scale": 1.0,
        "value_scale": 0.1,
        "maxvisit_init": 50,
        "rescale_values": True,
        "use_mixed_value": True,
        "discount": 1.0,  # of a game; 0.997 with a model
        "num_players": 1,
        "gumbel": None,
    }
    search = pondertree.Gumbel(Uniform())
    assert {name: getattr(search, name) for name in promised} == promised
    assert (search.in_flight, search.threads, search.solve, search.time_limit) == (1, 1, True, None)
    names = inspect.signature(pondertree.Gumbel).parameters
    assert list(names)[:11] == ["evaluator", *promised]
    assert "model" in names
    model = TableModel()
    for search in (pondertree.Gumbel(model), pondertree.Gumbel(model=model), pondertree.Gumbel(evaluator=model)):
        assert search.model is model
        assert search.evaluator is None
        assert search.discount == 0.997
    assert repr(pondertree.Gumbel(Uniform(), 8, seed=2)).endswith("num_simulations=8, seed=2)")
    assert pondertree.Gumbel(Uniform(), time_limit=9.0).num_simulations == 32, "a plan has a length"


def test_gumbel_refuses_early_stop() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match="early_stop"):
        pondertree.Gumbel(Uniform(), early_stop=True).run(ConnectFour())
    with pytest.raises(pondertree.InvalidArgumentError, match="early_stop"):
        pondertree.Gumbel(TableModel(), early_stop=True).run(observation=ONE)


# --- Games and models ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [TicTacToe, ConnectFour, Othello, Chess])
@pytest.mark.parametrize("evaluator", [Uniform(), Rollout(), RandomOutputs()], ids=["uniform", "rollout", "guess"])
@pytest.mark.parametrize("wrap", [False, True])
def test_gumbel_plays_every_kind_of_game(start: Any, evaluator: Any, wrap: bool) -> None:
    state = random_position(start, 6, 2)
    search = pondertree.Gumbel(evaluator, 16, seed=1)
    result = search.run(PythonGame(state) if wrap else state)
    assert result.action in state.legal_actions()
    assert result.visits.sum() == result.simulations <= 16
    assert result.policy.sum() == pytest.approx(1.0)
    assert not result.policy[np.setdiff1d(np.arange(state.num_actions), state.legal_actions())].any()
    action, policy = search.get_policy(state)
    assert action in state.legal_actions()
    assert policy.shape == (state.num_actions,)


def test_gumbel_accepts_a_chess_board() -> None:
    chess = pytest.importorskip("chess")
    board = chess.Board()
    assert pondertree.Gumbel(Uniform(), 8, seed=1).search(board) in board.legal_moves


@pytest.mark.parametrize(("start", "plies"), [(TicTacToe, 2), (ConnectFour, 0), (ConnectFour, 20)])
def test_gumbel_with_an_exact_model_equals_search_of_the_game(start: Any, plies: int) -> None:
    """With nothing proven and nothing discounted, both worlds grow the same tree."""
    states = [random_position(start, plies, seed) for seed in range(3)]
    options: dict[str, Any] = {"num_simulations": 100, "solve": False, "seed": 3}
    games = pondertree.Gumbel(RandomOutputs(plies), **options).run(states)
    models = pondertree.Gumbel(model=ExactBatchModel(states, RandomOutputs(plies)), discount=1.0, **options).run(states)
    for game, model in zip(games, models, strict=True):
        assert game.visits.tolist() == model.visits.tolist()
        assert game.policy == pytest.approx(model.policy, abs=1e-12)
        assert game.action == model.action
        assert_same_tree(game.root, model.root)


@settings(max_examples=15)
@given(st.data())
def test_gumbel_seeded_row_is_independent_of_the_batch(data: st.DataObject) -> None:
    draw = data.draw
    model = TableModel(draw(st.sampled_from([2, 6, 40])), draw(st.sampled_from([3, 1001])))
    rows = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 99)), min_size=1, max_size=5))
    in_flight = draw(st.sampled_from([1, 3]))
    batched = [
        [
            fingerprint(result)
            for result in pondertree.Gumbel(model, 20, in_flight=in_flight, threads=threads).run(
                observation=[[number] for number, _ in rows], seeds=[seed for _, seed in rows]
            )
        ]
        for threads in (1, 2, 4)
    ]
    alone = [
        fingerprint(pondertree.Gumbel(model, 20, in_flight=in_flight).run(observation=[number], seeds=seed))
        for number, seed in rows
    ]
    assert batched == [alone] * 3


def test_gumbel_values_converge_for_one_player() -> None:
    """Where values are weighed by visits alone. By default they count at once, which is for models that know values."""
    errors = []
    for simulations in (16, 128, 1024):
        row = []
        for seed in range(6):
            problem = TabularDecisionModel(seed)
            options: dict[str, Any] = {"maxvisit_init": 0, "value_scale": 0.3, "discount": problem.gamma, "seed": 1}
            result = pondertree.Gumbel(problem, simulations, **options).run(observation=[0])
            exact = problem.exact()[0]
            row.append(abs(np.nanmax(result.q) - exact.max()))
            assert simulations < 128 or exact[result.action] == exact.max()
        errors.append(np.mean(row))
    assert errors[0] > errors[1] > errors[2], errors
    assert errors[2] < 0.03


def test_gumbel_searches_4672_actions() -> None:
    model = TableModel(4672, levels=101)
    pair = Pair(
        gumbel.MCTS(model, num_players=2, discount=1.0, seed=3),
        [pondertree.Gumbel(model, num_players=2, discount=1.0, trace=trace, seed=3) for trace in (True, False)],
        {"observation": ONE, "legal_actions": list(range(7, 4000, 130))},
        noise=False,
    )
    pair.simulate(40)
    result = pondertree.Gumbel(LargeActionModel(4672), 200, seed=1).run(
        observation=ONE, legal_actions=range(0, 4672, 99)
    )
    assert result.memory < 2**20


# --- Proven results -----------------------------------------------------------------------------------------------


MATES = [
    ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "a1a8"),
    ("r6k/8/8/8/8/8/5PPP/6K1 b - - 0 1", "a8a1"),
    ("k7/8/1K6/8/8/8/8/7R w - - 0 1", "h1h8"),
]


@pytest.mark.parametrize(("fen", "move"), MATES)
def test_gumbel_finds_mate_in_one(fen: str, move: str) -> None:
    for seed in range(5):
        search = pondertree.Gumbel(Uniform(), 40, max_num_considered_actions=40, seed=seed)
        result = search.run(Chess(fen))
        assert result.move == move
        assert result.proven == 1
        assert result.simulations <= 40
        assert result.policy[result.action] == 1.0
        assert search.run(Chess(fen), temperature=5.0).move == move


@pytest.mark.parametrize("mover", [0, 1])
def test_gumbel_wins_and_blocks_in_connect_four(mover: int) -> None:
    for kind, simulations in (("win", 16), ("block", 128)):
        positions = with_threats(ConnectFour, kind, mover, 10)
        results = pondertree.Gumbel(Uniform(), simulations, seed=1).run([state for state, _ in positions])
        for (_, action), result in zip(positions, results, strict=True):
            if result.proven != -1:
                assert result.action == action
            assert kind == "block" or result.proven == 1


def test_gumbel_wins_and_blocks_in_an_exact_model() -> None:
    """Nothing is ever proven in a model, and it finds them all the same."""
    for moves, action in (("1 2 1 2 1 2", 0), ("1 2 3 2 1 2 7", 1), ("1 2 1 2 1", 0), ("7 2 7 2 6 2", 1)):
        state = after(ConnectFour(), moves)
        result = pondertree.Gumbel(ExactBatchModel([state]), 200, discount=1.0, seed=1).run(state)
        assert result.action == action
        assert result.proven is None


def test_proven_losses_leave_the_candidates() -> None:
    state = after(ConnectFour(), "4 1 4 1 4")
    result = pondertree.Gumbel(Uniform(), 200, seed=3).run(state)
    lost = [action for action, child in result.root.children.items() if child.proven == 1]
    assert len(lost) == 6, "all but the block"
    assert result.policy[lost].tolist() == [0.0] * 6
    assert result.action == 3
    tree = pondertree.Gumbel(Uniform(), seed=3).tree(state).simulate(200)
    before = tree.result().visits
    after_it = tree.simulate(50).result().visits
    assert (after_it - before)[lost].tolist() == [0] * 6, "no visit more"
    assert (after_it - before).sum() == tree.result().simulations - 200
    free = pondertree.Gumbel(Uniform(), 200, solve=False, seed=3).run(state)
    assert free.proven is None
    assert all(child.proven is None for child in free.root.children.values())
    assert free.action == 3
