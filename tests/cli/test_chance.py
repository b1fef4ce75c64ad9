"""Commands at chance nodes: `search` asks for the outcome, `play` draws it."""

from __future__ import annotations

import io
import re

import pytest
from tests.support.chance_games import Race

from pondertree import UCT
from pondertree.cli import main
from pondertree.cli.position import Position
from pondertree.cli.searcher import EngineSearcher


def test_search_at_a_chance_node_asks_for_the_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "pig", "--moves", "roll"]) == 2
    assert "a chance node: add the outcome to --moves: 1 2 3 4 5 6" in capsys.readouterr().err
    assert main(["search", "pig", "--moves", "roll 3", "--simulations", "20", "--json"]) == 0


def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seed: str, typed: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", "pig", "--moves", "roll", "--side", "all", "--simulations", "20", "--seed", seed]) == 0
    return capsys.readouterr().out


def test_play_at_a_chance_node_draws_the_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = []
    for seed in ("1", "2", "3", "4", "5", "6"):
        out = play(monkeypatch, capsys, seed, "roll\nroll\nquit\n")
        assert out == play(monkeypatch, capsys, seed, "roll\nroll\nquit\n"), "the outcomes are those of the seed"
        found = tuple(re.findall(r"chance: (\d)", out))
        assert len(found) == 3
        assert f"--moves 'roll {found[0]} roll {found[1]} roll {found[2]}'" in out
        drawn.append(found)
    assert any(found[0] != found[1] for found in drawn), "the generator goes on after the first outcome"


@pytest.mark.parametrize("game", ["pig", "backgammon"])
def test_play_prints_the_player_to_move_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], game: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(["play", game, "--simulations", "20", "--seed", "1"]) == 0
    assert capsys.readouterr().out.count("X to move") == 1


@pytest.mark.parametrize("is_preview", [False, True])
def test_expected_lines_stop_at_a_chance_node(is_preview: bool) -> None:
    """Race: a step is a move, a roll is followed by an outcome."""
    searcher = EngineSearcher(Position("Race", Race(places=(4, 4))), 1, lambda seed: UCT(seed=seed, solve=False))
    searcher.grow(2000, None)
    report = searcher.report(is_preview=is_preview)
    assert "roll" in report.best.pv
    for move in report.moves:
        assert "roll" not in move.pv[:-1]
        assert not any(text.startswith("rolled") for text in move.pv)
    assert report.as_json()["pv"] == list(report.best.pv)
