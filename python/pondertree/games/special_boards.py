"""Pictures of the compiled games that are no grids of pieces: scores, numbered tiles, the points of backgammon."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

INK, FAINT, LAST, RED, BLUE = "#22281e", "#8a8f86", "#e8b43a", "#b3372b", "#2b5c9e"
#: Fills of the tiles 2, 4, 8, ...; larger tiles have the last one. From the third on, numbers are white.
TILES = ("#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b", "#edcf72", "#d9b64a", "#c49f2c", "#3c3a32")
#: Width of a tile and of a point, and the most checkers of a point that are drawn.
TILE, POINT, STACKED = 30, 20, 5


def _text(x: float, y: float, text: Any, size: float, fill: str = INK) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}">{escape(str(text))}</text>'


def _picture(width: float, height: float, label: str, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{2 * width:g}" '
        f'height="{2 * height:g}" role="img" aria-label="{escape(label, quote=True)}" text-anchor="middle" '
        f'font-family="DejaVu Sans, Arial, sans-serif">{content}</svg>'
    )


def _scores(title: str, lines: Sequence[str], last_move: str) -> str:
    """A row for each player, and one for the turn."""
    content = '<rect width="120" height="66" fill="#fbf8ef"/>'
    for row, (line, colour) in enumerate(zip(lines, (RED, BLUE, INK), strict=False)):
        name, number = line.split()
        y = 20 * row + 17
        width = min(100, int(number))
        content += f'<rect x="10" y="{y + 2}" width="{width}" height="3" fill="{colour}"/>'
        content += _text(18, y, name, 10, colour) + _text(98, y, number, 10)
    content += _text(60, 17 + 20 * (len(lines) - 2), last_move, 8, FAINT)
    return _picture(120, 66, f"{title}: {', '.join(lines[:-1])}, {lines[-1]}", content)


def _tiles(title: str, lines: Sequence[str], last_move: str) -> str:
    """Numbered tiles; the tile that has appeared last is outlined."""
    rows = [line.split()[1:] for line in lines[1:-1]]
    placed = re.fullmatch(r"([a-d])([1-4])=\d", last_move)
    size = TILE * len(rows)
    content = f'<rect width="{size}" height="{size + 12}" fill="#bbada0"/>'
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            x, y = TILE * column, TILE * row
            number = 0 if cell == "." else int(cell)
            place = min(number.bit_length() - 2, len(TILES) - 1)
            is_last = placed is not None and (column, row) == ("abcd".index(placed[1]), int(placed[2]) - 1)
            outline = f' stroke="{LAST}" stroke-width="2"' if is_last else ""
            fill = TILES[place] if number else "#cdc1b4"
            content += f'<rect x="{x + 2}" y="{y + 2}" width="26" height="26" rx="2" fill="{fill}"{outline}/>'
            if number:
                content += _text(x + 15, y + 18.5, number, min(11, 36 / len(cell)), INK if place < 2 else "#fff")
    content += _text(size / 2, size + 9, lines[-1], 8, "#fff")
    tiles = sum(cell != "." for cells in rows for cell in cells)
    return _picture(size, size + 12, f"{title}: {tiles} tiles on the board, {lines[-1]}", content)


def _points(title: str, lines: Sequence[str], last_move: str) -> str:
    """A backgammon board as X sees it: points, bar and checkers off; the dice are in the text below."""
    numbers, upper, lower, others = (line.split() for line in lines[:4])
    width, height = POINT * len(upper), 15 * 2 * STACKED + 20
    content = f'<rect width="{width}" height="{height + 34}" fill="#3f5a46"/>'
    content += f'<rect y="11" width="{width - POINT}" height="{height}" fill="#efe3c8"/>'
    content += f'<rect x="{6 * POINT}" y="11" width="{POINT}" height="{height}" fill="#7a5a3c"/>'
    for row, (names, cells) in enumerate(((numbers, upper), (others, lower))):
        edge = 11 if row == 0 else 11 + height
        inwards = 1 if row == 0 else -1
        for column, (name, cell) in enumerate(zip(names, cells, strict=True)):
            x = POINT * column + POINT / 2
            content += _text(x, 8 if row == 0 else height + 20, name, 7, "#dfe7da")
            if name.isdigit():
                fill = "#b58d67" if (column + row) % 2 else "#d8b98f"
                content += f'<path d="M{x - 10:g} {edge}h20l-10 {70 * inwards}z" fill="{fill}"/>'
            count = 0 if cell == "." else int(cell[1:])
            fill, number_fill = (RED, "#fff") if cell[0] == "X" else ("#fbfbf8", INK)
            for place in range(min(count, STACKED)):
                y = edge + inwards * (7.5 + 15 * place)
                content += f'<circle cx="{x:g}" cy="{y:g}" r="7" fill="{fill}" stroke="{INK}" stroke-width=".5"/>'
            if count > STACKED:
                content += _text(x, edge + inwards * (7.5 + 15 * (STACKED - 1)) + 3, count, 8, number_fill)
    caption = f"{last_move}; {lines[-1]}" if last_move else lines[-1]
    content += _text(width / 2, height + 31, caption, 8, "#fff")
    checkers = sum(int(cell[1:]) for cell in (*upper[:13], *lower[:13]) if cell != ".")
    return _picture(width, height + 34, f"{title}: {checkers} checkers on the board, {lines[-1]}", content)


#: The styles by the names that compiled games declare: (title, lines of the text, last move) to SVG.
PICTURES: dict[str, Callable[[str, Sequence[str], str], str]] = {
    "scores": _scores,
    "tiles": _tiles,
    "points": _points,
}
