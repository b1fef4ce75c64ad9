"""Fuzzes the other files for `fuzz_files.py`: match and SPSA records, weights, positions, games and openings."""

from __future__ import annotations

import functools
import io
import json
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import as_json, damaged, endless, forged, forged_arrays, naming, npz, write
from fuzz_training_files import safetensors_of, safetensors_parts

from pondertree.chess import ChessNN, MoveScores, Pesto
from pondertree.games import Chess, ConnectFour
from pondertree.match.openings import make_openings
from pondertree.match.record import read_record, write_line
from pondertree.match.runner import play_match
from pondertree.tune import Positions, read_positions

# --- records of matches and climbs ------------------------------------------------------------------------------------


@functools.cache
def records() -> dict[str, bytes]:
    """Returns the records of a tic-tac-toe match and of a chess match."""
    found = {}
    for game in ("tic-tac-toe", "chess"):
        path = Path(tempfile.mkdtemp(dir=".")) / "match.jsonl"
        play_match("random", "first", game, num_games=6, seed=1, plies=2, out=path, concurrency=1)
        found[game] = path.read_bytes()
    return found


def forged_lines(numbers: random.Random, content: bytes) -> bytes:
    """Returns a record with mutated lines and valid checksums."""
    lines = [json.loads(line) for line in content.splitlines()]
    for line in lines:
        del line["crc32"]
    place = numbers.randrange(len(lines))
    lines[place] = forged(numbers, lines[place])
    if numbers.random() < 0.1:
        numbers.shuffle(lines)
    written = []
    for line in lines:
        try:
            written.append(write_line(line))
        except (UnicodeEncodeError, RecursionError, TypeError, IndexError):
            body = as_json(line).encode()
            written.append(body[:-1] + b',"crc32":%d}\n' % zlib.crc32(body))
    return b"".join(written)


def make_record(numbers: random.Random) -> Callable[[], object]:
    """Reads or resumes a mutated match record, or extracts its positions."""
    game = numbers.choice(("tic-tac-toe", "chess"))
    content = records()[game]
    content = forged_lines(numbers, content) if numbers.random() < 0.7 else damaged(numbers, content)
    if numbers.random() < 0.02:
        content = endless(numbers)
    way = numbers.randrange(3)

    def call() -> None:
        path = write("match.jsonl", content)
        Path("match.pgn").unlink(missing_ok=True)
        if way == 0:
            naming(path, lambda: read_record(path))
        elif way == 1 and game == "chess":
            naming(path, lambda: read_positions(path))
        else:
            options: dict[str, Any] = {"num_games": 6, "seed": 1, "plies": 2, "concurrency": 1, "pgn": "match.pgn"}
            naming(path, lambda: play_match("random", "first", game, out=path, resume=True, **options))

    return call


@functools.cache
def spsa_record() -> bytes:
    """Returns the record of an SPSA run."""
    from pondertree.tune import tune_search

    out = Path(tempfile.mkdtemp(dir="."))
    tune_search(iterations=4, out=out, compare=lambda *_: 0.75)
    return (out / "search.jsonl").read_bytes()


def make_spsa(numbers: random.Random) -> Callable[[], object]:
    """Resumes a mutated record of an SPSA run."""
    content = spsa_record()
    content = forged_lines(numbers, content) if numbers.random() < 0.7 else damaged(numbers, content)

    def call() -> None:
        from pondertree.tune import tune_search

        out = Path("spsa")
        out.mkdir(exist_ok=True)
        (out / "search.jsonl").write_bytes(content)
        naming(out, lambda: tune_search(iterations=5, out=out, resume=True, compare=lambda *_: 0.75))

    return call


# --- weights ----------------------------------------------------------------------------------------------------------


@functools.cache
def weights() -> dict[str, bytes]:
    """Returns all kinds of weight files by name."""
    folder = Path(tempfile.mkdtemp(dir="."))
    Pesto().to_file(folder / "pesto.json")
    MoveScores().to_file(folder / "moves.json")
    network = ChessNN(blocks=1, channels=4, value_channels=1, value_hidden=4)
    network.build()
    network.save_model(folder / "network.safetensors")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_weights(numbers: random.Random) -> Callable[[], object]:
    """Reads mutated evaluation weights, move scores or a chess network."""
    name = numbers.choice(sorted(weights()))
    content = weights()[name]
    if numbers.random() < 0.3:
        content = damaged(numbers, content)
    elif numbers.random() < 0.05:
        content = endless(numbers)
    elif name.endswith(".json"):
        content = as_json(forged(numbers, json.loads(content))).encode(errors="surrogatepass")
    else:
        header, data = safetensors_parts(content)
        if numbers.random() < 0.5:
            about = forged(numbers, json.loads(header["__metadata__"]["config"]))
            header["__metadata__"]["config"] = as_json(about)
        else:
            header = forged(numbers, header)
        content = safetensors_of(header, data)

    def call() -> None:
        path = write(name, content)
        if name == "pesto.json":
            naming(path, lambda: Pesto.from_file(path)).eval(Chess())
        elif name == "moves.json":
            naming(path, lambda: MoveScores.from_file(path)).factors(Chess())
        else:
            naming(path, lambda: ChessNN().load_model(path))

    return call


# --- positions, games and openings ------------------------------------------------------------------------------------

FENS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "8/8/4k3/8/8/3QK3/8/8 w - - 0 1",
)
EPD = "".join(f'{fen} c9 "{result}";\n' for fen, result in zip(FENS, ("1-0", "0-1", "1/2-1/2"), strict=True)).encode()
PGN = b"""[Event "?"]
[White "A \\"B\\""]
[Result "1-0"]

1. e4 e5 2. Nf3 {a comment} Nc6 (2... d6 3. d4) 3. Bb5 $1 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 ; rest
8. c3 O-O 9. h3 1-0

[FEN "8/8/4k3/8/8/3QK3/8/8 w - - 0 1"]
[SetUp "1"]
[Result "*"]

1. Qd4 Kf5 2. Qd5+ Kg4 *
"""
MOVES = {"chess": b"e4 e5\nd4 d5 # a comment\n", "connect_four": b"4 4 3\n1 2 3\n"}


@functools.cache
def position_files() -> dict[str, bytes]:
    """Returns positions in .npz and EPD, and a fit."""
    from pondertree.tune import FitOptions, tune

    fens: list[bytes] = []
    games: list[int] = []
    state = Chess()
    numbers = random.Random(1)
    while len(fens) < 40:
        state = state.play(numbers.choice(state.legal_actions())) if not state.is_terminal else Chess()
        fens.append(state.fen().encode())
        games.append(len(games) // 2)
    results = np.array([numbers.choice((0.0, 0.5, 1.0)) for _ in fens])
    folder = Path(tempfile.mkdtemp(dir="."))
    positions = Positions(np.array(fens), results, np.array(games, dtype=np.int64))
    positions.save(folder / "positions.npz")
    tune(positions, options=FitOptions(iterations=2), out=folder)
    return {name: (folder / name).read_bytes() for name in ("positions.npz", "checkpoint.npz")}


def make_positions(numbers: random.Random) -> Callable[[], object]:
    """Reads mutated positions, or resumes a mutated fit."""
    name = numbers.choice(("positions.npz", "checkpoint.npz", "positions.epd"))
    if name.endswith(".epd"):
        content = endless(numbers) if numbers.random() < 0.1 else damaged(numbers, EPD)
    elif numbers.random() < 0.3:
        content = damaged(numbers, position_files()[name])
    else:
        with np.load(io.BytesIO(position_files()[name])) as file:
            arrays = dict(file)
        if numbers.random() < 0.5:
            arrays["header"] = np.array(as_json(forged(numbers, json.loads(str(arrays["header"])))))
        else:
            arrays = forged_arrays(numbers, arrays)
        content = npz(numbers, arrays)

    def call() -> None:
        from pondertree.tune import FitOptions, tune

        if name == "checkpoint.npz":
            out = Path("fit")
            out.mkdir(exist_ok=True)
            (out / name).write_bytes(content)
            source = write("positions.npz", position_files()["positions.npz"])
            naming(out, lambda: tune(read_positions(source), options=FitOptions(iterations=3), out=out, resume=True))
            return
        path = write(name, content)
        naming(path, lambda: read_positions(path)).states()

    return call


def make_pgn(numbers: random.Random) -> Callable[[], object]:
    """Reads mutated PGN games for tuning or as openings."""
    content = endless(numbers) if numbers.random() < 0.2 else damaged(numbers, PGN, EPD)
    if numbers.random() < 0.1:
        content += endless(numbers)

    def call() -> None:
        path = write("games.pgn", content)
        naming(path, lambda: read_positions(path))
        naming(path, lambda: make_openings(path, Chess, "chess", 0, numbers.choice((None, 0, 3))))

    return call


def make_opening(numbers: random.Random) -> Callable[[], object]:
    """Reads mutated openings in EPD or as moves."""
    name, game = numbers.choice((("book.epd", "chess"), ("book.txt", "chess"), ("book.txt", "connect_four")))
    content = EPD if name.endswith(".epd") else MOVES[game]
    content = endless(numbers) if numbers.random() < 0.1 else damaged(numbers, content, PGN)

    def call() -> None:
        path = write(name, content)
        factory: Any = Chess if game == "chess" else ConnectFour
        naming(path, lambda: make_openings(path, factory, game, 0, None))

    return call
