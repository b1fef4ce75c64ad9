"""The engine as chess programs meet it: in this process line by line, and as a program, by python-chess's client."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderosa
from ponderosa.cli.uci import LONGEST_LINE, lines
from ponderosa.games import Chess
from ponderosa.uci import thought as thinking
from ponderosa.uci.options import TABLE, Options
from ponderosa.uci.position import legal_moves
from ponderosa.uci.session import Session
from ponderosa.uci.voice import Voice

pytest.importorskip("chess.engine")
import chess.engine

#: Random streams of commands in a run of the tests; thousands of them are for now and then.
STREAMS = int(os.environ.get("PONDEROSA_UCI_STREAMS", "120"))
COMMAND = [sys.executable, "-m", "ponderosa", "uci"]

MORPHY = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"  # mate in two
BACK_RANK = "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"  # mate in one
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MATED = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"
ONE_MOVE = "8/8/8/8/8/6k1/r7/7K w - - 0 1"  # after which it is mate


class Talk:
    """An engine in this process."""

    def __init__(self, **options: Any) -> None:
        self.said: list[str] = []
        self._news = threading.Condition()
        chosen = Options()
        for name, value in options.items():
            chosen.set(name, str(value))
        self.session = Session(Voice(self._hear), chosen)

    def _hear(self, text: str) -> None:
        assert text.endswith("\n")
        with self._news:
            self.said += text.splitlines()
            self._news.notify_all()

    def tell(self, *commands: str) -> Talk:
        for command in commands:
            assert self.session.handle(command) == (command != "quit")
        return self

    def moves(self) -> list[str]:
        return [line for line in self.said if line.startswith("bestmove")]

    def wait(self, count: int = 1, seconds: float = 20.0) -> str:
        """The `count`th bestmove, as its words."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.moves()) >= count, seconds), self.said[-5:]
        return self.moves()[count - 1].split()[1]

    def infos(self) -> list[str]:
        return [line for line in self.said if line.startswith("info depth")]

    def remarks(self) -> list[str]:
        return [line for line in self.said if line.startswith("info string")]

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.session.close()


def field(line: str, name: str) -> int:
    [found] = re.findall(rf"\b{name} ?(-?\d+)", line)
    return int(found)


# --- what is answered ---------------------------------------------------------------------------------------------


def test_it_introduces_itself() -> None:
    with Talk() as talk:
        talk.tell("uci", "isready")
        assert talk.said[0] == f"id name Ponderosa {ponderosa.__version__}"
        assert talk.said[-2:] == ["uciok", "readyok"]
        assert sum(line.startswith("option name ") for line in talk.said) == len(TABLE)


def test_a_search_by_nodes_repeats() -> None:
    answers = []
    for _ in range(2):
        with Talk() as talk:
            talk.tell("position startpos moves e2e4", "go nodes 500")
            talk.wait()
            talk.tell("position startpos moves e2e4 e7e5 g1f3", "go nodes 500")
            talk.wait(2)
            last = talk.infos()[-1]
            assert field(last, "nodes") == 500
            answers.append((talk.moves(), re.sub(r"(nps|time) \d+", "", last)))
    assert answers[0] == answers[1]


def test_what_info_says() -> None:
    with Talk(MultiPV=3, UCI_ShowWDL="true", VerboseMoveStats="true") as talk:
        talk.tell("position startpos", "go nodes 800")
        best = talk.wait()
        first, second, third = talk.infos()[-3:]
        assert [field(line, "multipv") for line in (first, second, third)] == [1, 2, 3]
        assert len({line.split(" pv ")[1].split()[0] for line in (first, second, third)}) == 3
        assert first.split(" pv ")[1].split()[0] == best
        assert 1 <= field(first, "depth") <= field(first, "seldepth")
        assert 0 <= field(first, "hashfull") <= 1000
        [wdl] = re.findall(r" wdl (\d+) (\d+) (\d+) ", first)
        assert sum(map(int, wdl)) == 1000
        assert abs(field(first, "score cp")) < 200
        statistics = [line for line in talk.remarks() if " N: " in line]
        assert len(statistics) == 20
        assert statistics[-1].split()[2] == best
        assert sum(field(line, r"N: +") for line in statistics) == 800


@pytest.mark.parametrize(
    ("fen", "go", "score", "best"),
    [
        (BACK_RANK, "go movetime 2000", "mate 1", "a1a8"),
        (MORPHY, "go wtime 60000 btime 60000", "mate 2", "a1a6"),
        (MORPHY, "go mate 2", "mate 2", "a1a6"),
        (ONE_MOVE, "go nodes 2000", "mate -1", "h1g1"),
        (STALEMATE, "go depth 3", "cp 0", "(none)"),
        (MATED, "go nodes 5", "mate 0", "(none)"),
        ("8/8/4k3/8/8/4K3/8/8 w - - 0 1", "go movetime 10", "cp 0", None),
    ],
)
def test_mates_and_ends(fen: str, go: str, score: str, best: str | None) -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell(f"position fen {fen}", go)
        answer = talk.wait()
        assert time.perf_counter() - begun < 1.5
        assert f" score {score}" in talk.infos()[-1]
        assert answer == best or (best is None and answer in legal_moves(Chess(fen)))
        if score == "mate 2":
            assert len(talk.infos()[-1].split(" pv ")[1].split()) == 3


def test_go_mate_without_a_mate_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinking, "AFTER_NO_MATE", 0.1)
    with Talk() as talk:
        talk.tell("position startpos", "go mate 1")
        assert talk.wait() in legal_moves(Chess())
        talk.tell("go mate 20")
        time.sleep(0.3)
        assert len(talk.moves()) == 1
        talk.tell("stop")
        talk.wait(2, 0.5)


def test_searchmoves_restrict_the_root_and_nothing_else() -> None:
    with Talk(MultiPV=5) as talk:
        talk.tell("position startpos", "go nodes 300")
        talk.wait()
        talk.tell("go nodes 300 searchmoves a2a3 h2h3 e2e9")
        assert talk.wait(2) in ("a2a3", "h2h3")
        assert any("e2e9" in line for line in talk.remarks())
        last = [line for line in talk.infos() if field(line, "multipv") == 1][-1]
        assert field(last, "nodes") == 300
        assert field(talk.infos()[-1], "multipv") == 2
        # A tree that knows some moves only is not asked about all of them.
        talk.tell("go nodes 300")
        assert talk.wait(3) not in ("a2a3", "h2h3")
        # The mate is not among the moves asked for.
        talk.tell(f"position fen {MORPHY}", "go nodes 200 searchmoves a1b1 a1c1")
        assert talk.wait(4) in ("a1b1", "a1c1")
        assert " score cp" in talk.infos()[-2]
        talk.tell("go nodes 200")
        assert talk.wait(5) == "a1a6"
        assert len(talk.remarks()) == 1


def test_the_tree_is_kept_for_the_game_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[Any] = []
    kept = ponderosa.Hybrid.tree
    monkeypatch.setattr(ponderosa.Hybrid, "tree", lambda self, state: trees.append(state) or kept(self, state))
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 400")
        talk.wait()
        talk.tell("position startpos moves e2e4 e7e5", "go nodes 400")
        talk.wait(2)
        talk.tell("position startpos moves e2e4 e7e5 g1f3 b8c6 f1b5 a7a6", "go nodes 400")
        talk.wait(3)
        assert len(trees) == 1
        for number, command in enumerate(
            ("position startpos moves d2d4", "ucinewgame", "setoption name ExplorationConstant value 2"), start=2
        ):
            talk.tell(command, "go nodes 100")
            talk.wait(number + 2)
            assert len(trees) == number
        talk.tell("setoption name MultiPV value 2", "go nodes 100")
        talk.wait(6)
        assert len(trees) == 4


def test_in_a_hurry_the_old_tree_answers() -> None:
    """With no time to move the tree, what it says of the position is read off where it stands."""
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 3000")
        best = talk.wait()
        reply = talk.infos()[-1].split(" pv ")[1].split()[1]
        talk.tell(f"position startpos moves {best} {reply}")
        options, game = talk.session.options, talk.session._game
        expected = talk.session._kept.expected(options, game)
        assert expected in legal_moves(game.state)
        assert talk.session._kept.tree(options, game, None).result().move == expected
        talk.tell("go wtime 1 btime 1")
        assert talk.wait(2) == expected


def test_a_game_that_goes_on_after_a_draw_by_rule() -> None:
    """The tree ends there; the engine does not."""
    shuffle = " ".join(("g1f3", "g8f6", "f3g1", "f6g8") * 4)
    with Talk() as talk:
        talk.tell(f"position startpos moves {shuffle[:-5]}", "go nodes 200")
        talk.wait()
        talk.tell(f"position startpos moves {shuffle}", "go nodes 200")
        assert talk.wait(2) in legal_moves(Chess())
        talk.tell(f"position startpos moves {shuffle} e2e4 e7e5", "go nodes 200")
        assert talk.wait(3) in legal_moves(talk.session._game.state)
        assert not talk.remarks()


def test_endless_searches_and_pondering_wait() -> None:
    with Talk(Ponder="true", Hash=1) as talk:
        for number, (fen, go, end) in enumerate(
            [
                (MORPHY, "go infinite", "stop"),
                (MORPHY, "go ponder wtime 1000 btime 1000", "ponderhit"),
                (MORPHY, "go ponder movetime 10", "stop"),
                (STALEMATE, "go infinite", "stop"),
                (ONE_MOVE, "go ponder wtime 1000 btime 1000", "ponderhit"),
                ("4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "go", "stop"),
                ("4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1", "go infinite nodes 10", "stop"),
            ],
            start=1,
        ):
            talk.tell(f"position fen {fen}", go)
            time.sleep(0.3)
            assert len(talk.moves()) == number - 1
            if "infinite" in go:
                talk.tell("ponderhit")
            talk.tell(end)
            talk.wait(number, 1.0)
        talk.tell("ponderhit", "stop", "stop", "ponderhit", "isready")
        assert talk.said[-1] == "readyok"


def test_ponder_names_the_move_expected() -> None:
    with Talk(Ponder="true") as talk:
        talk.tell("position startpos", "go nodes 500")
        best = talk.wait()
        words = talk.moves()[0].split()
        assert words[2] == "ponder"
        assert words[3] in legal_moves(Chess().play(Chess().parse_action(best)))
        # It was expected, and comes: the clock begins to run at ponderhit.
        talk.tell(f"position startpos moves {best} {words[3]}", "go ponder wtime 2000 btime 2000 winc 0 binc 0")
        time.sleep(0.4)
        begun = time.perf_counter()
        talk.tell("ponderhit")
        talk.wait(2, 1.5)
        assert time.perf_counter() - begun < 1.0


def test_go_depth() -> None:
    with Talk() as talk:
        talk.tell("position startpos", "go depth 4")
        talk.wait()
        assert field(talk.infos()[-1], "depth") >= 4


def test_a_full_tree_answers() -> None:
    with Talk(Hash=1) as talk:
        talk.tell("position startpos", "go wtime 600000 btime 600000")
        talk.wait(1, 10.0)
        assert field(talk.infos()[-1], "hashfull") > 800
        talk.tell("go nodes 1000000")
        assert talk.wait(2, 10.0) in legal_moves(Chess())


def test_threads() -> None:
    answers = []
    for _ in range(2):
        with Talk(Threads=2) as talk:
            talk.tell("position startpos", "go nodes 500")
            answers.append((talk.wait(), talk.infos()[-1].split(" pv ")[1]))
    assert answers[0] == answers[1]


# --- mistakes -----------------------------------------------------------------------------------------------------


def test_mistakes_change_nothing() -> None:
    with Talk() as talk:
        talk.tell("position startpos moves e2e4")
        before = talk.session._game
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
            count = len(talk.said)
            talk.tell(line)
            assert len(talk.said) == count + 1, line[:80]
            assert talk.said[-1].startswith("info string "), line[:80]
            assert len(talk.said[-1]) < 1000
        assert talk.session._game == before
        talk.tell("d")
        assert talk.said[-1] == "Fen: rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
        talk.tell("register later", "debug on", "joho isready")
        assert talk.said[-1] == "readyok"


def mutated(fen: str, chance: random.Random) -> str:
    """A FEN with a few things changed."""
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


def test_malformed_positions() -> None:
    """Hundreds of broken FENs: the old position stays, or the new one is legal; the next `go` has a legal move."""
    chance = random.Random(6)
    good = [Chess().fen(), MORPHY, BACK_RANK, "r3k2r/8/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1", STALEMATE]
    with Talk(Hash=1) as talk:
        refused = 0
        for number in range(300):
            said = len(talk.remarks())
            talk.tell(f"position fen {mutated(chance.choice(good), chance)}")
            refused += len(talk.remarks()) - said
            if number % 10 == 0:
                talk.tell("go nodes 3")
                move = talk.wait(number // 10 + 1)
                assert move in (legal_moves(talk.session._game.state) or ["(none)"])
        assert refused > 100


def test_a_search_that_fails_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire\nreally")

    with Talk() as talk:
        monkeypatch.setattr("ponderosa.forest.Tree.simulate", fail)
        talk.tell("position startpos", "go nodes 10")
        assert talk.wait() in legal_moves(Chess())
        assert talk.remarks() == ["info string the search has failed: RuntimeError: the disk is on fire really"]
        monkeypatch.undo()
        talk.tell("go nodes 10")
        talk.wait(2)
        assert len(talk.remarks()) == 1


def test_an_evaluator_that_hangs_does_not_keep_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped, or out of time, the engine answers for it; when it is back, all is well again."""
    release = threading.Event()
    grow = ponderosa.forest.Tree.simulate

    def hang(tree: Any, *arguments: Any, **named: Any) -> Any:
        release.wait(10)
        return grow(tree, *arguments, **named)

    monkeypatch.setattr(ponderosa.forest.Tree, "simulate", hang)
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell("position startpos", "go wtime 1000 btime 1000")
        assert talk.wait() in legal_moves(Chess())
        assert time.perf_counter() - begun < 0.9
        talk.tell("go infinite")
        begun = time.perf_counter()
        talk.tell("stop")
        assert talk.wait(2) in legal_moves(Chess())
        assert time.perf_counter() - begun < 0.2
        release.set()
        talk.tell("isready", "go nodes 5")
        assert talk.wait(3) in legal_moves(Chess())


def test_a_network(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from tests.test_evaluators_onnx import build

    path = tmp_path / "net.onnx"
    path.write_bytes(build(Chess()))
    with Talk(Hash=16) as talk:
        talk.tell(f"setoption name NetworkFile value {path}", "setoption name Algorithm value alphazero", "isready")
        talk.tell("position startpos", "go nodes 60")
        assert talk.wait() in legal_moves(Chess())
        assert not talk.remarks()
        path.write_bytes(b"nothing of use")
        talk.tell("ucinewgame", "setoption name Seed value 3", "isready")
        assert talk.remarks()[0].startswith("info string the search cannot be set up: ")
        assert talk.said[-1] == "readyok"
        talk.tell("go nodes 10")
        assert talk.wait(2) in legal_moves(Chess())
        talk.tell("setoption name Algorithm value hybrid", "go nodes 10")
        talk.wait(3)


# --- when ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"Threads": 2}, {"MultiPV": 4}])
def test_stop_is_answered_at_once(options: dict[str, Any]) -> None:
    """Within 100 ms by what is promised; a busy machine is given some more here."""
    chance = random.Random(1)
    waits = []
    with Talk(**options) as talk:
        for number in range(1, 16):
            talk.tell(f"position startpos moves {chance.choice(['e2e4', 'd2d4', 'g1f3'])}", "go infinite")
            time.sleep(chance.choice([0.0, 0.001, 0.02, 0.1]))
            begun = time.perf_counter()
            talk.tell("stop")
            talk.wait(number)
            waits.append(time.perf_counter() - begun)
    assert sorted(waits)[len(waits) // 2] < 0.1
    assert max(waits) < 0.4


@pytest.mark.parametrize(
    "clock",
    [
        "1000 winc 10",
        "100 winc 0",
        "5000 movestogo 1",
        "10 winc 0",
        "50 winc 5000",
        "-100",
        "0",
        "1",
        "99999999999 winc 0",
    ],
)
def test_no_clock_is_overrun(clock: str) -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell("position startpos moves e2e4 e7e5", f"go wtime {clock}")
        if clock.startswith("9999"):
            time.sleep(0.05)
            talk.tell("stop")
        talk.wait(1, 8.0)
        passed = 1000 * (time.perf_counter() - begun)
        assert passed < max(int(clock.split()[0]), 200)


def test_a_single_move_is_played_at_once() -> None:
    with Talk() as talk:
        begun = time.perf_counter()
        talk.tell(f"position fen {ONE_MOVE}", "go wtime 600000 btime 600000")
        assert talk.wait() in legal_moves(Chess(ONE_MOVE))
        assert time.perf_counter() - begun < 0.5


# --- streams of anything ------------------------------------------------------------------------------------------

FENS = [Chess().fen(), MORPHY, BACK_RANK, STALEMATE, MATED, "8/8/4k3/8/8/4K3/8/8 w - - 0 1", "nonsense w - - 0 1"]


def stream(chance: random.Random, length: int) -> Iterator[str]:
    """Commands as no program would send them."""
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
    """How many of the lines are a `go`, unknown words before it skipped."""
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
def test_streams_of_commands(seed: int) -> None:
    """Every `go` has one `bestmove`, nothing is raised, and it is always ready."""
    chance = random.Random(seed)
    with Talk(Hash=1) as talk:
        commands = list(stream(chance, 25))
        for command in commands:
            talk.tell(command)
            if chance.random() < 0.1:
                time.sleep(0.002)
        begun = time.perf_counter()
        talk.tell("isready")
        assert talk.said[-1] == "readyok" or "readyok" in talk.said[-20:]
        assert time.perf_counter() - begun < 1.0
        talk.tell("stop")
        talk.wait(goes(commands)) if goes(commands) else None
    assert len(talk.moves()) == goes(commands)
    assert not any("has failed" in line for line in talk.remarks()), talk.remarks()
    assert all(
        line.split()[1] == "(none)" or re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", line.split()[1])
        for line in talk.moves()
    )


def program(text: bytes, *arguments: str, seconds: float = 60.0) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, timeout=seconds)


def test_streams_into_a_program() -> None:
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
def test_the_end_of_input_ends_it_cleanly(text: bytes) -> None:
    done = program(text)
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.count(b"bestmove") == text.count(b"go")


def test_a_closed_output_ends_it_quietly() -> None:
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
        assert process.wait(20) == 0  # the first report finds nobody there
        assert process.stderr.read() == b""


def test_options_on_the_command_line() -> None:
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


def test_it_needs_numpy_alone() -> None:
    blocked = "import sys\nfor name in ('rich', 'chess', 'onnxruntime', 'torch'): sys.modules[name] = None\n"
    code = f"{blocked}from ponderosa.cli import main\nsys.exit(main(['uci']))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"uci\ngo nodes 10\n", capture_output=True, timeout=60, check=True
    )
    assert b"bestmove" in done.stdout


def test_lines_that_are_too_long_are_thrown_away() -> None:
    text = b"uci\n" + b"x" * (2 * LONGEST_LINE + 5) + b"\n\xffisready\r\nquit"
    read = [line for line, _ in lines(io.BytesIO(text))]
    assert read == ["uci\n", None, "\N{REPLACEMENT CHARACTER}isready\r\n", "quit"]


# --- by python-chess's client -------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Any]:
    engine = chess.engine.SimpleEngine.popen_uci(COMMAND, timeout=60)
    yield engine
    engine.quit()


def test_playing(client: Any) -> None:
    """A short game with a clock, the tree kept; every move is legal, or the client would complain."""
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


def test_analysis(client: Any) -> None:
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


def test_pondering(client: Any) -> None:
    board = chess.Board()
    limit = chess.engine.Limit(white_clock=5, black_clock=5)
    first = client.play(board, limit, ponder=True)
    assert first.ponder is not None
    board.push(first.move)
    board.push(first.ponder)  # expected: a ponderhit
    second = client.play(board, limit, ponder=True)
    board.push(second.move)
    board.push(next(move for move in board.legal_moves if move != second.ponder))  # a miss
    assert client.play(board, limit).move in board.legal_moves


# --- what the engine offers for it --------------------------------------------------------------------------------


def test_depths_are_those_of_the_tree() -> None:
    result = ponderosa.Hybrid(num_simulations=400, seed=1).run(Chess())
    total, deepest, level, depth = 0, 0, [result.root], 0
    while level:
        edges = [result._view.edges(node._index) for node in level]
        tried = sum(int(columns[1].sum()) for columns in edges)
        total, depth = total + tried, depth + 1
        deepest = depth if tried else deepest
        level = [child for node in level for child in node.children.values() if child._index >= 0]
    assert result._view.depths() == (pytest.approx(total / 400), deepest)


def test_a_restricted_root() -> None:
    state = Chess(MORPHY)
    tree = ponderosa.Hybrid(seed=1).tree(state)
    with pytest.raises(ponderosa.PonderosaError, match="when it has its priors"):
        tree._forest._core.restrict(0, [state.parse_action("a1b1")])
    kept = [state.parse_action(move) for move in ("a1b1", "a1c1")]
    with pytest.raises(ponderosa.PonderosaError, match="none of the actions"):
        tree._forest._restrict(0, [4671])
    tree._forest._restrict(0, kept)
    tree.simulate(100)
    result = tree.result()
    assert result.proven is None
    assert set(np.flatnonzero(result.visits)) == set(kept)
    assert sum(child.prior for child in result.root.children.values()) == pytest.approx(1.0, abs=1e-6)
    tree.advance(kept[0])
    tree.simulate(50)
    assert len(tree.result()._view.edges(0)[0]) == len(tree.state.legal_actions())


def test_threads_of_the_engine_are_gone_after_it() -> None:
    before = threading.active_count()
    with Talk() as talk:
        talk.tell("position startpos", "go nodes 50")
        talk.wait()
    time.sleep(0.1)
    assert threading.active_count() == before
