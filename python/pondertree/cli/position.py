"""From what the user typed to a state, and from a state to words."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from pondertree import games
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.game import describe, move_text

#: Legal moves named in a complaint about a wrong one.
MOST_NAMED = 12

TITLES = {"tic-tac-toe": "Tic-tac-toe", "connect4": "Connect 4", "othello": "Othello", "chess": "Chess"}


@dataclass(frozen=True, slots=True)
class Position:
    """A state, with the name of its game and the moves that led to it."""

    game: str
    state: Any
    history: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The game's name, as people write it."""
        return TITLES.get(self.game, self.game)

    @property
    def players(self) -> tuple[str, str]:
        """What the two players are called."""
        return ("White", "Black") if self.game == "chess" else ("X", "O")

    @property
    def player(self) -> str:
        """Who is to move."""
        return self.players[self.state.to_play]

    @property
    def text(self) -> str:
        """The position in one string: a FEN in chess, else the board."""
        return str(self.state.fen()) if self.game == "chess" else self.board

    @property
    def is_compiled(self) -> bool:
        """Whether it is a game of ours."""
        return self.game in games.BY_NAME

    @property
    def board(self) -> str:
        """The board, without the last line, which says who is to move or how it ended; other games show themselves."""
        if not self.is_compiled:
            return str(self.state)
        return "\n".join(str(self.state).splitlines()[:-1])

    def play(self, action: int) -> Position:
        """The position after a move."""
        return Position(self.game, self.state.play(action), (*self.history, move_text(self.state, action)))

    def parse(self, text: str) -> int:
        """The action a user names; an exception in one line, with some legal moves, if it is none."""
        try:
            return int(self.state.parse_action(text)) if self.is_compiled else self._parse(text)
        except InvalidActionError as error:
            reason = str(error).split("; legal")[0].split(": legal")[0]
            raise InvalidActionError(f"{reason} (legal: {self.legal_text(MOST_NAMED)})") from None

    def _parse(self, text: str) -> int:
        """The same in a game written in Python, which may have no notation but the numbers of actions."""
        try:
            action = int(getattr(self.state, "parse_action", int)(text))
        except Exception:
            raise InvalidActionError(f"{text!r} is no move") from None
        if action not in [int(legal) for legal in self.state.legal_actions()]:
            raise InvalidActionError(f"{text!r} is not legal here")
        return action

    def legal_text(self, most: int | None = None) -> str:
        """The legal moves; at most so many."""
        moves = [move_text(self.state, action) for action in self.state.legal_actions()]
        more = "" if most is None or len(moves) <= most else f" and {len(moves) - most} more"
        return " ".join(moves[:most]) + more

    def outcome(self) -> str:
        """How the game ended, in words."""
        reason = str(getattr(self.state, "termination", None) or "").replace("_", " ")
        because = f" ({reason})" if reason else ""
        returns = self.state.returns()
        if returns[0] == returns[1]:
            return f"The game is a draw{because}."
        return f"{self.players[0 if returns[0] > returns[1] else 1]} wins{because}."


def read_position(game: str, moves: str | None, fen: str | None) -> Position:
    """The position of `GAME`, `--moves` and `--fen`."""
    kind = find_game(game)
    name = games.name_of(kind) or game
    if fen is None:
        position = Position(name, started(kind, name))
    elif name != "chess":
        raise InvalidArgumentError(f"--fen describes a chess position: give the moves of {name} with --moves")
    else:
        try:
            position = Position(name, kind(fen))
        except InvalidPositionError as error:
            raise InvalidPositionError(f"--fen: {error}") from None
    for number, text in enumerate((moves or "").split(), start=1):
        if position.state.is_terminal:
            raise InvalidActionError(f"--moves: the game is over before move {number}, {text!r}. {position.outcome()}")
        try:
            position = position.play(position.parse(text))
        except InvalidActionError as error:
            raise InvalidActionError(f"--moves, move {number}: {error}") from None
    return position


def find_game(name: str) -> Any:
    """What gives the starting state of a game; one in Python may lie where the command is given."""
    if name.startswith("gym:"):
        raise InvalidArgumentError(f"{name} is an environment, which has no rules to search or play by")
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return games.find(name)


def started(kind: Any, name: str) -> Any:
    """The starting state of a game of two players."""
    try:
        state = kind()
    except Exception as error:
        raise GameContractError(
            f"game {name!r} must give a starting state when called without arguments; "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    if not describe(state).is_plain:
        raise InvalidArgumentError(f"game {name!r}: commands are for two players with opposite results, no rewards")
    return state
