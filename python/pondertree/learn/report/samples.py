"""The three sample games of a report: the newest of self-play, and two of the last evaluation, one per side.

Without an evaluation all are from self-play. Environments have episodes: the best, the median and the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.errors import PondertreeError
from pondertree.learn.config import OPPONENT
from pondertree.learn.data import GameRecord, list_shards, read_shard
from pondertree.learn.evaluation import EvaluationGame, games_path, read_games

#: Number of samples, and of the newest self-play games they are chosen from.
SAMPLES = 3
NEWEST = 30


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample game."""

    title: str
    players: tuple[str, ...]
    """Name of the player of each side."""
    opening: list[int]
    """Random moves at the start, with the outcomes of chance between them."""
    moves: list[int]
    """Moves, with the outcomes of chance between them."""
    returns: list[float]
    ending: str = ""
    """The kind of ending, if not by the rules."""
    values: list[float] = field(default_factory=list)
    """Root value of each move for the player to move; empty if not recorded."""
    rewards: list[float] = field(default_factory=list)
    """Reward of each move, in games and environments with rewards."""


def choose_samples(out: Path, evaluations: Sequence[dict[str, Any]], simulations: int | None) -> list[Sample]:
    """Chooses the samples of a run folder; `simulations` are those per move in evaluations."""
    recent = newest_games(out / "games", NEWEST)
    if recent and len(recent[-1].rewards):
        return _episodes(recent)
    evaluated = _evaluated(out, evaluations, simulations)
    # Games without a random opening are preferred; the newest of each kind first.
    recent.sort(key=lambda game: len(game.opening) == 0)
    of_self_play = [_self_play(game) for game in reversed(recent)]
    return [*of_self_play[:1], *evaluated, *of_self_play[1:]][:SAMPLES]


def newest_games(folder: Path, count: int) -> list[GameRecord]:
    """Returns the newest self-play games, oldest first."""
    found: list[GameRecord] = []
    for shard in reversed(list_shards(folder)):
        if len(found) >= count:
            break
        found = read_shard(shard) + found
    return found[-count:]


def _self_play(game: GameRecord) -> Sample:
    steps = f"step {int(game.versions[-1])}" if len(game.versions) else "the initial network"
    ending = "resigned" if game.resigned else "truncated, scored as a draw" if game.cut else ""
    return Sample(
        f"Self-play, game {game.number}",
        tuple(steps for _ in game.returns),
        *_lines(game),
        game.returns.tolist(),
        ending,
        game.values.tolist(),
    )


def _evaluated(out: Path, evaluations: Sequence[dict[str, Any]], simulations: int | None) -> list[Sample]:
    """Returns the first game with each side against the last anchor of the last evaluation."""
    if not evaluations:
        return []
    line = evaluations[-1]
    met = [other for other in line["matches"] if OPPONENT.fullmatch(other)] or list(line["matches"])
    try:
        played = read_games(out / games_path(line["step"])) if met else []
    except PondertreeError:
        return []  # from an older version, or corrupt: the report is written without them
    effort = "" if simulations is None else f" with {simulations} simulations per move"
    return [
        _against(game, f"{line['name']}{effort}")
        for side in (0, 1)
        for game in [one for one in played if one.opponent == met[-1] and one.game.side == side][:1]
    ]


def _against(one: EvaluationGame, player: str) -> Sample:
    game = one.game
    named = OPPONENT.fullmatch(one.opponent)
    opponent = one.opponent if named is None else f"{named[1]} with {named[2]} simulations per move"
    return Sample(
        f"Evaluation, against {one.opponent}",
        (player, opponent) if game.side == 0 else (opponent, player),
        game.opening,
        game.moves,
        list(game.returns),
    )


def _episodes(recent: list[GameRecord]) -> list[Sample]:
    """Returns the best, the median and the worst of the newest episodes by return."""
    by_return = sorted(recent, key=lambda game: (-float(game.returns[0]), game.number))
    chosen = {"Best": by_return[0], "Median": by_return[(len(by_return) - 1) // 2], "Worst": by_return[-1]}
    return [
        Sample(
            f"{word} of the newest {len(recent)} episodes, number {game.number}",
            (f"step {int(game.versions[-1])}" if len(game.versions) else "the initial network",),
            *_lines(game),
            game.returns.tolist(),
            "truncated" if game.cut else "",
            game.values.tolist(),
            game.rewards.tolist(),
        )
        for word, game in list(chosen.items())[: len(recent)]
    ]


def _lines(game: GameRecord) -> tuple[list[int], list[int]]:
    """Returns the actions and outcomes before the first searched move, and those from it on."""
    line, chance = game.line()
    searched = np.flatnonzero(~chance)[len(game.opening) :]
    first = int(searched[0]) if len(searched) else len(line)
    return line[:first].tolist(), line[first:].tolist()
