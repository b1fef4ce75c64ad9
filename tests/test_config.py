"""`SearchConfig`: one declaration per parameter, whose data are exactly the fields that the engine reads."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from tests.support.models import TableModel
from tests.support.search_helpers import PythonGame

import pondertree
from pondertree._core import CONFIG_FIELDS
from pondertree.chess import Pesto
from pondertree.config import DirichletNoise, GumbelRule, LogPuct, Puct, SearchOptions, Ucb1
from pondertree.evaluators import Uniform
from pondertree.game import describe
from pondertree.games import Chess, ConnectFour, Othello

SEARCHES: dict[str, tuple[Any, Any]] = {
    "UCT": (pondertree.UCT(), ConnectFour()),
    "UCT in Python": (pondertree.UCT(playout_policy=lambda state: state.legal_actions()[0]), PythonGame(ConnectFour())),
    "AlphaZero": (pondertree.AlphaZero(Uniform(), fpu=("parent", 0.2)), ConnectFour()),
    "AlphaZero with Pesto": (pondertree.AlphaZero(Pesto()), Chess()),
    "MuZero": (pondertree.MuZero(TableModel(7), num_players=2), ConnectFour()),
    "Gumbel": (pondertree.Gumbel(Uniform()), ConnectFour()),
    "Hybrid": (pondertree.Hybrid(), Chess()),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_engine_data_have_exactly_the_fields_of_the_engine(name: str) -> None:
    search, state = SEARCHES[name]
    info = search.describe(state)
    assert set(search.config(info).engine_data(info, trees=1)) == set(CONFIG_FIELDS)


def test_config_is_frozen_and_keeps_the_options_of_its_time() -> None:
    search = pondertree.UCT(seed=1, in_flight=4)
    config = search.config(describe(ConnectFour()))
    search.in_flight = 8
    assert config.options.in_flight == config.to_data()["in_flight"] == 4
    with pytest.raises(FrozenInstanceError):
        config.discount = 0.5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("preset", "part", "renamed"),
    [
        (pondertree.UCT, Ucb1, {}),
        (pondertree.AlphaZero, Puct, {}),
        (pondertree.AlphaZero, DirichletNoise, {"alpha": "dirichlet_alpha", "epsilon": "dirichlet_epsilon"}),
        (pondertree.MuZero, LogPuct, {}),
        (pondertree.Gumbel, GumbelRule, {}),
        (pondertree.Hybrid, SearchOptions, {}),
    ],
)
def test_preset_option_has_the_default_and_check_of_its_declaration(
    preset: Any, part: Any, renamed: dict[str, str]
) -> None:
    options = {each.name: each for each in fields(preset)}
    for declared in fields(part):
        option = options[renamed.get(declared.name, declared.name)]
        assert (option.default, option.metadata["check"]) == (declared.default, declared.metadata["check"])


@pytest.mark.parametrize(
    ("search", "state"),
    [
        (pondertree.UCT(60, c_param=0.7, seed=1, trace=True, solve=False), ConnectFour()),
        (pondertree.AlphaZero(Uniform(), 60, 1.7, seed=1, trace=True), ConnectFour()),
        (pondertree.AlphaZero(Uniform(), 60, parent_visits="edges", seed=1, trace=True), ConnectFour()),
        (pondertree.MuZero(TableModel(7), 60, pb_c_base=30, num_players=2, seed=1, trace=True), ConnectFour()),
        (pondertree.Hybrid(num_simulations=60, seed=1, trace=True), Chess()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exploration_terms_of_a_rule_match_the_records_of_the_engine(search: Any, state: Any) -> None:
    rule = search.config(search.describe(state)).rule
    compared = 0
    for row in search.tree(state).simulate().trace():
        for choice in row["terms"]:
            if choice["how"] != "score":
                continue
            edges = choice["edges"]
            visits, priors = (np.array([edge.get(name, 0.0) for edge in edges]) for name in ("visits", "prior"))
            expected = rule.exploration(visits, priors, choice["visits"])
            assert [edge["exploration"] for edge in edges] == pytest.approx(expected.tolist(), rel=1e-14)
            compared += len(edges)
    assert compared > 100


def test_unknown_field_is_refused_by_the_engine() -> None:
    from pondertree._core import Forest

    info = describe(ConnectFour())
    data = pondertree.UCT().config(info).engine_data(info, trees=1)
    with pytest.raises(pondertree.InvalidArgumentError, match="no_such_field"):
        Forest(info.name, {**data, "no_such_field": 1})


@pytest.mark.parametrize(
    "search", [pondertree.UCT(seed=1), pondertree.AlphaZero(Uniform(), seed=1)], ids=["UCT", "AlphaZero"]
)
def test_configuration_is_reused_until_an_option_changes(search: Any) -> None:
    info, option = describe(ConnectFour()), "c_param" if isinstance(search, pondertree.UCT) else "c_puct"
    first = search.config(info)
    data = first.engine_data(info, 1)
    assert search.config(info) is first
    data["rule"][option], data["threads"] = 7.0, 99
    assert first.engine_data(info, 1)["rule"][option] == 1.0, "the data of a caller are a copy"
    setattr(search, option, 2.5)
    assert search.config(info).engine_data(info, 1)["rule"][option] == 2.5
    assert first.engine_data(info, 1)["rule"][option] == 1.0
    search.threads = 2
    assert search.config(info).options.threads == 2
    assert search.config(describe(Othello())).engine_data(describe(Othello()), 1)["num_actions"] == 65


def test_configuration_of_an_evaluator_with_attributes_is_not_reused() -> None:
    info = describe(Chess())
    search = pondertree.AlphaZero(Pesto.published(), seed=1)
    assert search.config(info) is not search.config(info)
