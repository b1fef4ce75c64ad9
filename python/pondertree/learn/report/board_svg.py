"""Boards of the compiled games as self-contained SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from pondertree.games import Chess, ConnectFour, Othello, TicTacToe

#: Side of a square in SVG units, and the margin for the names of files and ranks.
SQUARE, MARGIN = 20, 12
INK, FAINT, LAST = "#22281e", "#8a8f86", "#e8b43a"
#: Colours of the players' pieces in games whose players have other names.
COLOURS: dict[Any, tuple[str, str]] = {ConnectFour: ("red", "yellow"), Othello: ("black", "white")}
PIECE_COLOURS = {"X": "#1d1f1c", "O": "#fbfbf8"}
GLYPHS = {"k": "\u265a", "q": "\u265b", "r": "\u265c", "b": "\u265d", "n": "\u265e", "p": "\u265f"}

#: (column, row, symbol) of each piece, rows from the top.
Pieces = list[tuple[int, int, str]]


def board_svg(state: Any, last_move: str = "") -> str | None:
    """Returns the board of a compiled game as SVG, `last_move` highlighted; None for other games."""
    draw = {TicTacToe: _tic_tac_toe, ConnectFour: _connect_four, Othello: _othello, Chess: _chess}.get(type(state))
    return None if draw is None else draw(state, last_move)


def _tic_tac_toe(state: Any, last_move: str) -> str:
    pieces = list(_pieces(line[2:] for line in str(state).splitlines()[1:4]))
    side = 3 * SQUARE
    lines = "".join(f"M{place} 1V{side - 1}M1 {place}H{side - 1}" for place in (SQUARE, 2 * SQUARE))
    shapes = [f'<path d="{lines}" stroke="{FAINT}"/>']
    for column, row, sign in pieces:
        x, y = SQUARE * column, SQUARE * row
        if sign == "X":
            shapes.append(f'<path d="M{x + 5} {y + 5}l10 10m0-10l-10 10" stroke="#b3372b" stroke-width="2.4"/>')
        else:
            shapes.append(f'<circle cx="{x + 10}" cy="{y + 10}" r="5.4" stroke="#2b5c9e" stroke-width="2.4"/>')
    marked = _marked([_square(last_move)] if last_move else [], 0)
    return _svg("Tic-tac-toe", 3, 3, marked + f'<g fill="none" stroke-linecap="round">{"".join(shapes)}</g>', pieces)


def _connect_four(state: Any, last_move: str) -> str:
    rows = str(state).splitlines()[:6]
    pieces = list(_pieces(rows))
    width, height = 7 * SQUARE, 6 * SQUARE
    colours = {"X": "#d23b2f", "O": "#f2c230", ".": "#dfe7f1"}
    board = f'<rect width="{width}" height="{height}" rx="4" fill="#2b5c9e"/>'
    signs = {(column, row): sign for column, row, sign in pieces}
    for sign, colour in colours.items():
        holes = "".join(
            f"M{SQUARE * column + 2} {SQUARE * row + 10}a8 8 0 1 0 16 0a8 8 0 1 0-16 0"
            for row in range(6)
            for column in range(7)
            if signs.get((column, row), ".") == sign
        )
        board += f'<path d="{holes}" fill="{colour}"/>' if holes else ""
    if last_move.isdigit():
        column = int(last_move) - 1
        row = min((row for at, row, _ in pieces if at == column), default=None)
        if row is not None:
            board += f'<circle cx="{SQUARE * column + 10}" cy="{SQUARE * row + 10}" r="3" fill="{INK}"/>'
    names = "".join(_name(SQUARE * column + 10, height + 9, str(column + 1)) for column in range(7))
    return _svg("Connect 4", 7, 6, board + names, pieces, below=MARGIN)


def _othello(state: Any, last_move: str) -> str:
    pieces = list(_pieces(line[2:] for line in str(state).splitlines()[1:9]))
    side = 8 * SQUARE
    lines = "".join(f"M{place} 0V{side}M0 {place}H{side}" for place in range(SQUARE, side, SQUARE))
    board = f'<rect width="{side}" height="{side}" fill="#3f7d58"/><path d="{lines}" stroke="#2c5a3f"/>'
    discs = "".join(
        f'<circle cx="{SQUARE * column + 10}" cy="{SQUARE * row + 10}" r="8" fill="{PIECE_COLOURS[sign]}"/>'
        for column, row, sign in pieces
    )
    # Files and ranks as the game counts them: a1 is at the top.
    names = "".join(
        _name(SQUARE * place + 10, side + 9, "abcdefgh"[place]) + _name(-6, SQUARE * place + 13, str(place + 1))
        for place in range(8)
    )
    dot = "".join(
        f'<circle cx="{SQUARE * column + 10}" cy="{SQUARE * row + 10}" r="2.5" fill="{LAST}"/>'
        for column, row in ([_square(last_move)] if len(last_move) == 2 else [])
    )
    return _svg("Othello", 8, 8, board + discs + dot + names, pieces, below=MARGIN, left=MARGIN)


def _chess(state: Any, last_move: str) -> str:
    placed = state.fen().split()[0].split("/")
    pieces = list(_pieces("".join("." * int(sign) if sign.isdigit() else sign for sign in rank) for rank in placed))
    side = 8 * SQUARE
    dark = "".join(
        f"M{SQUARE * column} {SQUARE * row}h{SQUARE}v{SQUARE}h-{SQUARE}z"
        for row in range(8)
        for column in range(8)
        if (row + column) % 2
    )
    board = f'<rect width="{side}" height="{side}" fill="#f0e6d2"/><path d="{dark}" fill="#b58d67"/>'
    squares = (
        [(column, 7 - row) for column, row in (_square(last_move[:2]), _square(last_move[2:4]))] if last_move else []
    )
    board += _marked(squares, 0)
    for white in (True, False):
        for kind, glyph in GLYPHS.items():
            places = [(column, row) for column, row, sign in pieces if sign == (kind.upper() if white else kind)]
            if places:
                xs = " ".join(str(SQUARE * column + 10) for column, _ in places)
                ys = " ".join(str(SQUARE * row + 16) for _, row in places)
                fill = 'fill="#fff" stroke="#22281e" stroke-width=".7"' if white else f'fill="{INK}"'
                board += f'<text x="{xs}" y="{ys}" font-size="17" {fill}>{glyph * len(places)}</text>'
    names = "".join(
        _name(SQUARE * place + 10, side + 9, "abcdefgh"[place]) + _name(-6, SQUARE * place + 13, str(8 - place))
        for place in range(8)
    )
    return _svg("Chess", 8, 8, board + names, pieces, below=MARGIN, left=MARGIN)


def _pieces(lines: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yields the pieces of a text board, whose empty squares are dots."""
    for row, line in enumerate(lines):
        for column, sign in enumerate(line.replace(" ", "")):
            if sign != ".":
                yield column, row, sign


def _square(text: str) -> tuple[int, int]:
    """Returns (file, rank - 1) of a square such as "b2"."""
    return ord(text[0]) - ord("a"), int(text[1]) - 1


def _marked(squares: Iterable[tuple[int, int]], inset: int) -> str:
    return "".join(
        f'<rect x="{SQUARE * column + inset}" y="{SQUARE * row + inset}" width="{SQUARE - 2 * inset}" '
        f'height="{SQUARE - 2 * inset}" fill="{LAST}" fill-opacity=".45"/>'
        for column, row in squares
    )


def _name(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="8" fill="{FAINT}">{text}</text>'


def _svg(title: str, columns: int, rows: int, content: str, pieces: Pieces, *, below: int = 0, left: int = 0) -> str:
    width, height = SQUARE * columns + left, SQUARE * rows + below
    label = escape(f"{title}: {len(pieces)} pieces on the board", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-left} 0 {width} {height}" width="{2 * width}" '
        f'height="{2 * height}" role="img" aria-label="{label}" text-anchor="middle" '
        f'font-family="DejaVu Sans, Segoe UI Symbol, Noto Sans Symbols2, Arial Unicode MS, sans-serif">{content}</svg>'
    )
