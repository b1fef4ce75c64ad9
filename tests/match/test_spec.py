"""Player specifications as text: parsing and errors."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import pondertree
from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError, MissingExtraError, PondertreeError
from pondertree.evaluators import Rollout, Uniform
from pondertree.games import TicTacToe
from pondertree.match import FunctionEntrant, SearchEntrant, UciEntrant, read_player
from pondertree.match.spec import read_value, split


def search_of(text: str) -> Any:
    entrant = read_player(text)
    assert isinstance(entrant, SearchEntrant)
    return entrant.search


def test_search_specs_build_searches() -> None:
    uct = search_of("uct:num_simulations=200,c_param=1.4,forced_depth=2")
    assert isinstance(uct, pondertree.UCT)
    assert (uct.num_simulations, uct.c_param, uct.forced_depth) == (200, 1.4, 2)
    assert search_of("UCT").num_simulations == 1000
    zero = search_of('alphazero:evaluator=rollout,num_simulations=1_000,fpu=("parent", 0.2),solve=false')
    assert isinstance(zero, pondertree.AlphaZero)
    assert isinstance(zero.evaluator, Rollout)
    assert (zero.num_simulations, zero.fpu, zero.solve) == (1000, ("parent", 0.2), False)
    assert isinstance(search_of("uct:evaluator=pesto").evaluator, Pesto)
    assert search_of("hybrid:evaluator=pesto:published").evaluator == Pesto.published()
    gumbel = search_of("gumbel: evaluator = uniform, time_limit = 0.5")
    assert isinstance(gumbel.evaluator, Uniform)
    assert gumbel.time_limit == 0.5


def test_reuse_and_temperature_belong_to_entrant() -> None:
    entrant = read_player("uct:reuse=true,temperature=0.5,num_simulations=10")
    assert isinstance(entrant, SearchEntrant)
    assert (entrant.reuse, entrant.temperature) == (True, 0.5)
    assert entrant.name == entrant.text == "uct:reuse=true,temperature=0.5,num_simulations=10"


def test_uci_specs_build_uci_entrants() -> None:
    entrant = read_player("uci:'my engine' --quiet,nodes=100,movetime=0.5,option.Skill Level=3,option.Ponder=false")
    assert isinstance(entrant, UciEntrant)
    assert tuple(entrant.command) == ("my engine", "--quiet")
    assert (entrant.nodes, entrant.movetime) == (100, 0.5)
    assert entrant.options == {"Skill Level": 3, "Ponder": False}
    assert entrant.name == "my engine(nodes=100, movetime=0.5)"
    assert "option.Skill Level=3" in entrant.text


def first_of(state: Any) -> int:
    return int(state.legal_actions()[0])


def test_searches_and_functions_become_entrants() -> None:
    search = pondertree.UCT(50, c_param=0.5)
    entrant = read_player(search)
    assert entrant.name == "UCT(num_simulations=50)"
    # The seed of a search is random and ignored in matches.
    assert entrant.text == read_player(pondertree.UCT(50, c_param=0.5)).text != read_player(pondertree.UCT(50)).text
    assert read_player(entrant) is entrant
    function = read_player(first_of)
    assert isinstance(function, FunctionEntrant)
    assert function.name == "first_of"


@pytest.mark.parametrize("given", ["uct:num_simulations=7", "random", "uci:x,depth=3", pondertree.UCT(7), first_of])
def test_entrants_pickle(given: Any) -> None:
    entrant = read_player(given)
    other = pickle.loads(pickle.dumps(entrant))
    assert (type(other), other.text, other.name) == (type(entrant), entrant.text, entrant.name)


WRONG = [
    ("", "unknown player ''"),
    ("stockfish", "known are uct, alphazero, gumbel"),
    ("muzero:num_simulations=3", "model is missing"),
    ("random:seed=1", "random has no settings"),
    ("uct:simulations=3", "unknown setting 'simulations'.*num_simulations"),
    ("uct:num_simulations", "'num_simulations' is not a setting: write NAME=VALUE"),
    ("uct:num_simulations=3,,", "'' is not a setting"),
    ("uct:=3", "is not a setting"),
    ("uct:num_simulations=0", "num_simulations must be at least 1"),
    ("uct:num_simulations=many", "num_simulations must be a whole number"),
    ("uct:num_simulations=[1, 2]", "num_simulations must be one number"),
    ("uct:c_param=nan", "c_param"),
    ("uct:c_param=1,c_param=2", "c_param is given twice"),
    ("uct:seed=3", "seed cannot be set per player"),
    ("uct:reuse=maybe", "reuse must be True or False"),
    ("uct:temperature=-1", "temperature"),
    ("uct:fpu=(1", "not closed"),
    ("uct:fpu='1", "not closed"),
    ("alphazero", "evaluator is missing"),
    ("gumbel:num_simulations=4", "evaluator is missing"),
    ("alphazero:evaluator=magic", "evaluator must be rollout"),
    ("alphazero:evaluator=3", "evaluator must be rollout"),
    ("alphazero:evaluator=rollout:3", "evaluator must be rollout"),
    ("alphazero:evaluator=rollout,model=3", "unknown setting 'model'"),
    ("uci:", "command"),
    ("uci:,nodes=3", "command"),
    ("uci:crab", "needs a limit"),
    ("uci:crab,nodes=0", "nodes must be at least 1"),
    ("uci:crab,movetime=0", "movetime must be above 0"),
    ("uci:crab,movetime=1,timeout=-1", "timeout must be above 0"),
    ("uci:crab,speed=3", "unknown setting 'speed'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text or "nothing" for text, _ in WRONG])
def test_invalid_specs_raise_naming_player(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        read_player(text, "player2")
    assert str(caught.value).startswith(f"player2 {text!r}: ")


@pytest.mark.parametrize("given", [None, 3, pondertree.UCT, TicTacToe(), ["uct"], b"uct"])
def test_invalid_player_types_raise(given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="player1 must be"):
        read_player(given, "player1")


def test_missing_network_raises() -> None:
    with pytest.raises((PondertreeError, OSError, MissingExtraError), match=r"no-such\.onnx|onnxruntime"):
        read_player("alphazero:evaluator=onnx:no-such.onnx")


def test_values_and_commas_are_parsed() -> None:
    assert [read_value(text) for text in ("1", "1.5", "true", "None", "'a,b'", "abc", "-3")] == [
        1,
        1.5,
        True,
        None,
        "a,b",
        "abc",
        -3,
    ]
    assert split("a=(1,2),b='x,y',c") == ["a=(1,2)", "b='x,y'", "c"]
    assert split("  ") == []
