"""`pondertree match`: output, record and PGN files, adjudication, interrupts."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pondertree.cli import main

pytest.importorskip("rich")

PLAYERS = ["uct:num_simulations=100", "random"]
SMALL = [*PLAYERS, "--game", "tictactoe", "--games", "8", "--seed", "1", "--concurrency", "1"]
COMMAND = [sys.executable, "-m", "pondertree", "match"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["match", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_match_prints_progress_and_result(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, *SMALL)
    lines = out.splitlines()
    assert lines[0] == "uct:num_simulations=100 against random, tic_tac_toe, seed 1"
    assert re.fullmatch(r"games 8: \+\d =\d -\d, score [\d.]+%", lines[1])
    assert re.fullmatch(r"pairs 4: \d \d \d \d \d \(0, 1/2, 1, 3/2, 2 points\)", lines[2])
    assert lines[3].startswith("Elo +")
    assert "\x1b" not in out
    assert run(capsys, *SMALL) == out


def test_match_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run(capsys, *SMALL, "--json", "--sprt", "0,50"))
    assert data["players"] == PLAYERS
    assert data["seed"] == 1
    assert sum(data["pentanomial"]) * 2 == data["games"]
    assert set(data["sprt"]) == {"elo0", "elo1", "llr", "bounds", "verdict"}


def test_match_writes_record_and_pgn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, games, book = str(tmp_path / "match.jsonl"), str(tmp_path / "games.txt"), tmp_path / "book.txt"
    book.write_text("b2 a1\nb2 b1\n")
    arguments = [*SMALL, "--openings", str(book), "--out", out, "--pgn", games]
    first = run(capsys, *arguments)
    assert [line.split()[:2] for line in Path(games).read_text().splitlines()[1::3]][:4:2] == [
        ["b2", "a1"],
        ["b2", "b1"],
    ]
    assert main(["match", *arguments]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run(capsys, *arguments, "--resume") == first


def test_match_options_set_adjudication(capsys: pytest.CaptureFixture[str]) -> None:
    connect4 = [*PLAYERS, "--game", "connect4", "--games", "2", "--concurrency", "1", "--seed", "1", "--json"]
    assert json.loads(run(capsys, *connect4, "--max-plies", "6"))["draws"] == 2
    data = json.loads(run(capsys, *connect4, "--resign", "0.0,1", "--resign-alone", "--draw", "0.1,2,9"))
    assert data["games"] == 2


MISTAKES = [
    ([*PLAYERS], "--game"),
    (["random", "--game", "chess"], "PLAYER2"),
    (["magic", "random", "--game", "chess"], "player1 'magic': unknown player 'magic'"),
    (["random", "uct:x=1", "--game", "chess"], "player2 'uct:x=1': unknown setting 'x'"),
    ([*PLAYERS, "--game", "go"], "unknown game 'go'"),
    ([*PLAYERS, "--game", "chess", "--games", "3"], "num_games must be even"),
    ([*PLAYERS, "--game", "chess", "--games", "0"], "at least 1"),
    ([*PLAYERS, "--game", "chess", "--sprt", "5"], "must be 2 numbers separated by commas"),
    ([*PLAYERS, "--game", "chess", "--sprt", "5,0"], "elo0 must be below elo1"),
    ([*PLAYERS, "--game", "chess", "--sprt", "a,b"], "must be 2 numbers separated by commas"),
    ([*PLAYERS, "--game", "chess", "--resign", "2"], "resign must be from 0.0 to 1.0"),
    ([*PLAYERS, "--game", "chess", "--resign", "0.5,1.5"], "resign_moves must be a whole number"),
    ([*PLAYERS, "--game", "chess", "--draw", "1,2,3,4"], "must be 1 to 3 numbers"),
    ([*PLAYERS, "--game", "chess", "--openings", "no-such-file.pgn"], "cannot be read"),
    ([*PLAYERS, "--game", "chess", "--plies", "-1"], "plies must be at least 0"),
    ([*PLAYERS, "--game", "chess", "--resume"], "resume requires out"),
    ([*PLAYERS, "--game", "chess", "--on-failure", "cry"], "invalid choice"),
    ([*PLAYERS, "--game", "othello", "--openings", "x.epd"], "cannot be read"),
    (["uci:no-such-program,nodes=1", "random", "--game", "chess"], "player1: there is no program 'no-such-program'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_invalid_arguments_print_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        status = main(["match", *arguments])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert printed.err.count("\n") == 1
    assert message in printed.err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_interrupted_match_can_be_resumed(tmp_path: Path, concurrency: str) -> None:
    out = tmp_path / "match.jsonl"
    arguments = ["uct:num_simulations=2000", "uct:num_simulations=500", "--game", "connect4", "--games", "400"]
    arguments += ["--out", str(out), "--concurrency", concurrency, "--seed", "3"]
    started = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A background shell makes its children ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not out.exists() or out.read_bytes().count(b"\n") < 3:
        assert started.poll() is None
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGINT)  # to the whole process group, as a terminal does
    printed, errors = started.communicate(timeout=30)
    assert started.returncode == 130
    command = shlex.join(["pondertree", "match", *arguments, "--resume"])
    assert errors == f"interrupted: this is what was played so far; to go on: {command}\n"
    assert "uct:num_simulations=2000 against uct:num_simulations=500" in printed
    assert out.read_bytes().count(b"\n") >= 3
    assert re.search(r"^games \d+: ", printed, re.M)


#: Pairs of at least a second, and a match of some seconds.
SLOW = ["uct:num_simulations=500000", "uct:num_simulations=500000", "--game", "connect4", "--games", "4", "--seed", "3"]
SLOW += ["--max-plies", "8", "--json"]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_match_interrupted_before_the_first_pair_prints_how_to_resume(
    tmp_path: Path, concurrency: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs the printed resume command."""
    out = tmp_path / "a match's record.jsonl"
    arguments = [*SLOW, "--out", str(out), "--concurrency", concurrency]
    started = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The record begins just before the workers start: the signal comes while they do.
    while not (out.exists() and out.stat().st_size):
        assert started.poll() is None
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGINT)
    printed, errors = started.communicate(timeout=60)
    assert (started.returncode, printed) == (130, "")
    said, command = errors.rstrip("\n").split("; to go on: ")
    assert said == "interrupted before a pair of games was finished"
    assert shlex.split(command) == ["pondertree", "match", *arguments, "--resume"]
    assert main(shlex.split(command)[1:]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 4


def test_match_interrupted_without_file_reports_nothing_stored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pondertree.match

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pondertree.match, "play_match", interrupted)
    assert main(["match", *SMALL]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "interrupted before a pair of games was finished; nothing was stored: with --out FILE a match can be resumed\n"
    )
    assert main(["match", *SMALL, "--out", "x y.jsonl", "--resume"]) == 130
    expected = f"to go on: {shlex.join(['pondertree', 'match', *SMALL, '--out', 'x y.jsonl', '--resume'])}\n"
    assert capsys.readouterr().err.endswith(expected)


def test_games_are_named_as_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "uct", "random", "--game", "2048"]) == 2
    assert capsys.readouterr().err.endswith("without rewards, not 2048\n")
    with pytest.raises(SystemExit):
        main(["match", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert "2048" not in help_text
    assert "backgammon" in help_text
    assert main(["search", "2048", "--moves", "left jump"]) == 2
    assert "of 2048 (legal: " in capsys.readouterr().err
