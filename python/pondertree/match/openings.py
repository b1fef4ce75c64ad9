"""Openings: where the games of a match begin. Each is played twice, with the sides exchanged.

They are drawn by chance (a few random plies, kept if a short search finds the position about even), or read from a
file.
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
from pondertree.game import COMPILED, is_over, move_text
from pondertree.match.notation import parse_move, read_epd, read_pgn
from pondertree.presets import UCT
from pondertree.random import PLAYOUT, Random, fold

#: Plies of random openings where nothing is said: as many as give games that differ and are not yet decided.
DEFAULT_PLIES = {"tic_tac_toe": 1, "connect_four": 4, "othello": 6, "chess": 8}
OTHER_PLIES = 2
#: Simulations of the search that judges a random opening, and how far from even its value may be.
JUDGE = 100
BALANCE = 0.4
#: In chess, where random playouts hardly notice a queen that hangs, it is PeSTO two plies deep. Measured on 40 openings
#: of 8 plies, a strong engine finds nine in ten within a pawn of even; unjudged, within 4.4 pawns.
CHESS_PLIES = 2
CHESS_BALANCE = 0.15
#: Openings drawn before one that has been played, or is not even, is taken after all.
TRIES = 40


@dataclass(frozen=True, slots=True)
class Opening:
    """Moves from the start, or from a position of chess."""

    moves: tuple[str, ...] = ()
    fen: str | None = None

    def root(self, factory: Callable[[], Any]) -> Any:
        """The state before the moves."""
        return factory() if self.fen is None else factory(self.fen)  # type: ignore[call-arg]

    def state(self, factory: Callable[[], Any]) -> Any:
        """The state after the moves."""
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
    """Random openings. Opening `i` depends on the seed, on `i` and on those before it, never on time."""

    def __init__(self, factory: Callable[[], Any], seed: int, plies: int) -> None:
        self._factory = factory
        self._key = fold(seed, PLAYOUT)
        self._plies = validation.whole_number(plies, "plies", most=10_000)
        self._drawn: list[Opening] = []
        self._seen: set[str] = set()

    @property
    def text(self) -> str:
        """What the record of a match says of them."""
        return f"random, {self._plies} plies"

    def know(self, number: int, opening: Opening) -> None:
        """Takes over opening `number`, drawn earlier; they come in order."""
        if number == len(self._drawn):
            self._take(opening)

    def __getitem__(self, number: int) -> Opening:
        while len(self._drawn) <= number:
            self._take(self._draw(len(self._drawn)))
        return self._drawn[number]

    def _take(self, opening: Opening) -> None:
        self._drawn.append(opening)
        self._seen.add(_place(opening.state(self._factory), opening))

    def _draw(self, number: int) -> Opening:
        """The first opening of a stream that is even and new; else one that is even; else any."""
        if self._plies == 0:
            return Opening()
        numbers = Random(fold(self._key, number), PLAYOUT)
        even: Opening | None = None
        any_one: Opening | None = None
        for _ in range(TRIES):
            state = self._factory()
            moves: list[str] = []
            while len(moves) < self._plies and not is_over(state):
                legal = state.legal_actions()
                action = int(legal[numbers.choose(len(legal))])
                moves.append(move_text(state, action))
                state = state.play(action)
            if is_over(state):
                continue
            opening = Opening(tuple(moves))
            any_one = any_one or opening
            new = _place(state, opening) not in self._seen
            # Judging costs more than drawing: what would not be taken anyway is not judged.
            if (new or even is None) and _is_even(state, numbers.next_u64()):
                if new:
                    return opening
                even = opening
        chosen = even or any_one
        if chosen is None:
            raise InvalidArgumentError(f"plies must be smaller: after {self._plies} random moves the game is over")
        return chosen


class ListedOpenings:
    """Openings from a list, in their order, and again from the beginning when it is used up."""

    def __init__(self, factory: Callable[[], Any], openings: Iterable[Opening], source: str) -> None:
        self._openings = list(openings)
        if not self._openings:
            raise InvalidArgumentError(f"{source}: there is no opening in it")
        for number, opening in enumerate(self._openings, start=1):
            try:
                over = is_over(opening.state(factory))
            except PondertreeError as error:
                raise type(error)(f"{source}, opening {number}: {error}") from None
            if over:
                raise InvalidArgumentError(f"{source}, opening {number}: the game is over after it")
        told = "\n".join(f"{opening.fen};{' '.join(opening.moves)}" for opening in self._openings)
        self.text = f"{len(self._openings)} listed, {hashlib.sha256(told.encode()).hexdigest()[:16]}"

    def know(self, number: int, opening: Opening) -> None:
        """Nothing to take over: they are listed."""

    def __len__(self) -> int:
        return len(self._openings)

    def __getitem__(self, number: int) -> Opening:
        return self._openings[number % len(self._openings)]


Openings = RandomOpenings | ListedOpenings


def make_openings(given: Any, factory: Callable[[], Any], name: str, seed: int, plies: int | None) -> Openings:
    """From what a match was told: None or "random", "none", a file, or a list of openings (moves as text)."""
    if given is None or given == "random":
        return RandomOpenings(factory, seed, DEFAULT_PLIES.get(name, OTHER_PLIES) if plies is None else plies)
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
    """The openings of a file: EPD or FEN and PGN for chess (by the file's ending), else moves, a line each."""
    with reading(path, "a text of openings") as file:
        text = file.read_text(encoding="utf-8")
    kind = path.suffix.lower()
    if kind in (".epd", ".fen", ".pgn") and name != "chess":
        raise InvalidArgumentError(f"openings {str(path)!r}: a {kind} file is for chess, not for {name}")
    if kind in (".epd", ".fen"):
        return [Opening(fen=fen) for fen in read_epd(text)]
    if kind == ".pgn":
        return [Opening(moves[:plies], fen) for fen, moves in read_pgn(text)]
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return [Opening(tuple(line[:plies])) for line in lines if line]


def _listed(entry: Any, number: int) -> Opening:
    if isinstance(entry, Opening):
        return entry
    if isinstance(entry, str):
        return Opening(tuple(entry.split()))
    raise InvalidArgumentError(
        f'openings[{number}] must be moves such as "4 4 3" or an Opening, not {validation.shown(entry)}'
    )


def _place(state: Any, opening: Opening) -> str:
    """What tells openings apart: in compiled games the position without the clocks of chess, elsewhere the moves."""
    if type(state) not in COMPILED:
        return " ".join(opening.moves)
    return " ".join(state.fen().split()[:4]) if isinstance(state, Chess) else str(state)


def _is_even(state: Any, seed: int) -> bool:
    """Whether a short search finds the position about even."""
    if isinstance(state, Chess):
        # Weights that stay, so that a seed gives the same openings whatever the default is.
        return abs(_chess_value(state, Pesto.published(), CHESS_PLIES)) <= CHESS_BALANCE
    result = UCT(JUDGE, seed=seed).run(state)
    return result.proven in (None, 0) and abs(result.value) <= BALANCE


def _chess_value(state: Chess, pesto: Pesto, plies: int) -> float:
    """What a position of chess is worth for the side to move: minimax, then quiescence."""
    if state.is_terminal:
        return state.returns()[state.to_play]
    if plies == 0:
        return pesto.value(state)
    return max(-_chess_value(state.play(action), pesto, plies - 1) for action in state.legal_actions())
