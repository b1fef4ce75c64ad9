"""Positions from files: PGN, EPD with results, positions or games of our own. What is wrong is skipped, and named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pondertree import check
from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.files import check_path, reading
from pondertree.match.notation import parse_move, read_epd, read_games
from pondertree.tune.positions import Positions, Skipped, collect, is_quiet
from pondertree.tune.self_play import read_self_play

#: Points of White.
RESULTS = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
#: Plies at the beginning of a PGN game that are left out: they are book moves, the same in game after game.
BOOK_PLIES = 8
#: The ways in which files of positions tell results, for White: c9 "1-0"; or a bare 1-0; or [1.0].
_WORD = re.compile(r"(?<![\w/.-])(1-0|0-1|1/2-1/2)(?![\w/-])")
_NUMBER = re.compile(r"\[\s*(1(?:\.0*)?|0?\.50*|0(?:\.0*)?)\s*\]")
_ENDINGS = ".pgn, .epd, .fen, .npz (positions), .jsonl (the record of a match)"


def read_positions(path: str | os.PathLike[str], pesto: Pesto | None = None) -> Positions:
    """The quiet positions of a file, by its ending; those of `pesto`'s scores are quiet."""
    path = check_path(path, "positions")
    kind = path.suffix.lower()
    if kind == ".npz":
        return Positions.load(path)
    if kind == ".jsonl":
        return read_self_play(path)
    if kind not in (".pgn", ".epd", ".fen"):
        raise InvalidArgumentError(f"{str(path)!r}: positions are read from {_ENDINGS}")
    with reading(path, "a text of positions") as file:
        # Names of players come in any encoding; moves are plain letters in all of them.
        text = file.read_text(encoding="utf-8", errors="replace")
    read = from_pgn if kind == ".pgn" else from_epd
    return read(text, str(path), pesto)


def from_pgn(text: str, source: str = "PGN", pesto: Pesto | None = None) -> Positions:
    """The quiet positions of games of PGN. A game with an illegal move, or without a result, is skipped."""
    skipped, pesto = Skipped(), Pesto() if pesto is None else check.instance(pesto, Pesto, "pesto")
    return collect(_pgn(check.text(text, "text"), source, pesto, skipped), skipped)


def _pgn(text: str, source: str, pesto: Pesto, skipped: Skipped) -> Iterator[tuple[list[str], float]]:
    for number, (fen, moves, result) in enumerate(read_games(text), start=1):
        if result not in RESULTS:
            skipped.add(f"{source}, game {number}: it has no result")
            continue
        found: list[Chess] = []
        try:
            state = Chess(fen)
            for ply, move in enumerate(moves):
                if ply >= BOOK_PLIES:
                    found.append(state)
                state = state.play(parse_move(state, move))
        except PondertreeError as error:
            skipped.add(f"{source}, game {number}: {check.brief(str(error), 120)}")
            continue
        quiet = [state.fen() for state in found if is_quiet(state, pesto)]
        skipped.not_quiet += len(found) - len(quiet)
        yield quiet, RESULTS[result]


def from_epd(text: str, source: str = "EPD", pesto: Pesto | None = None) -> Positions:
    """The quiet positions of lines of EPD or FEN, each with a result for White: c9 "1-0"; or 1-0, or [1.0]."""
    skipped, pesto = Skipped(), Pesto() if pesto is None else check.instance(pesto, Pesto, "pesto")
    return collect(_epd(check.text(text, "text"), source, pesto, skipped), skipped)


def _epd(text: str, source: str, pesto: Pesto, skipped: Skipped) -> Iterator[tuple[list[str], float]]:
    for number, line in enumerate(text.splitlines(), start=1):
        # The result is taken off, or what is left would be no FEN.
        result = result_of(line)
        fens = read_epd(_NUMBER.sub(" ", _WORD.sub(" ", line)))
        if not fens:
            continue
        if result is None:
            skipped.add(f"{source}, line {number}: it has no result (1-0, 0-1, 1/2-1/2 or [1.0], for White)")
            continue
        try:
            state = Chess(fens[0])
        except PondertreeError as error:
            skipped.add(f"{source}, line {number}: {check.brief(str(error), 120)}")
            continue
        if state.is_terminal:
            skipped.add(f"{source}, line {number}: the game is over")
        elif is_quiet(state, pesto):
            yield [state.fen()], result
        else:
            skipped.not_quiet += 1


def result_of(line: str) -> float | None:
    """The result that a line of EPD tells, for White."""
    word = _WORD.search(line)
    if word is not None:
        return RESULTS[word.group(1)]
    number = _NUMBER.search(line)
    return None if number is None else float(number.group(1))
