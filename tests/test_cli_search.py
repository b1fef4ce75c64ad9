"""`pondertree search`: what it prints, for people and for programs."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pondertree import UCT
from pondertree.cli import main
from pondertree.cli.position import read_position
from pondertree.cli.report import line_below
from pondertree.cli.thinking import Engine, Reference, think

COMMAND = [sys.executable, "-m", "pondertree", "search"]
KEYS = [
    "game",
    "position",
    "to_play",
    "player",
    "algorithm",
    "seed",
    "simulations",
    "elapsed",
    "value",
    "proven",
    "move",
    "action",
    "pv",
    "moves",
]
MOVE_KEYS = ["action", "move", "visits", "share", "q", "proven", "pv"]
#: The command, with a word on stderr once it is ready to be interrupted: before that, Python is still starting.
SAY_WHEN_READY = """
import signal, sys, threading, time
from pondertree.cli import main

def wait():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)
    print("ready", file=sys.stderr, flush=True)

threading.Thread(target=wait, daemon=True).start()
sys.exit(main(sys.argv[1:]))
"""
MATE_IN_TWO = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"


def search(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What `pondertree search --json` prints."""
    assert main(["search", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.count("\n") == 1
    found: dict[str, Any] = json.loads(printed.out)
    return found


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello", "chess"])
@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_json(capsys: pytest.CaptureFixture[str], game: str, algorithm: str) -> None:
    found = search(capsys, game, "--algorithm", algorithm, "--simulations", "60", "--seed", "5")
    state = read_position(game, None, None).state
    legal = state.legal_actions()
    assert list(found) == KEYS
    assert (found["game"], found["algorithm"], found["seed"], found["to_play"]) == (game, algorithm, 5, 0)
    assert found["simulations"] == 60 == sum(move["visits"] for move in found["moves"])
    assert sorted(move["action"] for move in found["moves"]) == sorted(legal)
    assert all(list(move) == MOVE_KEYS for move in found["moves"])
    assert sum(move["share"] for move in found["moves"]) == pytest.approx(1.0)
    assert all(move["pv"][0] == move["move"] for move in found["moves"])
    best = found["moves"][0]
    assert (found["action"], found["move"], found["pv"]) == (best["action"], best["move"], best["pv"])
    assert found["move"] == state.action_to_string(found["action"])
    assert -1.0 <= found["value"] <= 1.0
    for text in found["pv"]:
        state = state.play(state.parse_action(text))


def test_engine_and_twin_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("connect4", "--moves", "4 4 3", "--simulations", "300", "--seed", "9")
    uct = search(capsys, *asked)
    twin = search(capsys, *asked, "--algorithm", "reference")
    for found in (uct, twin):
        del found["elapsed"], found["algorithm"]
    assert uct == twin


def test_same_seed_same_answer_and_as_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    once, again = (search(capsys, "othello", "--simulations", "3k", "--seed", "1") for _ in range(2))
    del once["elapsed"], again["elapsed"]
    assert once == again
    result = UCT(3_000, seed=1).run(read_position("othello", None, None).state)
    assert {move["action"]: move["visits"] for move in once["moves"]} == {
        move["action"]: result.visits[move["action"]] for move in once["moves"]
    }
    assert (once["value"], once["pv"]) == (result.value, result.pv)


@pytest.mark.parametrize(
    ("game", "moves", "fen"),
    [
        ("chess", None, MATE_IN_TWO),
        ("connect4", None, None),
        ("connect4", "4 4 3 3 5 7", None),
        ("tic-tac-toe", "a1 b1", None),
        ("tic-tac-toe", "a1 c1", None),
        ("tic-tac-toe", "b1 b2 a3", None),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_lines_are_those_of_the_engine(game: str, moves: str | None, fen: str | None, seed: int) -> None:
    engine = Engine(read_position(game, moves, fen), seed)
    think(engine, 1500, None)
    report, result = engine.report(), engine.tree.result()
    assert list(report.best.pv) == result.pv == list(engine.report(glance=True).best.pv)
    places = {int(action): place for place, action in enumerate(result._view.edges(0)[0])}
    for move in report.moves:
        assert len(move.pv) == len(result._view.principal_variation(places[move.action]))
        state = engine.position.state
        for text, action in zip(move.pv, result._view.principal_variation(places[move.action]), strict=True):
            assert state.parse_action(text) == action
            state = state.play(action)
        assert (
            move.proven is None
            or not state.is_terminal
            or move.proven == state.returns()[report.position.state.to_play]
        )
        assert move.proven in (None, 0) or (state.is_terminal and move.plies == len(move.pv))


def test_a_move_played_keeps_the_tree_and_another_position_does_not() -> None:
    engine = Engine(read_position("connect4", None, None), 1)
    think(engine, 2000, None)
    best = engine.report().best
    engine.follow(best.action)
    assert sum(move.visits for move in engine.report().moves) == best.visits - 1
    engine.restart(read_position("connect4", "1", None))
    assert sum(move.visits for move in engine.report().moves) == 0


def test_proven(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--fen", MATE_IN_TWO, "--seed", "3")
    assert (found["move"], found["proven"], found["value"]) == ("a1a6", 1, 1.0)
    assert found["position"] == MATE_IN_TWO
    assert found["simulations"] < 10_000
    assert main(["search", "chess", "--fen", MATE_IN_TWO, "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert "White wins in 3 plies" in printed
    assert re.search(r"a1a6 .* win in 3 ", printed)


def test_untried_moves_have_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--simulations", "1", "--seed", "1")
    assert [move["q"] is None for move in found["moves"]] == [move["visits"] == 0 for move in found["moves"]]


@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_seconds(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    begun = time.perf_counter()
    found = search(capsys, "chess", "--seconds", "0.3", "--algorithm", algorithm)
    assert 0.2 < found["elapsed"] < 2.0
    assert time.perf_counter() - begun >= 0.3


def test_top_and_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "reversi", "--top", "2", "--seed", "1")
    assert found["game"] == "othello"
    assert len(found["moves"]) == 2
    assert main(["search", "chess", "--top", "3", "--simulations", "200", "--seed", "1"]) == 0
    assert "17 more moves tried" in capsys.readouterr().out


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "connect4", "--moves", "4 4 3", "--seed", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "\x1b" not in printed.out
    assert "\r" not in printed.out
    assert all(line == line.rstrip() for line in printed.out.splitlines())
    assert "Connect 4 after 4 4 3, O to move" in printed.out
    assert ". . X X . . ." in printed.out
    assert "10,000 simulations in" in printed.out
    assert "simulations/s" in printed.out
    assert re.search(r"^move +visits +share +Q +expected line$", printed.out, re.MULTILINE)
    rows = re.findall(r"^[1-7] +([\d,]+) +\d+\.\d% ", printed.out, re.MULTILINE)
    assert sum(int(visits.replace(",", "")) for visits in rows) == 10_000


def test_without_utf8() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "tic-tac-toe"], capture_output=True, env=environment, check=True, timeout=60)
    assert done.stdout.isascii()
    assert b"#####" in done.stdout


@pytest.mark.parametrize("extra", [[], ["--json"], ["--algorithm", "reference"]])
def test_interrupt(extra: list[str]) -> None:
    arguments = ["search", "chess", "--seconds", "30", *extra]
    started = subprocess.Popen(
        [sys.executable, "-c", SAY_WHEN_READY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stderr is not None
    assert started.stderr.readline() == "ready\n"
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    begun = time.perf_counter()
    out, err = started.communicate(timeout=20)
    assert time.perf_counter() - begun < 1.0
    assert started.returncode == 130, err
    assert err == "interrupted: this is what was found so far\n"
    if "--json" in extra:
        assert json.loads(out)["simulations"] > 0
    else:
        assert "best move" in out


def test_a_terminal_is_shown_the_search_while_it_runs() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    started = subprocess.Popen(
        [*COMMAND, "connect4", "--seconds", "1"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    pieces = []
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and select.select([ours], [], [], 10)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert started.wait(timeout=10) == 0
    shown = b"".join(pieces).decode()
    assert shown.count("best move") >= 3
    assert "Ctrl-C ends it here" in shown
    assert "\x1b[" in shown


def test_reference_is_a_thinker_that_stops_when_solved() -> None:
    twin = Reference(read_position("tic-tac-toe", "a1 b1 a2 b2", None), 1)
    assert think(twin, 100_000, None)
    assert twin.is_solved
    assert twin.report().verdict() == "X wins in 1 ply"


def test_a_line_takes_the_shortest_win() -> None:
    def node(to_play: int, proven: int | None, distance: int, **children: SimpleNamespace) -> SimpleNamespace:
        below = {int(column[1:]) - 1: child for column, child in children.items()}
        return SimpleNamespace(to_play=to_play, proven=proven, distance=distance, visit_count=1, children=below)

    slow = node(1, -1, 4)
    slow.visit_count = 9
    root = node(0, 1, 3, c1=slow, c2=node(1, None, 0), c5=node(1, -1, 2))
    assert line_below(read_position("connect4", None, None).state, root) == ["5"]


# --- Games written in Python --------------------------------------------------------------------------------------


NIM = "examples.games.nim:Nim"


def test_a_game_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    told = search(capsys, NIM, "--simulations", "500", "--seed", "1", "--moves", "a-2 b-1")
    assert told["game"] == NIM
    assert told["position"] == "Nim(heaps=(0, 2, 5), to_play=0)"
    assert {move["move"] for move in told["moves"]} == {"b-1", "b-2", "c-1", "c-2", "c-3", "c-4", "c-5"}
    assert told["move"] == "c-3"
    assert told["proven"] == 1
    assert main(["search", NIM, "--simulations", "50", "--algorithm", "reference"]) == 0
    assert "Nim(heaps=(2, 3, 5), to_play=0)" in capsys.readouterr().out
    assert main(["match", "uct:num_simulations=50", "first", "--game", NIM, "--games", "2", "--concurrency", "1"]) == 0
    assert "examples.games.nim.Nim" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([NIM, "--moves", "zz"], "'zz' is no move (legal: a-1 a-2 b-1"),
        ([NIM, "--moves", "a-5"], "'a-5' is not legal here"),
        (["examples.games.nim:Mim"], "cannot be imported"),
        (["examples.games.nim:LARGEST"], "must give a starting state when called"),
        (["examples.games.nim:np.zeros"], "must give a starting state when called without arguments; it raised"),
        (["tests.test_cli_search:Alone"], "commands are for two players with opposite results"),
        (["gym:CartPole-v1"], "is an environment, which has no rules to search or play by"),
    ],
)
def test_games_in_python_that_cannot_be_searched(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", *arguments]) == 2
    assert message in capsys.readouterr().err


class Alone:
    """A game of one player."""

    num_actions, num_players, to_play, is_terminal = 2, 1, 0, False

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Alone:
        return self

    def returns(self) -> list[float]:
        return [0.0]
