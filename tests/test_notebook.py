"""What notebooks display: well-formed, escaped, bounded, and without scripts or external resources."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.models import TableModel
from tests.support.search_helpers import PythonGame, after

import pondertree
from pondertree.drawing import MAX_MOVES
from pondertree.evaluators import Uniform
from pondertree.game import COMPILED
from pondertree.games import Chess, ConnectFour, TicTacToe
from pondertree.games.board_svg import board_svg
from pondertree.testing.tabular import TabularGame

TAGS = {"div", "p", "b", "table", "tr", "th", "td", "pre", "img"}
SVG_TAGS = {"svg", "title", "g", "path", "rect", "text", "circle"}
#: Bytes of the largest card.
MOST = 80_000


def checked_svg(text: str) -> ElementTree.Element:
    """Parses a picture that draws shapes and text alone."""
    picture = ElementTree.fromstring(text.encode())
    assert {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in picture.iter()} <= SVG_TAGS
    assert_inert(picture)
    return picture


def assert_inert(root: ElementTree.Element) -> None:
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert not name.endswith("href")
            assert "url(" not in value
            assert name != "src" or value.startswith("data:image/svg+xml;base64,")


def checked_html(text: str) -> tuple[ElementTree.Element, list[str]]:
    """Parses a card; returns it and its pictures."""
    assert len(text.encode()) < MOST
    card = ElementTree.fromstring(text.encode())
    assert {element.tag for element in card.iter()} <= TAGS
    assert_inert(card)
    assert not re.search("background|(?<!-)color", text), "the colours are those of the page"
    return card, [base64.b64decode(str(image.get("src")).split(",")[1]).decode() for image in card.iter("img")]


def cells(card: ElementTree.Element) -> list[list[str]]:
    return [[cell.text or "" for cell in row] for row in card.iter("tr")]


@pytest.mark.parametrize("start", COMPILED)
def test_states_of_compiled_games_draw_their_board(start: Any) -> None:
    state = start()
    for _ in range(4):
        assert state._repr_svg_() == board_svg(state)
        assert checked_svg(state._repr_svg_()).get("aria-label")
        state = state.play(state.legal_actions()[-1])


def test_nodes_draw_the_top_of_their_tree() -> None:
    root = pondertree.UCT(2000, seed=1).run(ConnectFour()).root
    for node in (root, root.children[3], root.children[3].children[2]):
        picture = checked_svg(node._repr_svg_())
        assert len(picture.findall("{*}rect")) == 1 + 3 + 9
        assert str(picture.findtext("{*}title")).startswith(f"Search tree: {node.visit_count:,} visits")


def test_results_show_board_moves_and_tree() -> None:
    search = pondertree.AlphaZero(Uniform(), num_simulations=300, seed=1)
    tree = search.tree(ConnectFour().play(3)).simulate()
    result = tree.result()
    card, pictures = checked_html(result._repr_html_())
    assert pictures == [result._state._repr_svg_(), result.root._repr_svg_()]
    head, *rows = cells(card)
    assert head == ["move", "visits", "share", "Q", "prior", "proven", "expected line"]
    for row, move in zip(rows, result.moves, strict=True):
        assert row[:3] == [move.move, str(move.visits), f"{move.share:.1%}"]
        assert row[3:6] == [f"{move.q:+.3f}", f"{move.prior:.1%}", ""]
        assert row[6].rstrip("…") in " ".join(move.pv)
    summary = f"{result.move}, value {result.root.q_value:+.3f}, 300 simulations in {result.elapsed:.2f} s, seed 1"
    assert "".join(card.itertext()).startswith(summary)
    assert tree._repr_html_() == result._repr_html_()


def test_proven_moves_are_named() -> None:
    card, _ = checked_html(pondertree.UCT(2000, seed=1).run(after(ConnectFour(), "1 2 1 2 1 2"))._repr_html_())
    assert ["1", "win in 1"] in [[row[0], row[5]] for row in cells(card)]
    assert "1, win in 1, " in "".join(card.itertext())


def test_unsearched_trees_are_shown_without_warning() -> None:
    """Warnings are errors in tests."""
    for search in (
        pondertree.UCT(),
        pondertree.AlphaZero(Uniform()),
        pondertree.Gumbel(Uniform()),
        pondertree.Hybrid(),
    ):
        tree = search.tree(Chess())
        card, pictures = checked_html(tree._repr_html_())
        assert len(pictures) == 2
        assert "not searched yet" in "".join(card.itertext())
        assert "and 10 more moves" in "".join(card.itertext())
        assert len(cells(card)) == 1 + MAX_MOVES


def test_learned_models_and_several_players_are_shown() -> None:
    model = pondertree.MuZero(TableModel(300), num_players=1, seed=1).run(observation=np.arange(4.0))
    games = [TabularGame(1, players=3).start(), TabularGame(2, rewards=True).start()]
    for result in (model, *(pondertree.UCT(50, seed=1).run(state) for state in games)):
        card, _ = checked_html(result._repr_html_())
        assert card.findtext(".//pre")


@dataclass(frozen=True)
class Hostile(PythonGame):
    """A game whose texts are given."""

    text: str = ""

    def play(self, action: int) -> Hostile:
        return Hostile(self.inside.play(action), self.text)

    def action_to_string(self, action: int) -> str:
        return f"{self.text}{action}"

    def __str__(self) -> str:
        return self.text


HOSTILE = [
    "</td></table><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>&lt;&#0;]]>",
    "\x00\x1b[31m\ud800\uffff\x7f\x85",
    "line\n" * 100_000,
    "wide" * 100_000,
    "&" * 1_000,
]


@settings(max_examples=30)
@given(text=st.text(alphabet=st.characters(), max_size=200) | st.sampled_from(HOSTILE))
def test_texts_of_games_are_escaped_and_bounded(text: str) -> None:
    result = pondertree.UCT(60, seed=1).run(Hostile(TicTacToe(), text))
    card, [picture] = checked_html(result._repr_html_())
    title = checked_svg(picture).findtext("{*}title")
    assert len(str(title)) < 100
    shown = str(card.findtext(".//pre") or "")
    assert len(shown) <= 41 * 101
    if re.fullmatch(r"[ -~]{0,90}", text):
        assert shown == text
        assert cells(card)[1][0][:20] == f"{text}{result.moves[0].action}"[:20]


def test_wide_games_and_large_trees_are_bounded() -> None:
    result = pondertree.AlphaZero(lambda batch: (None, [0.0] * len(batch)), num_simulations=20_000, seed=1).run(Chess())
    for node in (result.root, next(iter(result.root.children.values()))):
        assert len(node._repr_svg_()) < MOST
    checked_html(result._repr_html_())


@pytest.mark.parametrize(
    "picture", ["<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "\ud800"]
)
def test_pictures_of_python_games_are_embedded_as_images(picture: str) -> None:
    """In an image neither scripts run nor resources load."""

    class Drawn(PythonGame):
        def _repr_svg_(self) -> str:
            return picture

    _, [position, _] = checked_html(pondertree.UCT(20, seed=1).run(Drawn(TicTacToe()))._repr_html_())
    assert position == picture.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("picture", [None, 5, "x" * 10**6])
def test_unusable_pictures_are_replaced_by_text(picture: Any) -> None:
    class Drawn(PythonGame):
        def _repr_svg_(self) -> Any:
            return picture

        def __str__(self) -> str:
            return "the text"

    card, pictures = checked_html(pondertree.UCT(20, seed=1).run(Drawn(TicTacToe()))._repr_html_())
    assert card.findtext(".//pre") == "the text"
    assert len(pictures) == 1


def test_error_of_a_game_s_text_is_shown_in_its_place() -> None:
    class Unprintable(PythonGame):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    card, _ = checked_html(pondertree.UCT(20, seed=1).run(Unprintable(TicTacToe()))._repr_html_())
    assert card.findtext(".//pre") == "<Unprintable: Unprintable.__str__ raised RuntimeError: no text>"
