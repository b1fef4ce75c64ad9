"""A whole match: pairs of games handed out, recorded, counted, and stopped when the test has its answer."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pondertree import games, validation
from pondertree._core import usable_cpus
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_writable, reading, replace_file
from pondertree.game import describe
from pondertree.match.game import Adjudication
from pondertree.match.openings import Opening, Openings, make_openings
from pondertree.match.players import Entrant
from pondertree.match.record import PairRecord, RecordFile, read_lines
from pondertree.match.result import MatchResult, write_games
from pondertree.match.spec import read_player
from pondertree.match.statistics import Sprt, check_sprt
from pondertree.match.workers import Table, Task, play_here, play_in_processes

Progress = Callable[[MatchResult], object]
FAILURES = ("loss", "error")


def play_match(
    player1: Any,
    player2: Any,
    game: Any = "connect4",
    *,
    num_games: int = 100,
    sprt: Any = None,
    openings: Any = None,
    plies: int | None = None,
    seed: int | None = None,
    adjudication: Adjudication | None = None,
    on_failure: str = "loss",
    concurrency: int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    pgn: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> MatchResult:
    """Plays `num_games` games between two players, in pairs: each opening twice, with the sides exchanged.

    A player is a text (`"uct:num_simulations=200"`), a search, or a function from a state to an action; `game` a name
    (`module:Class` of one in Python), or what gives a starting state. `sprt=(elo0, elo1)` stops the match as soon as
    the test has its answer. `openings`: "random" (of `plies` plies), "none", a file, or a list of moves. `on_failure`:
    a program that dies, hangs or makes an illegal move loses that game ("loss"), or ends the match ("error").
    `concurrency` processes play side by side (default: one per processor); results depend on the seed and never on
    that, as long as no player goes by the clock. Every finished pair is written to `out` at once; with `resume` a match
    goes on from there. `pgn` gets the games when the match ends. `progress(result)` is called after each pair.

    Ctrl-C raises KeyboardInterrupt, after players and processes are closed and `pgn` is written. Call it again with the
    same arguments and `resume=True` to go on, at any time after the match began, before its first pair too; without
    `out` the pairs so far are lost but for what `progress` was given.
    """
    entrants = read_player(player1, "player1"), read_player(player2, "player2")
    factory, info, called = read_game(game)
    for which, entrant in zip(("player1", "player2"), entrants, strict=True):
        try:
            entrant.check(info)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{which}: {error}") from None
    num_games = validation.count(num_games, "num_games")
    if num_games % 2:
        raise InvalidArgumentError(
            f"num_games must be even, since openings are played with both sides; not {validation.shown(num_games)}"
        )
    if not validation.is_one_of(on_failure, FAILURES):
        raise InvalidArgumentError(f'on_failure must be "loss" or "error", not {validation.shown(on_failure)}')
    if adjudication is not None and not isinstance(adjudication, Adjudication):
        raise InvalidArgumentError(f"adjudication must be an Adjudication, not {validation.shown(adjudication)}")
    if progress is not None and not callable(progress):
        raise InvalidArgumentError(f"progress must be a function of a MatchResult, not {validation.shown(progress)}")
    resume = validation.flag(resume, "resume")
    if resume and out is None:
        raise InvalidArgumentError("resume needs out, the file to go on with")
    if seed is None and resume and out is not None:
        seed = stored_seed(out)
    seed = secrets.randbits(32) if seed is None else validation.whole_number(seed, "seed")
    if pgn is not None:
        check_pgn(check_writable(pgn, "pgn"), resume)
    test = check_sprt(sprt)
    rules = adjudication or Adjudication()
    book = make_openings(openings, factory, info.name, seed, plies)
    table = Table(entrants, factory, seed, rules, on_failure)
    pairs = num_games // 2
    workers = choose_concurrency(concurrency, table, pairs)
    settings = {
        "game": called,
        "players": [entrant.text for entrant in entrants],
        "seed": seed,
        "games": num_games,
        "openings": book.text,
        "sprt": None if test is None else asdict(test),
        "adjudication": asdict(rules),
        "on_failure": on_failure,
    }

    def replay(pair: PairRecord) -> None:
        """Refuses games that a record tells and that the game does not allow."""
        pair.opening.state(factory)
        for played in pair.games if info.compiled else ():
            Opening(played.moves, played.fen).state(factory)

    record = None if out is None else RecordFile(out, settings, resume=resume, replay=replay)
    names = entrants[0].name, entrants[1].name
    match = Match(called, names, seed, num_games, test, book, record, progress)
    try:
        match.play(table, workers)
        return match.finish()
    finally:
        if record is not None:
            record.close()
        if pgn is not None:
            replace_file(Path(pgn), write_games(match.result()).encode())


class Match:
    """A match under way: what is known of its pairs, in order as far as the order is complete."""

    def __init__(
        self,
        game: str,
        names: tuple[str, str],
        seed: int,
        num_games: int,
        test: Sprt | None,
        book: Openings,
        record: RecordFile | None,
        progress: Progress | None,
    ) -> None:
        self._about = game, names, seed
        self._num_games = num_games
        self._test = test
        self._book = book
        self._record = record
        self._progress = progress
        self._done: dict[int, PairRecord] = {}
        #: Pairs 0, 1, 2, ... as far as all of them are there: a test looks at them in this order, whoever was faster.
        self._counted = 0
        self._counts = [0] * 5
        self._decided = False

    def play(self, table: Table, workers: int) -> None:
        """Plays what is missing."""
        for number, pair in sorted({} if self._record is None else self._record.known.items()):
            self._book.know(number, pair.opening)
            self._take(pair)
        if self._decided or not (tasks := list(self._missing())):
            return
        # The openings are drawn while the games go on.
        work: Iterator[Task] = ((number, self._book[number]) for number in tasks)
        played = play_here(table, work) if workers == 1 else play_in_processes(table, work, min(workers, len(tasks)))
        with closing(played):
            for pair in played:
                if self._record is not None:
                    self._record.append(pair)
                decided = self._take(pair)
                if self._progress is not None:
                    self._progress(self.result())
                if decided:
                    return

    def _missing(self) -> Iterator[int]:
        return (number for number in range(self._num_games // 2) if number not in self._done)

    def _take(self, pair: PairRecord) -> bool:
        """Counts a pair; whether the test has its answer."""
        self._done[pair.number] = pair
        while not self._decided and self._counted in self._done and self._counted < self._num_games // 2:
            self._counts[round(2 * self._done[self._counted].points)] += 1
            self._counted += 1
            self._decided = self._test is not None and self._test.state(self._counts).verdict is not None
        return self._decided

    def result(self) -> MatchResult:
        """What is known now; once the test has decided, what it has decided by."""
        known = range(self._counted) if self._decided else sorted(self._done)
        pairs = [self._done[number] for number in known if number < self._num_games // 2]
        game, names, seed = self._about
        return MatchResult(game, names, seed, pairs, self._num_games, self._test)

    def finish(self) -> MatchResult:
        """The result; the record is put in order. Games beyond the test's decision do not count, and are left out."""
        result = self.result()
        if self._record is not None:
            kept = result.pairs if self._decided else [self._done[number] for number in sorted(self._done)]
            self._record.finish(kept)
        return result


def read_game(given: Any) -> tuple[Callable[[], Any], Any, str]:
    """(what gives a starting state, what kind of game it is, its name)."""
    factory = games.find(given) if isinstance(given, str) else given
    if not callable(factory):
        raise InvalidArgumentError(
            f"game must be a name or something that gives a starting state, not {validation.shown(given)}"
        )
    info = describe(factory())
    if not info.is_plain:
        raise InvalidArgumentError(
            f"game: a match needs a zero-sum game of two players without rewards, not {info.name}"
        )
    if info.compiled:
        return factory, info, info.name
    return factory, info, f"{factory.__module__}.{getattr(factory, '__qualname__', type(factory).__qualname__)}"


def choose_concurrency(wanted: int | None, table: Table, pairs: int) -> int:
    """How many processes play: as many as were asked for, else one per processor, if the players can be sent there."""
    wanted = None if wanted is None else validation.whole_number(wanted, "concurrency", least=1, most=4096)
    if wanted == 1:
        return 1
    for which, part in (("player1", table.entrants[0]), ("player2", table.entrants[1]), ("game", table.factory)):
        try:
            pickle.dumps(part)
        except Exception as error:
            if wanted is None:
                return 1
            name = part.name if isinstance(part, Entrant) else repr(part)
            raise InvalidArgumentError(
                f"concurrency must be 1: {which}, {name}, cannot be sent to another process ({error})"
            ) from None
    return min(usable_cpus() if wanted is None else wanted, pairs)


def check_pgn(path: Path, resume: bool) -> None:
    """Refuses a file that should not be written over, before the match and not after it."""
    if path.exists() and not resume:
        raise InvalidArgumentError(f"pgn: {str(path)!r} exists already: give another name")


def stored_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of a match that was begun, if it came so far as to write it down."""
    with reading(path, "the record of a match") as file:
        if not file.exists():
            return None
        settings, _, _ = read_lines(file.read_bytes(), file)
        return None if settings is None else validation.whole_number(settings["seed"], "seed")
