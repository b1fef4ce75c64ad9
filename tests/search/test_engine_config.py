"""The configuration that crosses to the engine: its fields are declared once in Rust."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest

import pondertree as pt
from pondertree import config
from pondertree._core import CONFIG_FIELDS, RULES, Forest
from pondertree.config import LogPuct, Puct, ScoringRule, Ucb1
from pondertree.game import describe
from pondertree.games import Chess, ConnectFour

#: Every rule that the package declares, with default parameters.
DECLARED: list[ScoringRule] = [
    each()
    for each in vars(config).values()
    if isinstance(each, type) and issubclass(each, ScoringRule) and each is not ScoringRule
]


def data() -> dict[str, object]:
    info = describe(ConnectFour())
    return pt.UCT(seed=0).config(info).engine_data(info, 1)


def rule_data(rule: ScoringRule) -> dict[str, object]:
    info = describe(ConnectFour())
    return replace(pt.UCT(seed=0).config(info), rule=rule).engine_data(info, 1)["rule"]


def test_config_has_exactly_the_fields_of_the_engine() -> None:
    assert sorted(data()) == sorted(CONFIG_FIELDS)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(pt.InvalidArgumentError, match="depth"):
        Forest("connect_four", data() | {"depth": 3})
    for rule in DECLARED:
        known = rule_data(rule)
        Forest("connect_four", data() | {"rule": known})
        with pytest.raises(pt.InvalidArgumentError, match="depth"):
            Forest("connect_four", data() | {"rule": known | {"depth": 3}})
    chess = describe(Chess())
    given = pt.Hybrid(seed=0).config(chess).engine_data(chess, 1)
    with pytest.raises(pt.InvalidArgumentError, match='"depth"'):
        Forest("chess", given | {"analysis": given["analysis"] | {"depth": 3}})


def test_python_and_engine_agree_on_rules_with_priors() -> None:
    assert {rule.name: rule.has_priors for rule in DECLARED} == RULES


@pytest.mark.parametrize("name", CONFIG_FIELDS)
def test_missing_field_is_refused(name: str) -> None:
    given = data()
    del given[name]
    with pytest.raises(KeyError, match=name):
        Forest("connect_four", given)


def test_object_with_attributes_is_read_like_a_dict() -> None:
    given = type("Fields", (), data())
    assert Forest("connect_four", given).num_actions == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("in_flight", 0),
        ("in_flight", 65536),
        ("threads", 0),
        ("num_players", 0),
        ("num_players", 256),
        ("num_actions", 0),
        ("num_actions", 65536),
        ("discount", 1.5),
        ("discount", math.nan),
    ],
)
def test_value_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(pt.InvalidArgumentError, match=f"{name} must be from .* to .*, not"):
        Forest("connect_four", data() | {name: value})


NUMBER_PARAMETERS = [(rule, each.name) for rule in DECLARED for each in fields(rule) if each.type in ("float", "int")]


@pytest.mark.parametrize(("rule", "name"), NUMBER_PARAMETERS, ids=str)
def test_rule_parameter_out_of_range_is_refused(rule: ScoringRule, name: str) -> None:
    for value in [0] if name == "max_num_considered_actions" else [-1.0, math.nan, math.inf]:
        with pytest.raises(pt.InvalidArgumentError, match=f"{name} must be "):
            Forest("connect_four", data() | {"rule": {**rule_data(rule), name: value}})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"name": "greedy"}, 'rule "greedy" is unknown: one of .*"ucb1"'),
        (Puct().to_data() | {"parent_visits": "both"}, 'parent_visits "both" is unknown: one of "node", "edges"'),
        (LogPuct().to_data() | {"normalize": "all"}, 'normalize "all" is unknown: one of "node", "tree", None'),
        (Puct().to_data() | {"fpu": math.nan}, "fpu must be a finite number, not NaN"),
    ],
)
def test_unknown_name_is_refused(rule: dict[str, object], message: str) -> None:
    with pytest.raises(pt.InvalidArgumentError, match=message):
        Forest("connect_four", data() | {"rule": rule})


def test_rule_without_a_parameter_is_refused() -> None:
    with pytest.raises(KeyError, match="c_param"):
        Forest("connect_four", data() | {"rule": {"name": "ucb1"}})


@pytest.mark.parametrize(
    ("name", "value"), [("forced_depth", 300), ("max_depth", -1), ("discount", "all"), ("rule", Ucb1("c"))]
)
def test_replaced_field_of_another_type_is_named(name: str, value: object) -> None:
    info = describe(ConnectFour())
    config = replace(pt.UCT(seed=0).config(info), **{name: value})
    named = "c_param" if name == "rule" else name
    with pytest.raises(pt.InvalidArgumentError, match=f"^{named} cannot be "):
        Forest("connect_four", config.engine_data(info, 1))


def test_noise_out_of_range_is_refused() -> None:
    forest = Forest("connect_four", data())
    for alpha, epsilon in [(0.3, 2.0), (-1.0, 0.5), (math.nan, 0.5), (math.inf, 0.5)]:
        with pytest.raises(pt.InvalidArgumentError, match="alpha above 0 and epsilon from 0 to 1"):
            forest.set_noise(0, alpha=alpha, is_total=False, epsilon=epsilon)


def test_layout_of_a_forest_without_trees_is_refused() -> None:
    forest = Forest("hex", data() | {"num_actions": 25})
    for read in (forest.row_layout, forest.waiting_observations, forest.waiting_packed):
        with pytest.raises(pt.UsageError, match=r"without trees|no leaves"):
            read()
