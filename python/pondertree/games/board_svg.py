"""Boards of the compiled games as self-contained SVG: the text board, drawn in the style that the game declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from string import ascii_lowercase
from typing import Any, NamedTuple

from pondertree.games import registered
from pondertree.games.special_boards import PICTURES

#: Width of a cell in SVG units, distance of the rows of hexagons, and the margin for the names of columns and rows.
CELL, HEXAGON_ROW, MARGIN = 20, 17.32, 12
INK, FAINT, LAST = "#22281e", "#8a8f86", "#e8b43a"
BLACK, WHITE, RED, BLUE = "#1d1f1c", "#fbfbf8", "#b3372b", "#2b5c9e"
#: A hexagon from its upper corner.
HEXAGON = "l-10 5.77v11.55l10 5.77 10-5.77v-11.55z"
#: Chess pieces from the centre of their square.
PIECES = {
    "k": "m-4.8 6.5h9.6v-1.9c2.4-2 2.2-5.6-.6-6.2-1.6-.4-2.9.3-3.5 1.3v-2.3h1.7v-1.6h-1.7v-1.6h-1.4v1.6h-1.7v1.6h1.7"
    "v2.3c-.6-1-1.9-1.7-3.5-1.3-2.8.6-3 4.2-.6 6.2z",
    "q": "m-4.8 6.5h9.6l1.6-9-3 2.6-.4-5.6-2.2 4.8-.8-5.8-.8 5.8-2.2-4.8-.4 5.6-3-2.6z",
    "r": "m-5.2 6.5h10.4v-2h-1.4l-.8-6.5h1.6v-4.5h-2v1.6h-1.6v-1.6h-2v1.6h-1.6v-1.6h-2v4.5h1.6l-.8 6.5h-1.4z",
    "b": "m-5 6.5h10v-1.8c-1.6-.2-3-.6-3.4-1.6 2.4-1.6 2.6-4.6.6-6.8-.8-.9-1.4-1.4-1.4-1.8a1.3 1.3 0 1 0-1.6 0"
    "c0 .4-.6.9-1.4 1.8-2 2.2-1.8 5.2.6 6.8-.4 1-1.8 1.4-3.4 1.6z",
    "n": "m-3.8 6.5h8.2c.4-4.6.2-8.6-2.4-10.8-.9-.8-1.9-1.2-3-1.2l-.9-1.5-.8 1.8c-1.6 1-2.5 2.6-3.2 4.4-.4 1-.1 2"
    " .9 2.3.9.3 1.5-.2 2-.8 1 .1 2-.2 2.8-.8-.2 2.6-3.2 3.4-3.6 6.6z",
    "p": "m-4.8 6.5h9.6v-1.5c0-1.8-1.6-2.6-2.6-3.3-.9-.7-1-1.9-.6-2.9a3 3 0 1 0-3.2 0c.4 1 .3 2.2-.6 2.9-1 .7-2.6 1.5"
    "-2.6 3.3z",
}

#: What names columns in the text.
COLUMN_NAMES = list(ascii_lowercase), [str(number) for number in range(1, 100)]

#: Column and row of a cell, rows from the top; the coordinates of its centre.
Cell = tuple[int, int]
Point = tuple[float, float]


class TextBoard(NamedTuple):
    """A text board: rows of cells."""

    columns: list[str]
    """The names of the columns, which are above or below the rows; empty if they have none."""
    rows: list[str]
    """The names of the rows from the top; empty if they have none."""
    pieces: dict[Cell, str]
    """The symbols of the occupied cells."""
    width: int
    height: int

    @classmethod
    def of(cls, state: Any) -> TextBoard:
        """Reads the text of a compiled state, whose last line is the player to move or the result."""
        lines = [line.split() for line in str(state).splitlines()[:-1]]
        named = [line for line in lines if any(line == names[: len(line)] for names in COLUMN_NAMES)]
        columns = lines.pop(lines.index(named[0])) if named else []
        width = len(columns or lines[0])
        rows = [line.pop(0) for line in lines if len(line) > width]
        cells = ((column, row, symbol) for row, line in enumerate(lines) for column, symbol in enumerate(line))
        pieces = {(column, row): symbol for column, row, symbol in cells if symbol != "."}
        return cls(columns, rows, pieces, width, len(lines))

    def cells_of(self, move: str) -> list[Cell]:
        """Returns the cells that the text of a move names; for a column alone its topmost piece."""
        if move in self.columns:
            column = self.columns.index(move)
            return [cell for cell in self.pieces if cell[0] == column][:1]
        names = [name for name in re.findall(r"([a-z])(\d+)", move) if name[0] in self.columns and name[1] in self.rows]
        return [(self.columns.index(column), self.rows.index(row)) for column, row in names]


class Style(NamedTuple):
    """How a board and its pieces are drawn."""

    board: Callable[[int, int], str]
    """Draws the empty board of so many columns and rows."""
    colours: tuple[str, str] | None = None
    """The names of the colours of X and O, which are discs; None if they are marks."""
    fills: tuple[str, str] = (BLACK, WHITE)
    """The colours of X and O."""
    fills_last_move: bool = False
    """Whether the squares of the last move are filled; otherwise its piece has a dot."""
    slant: int = 0
    """The shift of each row against the one above."""
    row_height: float = CELL

    def centre(self, cell: Cell) -> Point:
        """Returns the centre of a cell."""
        column, row = cell
        return CELL * column + self.slant * row + 10, round(self.row_height * row + 10, 2)

    def pieces(self, symbol: str, points: list[Point]) -> str:
        """Draws the pieces with a symbol."""
        if symbol not in "XO":
            shape = "".join(f"M{x:g} {y:g}{PIECES[symbol.lower()]}" for x, y in points)
            fill = "#fff" if symbol.isupper() else INK
            return f'<path d="{shape}" fill="{fill}" stroke="{INK}" stroke-width=".8" stroke-linejoin="round"/>'
        if self.colours is not None:
            fill = self.fills["XO".index(symbol)]
            outline = f' stroke="{INK}" stroke-width=".5"' if fill == WHITE else ""
            return f'<path d="{_circles(points, 8)}" fill="{fill}"{outline}/>'
        if symbol == "X":
            shape, colour = "".join(f"M{x - 5:g} {y - 5:g}l10 10m0-10l-10 10" for x, y in points), RED
        else:
            shape, colour = _circles(points, 5.4), BLUE
        return f'<path d="{shape}" fill="none" stroke="{colour}" stroke-width="2.4" stroke-linecap="round"/>'


def _circles(points: Iterable[Point], radius: float) -> str:
    size = 2 * radius
    arcs = f"a{radius:g} {radius:g} 0 1 0 {size:g} 0a{radius:g} {radius:g} 0 1 0-{size:g} 0"
    return "".join(f"M{x - radius:g} {y:g}{arcs}" for x, y in points)


def _rectangle(columns: int, rows: int, attributes: str) -> str:
    return f'<rect width="{CELL * columns}" height="{CELL * rows}" {attributes}/>'


def _grid(columns: int, rows: int, colour: str) -> str:
    down = "".join(f"M{x} 0v{CELL * rows}" for x in range(CELL, CELL * columns, CELL))
    across = "".join(f"M0 {y}h{CELL * columns}" for y in range(CELL, CELL * rows, CELL))
    return f'<path d="{down}{across}" stroke="{colour}"/>'


def _lines(columns: int, rows: int) -> str:
    return _rectangle(columns, rows, 'fill="#fbf8ef"') + _grid(columns, rows, FAINT)


def _felt(columns: int, rows: int) -> str:
    return _rectangle(columns, rows, 'fill="#3f7d58"') + _grid(columns, rows, "#2c5a3f")


def _holes(columns: int, rows: int) -> str:
    centres = [(CELL * column + 10, CELL * row + 10) for row in range(rows) for column in range(columns)]
    return _rectangle(columns, rows, f'rx="4" fill="{BLUE}"') + f'<path d="{_circles(centres, 8)}" fill="#dfe7f1"/>'


def _checkered(columns: int, rows: int) -> str:
    dark = [(column, row) for row in range(rows) for column in range(columns) if (row + column) % 2]
    squares = "".join(f"M{CELL * column} {CELL * row}h{CELL}v{CELL}h-{CELL}z" for column, row in dark)
    return _rectangle(columns, rows, 'fill="#f0e6d2"') + f'<path d="{squares}" fill="#b58d67"/>'


def _rhombus(columns: int, rows: int) -> str:
    """Hexagons with the first player's edges at the top and bottom, the second's at the left and right."""
    cells = "".join(
        f"M{CELL * column + 10 * row + 10} {HEXAGON_ROW * row - 1.55:.5g}{HEXAGON}"
        for row in range(rows)
        for column in range(columns)
    )
    top, bottom, side = "l10-5.77l10 5.77" * columns, "l10 5.77l10-5.77" * columns, "l10 5.77".join(["v11.55"] * rows)
    first = f"M0 4.22{top}M{10 * rows - 10} {HEXAGON_ROW * rows - 1.55:.5g}{bottom}"
    second = f"M0 4.22{side}M{CELL * columns} 4.22{side}"
    edges = "".join(f'<path d="{path}" stroke="{fill}"/>' for path, fill in ((first, RED), (second, BLUE)))
    return (
        f'<g fill="none" stroke-width="4" stroke-linejoin="round">{edges}</g>'
        f'<path d="{cells}" fill="#efe9dc" stroke="{FAINT}"/>'
    )


#: The styles by the names that compiled games declare.
STYLES = {
    "lines": Style(_lines, fills_last_move=True),
    "felt": Style(_felt, ("black", "white")),
    "holes": Style(_holes, ("red", "yellow"), ("#d23b2f", "#f2c230")),
    "checkered": Style(_checkered, ("black", "white"), fills_last_move=True),
    "rhombus": Style(_rhombus, ("red", "blue"), (RED, BLUE), slant=10, row_height=HEXAGON_ROW),
}


def piece_colours(factory: Any) -> tuple[str, str] | None:
    """Returns the colours of the players' pieces; None where pictures show the players' names or no board."""
    game = registered(factory)
    if game is None or game.board not in STYLES or tuple(game.players) != ("X", "O"):
        return None
    return STYLES[game.board].colours


def board_svg(state: Any, last_move: str = "") -> str | None:
    """Returns the board of a compiled game as SVG, `last_move` highlighted; None for other games."""
    game = registered(type(state))
    if game is None:
        return None
    if game.board in PICTURES:
        return PICTURES[game.board](game.title, str(state).splitlines(), last_move)
    style, board = STYLES[game.board], TextBoard.of(state)
    columns, rows = board.width, board.height
    marked = [style.centre(cell) for cell in board.cells_of(last_move)]
    content = style.board(columns, rows)
    if style.fills_last_move:
        attributes = f'width="{CELL}" height="{CELL}" fill="{LAST}" fill-opacity=".45"'
        content += "".join(f'<rect x="{x - 10:g}" y="{y - 10:g}" {attributes}/>' for x, y in marked)
    for symbol in sorted(set(board.pieces.values())):
        content += style.pieces(symbol, [style.centre(cell) for cell, held in board.pieces.items() if held == symbol])
    if not style.fills_last_move:
        content += f'<path d="{_circles(marked, 3)}" fill="{INK if game.board == "holes" else LAST}"/>'
    # The corners of hexagons and the lines at their edges extend beyond the rows.
    extra = 4 * bool(style.slant)
    right, below = (place + 10 + extra for place in style.centre((columns - 1, rows - 1)))
    left, above = (MARGIN + extra) * bool(board.rows), (MARGIN + extra) * bool(style.slant)
    for column, name in enumerate(board.columns):
        content += _name(style.centre((column, 0))[0], -5 if above else below + 9, name)
    for row, name in enumerate(board.rows):
        x, y = style.centre((0, row))
        content += _name(x - 16 - extra, y + 3, name)
    width, height = left + right, below + (above or MARGIN * bool(board.columns))
    label = escape(f"{game.title}: {len(board.pieces)} pieces on the board", quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-left} {-above} {width:g} {height:g}" '
        f'width="{2 * width:g}" height="{2 * height:g}" role="img" aria-label="{label}" text-anchor="middle" '
        f'font-family="DejaVu Sans, Arial, sans-serif">{content}</svg>'
    )


def move_centres(state: Any, actions: Sequence[int]) -> list[list[Point]]:
    """Returns the centres of the cells that moves go through, as `board_svg` draws them; none where it draws no grid.

    A move to a column goes to the cell where its piece comes to rest.
    """
    game = registered(type(state))
    if game is None or game.board not in STYLES:
        return [[] for _ in actions]
    style, board = STYLES[game.board], TextBoard.of(state)
    centres = []
    for action in actions:
        move = state.action_to_string(action)
        after = TextBoard.of(state.play(action)) if move in board.columns else board
        centres.append([style.centre(cell) for cell in after.cells_of(move)])
    return centres


def can_be_flipped(state: Any) -> bool:
    """Whether the board may be seen from the other side: not where pieces fall, nor in games without a picture."""
    game = registered(type(state))
    return game is not None and game.board in STYLES and game.board != "holes"


def _name(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="8" fill="{FAINT}">{text}</text>'
