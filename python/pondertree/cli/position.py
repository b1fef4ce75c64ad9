"""Positions of the command line: parsing of games and moves, and their textual form."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pondertree import games
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.game import (
    COMPILED,
    MOVE_SEPARATOR,
    GameInfo,
    check_rewards,
    describe,
    is_over,
    join_moves,
    move_text,
    play,
    player_numbers,
    split_moves,
    state_text,
)
from pondertree.games.chess_interop import actions_written

#: Number of legal moves listed in an error message.
MAX_LISTED = 12
#: The games, for messages.
KNOWN_GAMES = f"{games.KNOWN}, or module:Class for a game written in Python"


@dataclass(frozen=True, slots=True)
class Position:
    """A state with the name of its game, its move history and the rewards so far."""

    game: str
    state: Any
    history: tuple[str, ...] = ()
    """The moves as `parse` reads them: texts, or action numbers where a text is ambiguous."""
    rewards: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """The display name of the game."""
        game = COMPILED.get(type(self.state))
        name, _, last = self.game.rpartition(":")
        return last if game is None else f"{game.title} {last}x{last}" if name else game.title

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return describe(self.state)

    @property
    def players(self) -> tuple[str, ...]:
        """The names of the players."""
        return games.player_names(type(self.state), self.info.num_players)

    @property
    def player(self) -> str:
        """The name of the player to move."""
        return self.players[int(self.state.to_play)]

    @property
    def text(self) -> str:
        """The position as text: a FEN in chess, else the board."""
        return str(self.state.fen()) if self.game == "chess" else self.board

    @property
    def is_compiled(self) -> bool:
        """Whether the game is compiled."""
        return type(self.state) in COMPILED

    @property
    def board(self) -> str:
        """The board, without the line on who moves in compiled games (unless it shows the dice); else `str(state)`."""
        if not self.is_compiled or COMPILED[type(self.state)].has_chance:
            return state_text(self.state)
        return "\n".join(str(self.state).splitlines()[:-1])

    def write(self, action: int) -> str:
        """Returns the text of an action; in chess, standard algebraic notation."""
        return str(self.state.san(action)) if self.game == "chess" else move_text(self.state, action)

    def write_line(self, moves: Iterable[str]) -> list[str]:
        """Converts a line of moves to the notation of `write`."""
        if self.game != "chess":
            return list(moves)
        state, texts = self.state, []
        for move in moves:
            action = state.parse_action(move)
            texts.append(str(state.san(action)))
            state = state.play(action)
        return texts

    def play(self, action: int) -> Position:
        """Returns the position after a move."""
        info = self.info
        after = self.state.play(action) if info.compiled else play(self.state, action, info.name)
        rewards: tuple[float, ...] = ()
        if info.has_rewards:
            paid = check_rewards(after.rewards(), info)
            rewards = tuple(map(sum, zip(self.rewards or (0.0,) * info.num_players, paid, strict=True)))
        return Position(self.game, after, (*self.history, self.name(action)), rewards)

    def name(self, action: int) -> str:
        """Returns the text of a legal action, or its number if `--moves` would not parse the text as that action."""
        text = self.write(action)
        if self.is_compiled:
            return text
        words = text.split()
        text = " ".join(words)
        longer = any(other.split()[: len(words)] == words != other.split() for other in self.legal_moves())
        is_read = bool(text) and not longer and MOVE_SEPARATOR not in text and self._read(text) == action
        return text if is_read else str(action)

    @property
    def moves(self) -> str:
        """The moves so far, in the form of `--moves`."""
        return join_moves(self.history)

    def parse(self, text: str) -> int:
        """Parses a move; errors are one line with some legal moves."""
        try:
            return int(self.state.parse_action(text)) if self.is_compiled else self._parse(text)
        except InvalidActionError as error:
            reason = str(error).split("; legal")[0].split(": legal")[0]
            if self.is_compiled:
                # Users know the name of the command line.
                reason = reason.removesuffix(self.info.name) + self.game * reason.endswith(self.info.name)
            raise InvalidActionError(f"{reason} (legal: {self.legal_text(MAX_LISTED)})") from None

    def _parse(self, text: str) -> int:
        """Parses a move of a game written in Python."""
        action = self._read(text)
        if action is None:
            raise InvalidActionError(f"{text!r} is no move")
        if not self._is_legal(action):
            raise InvalidActionError(f"{text!r} is not legal here")
        return action

    def _read(self, text: str) -> int | None:
        """Reads an action, possibly illegal, of a game written in Python; None if the text is invalid.

        Tries the game's `parse_action`, the texts of the legal actions, and the number of an action, in this order.
        """
        read: int | None = None
        if hasattr(self.state, "parse_action"):
            # A game may raise any exception for an unknown text.
            with contextlib.suppress(Exception):
                read = int(self.state.parse_action(text))
        if read is not None and self._is_legal(read):
            return read
        written = actions_written(self.state, text)
        if len(written) == 1:
            return written[0]
        if read is None:
            with contextlib.suppress(ValueError):
                read = int(text)
        return read

    def _is_legal(self, action: int) -> bool:
        return action in [int(legal) for legal in self.state.legal_actions()]

    def first_move(self, words: Sequence[str]) -> tuple[str, int]:
        """Returns the first move in the words of `--moves`, and its number of words.

        The longest text of a legal action matches; else the shortest text that can be parsed.
        """
        if self.is_compiled:
            return words[0], 1
        legal = [text.split() for text in self.legal_moves()]
        longest = max(map(len, legal), default=1)
        counts = range(1, min(longest, len(words)) + 1)
        for count in reversed(counts):
            if list(words[:count]) in legal:
                return " ".join(words[:count]), count
        for count in counts:
            action = self._read(" ".join(words[:count]))
            if action is not None and self._is_legal(action):
                return " ".join(words[:count]), count
        return words[0], 1

    def is_one_move(self, text: str) -> bool:
        """Whether a text of several words is one move of a compiled game; others are matched by `first_move`."""
        if self.is_compiled:
            with contextlib.suppress(InvalidActionError):
                return self._is_legal(self.state.parse_action(text))
        return False

    def legal_moves(self) -> list[str]:
        """Returns the texts of the legal moves."""
        return [self.write(int(action)) for action in self.state.legal_actions()]

    def legal_text(self, most: int | None = None) -> str:
        """Returns the legal moves in one line, at most `most` of them."""
        moves = self.legal_moves()
        more = "" if most is None or len(moves) <= most else f" and {len(moves) - most} more"
        return join_moves(moves[:most]) + more

    def outcome(self) -> str:
        """Describes the outcome of a finished game."""
        info = self.info
        reason = str(getattr(self.state, "termination", None) or "").replace("_", " ")
        because = f" ({reason})" if reason else ""
        scores = self.rewards or (0.0,) * info.num_players
        if not info.has_rewards:
            scores = player_numbers(self.state.returns(), info, "returns()")
        if info.num_players == 1:
            return f"The game is over{because}. {'Total reward' if info.has_rewards else 'Result'}: {scores[0]:.4g}."
        best = [player for player, score in zip(self.players, scores, strict=True) if score == max(scores)]
        text = f"The game is a draw{because}." if len(best) == len(scores) else f"{join(best)} wins{because}."
        if len(best) > 1 and len(best) < len(scores):
            text = f"{join(best)} share the win{because}."
        return text if info.is_two_player_zero_sum else f"{text} Final scores: {self.scores_text(scores)}."

    def scores_text(self, scores: Sequence[float]) -> str:
        """Returns one number per player with the players' names; for a single player the number."""
        if len(scores) == 1:
            return f"{scores[0]:.4g}"
        return ", ".join(f"{player} {score:.4g}" for player, score in zip(self.players, scores, strict=True))


def join(names: Sequence[str]) -> str:
    """Joins names: "X", "X and O", "X, Y and Z"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def read_position(game: str | None, moves: str | None, fen: str | None) -> Position:
    """Returns the position of `GAME`, `--moves` and `--fen`."""
    if game is None:
        raise InvalidArgumentError(f"no GAME was given: name one of {KNOWN_GAMES}")
    kind = find_game(game)
    name = games.name_of(kind) or game
    if fen is None:
        position = Position(name, games.started(kind, name))
        describe(position.state)  # raises for anything but a state
    elif name != "chess":
        raise InvalidArgumentError(f"--fen describes a chess position: give the moves of {name} with --moves")
    else:
        try:
            position = Position(name, kind(fen))
        except InvalidPositionError as error:
            raise InvalidPositionError(f"--fen: {error}") from None
    return play_moves(position, moves or "")


#: A move number in a game score, such as "1." or "12...".
MOVE_NUMBER = re.compile(r"(?<!\S)\d+\.+")


def play_moves(position: Position, moves: str) -> Position:
    """Returns the position after the moves of `--moves`, separated by spaces or semicolons."""
    is_separated = MOVE_SEPARATOR in moves
    if position.game == "chess":
        moves = MOVE_NUMBER.sub(" ", moves)
    left = split_moves(moves)
    if len(left) > 1 and not is_separated and position.is_one_move(moves.strip()):
        left, is_separated = [moves.strip()], True
    number = 0
    while left:
        number += 1
        if is_over(position.state):
            raise InvalidActionError(
                f"--moves: the game is over before move {number}, {left[0]!r}. {position.outcome()}"
            )
        text, taken = (left[0], 1) if is_separated else position.first_move(left)
        try:
            position = position.play(position.parse(text))
        except InvalidActionError as error:
            hint = ""
            if not is_separated and any(len(move.split()) > 1 for move in position.legal_moves()):
                hint = f"; moves are separated by {MOVE_SEPARATOR!r} if one has several words"
            raise InvalidActionError(f"--moves, move {number}: {error}{hint}") from None
        left = left[taken:]
    return position


def find_game(name: str) -> Any:
    """Returns the factory of a game's initial states; modules are also found in the working directory."""
    if name.startswith("gym:"):
        raise InvalidArgumentError(f"{name} is an environment, which has no rules to search or play by")
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return games.find(name)
    except InvalidArgumentError as error:
        if error.__cause__ is not None:
            # An exception of the module is reported with its location, like one of a game.
            raise GameContractError(str(error)) from error.__cause__
        if ":" in name:
            raise
        near = difflib.get_close_matches(name.lower(), games.BY_NAME, 1)
        if name.endswith(".py"):
            near = [f"{name.removesuffix('.py').replace('/', '.')}:Class, with the name of your class"]
        guess = f", did you mean {near[0]}?" if near else "."
        raise InvalidArgumentError(f"unknown game {name!r}{guess} The games are {KNOWN_GAMES}") from None
