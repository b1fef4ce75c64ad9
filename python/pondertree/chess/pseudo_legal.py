"""Pseudo-legal moves, which may leave the own king in check, in plain Python.

The engine generates legal moves only and needs none of this: it completes the interface of the hybrid chess
specification (`MoveGen`: `gen_pseudo_legal_moves`, `is_capture`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pondertree._core import Chess
from pondertree.errors import InvalidActionError
from pondertree.games import chess_interop
from pondertree.games.chess_interop import adapt_chess_state, any_action

Step = tuple[int, int]
"""Files to the right, ranks up."""

ROOK: list[Step] = [(0, 1), (1, 0), (0, -1), (-1, 0)]
BISHOP: list[Step] = [(1, 1), (1, -1), (-1, -1), (-1, 1)]
KNIGHT: list[Step] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
#: In the order of the planes of the move index (N, NE, E, SE, S, SW, W, NW).
DIRECTIONS: list[Step] = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
STEPS = {"r": ROOK, "b": BISHOP, "q": DIRECTIONS, "k": DIRECTIONS, "n": KNIGHT}
SLIDERS = "rbq"
PLANES = 73
FIRST_KNIGHT = 56
FIRST_UNDERPROMOTION = 64


class Move(NamedTuple):
    """A move on the squares of the board; a1 is 0, h8 is 63."""

    origin: int
    target: int
    promotion: str = ""
    """n, b, r, q, or nothing."""
    captures: bool = False


def gen_pseudo_legal_moves(state: Any) -> list[Any]:
    """Returns every pseudo-legal move, as actions of a `Chess` state, or as `chess.Move` for a board or a `ChessGame`.

    The same moves as `pseudo_legal_moves` of python-chess: castling only over empty, unattacked squares, en passant
    even if it exposes the own king. A state has an en passant square only where the capture is legal; a board may have
    others. Moves are generated in finished games, too.
    """
    position, is_board = _position(state)
    moves = list(_generate(position))
    if not is_board:
        return [_index(move, position.is_white) for move in moves]
    import chess

    return [chess.Move.from_uci(_text(move)) for move in moves]


def is_capture(state: Any, action: Any) -> bool:
    """Whether a pseudo-legal move captures, en passant included.

    `action` is an int, a `chess.Move`, or text in UCI notation.
    """
    position, _ = _position(state)
    move_text = action.uci() if hasattr(action, "uci") else action
    for move in _generate(position):
        if move_text == (_text(move) if isinstance(move_text, str) else _index(move, position.is_white)):
            return move.captures
    opened = adapt_chess_state(state)[0]
    if not isinstance(action, str):
        any_action(opened, action, "action")  # raises for invalid arguments
    raise InvalidActionError(f"action is {action!r}, which is not pseudo-legal in {position.fen!r}")


class _Position:
    """A mailbox board, parsed from a FEN."""

    def __init__(self, fen: str) -> None:
        self.fen = fen
        rows, turn, self.castling, en_passant = fen.split()[:4]
        self.is_white = turn == "w"
        self.squares: list[str] = []
        for row in reversed(rows.split("/")):
            for sign in row:
                self.squares += [""] * int(sign) if sign.isdigit() else [sign]
        self.en_passant = None if en_passant == "-" else _square(en_passant)

    def is_own(self, square: int) -> bool:
        """Whether a piece of the side to move is on a square."""
        piece = self.squares[square]
        return piece != "" and piece.isupper() == self.is_white

    def is_attacked(self, square: int) -> bool:
        """Whether the opponent attacks a square."""
        own_pawn_step = 1 if self.is_white else -1
        for files in (-1, 1):
            origin = _stepped(square, (files, own_pawn_step))
            if origin is not None and self._is_opponents(origin, "p"):
                return True
        for piece, steps in STEPS.items():
            for step in steps:
                for origin in _ray(square, step, piece in SLIDERS):
                    if self._is_opponents(origin, piece):
                        return True
                    if self.squares[origin]:
                        break
        return False

    def _is_opponents(self, square: int, kind: str) -> bool:
        return self.squares[square].lower() == kind and not self.is_own(square)


def _position(state: Any) -> tuple[_Position, bool]:
    """Returns the position, and whether moves are returned as `chess.Move`."""
    if type(state) is not Chess:
        adapt_chess_state(state)  # raises for anything but chess
        board = chess_interop.board_of(state)
        if board is not None:
            # The FEN of a state omits the en passant square where no capture is legal.
            return _Position(board.fen(en_passant="fen")), True
    return _Position(state.fen()), False


def _generate(position: _Position) -> Iterator[Move]:
    for origin, piece in enumerate(position.squares):
        if not position.is_own(origin):
            continue
        kind = piece.lower()
        if kind == "p":
            yield from _pawn_moves(position, origin)
            continue
        for step in STEPS[kind]:
            for target in _ray(origin, step, kind in SLIDERS):
                if position.is_own(target):
                    break
                yield Move(origin, target, captures=position.squares[target] != "")
                if position.squares[target]:
                    break
    yield from _castling(position)


def _pawn_moves(position: _Position, origin: int) -> Iterator[Move]:
    up, first_rank = (1, 1) if position.is_white else (-1, 6)
    stop = _stepped(origin, (0, up))
    if stop is not None and not position.squares[stop]:
        yield from _promoted(origin, stop, captures=False)
        two = _stepped(stop, (0, up))
        if origin // 8 == first_rank and two is not None and not position.squares[two]:
            yield Move(origin, two)
    for files in (-1, 1):
        target = _stepped(origin, (files, up))
        if target is None or position.is_own(target):
            continue
        if position.squares[target] or target == position.en_passant:
            yield from _promoted(origin, target, captures=True)


def _promoted(origin: int, target: int, captures: bool) -> Iterator[Move]:
    for promotion in "qrbn" if target // 8 in (0, 7) else ("",):
        yield Move(origin, target, promotion, captures)


def _castling(position: _Position) -> Iterator[Move]:
    """Castling moves: with the right, over empty squares, not out of or through check."""
    home = 4 if position.is_white else 60
    for sign, side, empty in (("K", 1, (1, 2)), ("Q", -1, (-1, -2, -3))):
        if (sign if position.is_white else sign.lower()) not in position.castling:
            continue
        if any(position.squares[home + step] for step in empty):
            continue
        if not any(position.is_attacked(home + step) for step in (0, side, 2 * side)):
            yield Move(home, home + 2 * side)


def _stepped(square: int, step: Step) -> int | None:
    """Returns the square one step away; None off the board."""
    file, rank = square % 8 + step[0], square // 8 + step[1]
    return rank * 8 + file if 0 <= file < 8 and 0 <= rank < 8 else None


def _ray(square: int, step: Step, slides: bool) -> Iterator[int]:
    """Yields the squares in one direction: one, or for sliding pieces all up to the edge."""
    target = _stepped(square, step)
    while target is not None:
        yield target
        target = _stepped(target, step) if slides else None


def _square(name: str) -> int:
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def _text(move: Move) -> str:
    """Returns a move in UCI notation."""
    names = ["abcdefgh"[square % 8] + str(square // 8 + 1) for square in (move.origin, move.target)]
    return "".join(names) + move.promotion


def _index(move: Move, is_white: bool) -> int:
    """Returns the index of a move among the 4672, from the mover's side."""
    origin, target = (square if is_white else square ^ 56 for square in (move.origin, move.target))
    files, ranks = target % 8 - origin % 8, target // 8 - origin // 8
    if move.promotion in ("n", "b", "r"):
        plane = FIRST_UNDERPROMOTION + "nbr".index(move.promotion) * 3 + files + 1
    elif (files, ranks) in KNIGHT:
        plane = FIRST_KNIGHT + KNIGHT.index((files, ranks))
    else:
        distance = max(abs(files), abs(ranks))
        plane = DIRECTIONS.index((files // distance, ranks // distance)) * 7 + distance - 1
    return origin * PLANES + plane
