"""Boards as SVG."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, Hex, Othello, TicTacToe
from pondertree.games.board_svg import (
    LAST,
    PIECES,
    STYLES,
    TextBoard,
    board_svg,
    can_be_flipped,
    move_centres,
    piece_colours,
)

#: The games whose boards are grids of pieces.
GRIDS = [start for start, game in COMPILED.items() if game.board in STYLES]
SVG = "{http://www.w3.org/2000/svg}"
#: What draws one piece.
SHAPES = ("a8 8 0 1 0 16 0", "a5.4 5.4 0 1 0 10.8 0", "l10 10m0-10l-10 10", *PIECES.values())


def drawn(state: Any, move: str = "") -> str:
    picture = board_svg(state, move)
    assert picture is not None
    return picture


@pytest.mark.parametrize("start", GRIDS)
@pytest.mark.parametrize("seed", range(5))
def test_board_svg_draws_every_piece_and_last_move(start: Any, seed: int) -> None:
    numbers = random.Random(seed)
    state, before = start(), drawn(start())
    empty = sum(STYLES[COMPILED[start].board].board(*board_size(state)).count(shape) for shape in SHAPES)
    while not state.is_terminal:
        action = numbers.choice(state.legal_actions())
        move = state.action_to_string(action)
        state = state.play(action)
        picture = drawn(state, move)
        root = ElementTree.fromstring(picture)
        pieces = sum(sign.isalpha() for sign in "".join(board_rows(state)))
        assert root.attrib["aria-label"] == f"{COMPILED[start].title}: {pieces} pieces on the board"
        assert sum(picture.count(shape) for shape in SHAPES) - empty == pieces
        assert (drawn(state) != picture) == (move != "pass")
        assert picture != before
        before = picture


def board_rows(state: Any) -> list[str]:
    """The rows of the text board, without the names of rows and columns."""
    lines = [line.split() for line in str(state).splitlines()[:-1]]
    columns = max((line for line in lines if line[0] in "a1"), key=lambda line: line == sorted(set(line)))
    return ["".join(line[-len(columns) :]) for line in lines if line is not columns]


def board_size(state: Any) -> tuple[int, int]:
    """Columns and rows."""
    rows = board_rows(state)
    return len(rows[0]), len(rows)


@pytest.mark.parametrize("start", GRIDS)
def test_text_board_shows_observed_pieces(start: Any) -> None:
    state = start()
    for _ in range(6):
        state = state.play(state.legal_actions()[-1])
        board = TextBoard.of(state)
        assert (board.height, len(board.columns)) == state.observation().shape[1:]
        assert len(board.rows) in (0, board.height)
        if start is not Chess:
            assert len(board.pieces) == state.observation()[:2].sum()


def test_board_svg_highlights_the_squares_of_the_last_move() -> None:
    assert '<rect x="20" y="20"' in drawn(TicTacToe().play(4), "b2")
    picture = drawn(Chess().play(Chess().parse_action("e4")), "e2e4")
    assert picture.count('<rect x="80" y="120"') == picture.count('<rect x="80" y="80"') == 1
    # The fourth stone of a column is three rows above the lowest, its dot of radius 3 in the middle.
    state = ConnectFour()
    for _ in range(4):
        state = state.play(2)
    assert "M47 50a3 3" in drawn(state, "3")
    assert re.search(f'M47 50a3 3 [^"]*" fill="{LAST}"', drawn(Othello().play(19), "c3"))


@pytest.mark.parametrize("start", GRIDS)
def test_centres_of_moves_are_where_the_played_move_is_marked(start: Any) -> None:
    numbers, state = random.Random(1), start()
    for _ in range(12):
        actions = state.legal_actions()
        centres = move_centres(state, actions)
        for action, cells in zip(actions, centres, strict=True):
            picture = drawn(state.play(action), state.action_to_string(action))
            for x, y in cells:
                assert f'<rect x="{x - 10:g}" y="{y - 10:g}"' in picture or f"M{x - 3:g} {y:g}a3 3" in picture
        assert all(len(cells) == len(centres[0]) > 0 for cells in centres)
        state = state.play(numbers.choice(actions))
        if state.is_terminal:
            return


def test_boards_where_pieces_fall_cannot_be_flipped() -> None:
    assert [can_be_flipped(state) for state in (Chess(), Othello(), ConnectFour(), object())] == [
        True,
        True,
        False,
        False,
    ]


def test_board_svg_supports_compiled_games_only() -> None:
    assert board_svg(object()) is None
    assert move_centres(object(), [0, 1]) == [[], []]
    assert piece_colours(object) is None


def test_colours_of_pieces_name_what_is_drawn() -> None:
    assert piece_colours(ConnectFour) == ("red", "yellow")
    assert piece_colours(Othello) == ("black", "white")
    assert piece_colours(Chess) is piece_colours(TicTacToe) is None


@pytest.mark.parametrize("size", range(1, 14))
def test_edges_of_hexagons_are_inside_the_picture(size: int) -> None:
    root = ElementTree.fromstring(drawn(Hex(size)))
    left, above, width, height = map(float, root.attrib["viewBox"].split())
    points: list[tuple[float, float]] = []
    for path in [path for path in root.iter(f"{SVG}path") if "stroke" in path.attrib and "fill" not in path.attrib]:
        x = y = 0.0
        for command, text in re.findall("([Mlv])([^Mlv]*)", path.attrib["d"]):
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", text)]
            for right, down in zip(*([iter(numbers)] * 2), strict=True) if command != "v" else [(0.0, numbers[0])]:
                x, y = (right, down) if command == "M" else (x + right, y + down)
                points.append((x, y))
    assert len(points) >= 4 * size
    for x, y in points:  # lines are 4 wide
        assert left <= x - 2 <= x + 2 <= left + width
        assert above <= y - 2 <= y + 2 <= above + height
