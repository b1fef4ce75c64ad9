"""`pondertree search`: JSON, table, live display, interrupts."""

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
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.cli_search import COINS, MATE_IN_TWO, NIM, search

from pondertree import UCT, load_tree
from pondertree.cli import main
from pondertree.cli.position import read_position
from pondertree.cli.search_report import variation_below
from pondertree.cli.searcher import EngineSearcher, ReferenceSearcher, run_search

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
    "values",
    "proven",
    "move",
    "action",
    "pv",
    "moves",
]


MOVE_KEYS = ["action", "move", "visits", "share", "q", "proven", "pv"]


#: Runs the command and prints "ready" on stderr once SIGINT is handled.
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


def with_san(keys: list[str], san: list[str]) -> list[str]:
    """Inserts `san` after `move` into the keys of a JSON object."""
    after = keys.index("move") + 1
    return [*keys[:after], *san, *keys[after:]]


@pytest.mark.parametrize("game", ["tic-tac-toe", "connect4", "othello", "chess"])
@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_search_prints_json(capsys: pytest.CaptureFixture[str], game: str, algorithm: str) -> None:
    found = search(capsys, game, "--algorithm", algorithm, "--simulations", "60", "--seed", "5")
    state = read_position(game, None, None).state
    legal = state.legal_actions()
    san = ["san"] if game == "chess" else []
    assert list(found) == with_san(KEYS, san)
    assert (found["game"], found["algorithm"], found["seed"], found["to_play"]) == (game, algorithm, 5, 0)
    assert found["simulations"] == 60 == sum(move["visits"] for move in found["moves"])
    assert sorted(move["action"] for move in found["moves"]) == sorted(legal)
    assert all(list(move) == with_san(MOVE_KEYS, san) for move in found["moves"])
    assert sum(move["share"] for move in found["moves"]) == pytest.approx(1.0)
    assert all(move["pv"][0] == move["move"] for move in found["moves"])
    best = found["moves"][0]
    assert (found["action"], found["move"], found["pv"]) == (best["action"], best["move"], best["pv"])
    assert found["move"] == state.action_to_string(found["action"])
    assert -1.0 <= found["value"] <= 1.0
    assert found["values"] == [found["value"], -found["value"]]
    for text in found["pv"]:
        state = state.play(state.parse_action(text))


def test_engine_matches_reference(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("connect4", "--moves", "4 4 3", "--simulations", "300", "--seed", "9")
    uct = search(capsys, *asked, "--algorithm", "uct")
    reference = search(capsys, *asked, "--algorithm", "reference")
    for found in (uct, reference):
        del found["elapsed"], found["algorithm"]
    assert uct == reference


def test_equal_seeds_match_library_result(capsys: pytest.CaptureFixture[str]) -> None:
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
def test_printed_lines_match_principal_variations(game: str, moves: str | None, fen: str | None, seed: int) -> None:
    engine = EngineSearcher(read_position(game, moves, fen), seed)
    run_search(engine, 1500, None)
    report, result = engine.report(), engine.tree.result()
    assert list(report.best.pv) == result.pv == list(engine.report(is_preview=True).best.pv)
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


def test_followed_move_keeps_tree_and_restart_drops_it() -> None:
    engine = EngineSearcher(read_position("connect4", None, None), 1)
    run_search(engine, 2000, None)
    best = engine.report().best
    engine.follow(best.action)
    assert sum(move.visits for move in engine.report().moves) == best.visits - 1
    engine.restart(read_position("connect4", "1", None))
    assert sum(move.visits for move in engine.report().moves) == 0


def test_proven_result_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--fen", MATE_IN_TWO, "--seed", "3", "--algorithm", "uct")
    assert (found["move"], found["proven"], found["value"]) == ("a1a6", 1, 1.0)
    assert found["position"] == MATE_IN_TWO
    assert found["simulations"] < 10_000
    assert main(["search", "chess", "--fen", MATE_IN_TWO, "--seed", "3", "--algorithm", "uct"]) == 0
    printed = capsys.readouterr().out
    assert "White wins in 3 plies" in printed
    assert re.search(r"Ra6 .* win in 3 ", printed)


def test_unvisited_moves_have_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "chess", "--simulations", "1", "--seed", "1")
    assert [move["q"] is None for move in found["moves"]] == [move["visits"] == 0 for move in found["moves"]]


@pytest.mark.parametrize("algorithm", ["uct", "reference"])
def test_time_limit_ends_search(capsys: pytest.CaptureFixture[str], algorithm: str) -> None:
    begun = time.perf_counter()
    found = search(capsys, "chess", "--seconds", "0.3", "--algorithm", algorithm)
    assert 0.2 < found["elapsed"] < 2.0
    assert time.perf_counter() - begun >= 0.3


def test_top_option_and_game_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    found = search(capsys, "reversi", "--top", "2", "--seed", "1")
    assert found["game"] == "othello"
    assert len(found["moves"]) == 2
    assert main(["search", "chess", "--top", "3", "--simulations", "200", "--seed", "1"]) == 0
    assert "17 more moves tried" in capsys.readouterr().out


def test_table_has_statistics_of_moves(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--algorithm", "uct", "--simulations", "10k", "--seed", "1"]
    assert main(["search", "connect4", "--moves", "4 4 3", *asked]) == 0
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


def test_output_without_utf8_is_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "tic-tac-toe"], capture_output=True, env=environment, check=True, timeout=60)
    assert done.stdout.isascii()
    assert b"#####" in done.stdout


@pytest.mark.parametrize(
    "extra",
    [
        ["--seconds", "30"],
        ["--seconds", "30", "--json"],
        ["--seconds", "30", "--algorithm", "reference"],
        ["--simulations", "50m", "--algorithm", "gumbel"],
    ],
)
def test_interrupt_prints_result_so_far(extra: list[str]) -> None:
    arguments = ["search", "chess", *extra]
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


def test_terminal_shows_live_table() -> None:
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
        except OSError:  # closed by the command
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


def test_reference_search_stops_when_solved() -> None:
    reference = ReferenceSearcher(read_position("tic-tac-toe", "a1 b1 a2 b2", None), 1)
    assert run_search(reference, 100_000, None)
    assert reference.is_solved
    assert reference.report().verdict() == "X wins in 1 ply"


def test_proven_line_takes_shortest_win() -> None:
    def node(to_play: int, proven: int | None, distance: int, **children: SimpleNamespace) -> SimpleNamespace:
        below = {int(column[1:]) - 1: child for column, child in children.items()}
        return SimpleNamespace(to_play=to_play, proven=proven, distance=distance, visit_count=1, children=below)

    slow = node(1, -1, 4)
    slow.visit_count = 9
    root = node(0, 1, 3, c1=slow, c2=node(1, None, 0), c5=node(1, -1, 2))
    assert variation_below(read_position("connect4", None, None).state, root) == ["5"]


def test_chess_text_is_san_and_json_is_uci(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("chess", "--moves", "e2e4 e5 Nf3", "--simulations", "300", "--seed", "1")
    found = search(capsys, *asked)
    assert all(re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", text) for move in found["moves"] for text in move["pv"])
    assert main(["search", *asked]) == 0
    printed = capsys.readouterr().out
    assert "Chess after e4 e5 Nf3, Black to move" in printed
    assert re.search(rf"best move +{re.escape(found['san'])}$", printed, re.MULTILINE)
    assert not re.search(r"\b[a-h][1-8][a-h][1-8]\b", printed)


@pytest.mark.parametrize("arguments", [("chess",), ("connect4",), ("othello",), (COINS,), (NIM,)])
def test_text_fits_into_80_columns(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main(["search", *arguments, "--simulations", "400", "--seed", "4294967295"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    header = next(number for number, line in enumerate(lines) if line.startswith("move "))
    [rule] = [line for line in lines if set(line) == {"─"}]
    assert all(len(line) <= len(rule) for line in lines[header:])


def test_saved_tree_is_continued_by_load_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.tree"
    given = ["search", "connect4", "--algorithm", "uct", "--simulations", "300", "--seed", "5", "--json"]
    assert main([*given, "--save", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    tree = load_tree(path)
    assert tree.result().visits.tolist() == [
        {move["action"]: move["visits"] for move in found["moves"]}[action] for action in range(7)
    ]
    assert tree.simulate(50).result().simulations == 350
    assert main([*given, "--save", str(tmp_path / "no" / "x")]) == 2
    assert main(["search", "nim", "--algorithm", "reference", "--simulations", "9", "--save", str(path)]) == 2
