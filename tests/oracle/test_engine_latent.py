"""MuZero and Gumbel: the engine against the reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine_alphazero import Table
from tests.support.engine_latent import Pair
from tests.support.models import TableModel
from tests.support.search_helpers import PythonGame, random_position

import pondertree
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.reference import gumbel, muzero
from pondertree.testing.tabular import TabularGame

# Most models here do not declare their number of players, which defaults to 1.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")


@st.composite
def models(draw: st.DrawFn, players: int) -> TableModel:
    signs = (0.0, 0.5, 1.0, -0.9, -1.0) if players == 2 else (0.0, 0.5, 1.0)
    return TableModel(
        num_actions=draw(st.sampled_from([1, 2, 3, 7, 30, 70, 300])),
        levels=draw(st.sampled_from([3, 11, 1001])),
        seed=draw(st.integers(0, 1000)),
        largest_reward=draw(st.sampled_from([0.0, 1.0, 5.0])),
        discounts=draw(st.sampled_from([(), signs])),
        ruled_out=draw(st.sampled_from([0.0, 0.2])),
    )


@st.composite
def roots(draw: st.DrawFn, num_actions: int, players: int) -> dict[str, Any]:
    """The first action is always legal, since models never give it prior 0."""
    others = draw(st.lists(st.integers(1, num_actions - 1), unique=True, max_size=9)) if num_actions > 1 else []
    return {
        "observation": np.array([draw(st.integers(0, 1000))], dtype=np.int64),
        "legal_actions": draw(st.sampled_from([None, [0, *others], [*others, 0]])),
        "to_play": draw(st.integers(0, players - 1)),
    }


def afterwards(draw: Any, model: TableModel, players: int) -> dict[str, Any]:
    root = draw(roots(model.num_actions, players))
    return draw(st.sampled_from([{}, root, {"legal_actions": root["legal_actions"]}]))


@settings(max_examples=120)
@given(st.data())
def test_muzero_matches_reference_on_random_models(data: st.DataObject) -> None:
    draw = data.draw
    players = draw(st.integers(1, 2))
    model = draw(models(players))
    options = {
        "num_players": players,
        "discount": draw(st.sampled_from([1.0, 0.997, 0.5])),
        "in_flight": draw(st.sampled_from([1, 1, 2, 5])),
        "normalize": draw(st.sampled_from(["node", "tree", None])),
        "pb_c_init": draw(st.sampled_from([1.25, 0.3])),
        "pb_c_base": draw(st.sampled_from([19652.0, 20.0])),
        "seed": draw(st.integers(0, 10**6)),
    }
    pair = Pair(
        muzero.MCTS(model, **options),
        [pondertree.MuZero(model, trace=trace, **options) for trace in (True, False)],
        draw(roots(model.num_actions, players)),
    )
    for _ in range(3):
        result = pair.simulate(draw(st.sampled_from([1, 2, 7, 40])), draw(st.sampled_from([None, True, False])))
        pair.advance(result.action, **afterwards(draw, model, players))


GUMBEL_OPTIONS = st.fixed_dictionaries(
    {
        "max_num_considered_actions": st.sampled_from([1, 2, 4, 16]),
        "gumbel_scale": st.sampled_from([0.0, 1.0]),
        "value_scale": st.sampled_from([0.1, 1.0]),
        "maxvisit_init": st.sampled_from([50, 1]),
        "rescale_values": st.booleans(),
        "use_mixed_value": st.booleans(),
        "in_flight": st.sampled_from([1, 1, 2, 5]),
        "seed": st.integers(0, 10**6),
    }
)


@settings(max_examples=120)
@given(st.data())
def test_gumbel_matches_reference_on_random_models(data: st.DataObject) -> None:
    draw = data.draw
    players = draw(st.integers(1, 2))
    model = draw(models(players))
    options = {"num_players": players, "discount": draw(st.sampled_from([1.0, 0.997])), **draw(GUMBEL_OPTIONS)}
    pair = Pair(
        gumbel.MCTS(model, **options),
        [pondertree.Gumbel(model, trace=trace, **options) for trace in (True, False)],
        draw(roots(model.num_actions, players)),
        noise=False,
    )
    for _ in range(3):
        result = pair.simulate(draw(st.sampled_from([1, 2, 7, 40])))
        pair.advance(result.action, **afterwards(draw, model, players))


@settings(max_examples=80)
@given(
    st.sampled_from([TicTacToe, ConnectFour, Othello, Chess]),
    st.integers(0, 30),
    st.sampled_from(["logits", "probabilities", "even"]),
    st.sampled_from([3, 1001]),
    st.booleans(),
    st.booleans(),
    GUMBEL_OPTIONS,
    st.sampled_from([1, 2, 16, 50]),
)
def test_gumbel_matches_reference_on_compiled_games(
    game: Any, plies: int, kind: str, levels: int, solve: bool, in_python: bool, options: Any, count: int
) -> None:
    state = random_position(game, plies, options["seed"])
    if in_python:
        state = PythonGame(state)
    network = Table(kind, levels, options["seed"], ruled_out=kind != "even" and levels == 3)
    pair = Pair(
        gumbel.MCTS(network, solve=solve, **options),
        [pondertree.Gumbel(network, trace=trace, solve=solve, **options) for trace in (True, False)],
        {"state": state},
        noise=False,
    )
    result = pair.simulate(count)
    if not state.play(result.action).is_terminal:
        pair.advance(result.action)
        pair.simulate(count)


@settings(max_examples=60)
@given(
    st.builds(
        TabularGame,
        st.integers(0, 10**6),
        players=st.integers(1, 3),
        turn_order=st.sampled_from(["alternate", "random", "double"]),
        rewards=st.booleans(),
    ),
    GUMBEL_OPTIONS,
)
def test_gumbel_matches_reference_on_random_games(game: TabularGame, options: Any) -> None:
    state = game.start()
    if state.is_terminal:
        return
    network = Table("logits", 11, game.seed)
    pair = Pair(
        gumbel.MCTS(network, **options),
        [pondertree.Gumbel(network, trace=trace, **options) for trace in (True, False)],
        {"state": state},
        noise=False,
    )
    pair.simulate(24)
