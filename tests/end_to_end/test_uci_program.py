"""The engine as a process: input and output, options, the client of python-chess."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.faults.test_uci_mistakes import STREAMS, goes, stream
from tests.support.uci_client import BACK_RANK, COMMAND, MORPHY

from pondertree.cli.uci import MAX_LINE_LENGTH, lines

pytest.importorskip("chess.engine")
import chess.engine


def program(text: bytes, *arguments: str, seconds: float = 60.0) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, timeout=seconds)


def test_random_command_streams_are_answered() -> None:
    for seed in range(max(STREAMS // 40, 2)):
        commands = list(stream(random.Random(-1 - seed), 40))
        text = "\n".join(commands).encode() + b"\n\xff\xfe broken\nisready\n" + b"y" * (1 << 20) + b"\nstop\nquit\n"
        done = program(text, "--option", "Hash=1")
        said = done.stdout.decode().splitlines()
        assert done.returncode == 0
        assert not done.stderr, done.stderr[-500:]
        assert sum(line.startswith("bestmove") for line in said) == goes(commands)
        assert "readyok" in said


@pytest.mark.parametrize(
    "text", [b"", b"quit\n", b"go infinite\n", b"go infinite\nquit", b"position startpos\ngo ponder"]
)
def test_end_of_input_exits_cleanly(text: bytes) -> None:
    done = program(text)
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.count(b"bestmove") == text.count(b"go")


def test_closed_output_exits_quietly() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"uci\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"id name")
        process.stdout.close()
        process.stdin.write(b"go infinite\n")
        process.stdin.flush()
        assert process.wait(20) == 0  # the first report detects the closed pipe
        assert process.stderr.read() == b""


def test_command_line_options_are_set_and_validated() -> None:
    done = program(b"position startpos\ngo nodes 50\nisready\n", "--option", "MultiPV=2", "--option", "Move Overhead=5")
    assert done.returncode == 0
    for wrong, words in {
        "Hash": "NAME=VALUE",
        "Hash=x": "option Hash: must be a whole number",
        "A=b": "no option",
    }.items():
        done = program(b"", "--option", wrong)
        assert done.returncode == 2
        assert words in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
    assert b"--option NAME=VALUE" in program(b"", "--help").stdout


def test_engine_requires_only_numpy() -> None:
    blocked = "import sys\nfor name in ('rich', 'chess', 'onnxruntime', 'torch'): sys.modules[name] = None\n"
    code = f"{blocked}from pondertree.cli import main\nsys.exit(main(['uci']))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"uci\ngo nodes 10\n", capture_output=True, timeout=60, check=True
    )
    assert b"bestmove" in done.stdout


def test_unencodable_output_is_escaped() -> None:
    lines = "position fen \N{SNOWMAN} w - - 0 1\nisready\nquit\n".encode()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(COMMAND, input=lines, capture_output=True, timeout=60, env=environment)
    assert done.returncode == 0
    assert rb"\u2603" in done.stdout
    assert done.stdout.splitlines()[-1] == b"readyok"


def test_overlong_lines_are_discarded() -> None:
    text = b"uci\n" + b"x" * (2 * MAX_LINE_LENGTH + 5) + b"\n\xffisready\r\nquit"
    read = [line for line, _ in lines(io.BytesIO(text))]
    assert read == ["uci\n", None, "\N{REPLACEMENT CHARACTER}isready\r\n", "quit"]


# --- by python-chess's client -------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Any]:
    engine = chess.engine.SimpleEngine.popen_uci(COMMAND, timeout=60)
    yield engine
    engine.quit()


def test_python_chess_client_plays_game_on_clock(client: Any) -> None:
    """A short game on a clock with tree reuse; the client rejects illegal moves."""
    board = chess.Board()
    clock = [3.0, 3.0]
    while board.ply() < 16:
        side = 0 if board.turn else 1
        begun = time.perf_counter()
        limit = chess.engine.Limit(white_clock=clock[0], black_clock=clock[1], white_inc=0.01, black_inc=0.01)
        played = client.play(board, limit, info=chess.engine.INFO_ALL)
        clock[side] -= time.perf_counter() - begun
        assert clock[side] > 0.0
        board.push(played.move)
    assert played.info["nodes"] > 0


def test_python_chess_client_analyses(client: Any) -> None:
    found = client.analyse(chess.Board(MORPHY), chess.engine.Limit(time=2.0))
    assert found["score"].white() == chess.engine.Mate(2)
    assert found["pv"][0].uci() == "a1a6"
    several = client.analyse(chess.Board(), chess.engine.Limit(nodes=500), multipv=3)
    assert [entry["multipv"] for entry in several] == [1, 2, 3]
    client.configure({"UCI_ShowWDL": True})
    found = client.analyse(chess.Board(), chess.engine.Limit(depth=3))
    assert sum(found["wdl"].white()) == 1000
    moves = [chess.Move.from_uci("a2a3"), chess.Move.from_uci("h2h4")]
    assert client.analyse(chess.Board(), chess.engine.Limit(nodes=200), root_moves=moves)["pv"][0] in moves
    mate = client.play(chess.Board(BACK_RANK), chess.engine.Limit(mate=1))
    assert mate.move.uci() == "a1a8"
    with client.analysis(chess.Board()) as analysis:
        for entry in analysis:
            if entry.get("pv"):
                break
        analysis.stop()
        assert analysis.wait().move is not None


def test_python_chess_client_ponders(client: Any) -> None:
    board = chess.Board()
    limit = chess.engine.Limit(white_clock=5, black_clock=5)
    first = client.play(board, limit, ponder=True)
    assert first.ponder is not None
    board.push(first.move)
    board.push(first.ponder)  # a ponderhit
    second = client.play(board, limit, ponder=True)
    board.push(second.move)
    board.push(next(move for move in board.legal_moves if move != second.ponder))  # a ponder miss
    assert client.play(board, limit).move in board.legal_moves


def test_piped_search_completes_before_exit() -> None:
    """A search with limits is completed at the end of the input."""
    commands = b"position startpos moves e2e4\ngo nodes 300\n"
    told = subprocess.run(COMMAND, input=commands, capture_output=True, timeout=60, check=True).stdout.decode()
    assert " nodes 300 " in told
    assert told.splitlines()[-1].startswith("bestmove")
