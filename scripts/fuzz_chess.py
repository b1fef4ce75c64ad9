"""Kinds of input for `fuzz_inputs.py`: FENs, and streams of UCI commands to the engine and to the program."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
from hostile import NUMBERS, TEXTS, Call, Random

import pondertree
from pondertree import chess
from pondertree.games import Chess

# --- FENs ---


FENS = [
    Chess().fen(),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/8/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1",
    "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    "8/8/4k3/8/8/4K3/8/8 w - - 99 200",
    "4k3/8/8/8/8/8/8/3QK3 w - - 0 1",
]
SIGNS = "KQRBNPkqrbnp12345678/ -wbabcdefgh09\0\N{SNOWMAN}xAHah"


def a_fen(rng: Random) -> str:
    """Returns a mutated FEN, a random one, or arbitrary text."""
    kind = rng.randrange(10)
    if kind == 0:
        return str(rng.choice(TEXTS))
    if kind < 4:
        # Few pieces, so that many positions are legal.
        pieces = rng.choice(["KQRBNPkqrbnp", "QRBNPqrbnp", "BNbn", "Pp"])
        squares = [rng.choice(pieces) if rng.random() < rng.choice([0.02, 0.1, 0.4]) else "1" for _ in range(64)]
        if rng.random() < 0.8:
            squares = ["1" if sign in "Pp" and not 8 <= place < 56 else sign for place, sign in enumerate(squares)]
        if rng.random() < 0.95:
            squares = ["1" if sign in "Kk" else sign for sign in squares]
            for king in rng.sample(range(64), 2):
                squares[king] = "k" if "k" not in squares else "K"
        board = "/".join("".join(squares[row : row + 8]) for row in range(0, 64, 8))
        for count in range(8, 1, -1):
            board = board.replace("1" * count, str(count))
        rest = [
            rng.choice("wb"),
            rng.choice(["-", "-", "-", "KQkq", "AHah"]),
            rng.choice(["-", "-", "-", "e3", "a9"]),
        ]
        clocks = [str(rng.choice([0, 0, 1, 1, 99, 100, 149, 150, 65535, 10**12, -1])) for _ in range(2)]
        return " ".join([board, *rest, *clocks])
    if kind < 8:
        # Random moves from a position; then pieces may be swapped.
        state = Chess(rng.choice(FENS))
        for _ in range(rng.choice([0, 3, 10, 40])):
            if not state.is_terminal:
                state = state.play(rng.choice(state.legal_actions()))
        text = list(state.fen())
        pieces = [place for place, sign in enumerate(text[: text.index(" ")]) if sign.isalpha()]
        for _ in range(rng.choice([0, 0, 1, 2])):
            one, other = rng.choices(pieces, k=2)
            text[one], text[other] = text[other], text[one]
        return "".join(text)
    text = list(rng.choice(FENS))
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(len(text) + 1)
        what = rng.randrange(4)
        if what == 0 and place < len(text):
            del text[place]
        elif what == 1:
            text.insert(place, rng.choice(SIGNS))
        elif what == 2 and place < len(text):
            text[place] = rng.choice(SIGNS)
        else:
            text = text[:place] + rng.choices(text or ["x"], k=3) + text[place:]
    return "".join(text)


def fens(rng: Random) -> Call:
    """Calls every method of a position."""
    fen = a_fen(rng)

    def call() -> None:
        state = Chess(fen)
        assert Chess(state.fen()).fen() == state.fen(), state.fen()
        legal = state.legal_actions()
        assert chess.perft(state, 1) == len(legal) or state.is_terminal
        for action in legal:
            text = state.action_to_string(action)
            assert state.parse_action(text) == action == state.parse_action(state.san(action)), text
        seen = state.observation()
        assert np.isfinite(seen).all()
        _ = str(state), repr(state), state.termination, state.repetitions
        assert abs(chess.Pesto().value(state)) <= 1.0
        if state.is_terminal:
            assert not legal
            return
        chess.perft(state, 2)
        chess.mate_search(state, 2, budget=200)
        chess.categorize(state)
        for search in (pondertree.UCT(6, seed=1), pondertree.Hybrid(num_simulations=6, mate_search_budget=50, seed=1)):
            assert search.run(state).action in legal

    return call


# --- UCI ---


WORDS = (
    "uci isready ucinewgame stop ponderhit quit register d position go setoption debug name value startpos fen moves"
)
WORDS += " infinite ponder searchmoves wtime btime winc binc movestogo depth nodes mate movetime perft on off"


def uci_lines(rng: Random, length: int) -> list[str]:
    """Returns commands, most of them nearly valid."""
    from pondertree.uci.options import TABLE

    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a1a6", "0000", "e2e9", "O-O", "\0", "x" * 3000]
    words, names = WORDS.split(), [option.name for option in TABLE]
    lines = []
    for _ in range(length):
        kind = rng.randrange(12)
        if kind == 0:
            line = f"position fen {a_fen(rng)} moves {' '.join(rng.choices(moves, k=2))}"
        elif kind == 1:
            line = f"position startpos moves {' '.join(moves[: rng.randrange(7)])}"
        elif kind < 4:
            # Short limits, with any other arguments.
            more = rng.choice(["", " depth 3", " mate 1", " infinite", " ponder", " wtime -5", " searchmoves e2e4 x"])
            line = f"go {rng.choice(['nodes', 'movetime'])} {rng.choice([0, 1, 5, 20, -3, 10**30, 'x'])}{more}"
        elif kind < 7:
            name = rng.choice([*names, *names, "Nonsense", ""])
            value = str(
                rng.choice([*NUMBERS[:12], *TEXTS, "true", "false", 1, 2, 256, "hybrid", "alphazero", "<empty>"])
            )
            if name in ("Hash", "Threads", "MultiPV", "Move Overhead") and rng.random() < 0.7:
                value = str(rng.choice([1, 2, 16, 256]))
            line = f"setoption name {name} value {value}"
        elif kind == 7:
            line = rng.choice(["isready", "ucinewgame", "uci", "d", "debug on", "debug off", "register x", "ponderhit"])
        elif kind == 8:
            line = " ".join(rng.choices([*words, *map(str, NUMBERS[:14]), "e2e4", "-"], k=rng.randrange(12)))
        elif kind == 9:
            line = "".join(rng.choices("go stop\0 \x07\N{SNOWMAN}uci position\x85\u2028", k=rng.randrange(200)))
        elif kind == 10:
            line = rng.choice(["", " ", "\t", "x" * 100_000, "go " + "nodes " * 5000, "position startpos moves " * 500])
        else:
            line = "stop"
        # `quit` and infinite searches come last.
        lines.append(re.sub(r"\bquit\b", "quitt", line).replace("\n", " ").replace("\r", " "))
    return lines


def goes(lines: list[str]) -> int:
    """Returns the number of `go` commands among the lines, as the engine parses them."""
    from pondertree.uci.protocol import Go, parse

    return sum(isinstance(parse(line), Go) for line in lines)


def uci(rng: Random) -> Call:
    """Sends a stream of commands to an engine in this process: each `go` gets a `bestmove`, and nothing is raised."""
    lines = uci_lines(rng, 20)

    def call() -> None:
        from pondertree.uci.session import Session
        from pondertree.uci.writer import LineWriter

        said: list[str] = []
        session = Session(LineWriter(lambda text: said.extend(text.splitlines())))
        for line in lines:
            assert session.handle(line)
            if session._task is not None and not session._task.ends_by_itself:
                session.handle("stop")
        session.handle("stop")
        session.handle("isready")
        assert "readyok" in said[-3:], said[-3:]
        assert session.close(), "a search does not come back"
        check_uci(said, lines)

    return call


def check_uci(said: list[str], lines: list[str]) -> None:
    """Checks that the output of an engine is complete and well-formed."""
    moves = [line for line in said if line.startswith("bestmove")]
    assert len(moves) == goes(lines), (len(moves), goes(lines))
    assert all(re.fullmatch(r"bestmove (\(none\)|[a-h][1-8][a-h][1-8][qrbn]?)( ponder .*)?", line) for line in moves), (
        moves
    )
    wrong = [line for line in said if "command failed" in line or "panic" in line.lower()]
    # Failures of a search are PondertreeErrors.
    wrong += [
        line
        for line in said
        if "search has failed" in line and not re.search(r"(Invalid\w+|Storage|Missing\w+)Error", line)
    ]
    assert not wrong, wrong


def uci_program(rng: Random) -> Call:
    """Sends a stream of bytes to the program, not all of it valid UTF-8."""
    lines = [line for line in uci_lines(rng, 20) if len(line) < 5000]
    junk = [bytes(rng.randrange(256) for _ in range(rng.randrange(40))).replace(b"\n", b"") for _ in range(3)]
    environment = {**os.environ, "PYTHONIOENCODING": rng.choice(["utf-8", "ascii", "latin-1"])}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    noise = [b"setoption name NetworkFile value " + piece for piece in junk]

    def call() -> None:
        text = b"\n".join(
            [*(line.encode("utf-8", "surrogatepass") for line in lines), *noise, b"stop", b"isready", b"quit"]
        )
        done = subprocess.run(
            [sys.executable, "-m", "pondertree", "uci"], input=text + b"\n", capture_output=True, env=environment
        )
        assert done.returncode == 0, (done.returncode, done.stderr[-500:])
        assert not done.stderr, done.stderr[-500:]
        said = done.stdout.decode("utf-8", "replace").splitlines()
        assert "readyok" in said, said[-3:]

    return call
