"""The compiled games: a class is called for its starting state, `Chess(fen)` for any position.

`connect_four` is the exact solver of Connect 4; `DictState` adapts dicts and a game of functions.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import Chess, ConnectFour, Othello, TicTacToe
from pondertree.errors import InvalidArgumentError
from pondertree.games import connect_four
from pondertree.games.dict_state import DictState

__all__ = [
    "BY_NAME",
    "Chess",
    "ConnectFour",
    "DictState",
    "Othello",
    "TicTacToe",
    "by_name",
    "connect_four",
    "find",
    "name_of",
    "packed_line",
]

#: The names of the games on the command line.
BY_NAME: dict[str, Any] = {
    "tic-tac-toe": TicTacToe,
    "connect4": ConnectFour,
    "othello": Othello,
    "chess": Chess,
}

#: The players' names: the marks on the printed board, in chess the colours.
_PLAYER_NAMES: dict[Any, tuple[str, str]] = {
    TicTacToe: ("X", "O"),
    ConnectFour: ("X", "O"),
    Othello: ("X", "O"),
    Chess: ("White", "Black"),
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
    """Returns the class of the game called `name`."""
    key = validation.text(name, "name").lower()
    key = _ALIASES.get(key, key)
    if key not in BY_NAME:
        raise InvalidArgumentError(f"unknown game {name!r}: the compiled games are {', '.join(BY_NAME)}")
    return BY_NAME[key]


def find(name: str) -> Any:
    """Returns the class of a compiled game, or the object at `module:Class` of a game written in Python."""
    module, colon, attribute = validation.text(name, "name").partition(":")
    if not colon:
        return by_name(name)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # any exception of importing a user's module
        reason = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise InvalidArgumentError(f"game {name!r} cannot be imported: {reason}") from error
    if not callable(found):
        raise InvalidArgumentError(f"game {name!r} must give a starting state when called")
    return found


def name_of(kind: Any) -> str | None:
    """Returns the canonical name of a compiled game; None for others."""
    return next((name for name, known in BY_NAME.items() if known is kind), None)


def packed_line(
    state: Any, actions: NDArray[np.uint16]
) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
    """Replays `actions` from a compiled state: (bit planes [N, P], scalars [N, S], players to move [N]) before each.

    Raises a `PondertreeError` for an illegal action. Without actions the arrays are empty and give P and S.
    """
    planes, scalars, players = state._line(actions)
    return planes, scalars, players


def player_names(kind: Any, count: int) -> tuple[str, ...]:
    """Returns the names of the players of a game; `kind` is a result of `find`."""
    if count == 1:
        return ("Player",)
    return _PLAYER_NAMES.get(kind) or tuple(f"Player {number}" for number in range(1, count + 1))
