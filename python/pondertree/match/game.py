"""One game: who moves, what ends it, and whose fault it is if somebody fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pondertree import validation
from pondertree._core import Chess
from pondertree.errors import InvalidArgumentError, PlayerError
from pondertree.game import is_over, move_text
from pondertree.match.notation import parse_move
from pondertree.match.openings import Opening
from pondertree.match.players import Player, PlayerFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRecord:
    """A game that was played."""

    number: int
    """From 0. Games 2i and 2i + 1 are a pair: the same opening, the players' sides exchanged."""
    first: int
    """The player who moves first from the start (White in chess): 1 or 2."""
    points: float
    """For player 1: 1, 0.5 or 0."""
    reason: str
    """How it ended: "finished" or the game's own word for it ("checkmate"), or "max_plies", "resigned",
    "draw_agreed"; or, where a player failed, "illegal_move", "died" or "timeout"."""
    fen: str | None
    """Where it began, if not at the start."""
    moves: tuple[str, ...]
    """All moves, the opening's included."""
    opening: int
    """How many of them are the opening's."""
    seconds: tuple[float, ...]
    """What each move after the opening took."""
    values: tuple[float | None, ...]
    """What the player thought when it made it, from -1 to 1, for itself."""
    culprit: int | None = None
    """The player who failed, 1 or 2."""
    detail: str = ""
    """What it did."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GameRecord:
        """The same from plain data."""
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
    """None, or a text."""
    return None if value is None else validation.text(value, name)


def texts(value: Any, name: str) -> tuple[str, ...]:
    """A list of texts."""
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
    """Plays one game from `root` through the opening to its end; players, names and seeds are those of 1 and 2."""
    board = _Board(root, players, names, number, first)
    board.begin(seeds)
    for text in opening.moves:
        board.play(parse_move(board.state, text))
    result, reason, culprit, detail = board.to_the_end(adjudication, on_failure)
    return GameRecord(
        number=number,
        first=first,
        points=(1 + (result if first == 1 else -result)) / 2,
        reason=reason,
        fen=opening.fen,
        moves=tuple(board.moves),
        opening=len(opening.moves),
        seconds=tuple(board.seconds),
        values=tuple(board.thoughts),
        culprit=culprit,
        detail=detail,
    )


#: The result for the side that moves first, why, whose fault it is, and what that player did.
End = tuple[int, str, int | None, str]


class _Board:
    """A game under way. A seat is 0 or 1, as in `state.to_play`; a player is 1 or 2."""

    def __init__(self, root: Any, players: Sequence[Player], names: Sequence[str], number: int, first: int) -> None:
        self.root = self.state = root
        self.seated = (1, 2) if first == 1 else (2, 1)
        self.players = [players[who - 1] for who in self.seated]
        self.names = [f"{names[who - 1]} (player {who})" for who in self.seated]
        self.number = number
        self.moves: list[str] = []
        self.seconds: list[float] = []
        self.thoughts: list[float | None] = []
        self.values: tuple[list[float | None], list[float | None]] = ([], [])

    @contextmanager
    def blaming(self, seat: int) -> Iterator[None]:
        """What a player raises here names it and the game."""
        try:
            yield
        except PlayerFailure:
            raise
        except Exception as error:
            raise PlayerError(
                f"{self.names[seat]} raised {type(error).__name__} in game {self.number} "
                f"after {len(self.moves)} moves: {error}"
            ) from error

    def begin(self, seeds: Sequence[int]) -> None:
        """Tells both players. Who cannot begin will not begin the next game either: that ends the match."""
        for seat in (0, 1):
            try:
                with self.blaming(seat):
                    self.players[seat].new_game(self.root, seeds[self.seated[seat] - 1])
            except PlayerFailure as failure:
                raise PlayerError(f"{self.names[seat]} cannot be started: {failure.detail}") from failure

    def play(self, action: int) -> None:
        """Makes a move on the board, and tells both players of it."""
        for seat in (0, 1):
            with self.blaming(seat):
                self.players[seat].played(self.state, action)
        self.moves.append(move_text(self.state, action))
        self.state = self.state.play(action)

    def to_the_end(self, adjudication: Adjudication, on_failure: str) -> End:
        """Move after move, until the game ends or is ended."""
        while not is_over(self.state):
            claim = claimed_draw(self.state)
            if claim is not None:
                return 0, claim, None, ""
            seat = self.state.to_play
            try:
                self.turn(seat)
            except PlayerFailure as failure:
                if on_failure == "error":
                    raise PlayerError(
                        f"{self.names[seat]} failed in game {self.number} after {len(self.moves)} moves "
                        f"({failure.reason}): {failure.detail}"
                    ) from failure
                return 2 * seat - 1, failure.reason, self.seated[seat], failure.detail
            if not is_over(self.state):
                verdict = adjudication.verdict(self.values[seat], self.values[1 - seat], len(self.moves))
                if verdict is not None:
                    return (verdict[0] if seat == 0 else -verdict[0]), verdict[1], None, ""
        returns = self.state.returns()
        result = (returns[0] > returns[1]) - (returns[0] < returns[1])
        return result, getattr(self.state, "termination", None) or "finished", None, ""

    def turn(self, seat: int) -> None:
        """One move of the player in a seat."""
        begun = time.perf_counter()
        with self.blaming(seat):
            choice = self.players[seat].choose(self.state)
            if choice.action not in self.state.legal_actions():
                raise PlayerFailure("illegal_move", f"{choice.action} is no legal action after {len(self.moves)} moves")
        self.seconds.append(round(time.perf_counter() - begun, 4))
        value = None if choice.value is None else round(choice.value, 4)
        self.values[seat].append(value)
        self.thoughts.append(value)
        self.play(choice.action)


#: What one side has thought of its positions, move by move; None where it had no opinion.
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """When a game is ended from outside. Values are those the players give, from -1 to 1, each for its own side."""

    max_plies: int = 1000
    """A game with so many moves, the opening's included, is cut and counted as a draw."""
    resign: float | None = None
    """A side that finds its position worth at most minus this has lost, after `resign_moves` such moves in a row."""
    resign_moves: int = 3
    draw: float | None = None
    """A game is drawn when both sides find it worth at most this, either way, for `draw_moves` moves in a row."""
    draw_moves: int = 8
    draw_after: int = 40
    """No such draw before so many plies."""
    agree: bool = True
    """The winner must agree with a resignation: it too has found the game won for as many moves."""

    def __post_init__(self) -> None:
        for name in ("max_plies", "resign_moves", "draw_moves"):
            object.__setattr__(self, name, validation.count(getattr(self, name), name))
        object.__setattr__(self, "draw_after", validation.whole_number(self.draw_after, "draw_after"))
        for name in ("resign", "draw"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, validation.number(getattr(self, name), name, least=0.0, most=1.0))
        object.__setattr__(self, "agree", validation.flag(self.agree, "agree"))

    def verdict(self, mine: Values, other: Values, plies: int) -> tuple[int, str] | None:
        """(result for the side that has just moved, reason), or None if the game goes on."""
        bound = self.resign
        if bound is not None:
            given_up = _all(mine, self.resign_moves, lambda value: value <= -bound)
            if given_up and (not self.agree or _all(other, self.resign_moves, lambda value: value >= bound)):
                return -1, "resigned"
        near = self.draw
        if near is not None and plies >= self.draw_after:
            calm = [_all(side, self.draw_moves, lambda value: abs(value) <= near) for side in (mine, other)]
            if all(calm):
                return 0, "draw_agreed"
        return (0, "max_plies") if plies >= self.max_plies else None


def claimed_draw(state: Any) -> str | None:
    """Why a game of chess is drawn if somebody says so, as an arbiter of engines always does; None elsewhere."""
    if not isinstance(state, Chess):
        return None
    if state.repetitions >= 2:
        return "threefold_repetition"
    # The clock is the fifth field of a FEN.
    return "fifty_moves" if int(state.fen().split()[4]) >= 100 else None


def _all(values: Values, moves: int, holds: Callable[[float], bool]) -> bool:
    """Whether the last `moves` values are known, and it holds of each."""
    last = values[-moves:]
    return len(last) == moves and all(value is not None and holds(value) for value in last)
