"""Three games of a training for its report: the newest of self-play, and one with each side against the opponent that
the last evaluation ended with. Where there was no such evaluation, more of self-play; of environments, episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pondertree import games
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.learn.config.sections import OPPONENT
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.shards import list_shards, read_shard
from pondertree.learn.evaluation.games_file import EvaluationGame, games_path, read_games

#: How many games are shown, and the newest games of self-play among which they are chosen.
SAMPLES = 3
NEWEST = 30


@dataclass(frozen=True, slots=True)
class Sample:
    """A game to be shown."""

    title: str
    players: tuple[str, ...]
    """Who played each side."""
    opening: list[int]
    """The random moves it began with."""
    moves: list[int]
    returns: list[float]
    ending: str = ""
    """How it ended, where the rules did not end it."""
    values: list[float] = field(default_factory=list)
    """What the search of each move valued the position at, for the player to move; none where that was not kept."""
    rewards: list[float] = field(default_factory=list)
    """What each move brought, in games and environments with rewards."""


def game_factory(name: str) -> Callable[[], Any] | None:
    """What gives the starting states of a compiled game; None for others, whose code a report does not import."""
    try:
        found: Callable[[], Any] = games.by_name(name)
    except InvalidArgumentError:
        return None
    return found


def choose_samples(out: Path, evaluations: Sequence[dict[str, Any]], simulations: int | None) -> list[Sample]:
    """The games of a training's folder that its report shows; `simulations` are those of evaluations, a move."""
    recent = newest_games(out / "games", NEWEST)
    if recent and len(recent[-1].rewards):
        return _episodes(recent)
    evaluated = _evaluated(out, evaluations, simulations)
    # Games without a random opening tell more; the newest of each kind first.
    recent.sort(key=lambda game: len(game.opening) == 0)
    of_self_play = [_self_play(game) for game in reversed(recent)]
    return [*of_self_play[:1], *evaluated, *of_self_play[1:]][:SAMPLES]


def newest_games(folder: Path, count: int) -> list[GameRecord]:
    """The newest games of self-play, the newest last."""
    found: list[GameRecord] = []
    for shard in reversed(list_shards(folder)):
        if len(found) >= count:
            break
        found = read_shard(shard) + found
    return found[-count:]


def _self_play(game: GameRecord) -> Sample:
    steps = f"step {int(game.versions[-1])}" if len(game.versions) else "the first network"
    ending = "resigned" if game.resigned else "broken off as a draw, being too long" if game.cut else ""
    return Sample(
        f"Self-play, game {game.number}",
        tuple(steps for _ in game.returns),
        game.opening.tolist(),
        game.moves.tolist(),
        game.returns.tolist(),
        ending,
        game.values.tolist(),
    )


def _evaluated(out: Path, evaluations: Sequence[dict[str, Any]], simulations: int | None) -> list[Sample]:
    """The first game with each side against the last reference opponent of the last evaluation."""
    if not evaluations:
        return []
    line = evaluations[-1]
    met = [other for other in line["matches"] if OPPONENT.fullmatch(other)] or list(line["matches"])
    try:
        played = read_games(out / games_path(line["step"])) if met else []
    except PondertreeError:
        return []  # of an earlier version, or damaged: the report is made of what is there
    effort = "" if simulations is None else f" with {simulations} simulations a move"
    return [
        _against(game, f"{line['name']}{effort}")
        for side in (0, 1)
        for game in [one for one in played if one.opponent == met[-1] and one.game.side == side][:1]
    ]


def _against(one: EvaluationGame, player: str) -> Sample:
    game = one.game
    named = OPPONENT.fullmatch(one.opponent)
    opponent = one.opponent if named is None else f"{named[1]} with {named[2]} simulations a move"
    return Sample(
        f"Evaluation, against {one.opponent}",
        (player, opponent) if game.side == 0 else (opponent, player),
        game.opening,
        game.moves,
        list(game.returns),
    )


def _episodes(recent: list[GameRecord]) -> list[Sample]:
    """The best, the median and the worst of the newest episodes by their returns."""
    by_return = sorted(recent, key=lambda game: (-float(game.returns[0]), game.number))
    chosen = {"Best": by_return[0], "Median": by_return[(len(by_return) - 1) // 2], "Worst": by_return[-1]}
    return [
        Sample(
            f"{word} of the newest {len(recent)} episodes, number {game.number}",
            (f"step {int(game.versions[-1])}" if len(game.versions) else "the first network",),
            game.opening.tolist(),
            game.moves.tolist(),
            game.returns.tolist(),
            "broken off" if game.cut else "",
            game.values.tolist(),
            game.rewards.tolist(),
        )
        for word, game in list(chosen.items())[: len(recent)]
    ]
