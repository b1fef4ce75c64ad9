"""One game of a match: play, adjudication, and attribution of player failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pondertree import validation
from pondertree._core import Chess
from pondertree.config import bounded_float, option
from pondertree.errors import InvalidArgumentError, PlayerError
from pondertree.game import CHANCE, is_over, move_text
from pondertree.games.chance import draw_outcome
from pondertree.match.notation import parse_move
from pondertree.match.openings import Opening
from pondertree.match.players import Player, PlayerFailure
from pondertree.random import OUTCOME, Random, fold


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRecord:
    """A finished game."""

    number: int
    """From 0. Games 2i and 2i + 1 are a pair: the same opening with sides exchanged."""
    first: int
    """The player who moves first (White in chess): 1 or 2."""
    points: float
    """For player 1: 1, 0.5 or 0."""
    reason: str
    """The termination: "finished" or the game's own reason ("checkmate"); "max_plies", "resigned" or "draw_agreed" by
    adjudication; "illegal_move", "died" or "timeout" after a player failure."""
    fen: str | None
    """The starting position, if not the standard one."""
    moves: tuple[str, ...]
    """All moves, the opening included."""
    opening: int
    """Number of opening moves."""
    seconds: tuple[float, ...]
    """Seconds per move after the opening."""
    values: tuple[float | None, ...]
    """The player's evaluation before each move after the opening, in [-1, 1], for itself."""
    culprit: int | None = None
    """The player that failed, 1 or 2."""
    detail: str = ""
    """Description of the failure."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GameRecord:
        """Validates and converts plain data."""
        moves = texts(data["moves"], "moves")
        opening = validation.whole_number(data["opening"], "opening", most=len(moves))
        seconds = tuple(validation.number(one, "seconds", least=0.0) for one in data["seconds"])
        values = tuple(None if one is None else validation.number(one, "values") for one in data["values"])
        if not len(seconds) == len(values) == len(moves) - opening:
            raise InvalidArgumentError(f"seconds and values must be {len(moves) - opening}, one for each move played")
        points, culprit = validation.number(data["points"], "points"), data.get("culprit")
        if points not in (0.0, 0.5, 1.0):
            raise InvalidArgumentError(f"points must be 0, 0.5 or 1, not {points}")
        return cls(
            number=validation.whole_number(data["number"], "number"),
            first=validation.whole_number(data["first"], "first", least=1, most=2),
            points=points,
            reason=validation.text(data["reason"], "reason"),
            fen=optional_text(data["fen"], "fen"),
            moves=moves,
            opening=opening,
            seconds=seconds,
            values=values,
            culprit=None if culprit is None else validation.whole_number(culprit, "culprit", least=1, most=2),
            detail=validation.text(data.get("detail", ""), "detail"),
        )


def optional_text(value: Any, name: str) -> str | None:
    """Validates an optional text."""
    return None if value is None else validation.text(value, name)


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Validates a list of texts."""
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(f"{name} must be a list, not {validation.shown(value)}")
    return tuple(validation.text(one, name) for one in value)


def play_game(
    root: Any,
    opening: Opening,
    players: Sequence[Player],
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    number: int,
    first: int,
    adjudication: Adjudication,
    on_failure: str = "loss",
) -> GameRecord:
    """Plays one game from `root` through the opening to its end; players, names and seeds are in the order 1, 2."""
    game = _GameInProgress(root, players, names, number, first)
    game.begin(seeds)
    for text in opening.moves:
        game.play(parse_move(game.state, text))
    result, reason, culprit, detail = game.play_to_end(adjudication, on_failure)
    return GameRecord(
        number=number,
        first=first,
        points=(1 + (result if first == 1 else -result)) / 2,
        reason=reason,
        fen=opening.fen,
        moves=tuple(game.moves),
        opening=len(opening.moves),
        seconds=tuple(game.seconds),
        values=tuple(game.evaluations),
        culprit=culprit,
        detail=detail,
    )


#: (result for the side that moves first, reason, player that failed, description of the failure).
End = tuple[int, str, int | None, str]


class _GameInProgress:
    """A game in progress. A side is 0 or 1, as in `state.to_play`; a player is 1 or 2."""

    def __init__(self, root: Any, players: Sequence[Player], names: Sequence[str], number: int, first: int) -> None:
        self.root = self.state = root
        self.player_numbers = (1, 2) if first == 1 else (2, 1)
        self.players = [players[number - 1] for number in self.player_numbers]
        self.names = [f"{names[number - 1]} (player {number})" for number in self.player_numbers]
        self.number = number
        self.moves: list[str] = []
        self.seconds: list[float] = []
        self.evaluations: list[float | None] = []
        self.values: tuple[list[float | None], list[float | None]] = ([], [])

    @contextmanager
    def _attributing_errors(self, side: int) -> Iterator[None]:
        """Converts exceptions of a player to a PlayerError that names it and the game."""
        try:
            yield
        except PlayerFailure:
            raise
        except Exception as error:
            raise PlayerError(
                f"{self.names[side]} raised {type(error).__name__} in game {self.number} "
                f"after {len(self.moves)} moves: {error}"
            ) from error

    def begin(self, seeds: Sequence[int]) -> None:
        """Starts the game for both players; a failure here would repeat in every game and ends the match."""
        self.numbers = Random(fold(seeds[0], seeds[1]), OUTCOME)
        for side in (0, 1):
            try:
                with self._attributing_errors(side):
                    self.players[side].new_game(self.root, seeds[self.player_numbers[side] - 1])
            except PlayerFailure as failure:
                raise PlayerError(f"{self.names[side]} cannot be started: {failure.detail}") from failure

    def play(self, action: int) -> None:
        """Plays a move and notifies both players."""
        for side in (0, 1):
            with self._attributing_errors(side):
                self.players[side].played(self.state, action)
        self.moves.append(move_text(self.state, action))
        self.state = self.state.play(action)

    def play_outcome(self) -> None:
        """Plays an outcome of a chance node by its probability; it takes no time and has no evaluation."""
        self.seconds.append(0.0)
        self.evaluations.append(None)
        self.play(draw_outcome(self.state, self.numbers))

    def play_to_end(self, adjudication: Adjudication, on_failure: str) -> End:
        """Plays until the game ends or is adjudicated."""
        while not is_over(self.state):
            claim = claimed_draw(self.state)
            if claim is not None:
                return 0, claim, None, ""
            side = self.state.to_play
            if side == CHANCE:
                self.play_outcome()
                continue
            try:
                self.play_turn(side)
            except PlayerFailure as failure:
                if on_failure == "error":
                    raise PlayerError(
                        f"{self.names[side]} failed in game {self.number} after {len(self.moves)} moves "
                        f"({failure.reason}): {failure.detail}"
                    ) from failure
                return 2 * side - 1, failure.reason, self.player_numbers[side], failure.detail
            if not is_over(self.state):
                verdict = adjudication.verdict(self.values[side], self.values[1 - side], len(self.moves))
                if verdict is not None:
                    return (verdict[0] if side == 0 else -verdict[0]), verdict[1], None, ""
        returns = self.state.returns()
        result = (returns[0] > returns[1]) - (returns[0] < returns[1])
        return result, getattr(self.state, "termination", None) or "finished", None, ""

    def play_turn(self, side: int) -> None:
        """Plays one move of a side."""
        started = time.perf_counter()
        with self._attributing_errors(side):
            choice = self.players[side].choose(self.state)
            if choice.action not in self.state.legal_actions():
                raise PlayerFailure("illegal_move", f"{choice.action} is illegal after {len(self.moves)} moves")
        self.seconds.append(round(time.perf_counter() - started, 4))
        value = None if choice.value is None else round(choice.value, 4)
        self.values[side].append(value)
        self.evaluations.append(value)
        self.play(choice.action)


#: One side's evaluations by move; None where unknown.
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """Rules that end a game early, by the players' evaluations in [-1, 1], each for its own side."""

    max_plies: int = option(1000, validation.count)
    """Number of plies, the opening included, after which a game is a draw."""
    resign: float | None = option(None, bounded_float(0.0, 1.0), optional=True)
    """A side resigns after `resign_moves` consecutive evaluations of at most minus this value."""
    resign_moves: int = option(3, validation.count)
    draw: float | None = option(None, bounded_float(0.0, 1.0), optional=True)
    """A game is a draw after `draw_moves` consecutive evaluations of both sides within plus or minus this value."""
    draw_moves: int = option(8, validation.count)
    draw_after: int = option(40, validation.whole_number)
    """Number of plies before which no draw is adjudicated."""
    agree: bool = option(True, validation.flag)
    """Whether a resignation requires that the opponent's evaluations agree."""

    def __post_init__(self) -> None:
        validation.check_fields(self)

    def verdict(self, mine: Values, other: Values, plies: int) -> tuple[int, str] | None:
        """Returns (result for the side that has just moved, reason), or None if the game continues."""
        bound = self.resign
        if bound is not None:
            is_lost = _all(mine, self.resign_moves, lambda value: value <= -bound)
            if is_lost and (not self.agree or _all(other, self.resign_moves, lambda value: value >= bound)):
                return -1, "resigned"
        margin = self.draw
        if margin is not None and plies >= self.draw_after:
            is_even = [_all(side, self.draw_moves, lambda value: abs(value) <= margin) for side in (mine, other)]
            if all(is_even):
                return 0, "draw_agreed"
        return (0, "max_plies") if plies >= self.max_plies else None


def claimed_draw(state: Any) -> str | None:
    """Returns the reason of a claimable draw in chess, which is always claimed; None otherwise."""
    if not isinstance(state, Chess):
        return None
    if state.repetitions >= 2:
        return "threefold_repetition"
    # The halfmove clock is the fifth field of a FEN.
    return "fifty_moves" if int(state.fen().split()[4]) >= 100 else None


def _all(values: Values, moves: int, holds: Callable[[float], bool]) -> bool:
    """Whether the last `moves` values are known and satisfy a predicate."""
    last = values[-moves:]
    return len(last) == moves and all(value is not None and holds(value) for value in last)
