"""Faults of the UCI engine: invalid commands, failing searches, missing threads, random command streams."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.uci_client import BACK_RANK, MATED, MORPHY, STALEMATE, EngineClient

import pondertree
from pondertree.game import describe
from pondertree.games import Chess
from pondertree.uci.options import TABLE
from pondertree.uci.position import legal_moves

#: Number of random command streams; set the variable for thousands.
STREAMS = int(os.environ.get("PONDERTREE_UCI_STREAMS", "120"))


def test_invalid_commands_change_nothing() -> None:
    with EngineClient() as client:
        client.send("position startpos moves e2e4")
        before = client.session._game
        bad = [
            "position startpos moves e2e4 e2e4",
            "position startpos moves e2e4 e7e5 0000",
            "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
            "position fen rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0",
            "position fen",
            "position",
            "setoption name Nonsense value 3",
            "setoption name Hash value -1",
            "hello",
            "\0\0\0",
            "x" * 100_000,
            "position startpos moves" + " g1f3 g8f6 f3g1 f6g8" * 50_000,
        ]
        for line in bad:
            count = len(client.output)
            client.send(line)
            assert len(client.output) == count + 1, line[:80]
            assert client.output[-1].startswith("info string "), line[:80]
            assert len(client.output[-1]) < 1000
        assert client.session._game == before
        client.send("d")
        assert client.output[-1] == "Fen: rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
        client.send("register later", "debug on", "joho isready")
        assert client.output[-1] == "readyok"


def mutated(fen: str, chance: random.Random) -> str:
    """A FEN with a few random edits."""
    text = list(fen)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) + 1)
        what = chance.randrange(4)
        sign = chance.choice("KQRBNPkqrbnp12345678/ -wbabcdefgh09\0\N{SNOWMAN}x")
        if what == 0 and place < len(text):
            del text[place]
        elif what == 1:
            text.insert(place, sign)
        elif what == 2 and place < len(text):
            text[place] = sign
        else:
            text = text[:place] + chance.choices(text or ["x"], k=3) + text[place:]
    return "".join(text)


def test_malformed_fens_keep_or_replace_position() -> None:
    """After every malformed FEN the position is unchanged or legal, and the next `go` returns a legal move."""
    chance = random.Random(6)
    good = [Chess().fen(), MORPHY, BACK_RANK, "r3k2r/8/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1", STALEMATE]
    with EngineClient(Hash=1) as client:
        refused = 0
        for number in range(300):
            said = len(client.info_strings())
            client.send(f"position fen {mutated(chance.choice(good), chance)}")
            refused += len(client.info_strings()) - said
            if number % 10 == 0:
                client.send("go nodes 3")
                move = client.wait(number // 10 + 1)
                assert move in (legal_moves(client.session._game.state) or ["(none)"])
        assert refused > 100


LONG = "a" * 5000
NO_FILES = [LONG, f"{LONG}.onnx", f"/{LONG}/{LONG}.safetensors", "a\0b.onnx", "\0", "/", ".", "~"]


@pytest.mark.parametrize("option", ["NetworkFile", "EvalFile"])
def test_setoption_with_impossible_path_is_reported_and_changes_nothing(option: str) -> None:
    with EngineClient(Hash=1) as client:
        for value in NO_FILES:
            said = len(client.info_strings())
            client.send(f"setoption name {option} value {value}", "isready")
            if value not in ("/", ".") or option == "EvalFile":  # a NetworkFile may be a folder
                assert client.info_strings()[said].startswith(f"info string option {option}: "), value[:20]
                assert len(client.info_strings()[said]) < 500
            client.send(f"setoption name {option} value <empty>")
        client.send("go nodes 3")
        assert client.wait() in legal_moves(Chess())


def test_threads_beyond_cpus_are_not_started_and_tree_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for cpus in (1, 2):
        monkeypatch.setattr("pondertree.validation.usable_cpus", lambda cpus=cpus: cpus)
        with EngineClient(Hash=16) as client:
            client.send("setoption name Threads value 256")
            assert client.info_strings() == [
                f"info string Threads: {cpus} of 256 are used, as many as there are CPUs for this process"
            ]
            client.send("setoption name Threads value 1")
            assert len(client.info_strings()) == 1
            client.send("setoption name Threads value 256", "go nodes 2000")
            client.wait()
            search = client.session._reuse._search
            assert search is not None
            assert search.in_flight == 256
            assert search.config(describe(Chess())).engine_data(describe(Chess()), 1)["threads"] == cpus
            lines.append([re.sub(r" (time|nps) \d+", "", line) for line in client.infos()][-1])
    assert lines[0] == lines[1]


def test_failing_command_is_reported_and_next_one_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x" * 1000)

    with EngineClient() as client:
        monkeypatch.setattr("pondertree.uci.position.read", fail)
        client.send("position startpos")
        assert client.output[-1].startswith("info string the command failed: KeyError: ")
        assert len(client.output[-1]) < 300
        monkeypatch.undo()
        client.send("position startpos moves e2e4", "d")
        assert client.output[-1].startswith("Fen: rnbqkbnr/pppppppp/8/8/4P3")


@pytest.mark.parametrize("go", ["go nodes 5", "go movetime 50", "go infinite"])
def test_go_replies_without_search_thread(go: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with EngineClient() as client:
        monkeypatch.setattr(threading.Thread, "start", fail)
        client.send(go)
        assert client.wait() in legal_moves(Chess())
        assert client.info_strings() == ["info string the search cannot be started: can't start new thread"]
        monkeypatch.undo()
        client.send("stop", "go nodes 5")
        assert client.wait(2) in legal_moves(Chess())
    assert len(client.bestmoves()) == 2


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["go infinite"], None),
        (["go movetime 50 searchmoves a2a3"], "a2a3"),
        ([f"position fen {MATED}", "go nodes 5"], "(none)"),
    ],
)
def test_go_replies_once_if_search_cannot_be_built(
    commands: list[str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    with EngineClient() as client:
        monkeypatch.setattr("pondertree.uci.session.SearchTask", fail)
        client.send(*commands)
        [answer] = client.bestmoves()
        assert answer.split()[1] in (legal_moves(Chess()) if expected is None else [expected])
        assert client.info_strings() == ["info string go failed: MemoryError: 'no room'"]
        monkeypatch.undo()
        client.send("position startpos", "go nodes 5")
        assert client.wait(2) in legal_moves(Chess())
    assert len(client.bestmoves()) == 2


def test_stop_replies_without_timer_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with EngineClient() as client:
        client.send("go infinite")
        monkeypatch.setattr(threading.Timer, "start", fail)
        client.send("stop")
        assert client.wait() in legal_moves(Chess())
        client.send("go movetime 20")
        assert client.wait(2) in legal_moves(Chess())
        assert client.info_strings() == []


def test_close_waits_for_previous_search_of_failed_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator of the first search hangs; the thread of the second cannot be started."""
    go_on, entered = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        entered.set()
        go_on.wait(20)
        raise RuntimeError("late")

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    client = EngineClient()
    monkeypatch.setattr("pondertree.search.tree.Tree.simulate", hang)
    client.send("go movetime 20")
    client.wait()
    assert entered.wait(5)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        client.send("go movetime 20")
    client.wait(2)
    task = client.session._task
    assert task is not None
    assert not task.is_over
    assert not task.join(0.01)
    go_on.set()
    assert client.session.close()
    assert task.is_over


def test_deadline_is_kept_with_256_threads() -> None:
    """The best of five attempts, since other processes may use the CPUs."""
    waited = []
    with EngineClient(Hash=64, Threads=256) as client:
        client.send("isready")
        for count in range(1, 6):
            client.send("ucinewgame")
            begun = time.perf_counter()
            client.send("go movetime 300")
            client.wait(count)
            waited.append(time.perf_counter() - begun)
            if waited[-1] < 0.45:
                return
    pytest.fail(f"go movetime 300 was answered after {waited} seconds")


def test_command_line_threads_beyond_cpus_are_reported_at_uci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondertree.validation.usable_cpus", lambda: 2)
    with EngineClient(Threads=256) as client:
        client.send("uci")
        assert client.info_strings() == [
            "info string Threads: 2 of 256 are used, as many as there are CPUs for this process"
        ]
        assert client.output[-1] == "uciok"
    with EngineClient(Threads=2) as client:
        client.send("uci")
        assert client.info_strings() == []


def test_failing_search_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire\nreally")

    with EngineClient() as client:
        monkeypatch.setattr("pondertree.search.tree.Tree.simulate", fail)
        client.send("position startpos", "go nodes 10")
        assert client.wait() in legal_moves(Chess())
        assert client.info_strings() == ["info string the search has failed: RuntimeError: the disk is on fire really"]
        monkeypatch.undo()
        client.send("go nodes 10")
        client.wait(2)
        assert len(client.info_strings()) == 1


def test_hanging_evaluator_does_not_delay_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer replies for a hanging evaluator after stop and after the time limit; the engine then recovers."""
    release = threading.Event()
    grow = pondertree.search.tree.Tree.simulate

    def hang(tree: Any, *arguments: Any, **named: Any) -> Any:
        release.wait(10)
        return grow(tree, *arguments, **named)

    monkeypatch.setattr(pondertree.search.tree.Tree, "simulate", hang)
    with EngineClient() as client:
        begun = time.perf_counter()
        client.send("position startpos", "go wtime 1000 btime 1000")
        assert client.wait() in legal_moves(Chess())
        assert time.perf_counter() - begun < 0.9
        client.send("go infinite")
        begun = time.perf_counter()
        client.send("stop")
        assert client.wait(2) in legal_moves(Chess())
        assert time.perf_counter() - begun < 0.2
        release.set()
        client.send("isready", "go nodes 5")
        assert client.wait(3) in legal_moves(Chess())


def test_network_file_is_loaded_and_errors_are_reported(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from tests.evaluators.test_onnx_session import build

    path = tmp_path / "net.onnx"
    path.write_bytes(build(Chess()))
    with EngineClient(Hash=16) as client:
        client.send(f"setoption name NetworkFile value {path}", "setoption name Algorithm value alphazero", "isready")
        client.send("position startpos", "go nodes 60")
        assert client.wait() in legal_moves(Chess())
        assert not client.info_strings()
        path.write_bytes(b"nothing of use")
        client.send("ucinewgame", "setoption name Seed value 3", "isready")
        assert client.info_strings()[0].startswith("info string the search cannot be set up: ")
        assert client.output[-1] == "readyok"
        client.send("go nodes 10")
        assert client.wait(2) in legal_moves(Chess())
        client.send("setoption name Algorithm value hybrid", "go nodes 10")
        client.wait(3)


# --- streams of anything ------------------------------------------------------------------------------------------

FENS = [Chess().fen(), MORPHY, BACK_RANK, STALEMATE, MATED, "8/8/4k3/8/8/4K3/8/8 w - - 0 1", "nonsense w - - 0 1"]


def stream(chance: random.Random, length: int) -> Iterator[str]:
    """Random command lines."""
    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "a1a6", "0000", "e2e9", "O-O"]
    options = [(option.name, option.default) for option in TABLE] + [("Hash", "1"), ("Threads", "2"), ("Seed", "x")]
    for _ in range(length):
        match chance.randrange(16):
            case 0:
                yield f"position fen {chance.choice(FENS)} moves {' '.join(chance.choices(moves, k=2))}"
            case 1:
                yield f"position startpos moves {' '.join(moves[: chance.randrange(6)])}"
            case 2 | 3:
                yield f"go nodes {chance.choice([0, 1, 20, -3])}"
            case 4:
                yield chance.choice(["go infinite", "go", "go ponder wtime 100 btime 100", "go ponder"])
            case 5:
                yield f"go wtime {chance.choice([-1, 0, 30, 300])} btime {chance.choice([0, 50, 300])} winc 5"
            case 6:
                yield f"go movetime {chance.choice([0, 1, 20])} searchmoves {' '.join(chance.choices(moves, k=2))}"
            case 7:
                yield chance.choice(["go depth 1", "go mate 1", "go depth x nodes 5", "go nodes 5 depth 2 mate 1"])
            case 8 | 9:
                yield chance.choice(["stop", "ponderhit"])
            case 10:
                name, value = chance.choice(options)
                yield f"setoption name {name} value {value}"
            case 11:
                yield chance.choice(["isready", "ucinewgame", "uci", "d", "debug on", "debug off", "register x"])
            case 12:
                yield "".join(chance.choices("go stop\0 \x07\N{SNOWMAN}uci position", k=chance.randrange(60)))
            case 13:
                yield "joho " + chance.choice(["isready", "stop", "go nodes 3"])
            case 14:
                yield chance.choice(["", " ", "x" * 10_000, "setoption", "position", "setoption name value"])
            case _:
                yield "stop"


def goes(commands: list[str]) -> int:
    """The number of `go` lines, with unknown leading tokens skipped."""
    known = {
        "uci",
        "isready",
        "ucinewgame",
        "stop",
        "ponderhit",
        "quit",
        "register",
        "d",
        "position",
        "go",
        "setoption",
    }
    firsts = [next((word for word in line.split() if word in known | {"debug"}), None) for line in commands]
    return firsts.count("go")


@pytest.mark.parametrize("seed", range(STREAMS))
def test_random_command_streams_get_one_reply_per_go(seed: int) -> None:
    """Every `go` gets one `bestmove`, no exception escapes, and isready is answered."""
    chance = random.Random(seed)
    with EngineClient(Hash=1) as client:
        commands = list(stream(chance, 25))
        for command in commands:
            client.send(command)
            if chance.random() < 0.1:
                time.sleep(0.002)
        begun = time.perf_counter()
        client.send("isready")
        assert client.output[-1] == "readyok" or "readyok" in client.output[-20:]
        assert time.perf_counter() - begun < 1.0
        client.send("stop")
        client.wait(goes(commands)) if goes(commands) else None
    assert len(client.bestmoves()) == goes(commands)
    assert not any("has failed" in line for line in client.info_strings()), client.info_strings()
    assert all(
        line.split()[1] == "(none)" or re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", line.split()[1])
        for line in client.bestmoves()
    )
