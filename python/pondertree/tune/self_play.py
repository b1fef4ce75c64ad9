"""Games of our own: the hybrid search against itself at few simulations. It is a match, with a record that goes on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pondertree import check
from pondertree._core import Chess
from pondertree.check import brief
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_path, reading
from pondertree.match.adjudication import Adjudication
from pondertree.match.game import GameRecord
from pondertree.match.pgn import result_of
from pondertree.match.players import SearchEntrant
from pondertree.match.record import read_record
from pondertree.match.result import MatchResult
from pondertree.match.runner import play_match
from pondertree.presets import Hybrid
from pondertree.tune.positions import Positions, Skipped, collect, is_quiet

#: Moves are drawn by visits^(1 / this): two games from one opening, and with one player, would else be much the same.
TEMPERATURE = 0.2
#: Games whose end both sides agree on are not played to it. A search this short often cannot win endgames that are won:
#: with resignation at 0.95 (six pawns), 46 % of the positions that were ten pawns ahead came from games drawn by fifty
#: moves or by length, and taught that a queen is worth little.
ENDS = Adjudication(resign=0.85, resign_moves=4, draw=0.05, draw_moves=8, draw_after=80, max_plies=240)


@dataclass(frozen=True)
class SelfPlayer(SearchEntrant):
    """Its text tells weights apart: a record must not go on with others."""

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
    """Plays `num_games` games (an even number) from random openings; the same for a seed, however many processes play.

    Every finished pair of games is written to `record` at once, and with `resume` they go on from there.
    """
    search = Hybrid(pesto, num_simulations=check.count(simulations, "simulations"))
    resume = check.flag(resume, "resume")
    entrant = SelfPlayer(search, temperature=check.temperature(temperature))
    return play_match(
        entrant,
        entrant,
        Chess,
        num_games=num_games,
        seed=seed,
        adjudication=ENDS,
        concurrency=concurrency,
        out=record,
        resume=resume and record is not None and check_path(record, "record").exists(),
        progress=progress,
    )


def positions_of(games: Sequence[GameRecord], pesto: Pesto | None = None) -> Positions:
    """The quiet positions of games, without those of the openings, which nobody chose."""
    skipped = Skipped()
    return collect(_quiet(games, pesto or Pesto(), skipped), skipped)


def read_self_play(path: str | os.PathLike[str]) -> Positions:
    """The same from the record of a match of chess, finished or not."""
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
