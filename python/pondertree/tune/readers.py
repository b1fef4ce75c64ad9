"""Sources of training positions: PGN, EPD with results, saved positions, match records, self-play.

Invalid games and positions are skipped and reported.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.hybrid import Hybrid
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.files import check_path, reading
from pondertree.match.game import Adjudication, GameRecord
from pondertree.match.notation import parse_move, read_epd, read_games
from pondertree.match.players import SearchEntrant
from pondertree.match.record import read_record
from pondertree.match.result import MatchResult, result_of
from pondertree.match.runner import play_match
from pondertree.tune.positions import Positions, Skipped, collect, is_quiet
from pondertree.validation import brief

#: Results for White.
RESULTS = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
#: Plies skipped at the beginning of PGN games: book moves, repeated in many games.
BOOK_PLIES = 8
#: Notations of results for White in EPD files: c9 "1-0"; or a bare 1-0; or [1.0].
_WORD = re.compile(r"(?<![\w/.-])(1-0|0-1|1/2-1/2)(?![\w/-])")
_NUMBER = re.compile(r"\[\s*(1(?:\.0*)?|0?\.50*|0(?:\.0*)?)\s*\]")
_ENDINGS = ".pgn, .epd, .fen, .npz (positions), .jsonl (the record of a match)"


def read_positions(path: str | os.PathLike[str], pesto: Pesto | None = None) -> Positions:
    """Reads the quiet positions of a file, by its suffix; quiet by the scores of `pesto`."""
    path = check_path(path, "positions")
    kind = path.suffix.lower()
    if kind == ".npz":
        return Positions.load(path)
    if kind == ".jsonl":
        return read_self_play(path)
    if kind not in (".pgn", ".epd", ".fen"):
        raise InvalidArgumentError(f"{str(path)!r}: positions are read from {_ENDINGS}")
    with reading(path, "a text of positions") as file:
        # Player names may be in any encoding; moves are ASCII.
        text = file.read_text(encoding="utf-8", errors="replace")
    read = from_pgn if kind == ".pgn" else from_epd
    return read(text, str(path), pesto)


def from_pgn(text: str, source: str = "PGN", pesto: Pesto | None = None) -> Positions:
    """Reads the quiet positions of PGN games, skipping games with an illegal move or without a result."""
    skipped, pesto = Skipped(), Pesto() if pesto is None else validation.instance(pesto, Pesto, "pesto")
    return collect(_pgn(validation.text(text, "text"), source, pesto, skipped), skipped)


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
            skipped.add(f"{source}, game {number}: {validation.brief(str(error), 120)}")
            continue
        quiet = [state.fen() for state in found if is_quiet(state, pesto)]
        skipped.not_quiet += len(found) - len(quiet)
        yield quiet, RESULTS[result]


def from_epd(text: str, source: str = "EPD", pesto: Pesto | None = None) -> Positions:
    """Reads the quiet positions of EPD or FEN lines with a result for White: c9 "1-0"; or 1-0, or [1.0]."""
    skipped, pesto = Skipped(), Pesto() if pesto is None else validation.instance(pesto, Pesto, "pesto")
    return collect(_epd(validation.text(text, "text"), source, pesto, skipped), skipped)


def _epd(text: str, source: str, pesto: Pesto, skipped: Skipped) -> Iterator[tuple[list[str], float]]:
    for number, line in enumerate(text.splitlines(), start=1):
        # Without the result the rest is a FEN.
        result = epd_result(line)
        fens = read_epd(_NUMBER.sub(" ", _WORD.sub(" ", line)))
        if not fens:
            continue
        if result is None:
            skipped.add(f"{source}, line {number}: it has no result (1-0, 0-1, 1/2-1/2 or [1.0], for White)")
            continue
        try:
            state = Chess(fens[0])
        except PondertreeError as error:
            skipped.add(f"{source}, line {number}: {validation.brief(str(error), 120)}")
            continue
        if state.is_terminal:
            skipped.add(f"{source}, line {number}: the game is over")
        elif is_quiet(state, pesto):
            yield [state.fen()], result
        else:
            skipped.not_quiet += 1


def epd_result(line: str) -> float | None:
    """Returns the result for White of an EPD line; None if it has none."""
    word = _WORD.search(line)
    if word is not None:
        return RESULTS[word.group(1)]
    number = _NUMBER.search(line)
    return None if number is None else float(number.group(1))


#: Moves are sampled by visits^(1 / temperature), since both games of a pair would be nearly equal otherwise.
TEMPERATURE = 0.2
#: Decided games are adjudicated, since such a short search often fails to win won endgames: with resignation at 0.95
#: (six pawns), 46 % of the positions with a lead of ten pawns came from games drawn by fifty moves or by length, which
#: biased the value of a queen.
ADJUDICATION = Adjudication(resign=0.85, resign_moves=4, draw=0.05, draw_moves=8, draw_after=80, max_plies=240)


@dataclass(frozen=True)
class SelfPlayer(SearchEntrant):
    """A search whose text includes a hash of its weights, so that a record does not resume with others."""

    @property
    def text(self) -> str:
        weights = getattr(self.search, "evaluator", None)
        mark = "" if weights is None else f" {hashlib.sha256(repr(weights).encode()).hexdigest()[:16]}"
        return f"{super().text}{mark}"


def self_play(
    num_games: int,
    *,
    simulations: int = 100,
    seed: int = 0,
    pesto: Pesto | None = None,
    temperature: float = TEMPERATURE,
    record: str | os.PathLike[str] | None = None,
    resume: bool = False,
    concurrency: int | None = None,
    progress: Callable[[MatchResult], object] | None = None,
) -> MatchResult:
    """Plays `num_games` games (an even number) from random openings, reproducibly for any number of processes.

    Every finished pair is appended to `record`; with `resume` the match continues from there.
    """
    search = Hybrid(pesto, num_simulations=validation.count(simulations, "simulations"))
    resume = validation.flag(resume, "resume")
    entrant = SelfPlayer(search, temperature=validation.temperature(temperature))
    return play_match(
        entrant,
        entrant,
        Chess,
        num_games=num_games,
        seed=seed,
        adjudication=ADJUDICATION,
        concurrency=concurrency,
        out=record,
        resume=resume and record is not None and check_path(record, "record").exists(),
        progress=progress,
    )


def positions_of(games: Sequence[GameRecord], pesto: Pesto | None = None) -> Positions:
    """Returns the quiet positions of games, without those of the random openings."""
    skipped = Skipped()
    return collect(_quiet(games, pesto or Pesto(), skipped), skipped)


def read_self_play(path: str | os.PathLike[str]) -> Positions:
    """Reads the quiet positions of a chess match record, finished or not."""
    with reading(path, "the record of a match of chess") as file:
        settings, pairs = read_record(file)
        if settings.get("game") != "chess":
            raise InvalidArgumentError(f"it is a match of {brief(str(settings.get('game')))}, not of chess")
        return positions_of([game for pair in pairs for game in pair.games])


def _quiet(games: Sequence[GameRecord], pesto: Pesto, skipped: Skipped) -> Iterator[tuple[list[str], float]]:
    for game in games:
        if game.culprit is not None:
            skipped.add(f"game {game.number}: a player failed, and lost by that and not by the position")
            continue
        state, chosen = Chess(game.fen), []
        for ply, move in enumerate(game.moves):
            if ply >= game.opening:
                chosen.append(state)
            state = state.play(state.parse_action(move))
        quiet = [state.fen() for state in chosen if is_quiet(state, pesto)]
        skipped.not_quiet += len(chosen) - len(quiet)
        yield quiet, (1 + result_of(game)) / 2
