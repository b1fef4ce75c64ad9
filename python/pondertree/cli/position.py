"""From what the user typed to a state, and from a state to words."""

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
from pondertree.game import GameInfo, check_rewards, describe, is_over, move_text, numbers, play
from pondertree.games.chess_interop import actions_written

#: Legal moves named in a complaint about a wrong one.
MOST_NAMED = 12

TITLES = {"tic-tac-toe": "Tic-tac-toe", "connect4": "Connect 4", "othello": "Othello", "chess": "Chess"}
#: Stands between moves of several words.
MOVE_SEPARATOR = ";"
#: The games there are, for messages.
KNOWN_GAMES = f"{', '.join(games.BY_NAME)}, or module:Class for a game written in Python"


@dataclass(frozen=True, slots=True)
class Position:
    """A state, with the name of its game, the moves that led to it and the rewards they paid each player."""

    game: str
    state: Any
    history: tuple[str, ...] = ()
    """The moves as `parse` reads them: their texts, or the numbers of actions whose texts it would not read so."""
    rewards: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """The game's name, as people write it."""
        return TITLES.get(self.game, self.game.rpartition(":")[2])

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return describe(self.state)

    @property
    def players(self) -> tuple[str, ...]:
        """What the players are called."""
        return games.player_names(type(self.state), self.info.num_players)

    @property
    def player(self) -> str:
        """Who is to move."""
        return self.players[int(self.state.to_play)]

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

    def write(self, action: int) -> str:
        """An action as people read it: in chess, standard algebraic notation."""
        return str(self.state.san(action)) if self.game == "chess" else move_text(self.state, action)

    def write_line(self, moves: Iterable[str]) -> list[str]:
        """A line of moves in the game's own notation, as people read it: in chess, standard algebraic notation."""
        if self.game != "chess":
            return list(moves)
        state, texts = self.state, []
        for move in moves:
            action = state.parse_action(move)
            texts.append(str(state.san(action)))
            state = state.play(action)
        return texts

    def play(self, action: int) -> Position:
        """The position after a move."""
        info = self.info
        after = self.state.play(action) if info.compiled else play(self.state, action, info.name)
        rewards: tuple[float, ...] = ()
        if info.has_rewards:
            paid = check_rewards(after.rewards(), info)
            rewards = tuple(map(sum, zip(self.rewards or (0.0,) * info.num_players, paid, strict=True)))
        return Position(self.game, after, (*self.history, self.name(action)), rewards)

    def name(self, action: int) -> str:
        """The text of a legal action, or its number where the text would not be read as that action in `--moves`."""
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
        """The moves so far as `--moves` takes them."""
        return join_moves(self.history)

    def parse(self, text: str) -> int:
        """The action a user names; an exception in one line, with some legal moves, if it is none."""
        try:
            return int(self.state.parse_action(text)) if self.is_compiled else self._parse(text)
        except InvalidActionError as error:
            reason = str(error).split("; legal")[0].split(": legal")[0]
            raise InvalidActionError(f"{reason} (legal: {self.legal_text(MOST_NAMED)})") from None

    def _parse(self, text: str) -> int:
        """The same in a game written in Python."""
        action = self._read(text)
        if action is None:
            raise InvalidActionError(f"{text!r} is no move")
        if not self._is_legal(action):
            raise InvalidActionError(f"{text!r} is not legal here")
        return action

    def _read(self, text: str) -> int | None:
        """The action that a text names in a game written in Python, which may not be legal; None where it names none.

        The game's `parse_action` reads it, then it is compared with the texts of the legal actions. What neither knows
        may be the number of an action.
        """
        read: int | None = None
        if hasattr(self.state, "parse_action"):
            # A game may raise anything for a text that it does not know.
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
        """The first move in the words of `--moves`, and how many of them it takes.

        It is the longest text of a legal action; where none is there, the shortest that can be read.
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

    def legal_moves(self) -> list[str]:
        """The legal moves, as people read them."""
        return [self.write(int(action)) for action in self.state.legal_actions()]

    def legal_text(self, most: int | None = None) -> str:
        """The legal moves in one line, at most `most` of them."""
        moves = self.legal_moves()
        more = "" if most is None or len(moves) <= most else f" and {len(moves) - most} more"
        return join_moves(moves[:most]) + more

    def outcome(self) -> str:
        """How the game ended, in words."""
        info = self.info
        reason = str(getattr(self.state, "termination", None) or "").replace("_", " ")
        because = f" ({reason})" if reason else ""
        scores = self.rewards or (0.0,) * info.num_players
        if not info.has_rewards:
            scores = numbers(self.state.returns(), info, "returns()")
        if info.num_players == 1:
            return f"The game is over{because}. {'Total reward' if info.has_rewards else 'Result'}: {scores[0]:.4g}."
        best = [player for player, score in zip(self.players, scores, strict=True) if score == max(scores)]
        told = f"The game is a draw{because}." if len(best) == len(scores) else f"{join(best)} wins{because}."
        if len(best) > 1 and len(best) < len(scores):
            told = f"{join(best)} share the win{because}."
        return told if info.is_plain else f"{told} Final scores: {self.scores_text(scores)}."

    def scores_text(self, scores: Sequence[float]) -> str:
        """One number per player, with the players' names; the number alone where there is one."""
        if len(scores) == 1:
            return f"{scores[0]:.4g}"
        return ", ".join(f"{player} {score:.4g}" for player, score in zip(self.players, scores, strict=True))


def join(names: Sequence[str]) -> str:
    """Names in a sentence: "X", "X and O", "X, Y and Z"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def join_moves(moves: Sequence[str]) -> str:
    """Moves in one line, as `--moves` takes them: with semicolons between them where a move has several words."""
    between = f"{MOVE_SEPARATOR} " if any(len(move.split()) > 1 for move in moves) else " "
    return between.join(moves)


def read_position(game: str | None, moves: str | None, fen: str | None) -> Position:
    """The position of `GAME`, `--moves` and `--fen`."""
    if game is None:
        raise InvalidArgumentError(f"no GAME was given: name one of {KNOWN_GAMES}")
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
    return play_moves(position, moves or "")


#: The number of a move in a game score, such as "1." and "12...".
MOVE_NUMBER = re.compile(r"(?<!\S)\d+\.+")


def play_moves(position: Position, moves: str) -> Position:
    """The position after the moves of `--moves`: words, or parts with semicolons between them."""
    is_separated = MOVE_SEPARATOR in moves
    if position.game == "chess":
        moves = MOVE_NUMBER.sub(" ", moves)
    left = [part.strip() for part in moves.split(MOVE_SEPARATOR) if part.strip()] if is_separated else moves.split()
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
            raise InvalidActionError(f"--moves, move {number}: {error}") from None
        left = left[taken:]
    return position


def find_game(name: str) -> Any:
    """What gives the starting state of a game; one in Python may lie where the command is given."""
    if name.startswith("gym:"):
        raise InvalidArgumentError(f"{name} is an environment, which has no rules to search or play by")
    if ":" in name:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        try:
            return games.find(name)
        except InvalidArgumentError as error:
            if error.__cause__ is None:
                raise
            # What the module raised is reported with its place, as what a game raises.
            raise GameContractError(str(error)) from error.__cause__
    try:
        return games.find(name)
    except InvalidArgumentError:
        near = difflib.get_close_matches(name.lower(), games.BY_NAME, 1)
        if name.endswith(".py"):
            near = [f"{name.removesuffix('.py').replace('/', '.')}:Class, with the name of your class"]
        guess = f", did you mean {near[0]}?" if near else "."
        raise InvalidArgumentError(f"unknown game {name!r}{guess} The games are {KNOWN_GAMES}") from None


def started(kind: Any, name: str) -> Any:
    """The starting state of a game."""
    try:
        state = kind()
    except Exception as error:
        raise GameContractError(
            f"game {name!r} must give a starting state when called without arguments; "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    describe(state)
    return state
