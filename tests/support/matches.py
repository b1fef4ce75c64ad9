"""Match results and records without times, for comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pondertree.match import MatchResult, read_record


def shape(result: MatchResult) -> Any:
    """All of a match result except its times."""
    games = [{**game.as_json(), "seconds": None} for game in result.games]
    return result.players, result.seed, result.pentanomial, games


def lines_without_times(path: Path) -> list[Any]:
    """The lines of a match record without times and checksums."""
    settings, pairs = read_record(path)
    told = [pair.as_json() for pair in pairs]
    for pair in told:
        for game in pair["games"]:
            game["seconds"] = len(game["seconds"])
    return [settings, *told]
