"""A match: schedules pairs of games, records and counts them, and stops at the verdict of the SPRT."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
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
from pondertree.match.workers import PairRunner, Task, play_here, play_in_processes

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
    """Plays `num_games` games between two players, in pairs: each opening twice, with sides exchanged.

    A player is a text (`"uct:num_simulations=200"`), a search, or a function from a state to an action; `game` a name
    (`module:Class` for one in Python), or a factory of initial states. `sprt=(elo0, elo1)` stops the match at the
    verdict of a sequential probability ratio test. `openings`: "random" (of `plies` plies), "none", a file, or a list
    of moves. `on_failure`: a program that dies, times out or plays an illegal move loses that game ("loss"), or ends
    the match ("error"). `concurrency` worker processes play in parallel (default: one per CPU); results depend on the
    seed alone, unless a player uses the clock. Every finished pair is appended to `out`; with `resume` a match
    continues from there. `pgn` is written at the end of the match. `progress(result)` is called after each pair.

    Ctrl-C raises KeyboardInterrupt, after players and processes are closed and `pgn` is written. Call it again with the
    same arguments and `resume=True` to continue, even before the first pair is finished; without `out` the pairs so far
    are only available through `progress`.
    """
    entrants = read_player(player1, "player1"), read_player(player2, "player2")
    factory, info, game_name = read_game(game)
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
    validation.one_of(on_failure, "on_failure", FAILURES, '"loss" or "error"')
    if adjudication is not None:
        validation.instance(adjudication, Adjudication, "adjudication")
    if progress is not None:
        validation.function(progress, "progress", "function of a MatchResult")
    resume = validation.flag(resume, "resume")
    if resume and out is None:
        raise InvalidArgumentError("resume requires out, the record of the match to continue")
    if seed is None and resume and out is not None:
        seed = stored_seed(out)
    seed = secrets.randbits(32) if seed is None else validation.whole_number(seed, "seed")
    if pgn is not None:
        check_pgn(check_writable(pgn, "pgn"), resume)
    test = check_sprt(sprt)
    rules = adjudication or Adjudication()
    book = make_openings(openings, factory, games.name_of_info(info), seed, plies)
    runner = PairRunner(entrants, factory, seed, rules, on_failure)
    pairs = num_games // 2
    workers = choose_concurrency(concurrency, runner, pairs)
    settings = {
        "game": game_name,
        "players": [entrant.text for entrant in entrants],
        "seed": seed,
        "games": num_games,
        "openings": book.text,
        "sprt": None if test is None else asdict(test),
        "adjudication": asdict(rules),
        "on_failure": on_failure,
    }

    def replay(pair: PairRecord) -> None:
        """Raises for recorded games with illegal moves."""
        pair.opening.state(factory)
        for played in pair.games if info.compiled else ():
            Opening(played.moves, played.fen).state(factory)

    record = None if out is None else RecordFile(out, settings, resume=resume, replay=replay)
    names = entrants[0].name, entrants[1].name
    match = Match(game_name, names, seed, num_games, test, book, record, progress)
    try:
        match.play(runner, workers)
        return match.finish()
    finally:
        if record is not None:
            record.close()
        if pgn is not None:
            replace_file(Path(pgn), write_games(match.result()).encode())


@dataclass(slots=True)
class Match:
    """A match in progress: its finished pairs, counted in order of their numbers."""

    game: str
    names: tuple[str, str]
    seed: int
    num_games: int
    test: Sprt | None
    book: Openings
    record: RecordFile | None
    progress: Progress | None
    _done: dict[int, PairRecord] = field(default_factory=dict, init=False)
    _counted: int = field(default=0, init=False)
    """Length of the prefix of finished pairs 0, 1, 2, ...: the SPRT counts them in this order, not as completed."""
    _counts: list[int] = field(default_factory=lambda: [0] * 5, init=False)
    _decided: bool = field(default=False, init=False)

    def play(self, runner: PairRunner, workers: int) -> None:
        """Plays the missing pairs."""
        for number, pair in sorted({} if self.record is None else self.record.known.items()):
            self.book.restore(number, pair.opening)
            self._add(pair)
        if self._decided or not (tasks := list(self._missing())):
            return
        # Openings are drawn lazily, while games are played.
        work: Iterator[Task] = ((number, self.book[number]) for number in tasks)
        played = play_here(runner, work) if workers == 1 else play_in_processes(runner, work, min(workers, len(tasks)))
        with closing(played):
            for pair in played:
                if self.record is not None:
                    self.record.append(pair)
                decided = self._add(pair)
                if self.progress is not None:
                    self.progress(self.result())
                if decided:
                    return

    def _missing(self) -> Iterator[int]:
        return (number for number in range(self.num_games // 2) if number not in self._done)

    def _add(self, pair: PairRecord) -> bool:
        """Counts a pair; returns whether the SPRT has a verdict."""
        self._done[pair.number] = pair
        while not self._decided and self._counted in self._done and self._counted < self.num_games // 2:
            self._counts[round(2 * self._done[self._counted].points)] += 1
            self._counted += 1
            self._decided = self.test is not None and self.test.state(self._counts).verdict is not None
        return self._decided

    def result(self) -> MatchResult:
        """Returns the result so far; after a verdict of the SPRT, the result it is based on."""
        known = range(self._counted) if self._decided else sorted(self._done)
        pairs = [self._done[number] for number in known if number < self.num_games // 2]
        return MatchResult(self.game, self.names, self.seed, pairs, self.num_games, self.test)

    def finish(self) -> MatchResult:
        """Returns the result and sorts the record, without games after the verdict of the SPRT."""
        result = self.result()
        if self.record is not None:
            pairs = result.pairs if self._decided else [self._done[number] for number in sorted(self._done)]
            self.record.finish(pairs)
        return result


def read_game(given: Any) -> tuple[Callable[[], Any], Any, str]:
    """Returns (factory of initial states, GameInfo, name)."""
    factory = games.find(given) if isinstance(given, str) else given
    if not callable(factory):
        raise InvalidArgumentError(f"game must be a name or a factory of initial states, not {validation.shown(given)}")
    info = describe(factory())
    if not info.is_two_player_zero_sum:
        raise InvalidArgumentError(
            f"game: a match needs a zero-sum game of two players without rewards, not {games.name_of_info(info)}"
        )
    if info.compiled:
        return factory, info, ":".join([info.name, *games.name_of_info(info).split(":")[1:]])
    return factory, info, f"{factory.__module__}.{getattr(factory, '__qualname__', type(factory).__qualname__)}"


def choose_concurrency(requested: int | None, runner: PairRunner, pairs: int) -> int:
    """Returns the number of worker processes: as requested, else one per CPU if the players can be pickled."""
    requested = None if requested is None else validation.whole_number(requested, "concurrency", least=1, most=4096)
    if requested == 1:
        return 1
    for which, part in (("player1", runner.entrants[0]), ("player2", runner.entrants[1]), ("game", runner.factory)):
        try:
            pickle.dumps(part)
        except Exception as error:
            if requested is None:
                return 1
            name = part.name if isinstance(part, Entrant) else repr(part)
            raise InvalidArgumentError(
                f"concurrency must be 1: {which}, {name}, cannot be sent to another process ({error})"
            ) from None
    return min(usable_cpus() if requested is None else requested, pairs)


def check_pgn(path: Path, resume: bool) -> None:
    """Raises before the match if the file exists."""
    if path.exists() and not resume:
        raise InvalidArgumentError(f"pgn: {str(path)!r} exists already: give another name")


def stored_seed(path: str | os.PathLike[str]) -> int | None:
    """Returns the seed of a recorded match, if it has a settings line."""
    with reading(path, "the record of a match") as file:
        if not file.exists():
            return None
        settings, _ = read_lines(file.read_bytes(), file)
        return None if settings is None else validation.whole_number(settings["seed"], "seed")
