"""Options of presets: declared once, visible in signatures, suggested for unknown keywords."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import pickle
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.models import TableModel

import pondertree
from pondertree.chess import MCTS, mcts_search
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour
from pondertree.search.preset import SearchOptions

PRESETS = [pondertree.UCT, pondertree.AlphaZero, pondertree.MuZero, pondertree.Gumbel, pondertree.Hybrid, MCTS]
SHARED = [each.name for each in dataclasses.fields(SearchOptions)]


def make(preset: Any, **options: Any) -> Any:
    """A preset with what it cannot do without."""
    first = {pondertree.MuZero: {"model": TableModel()}, MCTS: {"neural_network": Uniform()}}
    needs_evaluator = preset in (pondertree.AlphaZero, pondertree.Gumbel)
    return preset(**(first.get(preset, {"evaluator": Uniform()} if needs_evaluator else {}) | options))


@pytest.mark.parametrize("preset", PRESETS)
def test_signature_shows_every_shared_option_keyword_only(preset: Any) -> None:
    parameters = inspect.signature(preset).parameters
    for name in SHARED:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert getattr(make(preset), name) == parameters[name].default or name == "seed"
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


@pytest.mark.parametrize("preset", PRESETS)
def test_signature_defaults_are_what_a_search_has(preset: Any) -> None:
    search = make(preset)
    given = {"evaluator", "neural_network", "model", "seed", "num_players", "category_weights"}
    for name, parameter in inspect.signature(preset).parameters.items():
        # The discount of Gumbel depends on whether it searches a game or a model.
        if name not in given and (preset, name) != (pondertree.Gumbel, "discount"):
            assert getattr(search, name) == parameter.default, name


@pytest.mark.parametrize("preset", PRESETS)
def test_help_explains_the_shared_options(preset: Any) -> None:
    shown = pydoc.render_doc(preset, renderer=pydoc.plaintext)
    for name in SHARED:
        assert re.search(rf"\|  {name}: ", shown), name


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ["iterations", "simulations", "n_simulations", "num_simulation"])
def test_unknown_keyword_for_simulations_names_num_simulations(preset: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"{preset.__name__} has no option '{name}': did you mean num_simulations\?"):
        make(preset, **{name: 5})


@pytest.mark.parametrize("name", ["c", "exploration", "exploration_weight", "cpuct"])
@pytest.mark.parametrize(
    ("preset", "option"),
    [
        (pondertree.UCT, "c_param"),
        (pondertree.AlphaZero, "c_puct"),
        (pondertree.Hybrid, "exploration_constant"),
        (pondertree.MuZero, "pb_c_init"),
    ],
)
def test_unknown_keyword_for_exploration_names_the_constant_of_the_preset(preset: Any, option: str, name: str) -> None:
    with pytest.raises(pondertree.UnknownOptionError, match=rf"did you mean {option}\?"):
        make(preset, **{name: 1.0})


def test_unknown_keyword_of_run_names_run() -> None:
    with pytest.raises(pondertree.UnknownOptionError, match=r"'temperature': it is an argument of run\(\)"):
        pondertree.UCT(temperature=1.0)  # type: ignore[call-arg]


def test_unknown_keyword_without_a_near_one_lists_the_options() -> None:
    with pytest.raises(pondertree.UnknownOptionError, match=r"it has num_simulations, c_param, .*, time_limit, "):
        pondertree.UCT(xyzzy=1)  # type: ignore[call-arg]


def test_unknown_option_error_is_value_error_and_type_error() -> None:
    assert issubclass(pondertree.UnknownOptionError, (ValueError, TypeError))
    assert issubclass(pondertree.UnknownOptionError, pondertree.PondertreeError)


def test_every_synonym_leads_to_an_option_of_some_preset() -> None:
    from pondertree.search.preset import SYNONYMS

    known = {name for preset in PRESETS for name in inspect.signature(preset).parameters} | {"iterations"}
    for options in SYNONYMS:
        assert known.issuperset(options), options


def test_replace_keeps_all_other_options() -> None:
    search = pondertree.UCT(50, c_param=0.7, seed=3)
    changed = dataclasses.replace(search, threads=2)
    assert (changed.num_simulations, changed.c_param, changed.seed, changed.threads) == (50, 0.7, 3, 2)
    assert (changed.run(ConnectFour()).visits == search.run(ConnectFour()).visits).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_time_limit_alone_lifts_the_default_simulations_and_no_given_ones(preset: Any) -> None:
    default = inspect.signature(preset).parameters["num_simulations"].default
    assert make(preset).num_simulations == default
    lifted = make(preset, time_limit=1.0).num_simulations
    assert lifted == (default if preset is pondertree.Gumbel else None)
    assert make(preset, time_limit=1.0, num_simulations=default + 0).num_simulations == default


def test_time_limit_may_be_a_timedelta() -> None:
    assert pondertree.UCT(time_limit=datetime.timedelta(milliseconds=250)).time_limit == 0.25
    with pytest.raises(pondertree.InvalidArgumentError, match="time_limit must be above 0"):
        pondertree.UCT(time_limit=datetime.timedelta(0))


def test_dir_shows_the_public_names_alone() -> None:
    assert dir(pondertree) == sorted(pondertree.__all__)
    for name in dir(pondertree):
        assert getattr(pondertree, name) is not None


TYPED = """
import pondertree
pondertree.UCT(100, 1.4, seed=1, threads=2)
pondertree.AlphaZero(lambda x: x, fpu=("parent", 0.1), solve=False)
pondertree.UCT(iterations=3)
pondertree.UCT(threads="two")
pondertree.AlphaZero()
"""


@pytest.mark.slow
def test_mypy_sees_the_options(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", f"--cache-dir={tmp_path}", "typed.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": str(Path(pondertree.__file__).parents[1]), "PATH": ""},
        timeout=300,
    )
    lines = [line.partition(": error: ") for line in done.stdout.splitlines() if ": error: " in line]
    assert [(where.split(":")[1], what.split('"')[1]) for where, _, what in lines] == [
        ("5", "iterations"),
        ("6", "threads"),
        ("7", "evaluator"),
    ], done.stdout + done.stderr


def test_replace_keeps_a_default_a_default() -> None:
    assert dataclasses.replace(pondertree.UCT(), time_limit=0.5).num_simulations is None
    assert dataclasses.replace(pondertree.UCT(1000), time_limit=0.5).num_simulations == 1000
    assert dataclasses.replace(pondertree.UCT(time_limit=0.5), time_limit=None).num_simulations == 1000
    with pytest.warns(pondertree.PlayerCountWarning):
        dataclasses.replace(pondertree.MuZero(TableModel(), 5), seed=1).run(observation=[0.0])


def test_drawn_seed_is_drawn_again_in_another_process_and_a_given_one_is_not() -> None:
    drawn, given = pondertree.UCT(20), pondertree.UCT(20, seed=7)
    assert len({drawn.seed, *(pickle.loads(pickle.dumps(drawn)).seed for _ in range(3))}) == 4
    assert pickle.loads(pickle.dumps(given)).seed == 7
    drawn.seed = 5
    assert pickle.loads(pickle.dumps(drawn)).seed == 5


def test_number_in_the_place_of_an_evaluator_names_num_simulations() -> None:
    with pytest.raises(pondertree.InvalidArgumentError, match=r"did you mean num_simulations=100\?"):
        pondertree.Hybrid(100)


@pytest.mark.parametrize("name", ["iteration", "num_simulations", "simulations"])
def test_mcts_search_names_iterations(name: str) -> None:
    with pytest.raises(pondertree.UnknownOptionError, match=r"mcts_search has no option .*: did you mean iterations\?"):
        mcts_search(Chess(), **{name: 5})
