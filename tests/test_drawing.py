"""Drawings of a tree."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.search_helpers import PythonGame, after, every_node

import pondertree
from pondertree.drawing import best_children
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe
from pondertree.testing.tabular import TabularGame


@dataclass(frozen=True)
class Awkward(PythonGame):
    """Moves whose names mean something to XML, JSON and DOT."""

    def action_to_string(self, action: int) -> str:
        return f'<&"{action}"\\>'


class LongNames(PythonGame):
    def action_to_string(self, action: int) -> str:
        return f"the square with the number {action}"


STATES: dict[str, Any] = {
    "connect4": ConnectFour(),
    "othello": Othello(),
    "near the end": after(ConnectFour(), "1 2 1 2 1 2"),
    "python": PythonGame(TicTacToe()),
    "awkward": Awkward(TicTacToe()),
    "three players": TabularGame(1, players=3).start(),
    "rewards": TabularGame(2, rewards=True).start(),
}


@pytest.fixture(params=STATES)
def root(request: pytest.FixtureRequest) -> pondertree.Node:
    return pondertree.UCT(120, seed=1).run(STATES[request.param]).root


def test_to_text_shows_visits_and_values(root: pondertree.Node) -> None:
    lines = root.to_text(depth=2, width=3).split("\n")
    assert lines[0].startswith(f"root  {root.visit_count} visits")
    shown = best_children(root, 3)
    assert [line.split()[1:3] for line in lines if re.match("[├└]", line)] == [
        [child.move, str(child.visit_count)] for child in shown
    ]
    assert len(lines) == 1 + sum(1 + min(3, len(child.children)) for child in shown)
    assert len(root.to_text(depth=1, width=2).split("\n")) == 1 + min(2, len(root.children))


def test_to_dot_is_a_digraph_of_the_tree(root: pondertree.Node) -> None:
    for node in (root, next(iter(root.children.values()))):
        text = node.to_dot(depth=2, width=3)
        assert text.startswith("digraph")
        assert text.endswith("}")
        boxes = re.findall(r"^  n(\d+) \[label=\"((?:[^\"\\]|\\.)*)\"(?:, penwidth=2.5)?\];$", text, re.MULTILINE)
        lines = re.findall(r"^  n(\d+) -> n(\d+) ", text, re.MULTILINE)
        assert len(boxes) == len(lines) + 1, "a tree"
        assert {below for _, below in lines} == {number for number, _ in boxes} - {"0"}
        assert text.count(", penwidth=2.5];") == len(drawn_line(node, 2))


def drawn_line(node: pondertree.Node, depth: int) -> list[pondertree.Node]:
    """The best move, the best reply, and so on."""
    line: list[pondertree.Node] = []
    while len(line) < depth and node.children:
        node = best_children(node, 1)[0]
        line.append(node)
    return line


SVG = "{http://www.w3.org/2000/svg}"


def number(element: ElementTree.Element, attribute: str) -> float:
    return float(str(element.get(attribute)))


def test_to_svg_is_well_formed(root: pondertree.Node) -> None:
    for node in (root, next(iter(root.children.values()))):
        for depth in (0, 1, 3):
            picture = ElementTree.fromstring(node.to_svg(depth=depth, width=3))
            boxes = picture.findall(f"{SVG}rect")
            assert len(picture.findall(f"{SVG}path")) == len(boxes) - 1
            assert [number(picture, "width"), number(picture, "height")] == [
                float(size) for size in str(picture.get("viewBox")).split()[2:]
            ]
            rights = [number(box, "x") + number(box, "width") for box in boxes]
            bottoms = [number(box, "y") + number(box, "height") for box in boxes]
            margins = [
                min(number(box, "x") for box in boxes),
                min(number(box, "y") for box in boxes),
                number(picture, "width") - max(rights),
                number(picture, "height") - max(bottoms),
            ]
            assert margins == pytest.approx([6, 6, 6, 6], abs=0.1), "the same on all sides"
            levels: dict[str, list[float]] = {}
            for box in boxes:
                levels.setdefault(str(box.get("y")), []).append(number(box, "x"))
            for places in levels.values():
                places.sort()
                gap = number(boxes[0], "width")
                assert all(b - a >= gap for a, b in itertools.pairwise(places)), "no two boxes overlap"


def test_svg_shows_the_best_line() -> None:
    result = pondertree.UCT(2000, seed=1).run(ConnectFour())
    picture = ElementTree.fromstring(result.root.to_svg())
    assert picture.findtext(f"{SVG}title") == f"Search tree: 2,000 visits, best move {result.move}"
    assert number(picture, "width") < 1200
    boxes, texts = picture.findall(f"{SVG}rect"), picture.findall(f"{SVG}text")
    moves = [text.text for text in texts if text.get("font-weight") == "bold"]
    assert len(boxes) == len(moves) == 1 + 4 + 16
    bold = [move for box, move in zip(boxes, moves, strict=True) if box.get("stroke-width")]
    assert bold == result.pv[:2]


def test_svg_boxes_fit_long_move_names() -> None:
    boxes = [
        ElementTree.fromstring(pondertree.UCT(50, seed=1).run(state).root.to_svg()).find(f"{SVG}rect")
        for state in (Awkward(TicTacToe()), LongNames(TicTacToe()))
    ]
    narrow, wide_model = (number(box, "width") for box in boxes if box is not None)
    assert narrow < wide_model


def test_svg_colours_are_for_the_player_who_chose() -> None:
    root = pondertree.UCT(seed=1).run(Chess("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")).root
    picture = ElementTree.fromstring(root.to_svg(depth=3, width=3))
    values = [text.text or "" for text in picture.findall(f"{SVG}text")[2::3]]
    fills = [box.get("fill") for box in picture.findall(f"{SVG}rect")]
    colours = {"win": "#cfe3c0", "loss": "#f2c9c0", "draw": "#dcdcdc"}
    assert fills == [colours.get(value.split()[0], "#fbf8ef") for value in values]
    assert {"win in 3", "loss in 2", "win in 1"} <= set(values)


def test_proven_win_is_drawn_first() -> None:
    """It may have few visits: a search stops when it is found."""
    found = 0
    for seed in range(20):
        result = pondertree.UCT(2000, seed=seed).run(after(ConnectFour(), "4 4 3 4"))
        assert result.proven == 1
        best = best_children(result.root, 1)[0]
        assert (best.move, best.proven) == (result.move, -1)
        found += best.visit_count < max(child.visit_count for child in result.root.children.values())
    assert found > 0, "some were found before they were the most visited"


def test_to_json_holds_the_whole_tree(root: pondertree.Node) -> None:
    data = json.loads(root.to_json())
    stack = [(root, data)]
    count = 0
    while stack:
        node, entry = stack.pop()
        count += 1
        assert entry["action"] == node.action
        assert entry["move"] == node.move
        assert entry["visit_count"] == node.visit_count
        assert entry["total_value"] == node.total_value
        assert entry["q_value"] == node.q_value
        assert entry["reward"] == node.reward
        assert entry["proven"] == node.proven
        assert entry["terminal"] == node.is_terminal
        assert {child["action"] for child in entry["children"]} == set(node.children)
        stack.extend((node.children[child["action"]], child) for child in entry["children"])
    assert count == sum(1 for _ in every_node(root))
    top = json.loads(root.to_json(depth=1, width=2))
    assert len(top["children"]) == min(2, len(root.children))
    assert all(child["children"] == [] for child in top["children"])
    visits = [child["visit_count"] for child in data["children"][1:]]
    assert visits == sorted(visits, reverse=True), "after the best, the most visited"


def test_to_json_is_limited_by_depth_and_width() -> None:
    root = pondertree.UCT(100, seed=1).run(ConnectFour()).root
    child = root.children[3]
    assert json.loads(child.to_json())["move"] == "4"


def test_tree_without_simulations_is_drawn() -> None:
    root = pondertree.UCT().tree(ConnectFour()).result().root
    assert root.to_text() == "root  0 visits  +0.000"
    assert json.loads(root.to_json())["children"] == []
    assert len(ElementTree.fromstring(root.to_svg())) > 0
    assert "n0" in root.to_dot()


def test_proven_results_are_shown_as_win_draw_loss() -> None:
    result = pondertree.UCT(2000, seed=1).run(after(ConnectFour(), "1 2 1 2 1 2"))
    assert "win in 1" in result.root.to_text().split("\n")[0]
    [line] = [line for line in result.root.to_text(depth=1, width=9).split("\n")[1:] if re.search(r"─ 1 ", line)]
    assert line.endswith("win in 1"), "for the player who chose it, counted from where it was chosen"


def test_unvisited_moves_are_in_json_and_not_drawn() -> None:
    root = pondertree.AlphaZero(Uniform(), num_simulations=12, seed=1).run(ConnectFour()).root
    assert any(not child.visit_count for node in every_node(root) for child in node.children.values())
    for text in (root.to_text(depth=9, width=9), root.to_dot(depth=9, width=9), root.to_svg(depth=9, width=9)):
        assert not re.search(r"\b0 +0\.0%|\\n0\\n|>0</text>", text)
    assert root.to_svg(depth=9, width=9).count("<rect") == sum(node.visit_count > 0 for node in every_node(root))
    data = json.loads(root.to_json())
    assert {child["action"] for child in data["children"][0]["children"]} == set(range(7))
