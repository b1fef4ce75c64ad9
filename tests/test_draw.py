"""Pictures of a tree."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

import pytest
from tests.trees import PythonGame, after, every_node

import ponderosa
from ponderosa.games import ConnectFour, Othello, TicTacToe
from ponderosa.reference.tabular import TabularGame


@dataclass(frozen=True)
class Awkward(PythonGame):
    """Moves whose names mean something to XML, JSON and DOT."""

    def action_to_string(self, action: int) -> str:
        return f'<&"{action}"\\>'


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
def root(request: pytest.FixtureRequest) -> ponderosa.Node:
    return ponderosa.UCT(120, seed=1).run(STATES[request.param]).root


def test_text(root: ponderosa.Node) -> None:
    lines = root.to_text(depth=2, width=3).split("\n")
    assert lines[0].startswith(f"root  {root.visit_count} visits")
    best = max(root.children.values(), key=lambda child: child.visit_count)
    assert best.move in lines[1]
    shown = sorted(root.children.values(), key=lambda child: -child.visit_count)[:3]
    assert len(lines) == 1 + sum(1 + min(3, len(child.children)) for child in shown)
    assert len(root.to_text(depth=1, width=2).split("\n")) == 1 + min(2, len(root.children))


def test_dot(root: ponderosa.Node) -> None:
    for node in (root, next(iter(root.children.values()))):
        text = node.to_dot(depth=2, width=3)
        assert text.startswith("digraph")
        assert text.endswith("}")
        boxes = re.findall(r"^  n(\d+) \[label=\"((?:[^\"\\]|\\.)*)\"\];$", text, re.MULTILINE)
        lines = re.findall(r"^  n(\d+) -> n(\d+) ", text, re.MULTILINE)
        assert len(boxes) == len(lines) + 1, "a tree"
        assert {below for _, below in lines} == {number for number, _ in boxes} - {"0"}


def test_svg(root: ponderosa.Node) -> None:
    for node in (root, next(iter(root.children.values()))):
        for depth in (0, 1, 3):
            picture = ElementTree.fromstring(node.to_svg(depth=depth, width=3))
            name = "{http://www.w3.org/2000/svg}"
            boxes = picture.findall(f"{name}rect")
            assert len(picture.findall(f"{name}path")) == len(boxes) - 1
            _, _, wide, high = map(float, str(picture.get("viewBox")).split())
            for box in boxes:
                assert 0 <= float(str(box.get("x"))) <= wide - float(str(box.get("width"))) + 0.1
                assert 0 <= float(str(box.get("y"))) <= high
            levels: dict[str, list[float]] = {}
            for box in boxes:
                levels.setdefault(str(box.get("y")), []).append(float(str(box.get("x"))))
            for places in levels.values():
                places.sort()
                assert all(b - a >= 108 for a, b in itertools.pairwise(places)), "no two boxes overlap"


def test_json(root: ponderosa.Node) -> None:
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
    visits = [child["visit_count"] for child in data["children"]]
    assert visits == sorted(visits, reverse=True)


def test_json_of_a_part() -> None:
    root = ponderosa.UCT(100, seed=1).run(ConnectFour()).root
    child = root.children[3]
    assert json.loads(child.to_json())["move"] == "4"


def test_an_empty_tree_can_be_drawn() -> None:
    root = ponderosa.UCT().tree(ConnectFour()).result().root
    assert root.to_text() == "root  0 visits  +0.000"
    assert json.loads(root.to_json())["children"] == []
    assert len(ElementTree.fromstring(root.to_svg())) > 0
    assert "n0" in root.to_dot()


def test_proven_words() -> None:
    result = ponderosa.UCT(2000, seed=1).run(after(ConnectFour(), "1 2 1 2 1 2"))
    assert "win in 1" in result.root.to_text().split("\n")[0]
    [line] = [line for line in result.root.to_text(depth=1, width=9).split("\n")[1:] if re.search(r"─ 1 ", line)]
    assert line.endswith("win in 1"), "for the player who chose it, counted from where it was chosen"
