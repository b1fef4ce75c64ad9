"""Evaluation games as JSON next to the evaluated player: actions, replayed by the rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import reading
from pondertree.learn.evaluation.arena import ArenaGame

FORMAT = "pondertree-evaluation-games"
VERSION = 1


@dataclass(frozen=True, slots=True)
class EvaluationGame:
    """A game of the evaluated player against an opponent."""

    opponent: str
    game: ArenaGame


def games_path(step: int) -> str:
    """Returns the path of the games of a step's player in the run folder."""
    return f"players/step-{step:09d}.games.json"


def games_bytes(games: list[EvaluationGame]) -> bytes:
    """Serialises games."""
    data = [
        {
            "opponent": one.opponent,
            "side": one.game.side,
            "opening": one.game.opening,
            "moves": one.game.moves,
            "returns": one.game.returns,
        }
        for one in games
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "games": data}, separators=(",", ":")).encode() + b"\n"


def read_games(path: Path) -> list[EvaluationGame]:
    """Reads games; the legality of their moves is checked when they are replayed."""
    with reading(path, "a file of evaluation games", StorageError) as file:
        data = json.loads(file.read_bytes())
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise StorageError(f"it is {validation.shown(data['format'])}; this version reads {FORMAT} {VERSION}")
        return [
            EvaluationGame(
                validation.text(one["opponent"], "opponent"),
                ArenaGame(
                    validation.whole_number(one["side"], "side", most=1),
                    _actions(one["opening"]),
                    _actions(one["moves"]),
                    _returns(one["returns"]),
                ),
            )
            for one in data["games"]
        ]


def _actions(values: list[int]) -> list[int]:
    return [validation.whole_number(value, "an action", most=(1 << 16) - 1) for value in values]


def _returns(values: list[float]) -> tuple[float, ...]:
    if len(values) != 2:
        raise InvalidArgumentError(f"returns must be two numbers, not {validation.shown(values)}")
    return tuple(validation.number(value, "a return", least=-1.0, most=1.0) for value in values)
