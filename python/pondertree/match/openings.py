"""Openings of a match, each played twice with sides exchanged.

They are random (a few random plies, accepted if a short search finds the position balanced), or read from a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree._core import Chess
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.files import reading
from pondertree.game import CHANCE, COMPILED, describe, is_over, join_moves, move_text, split_moves
from pondertree.games.chance import draw_outcome
from pondertree.match.notation import parse_move, read_epd, read_pgn
from pondertree.presets import UCT
from pondertree.random import PLAYOUT, Random, fold

#: Random plies of an opening in games written in Python.
OTHER_PLIES = 2
#: Simulations of the search that checks a random opening, and the accepted absolute value.
BALANCE_SIMULATIONS = 100
BALANCE = 0.4
#: In chess, where random playouts hardly detect a hanging queen, the check is PeSTO at depth 2. A strong engine finds
#: nine in ten of 40 openings of 8 plies within one pawn of even; without the check, within 4.4 pawns.
CHESS_PLIES = 2
CHESS_BALANCE = 0.15
#: Attempts before a repeated or unbalanced opening is accepted.
MAX_ATTEMPTS = 40


@dataclass(frozen=True, slots=True)
class Opening:
    """Moves from the initial state, or from another start: a chess position, "roll" in backgammon."""

    moves: tuple[str, ...] = ()
    fen: str | None = None
    """The argument of the game's constructor that names the start."""

    def root(self, factory: Callable[[], Any]) -> Any:
        """Returns the state before the moves."""
        return factory() if self.fen is None else factory(self.fen)  # type: ignore[call-arg]

    def state(self, factory: Callable[[], Any]) -> Any:
        """Returns the state after the moves."""
        state = self.root(factory)
        for number, text in enumerate(self.moves, start=1):
            if is_over(state):
                raise InvalidArgumentError(f"the game is over before move {number}, {text!r}")
            try:
                state = state.play(parse_move(state, text))
            except PondertreeError as error:
                raise type(error)(f"move {number}: {error}") from None
        return state


class RandomOpenings:
    """Random openings. Opening `i` is a function of the seed, of `i` and of the previous openings."""

    def __init__(self, factory: Callable[[], Any], seed: int, plies: int) -> None:
        self._factory = factory
        self._key = fold(seed, PLAYOUT)
        self._plies = validation.whole_number(plies, "plies", most=10_000)
        self._drawn: list[Opening] = []
        self._seen: set[str] = set()

    @property
    def text(self) -> str:
        """The description in match records."""
        return f"random, {self._plies} plies"

    def restore(self, number: int, opening: Opening) -> None:
        """Restores opening `number` from a record; called in order."""
        if number == len(self._drawn):
            self._add(opening)

    def __getitem__(self, number: int) -> Opening:
        while len(self._drawn) <= number:
            self._add(self._draw(len(self._drawn)))
        return self._drawn[number]

    def _add(self, opening: Opening) -> None:
        self._drawn.append(opening)
        self._seen.add(_position_key(opening.state(self._factory), opening))

    def _draw(self, number: int) -> Opening:
        """Draws the first balanced and new opening; else a balanced one; else any."""
        info = describe(self._factory())
        if self._plies == 0 and not info.has_chance:
            return Opening()
        numbers = Random(fold(self._key, number), PLAYOUT)
        even: Opening | None = None
        fallback: Opening | None = None
        longest = 0
        for _ in range(MAX_ATTEMPTS):
            state, moves, played = _random_moves(self._factory, self._plies, numbers)
            if is_over(state):
                longest = max(longest, played - 1)
                continue
            opening = Opening(tuple(moves), _opening_start(self._factory))
            fallback = fallback or opening
            new = _position_key(state, opening) not in self._seen
            # The check costs more than drawing: it is skipped if it cannot matter.
            if (new or even is None) and _is_even(state, numbers.next_u64()):
                if new:
                    return opening
                even = opening
        chosen = even or fallback
        if chosen is None:
            raise InvalidArgumentError(
                f"plies (--plies) must be at most {longest}: after {self._plies} random moves the game is over"
            )
        return chosen


def _opening_start(factory: Callable[[], Any]) -> str | None:
    """Returns the start of random openings, if it is not the factory's own."""
    game = COMPILED.get(factory) if isinstance(factory, type) else None
    return None if game is None else game.opening_start


def _started(opening: Opening, factory: Callable[[], Any]) -> Opening:
    """Returns a listed opening from the start of random ones if its first move is legal only there: a roll."""
    start = _opening_start(factory)
    if start is None or opening.fen is not None or not opening.moves:
        return opening
    first = Opening(opening.moves[:1])
    other = Opening(opening.moves[:1], start)
    return Opening(opening.moves, start) if not _is_legal(first, factory) and _is_legal(other, factory) else opening


def _is_legal(opening: Opening, factory: Callable[[], Any]) -> bool:
    try:
        opening.state(factory)
    except PondertreeError:
        return False
    return True


def _random_moves(factory: Callable[[], Any], plies: int, numbers: Random) -> tuple[Any, list[str], int]:
    """Plays up to `plies` random moves, and outcomes by chance up to a decision, which are not counted.

    Returns the state, moves and outcomes, and the number of moves.
    """
    start = _opening_start(factory)
    state: Any = factory() if start is None else factory(start)  # type: ignore[call-arg]
    moves: list[str] = []
    played = 0
    while not is_over(state):
        if state.to_play == CHANCE:
            action = draw_outcome(state, numbers)
        elif played == plies:
            break
        else:
            legal = state.legal_actions()
            action = int(legal[numbers.choose(len(legal))])
            played += 1
        moves.append(move_text(state, action))
        state = state.play(action)
    return state, moves, played


class ListedOpenings:
    """Openings from a list, in order, repeated cyclically."""

    def __init__(self, factory: Callable[[], Any], openings: Iterable[Opening], source: str) -> None:
        self._openings = [_started(opening, factory) for opening in openings]
        if not self._openings:
            raise InvalidArgumentError(f"{source}: there are no openings")
        for number, opening in enumerate(self._openings, start=1):
            try:
                over = is_over(opening.state(factory))
            except PondertreeError as error:
                raise type(error)(f"{source}, opening {number}: {error}") from None
            if over:
                raise InvalidArgumentError(f"{source}, opening {number}: the game is over after it")
        listing = "\n".join(f"{opening.fen};{join_moves(opening.moves)}" for opening in self._openings)
        self.text = f"{len(self._openings)} listed, {hashlib.sha256(listing.encode()).hexdigest()[:16]}"

    def restore(self, number: int, opening: Opening) -> None:
        """Does nothing: the openings are listed."""

    def __len__(self) -> int:
        return len(self._openings)

    def __getitem__(self, number: int) -> Opening:
        return self._openings[number % len(self._openings)]


Openings = RandomOpenings | ListedOpenings


def default_plies(factory: Callable[[], Any]) -> int:
    """Returns the default number of random plies of an opening, less for games that are over by then."""
    game = COMPILED.get(type(factory()))
    plies = OTHER_PLIES if game is None else game.opening_plies
    drawn = (_random_moves(factory, plies, Random(number, PLAYOUT)) for number in range(MAX_ATTEMPTS))
    return max(0, *(played - is_over(state) for state, _, played in drawn))


def make_openings(given: Any, factory: Callable[[], Any], name: str, seed: int, plies: int | None) -> Openings:
    """Converts the argument `openings`: None or "random", "none", a file, or a list of openings (moves as text)."""
    if given is None or given == "random":
        return RandomOpenings(factory, seed, default_plies(factory) if plies is None else plies)
    if given == "none":
        return RandomOpenings(factory, seed, 0)
    if isinstance(given, (str, Path)):
        return ListedOpenings(factory, read_openings(Path(given), name, plies), f"openings {str(given)!r}")
    if not validation.is_listed(given):
        raise InvalidArgumentError(
            f'openings must be "random", "none", a file or a list of moves, not {validation.shown(given)}'
        )
    return ListedOpenings(factory, [_listed(entry, number) for number, entry in enumerate(given)], "openings")


def read_openings(path: Path, name: str, plies: int | None = None) -> list[Opening]:
    """Reads a file by its suffix: EPD, FEN or PGN for chess, else lines of moves."""
    with reading(path, "a text of openings") as file:
        text = file.read_text(encoding="utf-8")
    kind = path.suffix.lower()
    if kind in (".epd", ".fen", ".pgn") and name != "chess":
        raise InvalidArgumentError(f"openings {str(path)!r}: a {kind} file is for chess, not for {name}")
    if kind in (".epd", ".fen"):
        return [Opening(fen=fen) for fen in read_epd(text)]
    if kind == ".pgn":
        return [Opening(moves[:plies], fen) for fen, moves in read_pgn(text)]
    lines = [split_moves(line.partition("#")[0]) for line in text.splitlines()]
    return [Opening(tuple(line[:plies])) for line in lines if line]


def _listed(entry: Any, number: int) -> Opening:
    if isinstance(entry, Opening):
        return entry
    if isinstance(entry, str):
        return Opening(tuple(split_moves(entry)))
    raise InvalidArgumentError(
        f'openings[{number}] must be moves such as "4 4 3" or an Opening, not {validation.shown(entry)}'
    )


def _position_key(state: Any, opening: Opening) -> str:
    """The key of distinct openings: the position (without chess clocks) in compiled games, else the moves."""
    if type(state) not in COMPILED:
        return " ".join(opening.moves)
    return " ".join(state.fen().split()[:4]) if isinstance(state, Chess) else str(state)


def _is_even(state: Any, seed: int) -> bool:
    """Whether a short search finds the position balanced."""
    if isinstance(state, Chess):
        # Fixed weights, so that openings do not depend on the default evaluation.
        return abs(_chess_value(state, Pesto.published(), CHESS_PLIES)) <= CHESS_BALANCE
    result = UCT(BALANCE_SIMULATIONS, seed=seed).run(state)
    return result.proven in (None, 0) and abs(result.value) <= BALANCE


def _chess_value(state: Chess, pesto: Pesto, plies: int) -> float:
    """Returns the minimax value of a chess position at depth `plies` with quiescence search, for the side to move."""
    if state.is_terminal:
        return state.returns()[state.to_play]
    if plies == 0:
        return pesto.value(state)
    return max(-_chess_value(state.play(action), pesto, plies - 1) for action in state.legal_actions())
