"""What tests of matches share: a match without its times, which no seed repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pondertree.match import MatchResult, read_record


def shape(result: MatchResult) -> Any:
    """All of a match but its times."""
    games = [{**game.as_json(), "seconds": None} for game in result.games]
    return result.players, result.seed, result.pentanomial, games


def lines_without_times(path: Path) -> list[Any]:
    """A record of a match, without the seconds and so without checksums."""
    settings, pairs = read_record(path)
    told = [pair.as_json() for pair in pairs]
    for pair in told:
        for game in pair["games"]:
            game["seconds"] = len(game["seconds"])
    return [settings, *told]
