"""`pondertree play` with moves from a script."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys

import pytest

from pondertree.cli import main

COMMAND = [sys.executable, "-m", "pondertree", "play"]


def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *arguments: str) -> str:
    """What is printed when a user types `typed`."""
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["play", *arguments, "--simulations", "400", "--seed", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_two_people_play_to_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "a1\nb1\na2\nb2\na3\n", "tic-tac-toe", "--side", "both")
    assert out.endswith("1 X O .\n2 X O .\n3 X . .\nX wins.\n")


def test_chess_reads_both_notations(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "f3\ne7e5\ng2g4\nQh4#\n", "chess", "--side", "both")
    assert out.endswith("Black wins (checkmate).\n")


def test_bad_input_is_answered_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "9\n\nnonsense\nmoves\nhelp\n4\nquit\n", "connect4")
    assert out.count("(legal: 1 2 3 4 5 6 7)") == 2
    assert "X> moves\n1 2 3 4 5 6 7\n" in out
    assert "take back your last move" in out
    assert "O plays " in out


def test_undo_takes_back_the_answer_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "undo\nb2\nundo\nundo\na1\n", "tic-tac-toe")
    assert out.count("There is nothing to take back.") == 2
    assert '--moves "a1 ' in out.splitlines()[-1]


def test_hint_is_a_legal_move(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "hint\n", "connect4", "--moves", "1 1 2 2 3 5")
    assert "X could play 4  X wins" in out


def test_end_of_input_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "", "othello", "--side", "second")
    told = "Stopped. To go on from here: pondertree play othello --side second --simulations 400 --seed 1 --moves "
    assert out.splitlines()[-1].startswith(told)
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    out = play(monkeypatch, capsys, "", "chess", "--fen", fen)
    assert out.splitlines()[-1].endswith(f'--fen "{fen}"')


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello"])
def test_the_search_plays_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], game: str
) -> None:
    out = play(monkeypatch, capsys, "", game, "--side", "none")
    assert out.splitlines()[-1] in ("X wins.", "O wins.", "The game is a draw.")
    assert out == play(monkeypatch, capsys, "", game, "--side", "none")


def test_the_search_does_not_lose_at_tic_tac_toe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = play(monkeypatch, capsys, "a1\nb1\nc1\na2\nb2\nc2\na3\nb3\nc3\n" * 3, "tic-tac-toe")
    assert out.splitlines()[-1] in ("O wins.", "The game is a draw.")


def test_a_pipe_as_input() -> None:
    done = subprocess.run(
        [*COMMAND, "tic-tac-toe", "--seed", "1"], input="b2\n", capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "O plays " in done.stdout


def test_the_way_to_go_on_has_the_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed, typed again, is the same game against the same player."""
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    given = ["connect4", "--player", "connect4", "--seconds", "0.05", "--threads", "2", "--moves", "4 4"]
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(["play", *given]) == 0
    command = capsys.readouterr().out.splitlines()[-1].partition("To go on from here: pondertree ")[2]
    assert command == 'play connect4 --side first --player connect4 --seconds 0.05 --threads 2 --moves "4 4"'
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(shlex.split(command)) == 0
    assert command in capsys.readouterr().out


def test_a_game_in_python_is_played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = play(monkeypatch, capsys, "c-9\nhint\nc-4\n", "examples.games.nim:Nim")
    assert "'c-9' is no" in out
    assert "X could play " in out
    assert "O plays " in out
    assert out.splitlines()[-1].partition("--moves ")[2].startswith('"c-4 ')
