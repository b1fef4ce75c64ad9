"""`pondertree search` on games written in Python, with several players and with rewards."""

from __future__ import annotations

import re

import pytest
from tests.support.cli_search import COINS, NIM, TRIANGLE, search

from pondertree import UCT
from pondertree.cli import main
from pondertree.cli.position import read_position
from pondertree.cli.searcher import EngineSearcher, run_search
from pondertree.errors import GameContractError


def test_python_game_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    report = search(capsys, NIM, "--simulations", "500", "--seed", "1", "--moves", "a-2 b-1")
    assert report["game"] == NIM
    assert report["position"] == "Nim(heaps=(0, 2, 5), to_play=0)"
    assert {move["move"] for move in report["moves"]} == {"b-1", "b-2", "c-1", "c-2", "c-3", "c-4", "c-5"}
    assert report["move"] == "c-3"
    assert report["proven"] == 1
    assert main(["search", NIM, "--simulations", "50", "--algorithm", "reference"]) == 0
    assert "Nim(heaps=(2, 3, 5), to_play=0)" in capsys.readouterr().out
    assert main(["match", "uct:num_simulations=50", "first", "--game", NIM, "--games", "2", "--concurrency", "1"]) == 0
    assert "examples.games.nim.Nim" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::pondertree.errors.UnfinishedPlayoutWarning")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([NIM, "--moves", "zz"], "'zz' is no move (legal: a-1 a-2 b-1"),
        ([NIM, "--moves", "a-5"], "'a-5' is not legal here"),
        (["examples.games.nim:Mim"], "cannot be imported"),
        (["examples.games.nim:LARGEST"], "must give a starting state when called"),
        (["examples.games.nim:np.zeros"], "must give a starting state when called without arguments; it raised"),
        (["tests.support.cli_search:Endless"], "Endless"),
        (["gym:CartPole-v1"], "is an environment, which has no rules to search or play by"),
    ],
)
def test_unsupported_python_games_raise(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_three_players_have_named_values(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (COINS, "--moves", "last first", "--simulations", "300", "--seed", "1")
    found = search(capsys, *asked)
    result = UCT(num_simulations=300, seed=1).run(read_position(COINS, "last first", None).state)
    assert (found["to_play"], found["player"], found["algorithm"]) == (2, "Player 3", "uct")
    assert found["values"] == list(result.values)
    assert found["values"][2] == found["value"]
    assert sum(found["values"]) == pytest.approx(1.0)
    assert main(["search", *asked]) == 0
    printed = capsys.readouterr().out
    assert "CoinRow after last first, Player 3 to move" in printed
    for player, value in enumerate(found["values"], start=1):
        assert f"{value:+.3f} for Player {player}" in printed
    assert "proven" not in printed


@pytest.mark.parametrize("game", [COINS, TRIANGLE])
def test_reference_matches_engine_values_for_every_player(capsys: pytest.CaptureFixture[str], game: str) -> None:
    engine, reference = (
        search(capsys, game, "--algorithm", algorithm, "--simulations", "200", "--seed", "4")
        for algorithm in ("uct", "reference")
    )
    assert reference["values"] == pytest.approx(engine["values"], abs=1e-12)
    for found in (engine, reference):
        del found["elapsed"], found["algorithm"], found["values"]
    assert reference == engine


def test_single_player_with_rewards_shows_collected_reward(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", TRIANGLE, "--moves", "right left", "--seed", "1"]) == 0
    printed = capsys.readouterr().out
    assert "expected sum of rewards" in printed
    assert re.search(r"so far +0\.8$", printed, re.MULTILINE)
    found = search(capsys, TRIANGLE, "--moves", "right left", "--seed", "1")
    assert found["values"] == [found["value"]]


def test_time_limit_below_one_playout_raises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "tests.support.cli_search:Slow", "--seconds", "0.2"]) == 2
    assert "not one simulation of Slow ended within 0." in capsys.readouterr().err


def test_search_ends_if_no_playout_fits_longest_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.cli.searcher.MAX_SLICE", 0.15)
    engine = EngineSearcher(read_position("tests.support.cli_search:Slow", None, None), 1)
    with pytest.raises(GameContractError, match="not one simulation of Slow"):
        run_search(engine, 10, None)
