"""`pondertree search --algorithm`: defaults by game, trained players, invalid combinations."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest
from tests.support.cli_search import MATE_IN_TWO, NIM, search
from tests.support.exact_models import ExactBatchModel, RandomOutputs

from pondertree import UCT, AlphaZero, Gumbel
from pondertree.chess import Pesto
from pondertree.cli import algorithms, main
from pondertree.cli.algorithms import configure
from pondertree.cli.position import read_position
from pondertree.cli.searcher import run_search
from pondertree.errors import InvalidArgumentError
from pondertree.networks.loading import load_for_one_tree


@pytest.mark.parametrize(
    ("game", "algorithm"),
    [("chess", "hybrid"), ("connect4", "alphazero"), ("tic-tac-toe", "uct"), ("othello", "uct"), (NIM, "uct")],
)
def test_default_algorithm_depends_on_game(capsys: pytest.CaptureFixture[str], game: str, algorithm: str) -> None:
    assert search(capsys, game, "--simulations", "5")["algorithm"] == algorithm


@pytest.mark.parametrize(
    ("game", "algorithm"),
    [("chess", "alphazero"), ("chess", "gumbel"), ("connect4", "alphazero"), ("connect4", "gumbel")],
)
def test_alphazero_and_gumbel_default_to_bundled_evaluators(
    capsys: pytest.CaptureFixture[str], game: str, algorithm: str
) -> None:
    found = search(capsys, game, "--algorithm", algorithm, "--simulations", "40", "--seed", "2")
    evaluator = Pesto() if game == "chess" else load_for_one_tree("connect4")
    preset: Any = {"alphazero": AlphaZero, "gumbel": Gumbel}[algorithm]
    result = preset(evaluator=evaluator, num_simulations=40, seed=2).run(read_position(game, None, None).state)
    assert (found["algorithm"], found["simulations"], found["action"]) == (algorithm, 40, result.action)
    assert {move["action"]: move["visits"] for move in found["moves"]} == {
        move["action"]: result.visits[move["action"]] for move in found["moves"]
    }


def test_hybrid_finds_a_mate_before_the_first_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--fen", MATE_IN_TWO)
    assert (found["algorithm"], found["simulations"], found["proven"]) == ("hybrid", 0, 1)
    assert (found["move"], found["san"], found["pv"][0]) == ("a1a6", "Ra6", "a1a6")
    assert main(["search", "chess", "--fen", MATE_IN_TWO]) == 0
    printed = capsys.readouterr().out
    assert "mates only, before the first simulation" in printed
    assert re.search(r"Ra6 .* win in 3 +\S+ \S+#$", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["othello", "--algorithm", "alphazero"], "alphazero needs a trained player of Othello: --player DIR"),
        (["tic-tac-toe", "--algorithm", "gumbel"], "pondertree train tic-tac-toe --out DIR"),
        (["connect4", "--algorithm", "muzero"], "plans in a learned model: use --player DIR"),
        (["connect4", "--algorithm", "muzero", "--player", "connect4"], "is a policy-value network"),
        (["connect4", "--algorithm", "hybrid"], "hybrid is for chess alone, not for Connect 4"),
        (["connect4", "--algorithm", "uct", "--player", "connect4"], "--player is for alphazero, gumbel and muzero"),
        (["connect4", "--algorithm", "reference", "--player", "connect4"], "not for --algorithm reference"),
        (["chess", "--player", "connect4"], "this is a player of connect4, not of chess"),
    ],
)
def test_invalid_algorithm_options_raise(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1


def options(algorithm: str) -> argparse.Namespace:
    return argparse.Namespace(algorithm=algorithm, player="runs/model", simulations=20, seconds=None, max_depth=None)


def test_learned_model_selects_muzero_and_alphazero_rejects_it(monkeypatch: pytest.MonkeyPatch) -> None:
    position = read_position("tic-tac-toe", None, None)
    monkeypatch.setattr(
        algorithms, "_load", lambda player, position: ExactBatchModel([position.state], RandomOutputs())
    )
    assert configure(position, options("auto")).algorithm == "muzero"
    for algorithm in ("muzero", "gumbel"):
        chosen = configure(position, options(algorithm))
        searcher = chosen.start(position, 1, 1)
        assert run_search(searcher, chosen.simulations, None)
        assert searcher.report().simulations == 20
        assert "trained model" in searcher.report().description
    with pytest.raises(InvalidArgumentError, match="use --algorithm gumbel or muzero"):
        configure(position, options("alphazero"))


@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_search_of_rewards_normalises_values_by_the_tree(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    asked = ("2048", "--simulations", "60", "--max-depth", "8", "--seed", "3")
    found = search(capsys, *asked, "--algorithm", algorithm)
    state = read_position("2048", None, None).state
    expected = UCT(60, max_depth=8, seed=3, normalize="tree").run(state)
    other = UCT(60, max_depth=8, seed=3).run(state)
    visits = [int(expected.visits[move["action"]]) for move in found["moves"]]
    assert [move["visits"] for move in found["moves"]] == visits
    assert visits != [int(other.visits[move["action"]]) for move in found["moves"]]


def test_bundled_player_of_2048_searches_as_it_was_measured() -> None:
    pytest.importorskip("torch")
    position = read_position("2048", None, None)
    given = argparse.Namespace(algorithm="auto", player="2048", simulations=16, seconds=None, max_depth=None)
    chosen = configure(position, given)
    assert chosen.algorithm == "gumbel"
    built: Any = chosen.build(1, 1)
    assert (built.gumbel_scale, built.discount, built.chance) == (0.0, 0.997, "sample")
    given.algorithm = "alphazero"
    built = configure(position, given).build(1, 1)
    assert built.normalize == "tree"
