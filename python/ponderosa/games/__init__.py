"""The compiled games. Calling a class gives its starting state; `Chess(fen)` any position. `connect_four` solves."""

from __future__ import annotations

from typing import Any

from ponderosa._core import Chess, ConnectFour, Othello, TicTacToe
from ponderosa.errors import InvalidArgumentError
from ponderosa.games import connect_four

__all__ = ["BY_NAME", "Chess", "ConnectFour", "Othello", "TicTacToe", "by_name", "connect_four"]

#: The names the command line knows them by.
BY_NAME: dict[str, Any] = {
    "tic-tac-toe": TicTacToe,
    "connect4": ConnectFour,
    "othello": Othello,
    "chess": Chess,
}

_ALIASES = {
    "tictactoe": "tic-tac-toe",
    "tic_tac_toe": "tic-tac-toe",
    "connect_four": "connect4",
    "connect-four": "connect4",
    "connectfour": "connect4",
    "connect-4": "connect4",
    "reversi": "othello",
}


def by_name(name: str) -> Any:
    """The class of the game called `name`."""
    key = name.lower()
    key = _ALIASES.get(key, key)
    if key not in BY_NAME:
        raise InvalidArgumentError(f"unknown game {name!r}: the compiled games are {', '.join(BY_NAME)}")
    return BY_NAME[key]
