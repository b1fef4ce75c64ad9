"""Self-play games: reproducible and resumable."""

from __future__ import annotations

from pathlib import Path

import pytest

from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess
from pondertree.match.result import MatchResult
from pondertree.tune import material_only, positions_of, self_play

SMALL = {"simulations": 4, "seed": 3, "concurrency": 1}


def moves_of(result: MatchResult) -> list[tuple[str, ...]]:
    return [game.moves for game in result.games]


def test_self_play_yields_positions_of_games(tmp_path: Path) -> None:
    whole = self_play(6, **SMALL)  # type: ignore[arg-type]
    positions = positions_of(whole.games)
    assert positions.num_games == 6
    assert set(positions.results) <= {0.0, 0.5, 1.0}
    assert all(Chess(fen.decode()).legal_actions() for fen in positions.fens)
    # Both games of a pair have one player, but differ.
    assert whole.games[0].moves != whole.games[1].moves

    class Stopped(Exception):  # noqa: N818 (it is no error)
        pass

    def stop(result: MatchResult) -> None:
        raise Stopped

    record = tmp_path / "games.jsonl"
    with pytest.raises(Stopped):
        self_play(6, **SMALL, record=record, progress=stop)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="exists already"):
        self_play(6, **SMALL, record=record)  # type: ignore[arg-type]
    resumed = self_play(6, **SMALL, record=record, resume=True)  # type: ignore[arg-type]
    assert moves_of(resumed) == moves_of(whole)
    with pytest.raises(InvalidArgumentError, match="was started with players"):
        self_play(6, **SMALL, record=record, resume=True, pesto=material_only())  # type: ignore[arg-type]


@pytest.mark.slow
def test_self_play_is_independent_of_processes() -> None:
    one, two = (self_play(4, **{**SMALL, "concurrency": count}, pesto=Pesto()) for count in (1, 2))  # type: ignore[arg-type]
    assert moves_of(one) == moves_of(two)
