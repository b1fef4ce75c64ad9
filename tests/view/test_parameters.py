"""Forms of the searches: each parameter has a kind, help, a default that the search accepts, and enforced bounds."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from tests.support.view import setup_of

from pondertree.chess.hybrid import Hybrid
from pondertree.chess.pesto import Pesto
from pondertree.errors import PondertreeError
from pondertree.evaluators import Rollout, Uniform
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero
from pondertree.view.live import build
from pondertree.view.parameters import from_text, parameters_of, read_parameters, settings_of, to_text
from pondertree.view.setup import Algorithm

SOURCES = {"uniform": Uniform()}
ALGORITHMS = {
    "uct": Algorithm("uct", "UCT", UCT, "evaluator", {"playouts": None, **SOURCES}),
    "alphazero": Algorithm("alphazero", "AlphaZero", AlphaZero, "evaluator", SOURCES),
    "gumbel": Algorithm("gumbel", "Gumbel", Gumbel, "evaluator", SOURCES),
    "hybrid": Algorithm("hybrid", "Hybrid", Hybrid),
}
FORMS = [(algorithm, form) for algorithm in ALGORITHMS.values() for form in parameters_of(algorithm)]
ids = [f"{algorithm.name}-{form['name']}" for algorithm, form in FORMS]


@pytest.mark.parametrize(("algorithm", "form"), FORMS, ids=ids)
def test_every_parameter_has_help_and_a_kind(algorithm: Algorithm, form: dict[str, Any]) -> None:
    assert len(form["help"]) > 10
    assert form["type"] in ("int", "float", "bool", "text", "choice")
    assert ("choices" in form) == (form["type"] == "choice")
    if form["type"] == "choice":
        assert form["default"] in form["choices"]
    json.dumps(form, allow_nan=False)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=list(ALGORITHMS))
def test_defaults_of_a_form_are_those_of_the_search(algorithm: Algorithm) -> None:
    entered = {form["name"]: form["default"] for form in parameters_of(algorithm)}
    search = algorithm.search(**read_parameters(algorithm, entered), num_simulations=10, seed=1)
    plain = algorithm.search(**read_parameters(algorithm, {}), num_simulations=10, seed=1)
    for each in fields(search):
        assert getattr(search, each.name) == getattr(plain, each.name), each.name


@pytest.mark.parametrize(("algorithm", "form"), FORMS, ids=ids)
def test_bounds_of_a_form_are_enforced(algorithm: Algorithm, form: dict[str, Any]) -> None:
    def build(value: Any) -> Any:
        return algorithm.search(**read_parameters(algorithm, {form["name"]: value}), num_simulations=10, seed=1)

    for choice in form.get("choices", ()):
        build(choice)
    for bound, step in (("least", -1), ("most", 1)):
        if bound in form:
            build(form[bound])
            with pytest.raises(PondertreeError, match=form["name"]):
                build(form[bound] + step)
    if "above" in form:
        with pytest.raises(PondertreeError, match=form["name"]):
            build(form["above"])
        build(form["above"] + 1.0)
    for wrong in ("nonsense", [1], {}):
        with pytest.raises(PondertreeError):
            build(wrong)


@pytest.mark.parametrize("value", [None, 0.25, ("parent", 0.25), ("total", 10.0), "decisive"])
def test_text_of_a_value_is_read_back(value: Any) -> None:
    assert from_text(to_text(value)) == value


def test_searches_of_a_game_follow_from_what_it_has() -> None:
    def named(setup: Any) -> dict[str, list[str]]:
        return {each.name: list(each.sources) for each in setup.algorithms}

    assert named(setup_of("othello")) == {
        "uct": ["playouts"],
        "alphazero": ["playouts", "uniform"],
        "gumbel": ["playouts", "uniform"],
    }
    assert named(setup_of("connect4"))["alphazero"] == ["bundled player", "playouts", "uniform"]
    assert named(setup_of("chess", "hybrid"))["hybrid"] == []


@pytest.mark.parametrize(
    ("search", "is_known"),
    [
        (Hybrid(), True),
        (Hybrid(category_weights=[2.0] * 10), False),
        (Hybrid(move_scores=None), False),
        (Hybrid(evaluator=Pesto.published()), False),
        (AlphaZero(Pesto()), True),
        (AlphaZero(Pesto.published()), False),
        (AlphaZero(Rollout(), c_puct=3.0), True),
        (UCT(evaluator=Uniform()), False),
        (UCT(c_param=0.3), True),
    ],
)
def test_settings_of_a_search_make_it_again_or_there_are_none(search: Any, is_known: bool) -> None:
    algorithms = setup_of("chess", "hybrid").algorithms
    found = settings_of(search, algorithms, 7)
    assert (found is not None) == is_known
    if found is not None:
        again = build(algorithms, found)
        for each in fields(search):
            if each.name not in ("seed", "num_simulations", "time_limit"):
                assert getattr(again, each.name) == getattr(search, each.name), each.name


def test_muzero_has_a_form() -> None:
    names = [form["name"] for form in parameters_of(Algorithm("muzero", "MuZero", MuZero, "model", {"model": None}))]
    assert {"model", "pb_c_base", "normalize", "discount"} <= set(names)
