"""Pictures of a tree, without any dependency: text, Graphviz's DOT, JSON, SVG. All show the most visited moves first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ponderosa.node import Node

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y = 108, 46, 14, 40


def best_children(node: Node, width: int | None) -> list[Node]:
    """The children, most visited first; at most `width` of them."""
    return sorted(node.children.values(), key=lambda child: -child.visit_count)[:width]


def value_text(node: Node) -> str:
    """The value for the player who chose the move (at the root: for the player to move), or what is proven of it."""
    flip = 1 if node.parent is None or node.to_play == node.parent.to_play else -1
    if node.proven is not None:
        word = {1: "win", 0: "draw", -1: "loss"}[flip * node.proven]
        # Counted from where the move is chosen, so that the move itself is one ply: the root and its best move agree.
        plies = (node.distance or 0) + (node.parent is not None)
        return f"{word} in {plies}" if plies else word
    return f"{flip * node.q_value:+.3f}"


def walk(root: Node, depth: int | None, width: int | None) -> Iterator[tuple[Node, int]]:
    """The nodes of the top of the tree with their depth, parents before children, without recursion."""
    stack = [(root, 0)]
    while stack:
        node, level = stack.pop()
        yield node, level
        if depth is None or level < depth:
            stack.extend((child, level + 1) for child in reversed(best_children(node, width)))


def to_text(root: Node, depth: int = 2, width: int = 5) -> str:
    """The top of the tree as lines of text. Values are for the player who chose the move."""
    lines = [f"root  {root.visit_count} visits  {value_text(root)}"]
    stack = [(child, "") for child in reversed(best_children(root, width))]
    last = {id(stack[0][0])} if stack else set()
    level_of = {id(child): 1 for child, _ in stack}
    while stack:
        node, indent = stack.pop()
        is_last = id(node) in last
        share = node.visit_count / max(node.parent.visit_count if node.parent else 1, 1)
        lines.append(
            f"{indent}{'└─' if is_last else '├─'} {node.move:<6} {node.visit_count:>8} {share:>6.1%}  {value_text(node)}"
        )
        if level_of[id(node)] < depth:
            children = best_children(node, width)
            if children:
                last.add(id(children[-1]))
            for child in reversed(children):
                level_of[id(child)] = level_of[id(node)] + 1
                stack.append((child, indent + ("   " if is_last else "│  ")))
    return "\n".join(lines)


def to_dot(root: Node, depth: int = 3, width: int = 5) -> str:
    """The top of the tree for Graphviz; thicker lines have more visits."""
    lines = ["digraph tree {", "  node [shape=box, style=rounded, fontname=Helvetica, fontsize=10];"]
    number = {id(node): place for place, (node, _) in enumerate(walk(root, depth, width))}
    for node, _ in walk(root, depth, width):
        move = (node.move or "root").replace("\\", "\\\\").replace('"', '\\"')
        label = f"{move}\\n{node.visit_count}\\n{value_text(node)}"
        lines.append(f'  n{number[id(node)]} [label="{label}"];')
        if node.parent is not None and node is not root:
            share = node.visit_count / max(node.parent.visit_count, 1)
            lines.append(f"  n{number[id(node.parent)]} -> n{number[id(node)]} [penwidth={0.5 + 4 * share:.2f}];")
    return "\n".join([*lines, "}"])


def as_dict(node: Node) -> dict[str, Any]:
    """One node as plain data, without its children."""
    return {
        "action": node.action,
        "move": node.move,
        "to_play": node.to_play,
        "prior": node.prior,
        "visit_count": node.visit_count,
        "total_value": node.total_value,
        "q_value": node.q_value,
        "reward": node.reward,
        "proven": node.proven,
        "terminal": node.is_terminal,
        "children": [],
    }


def to_json(root: Node, depth: int | None = None, width: int | None = None) -> str:
    """The tree, or its top, as JSON: each node with the list of its children."""
    made: dict[int, dict[str, Any]] = {}
    for node, _ in walk(root, depth, width):
        made[id(node)] = as_dict(node)
        if node.parent is not None and node is not root:
            made[id(node.parent)]["children"].append(made[id(node)])
    # Deep trees would overflow the encoder's recursion, so the text is put together from the leaves up.
    texts: dict[int, str] = {}
    for key in reversed(made):
        data = made[key]
        children = ",".join(texts.pop(id(child)) for child in data.pop("children"))
        texts[id(data)] = f'{json.dumps(data)[:-1]}, "children": [{children}]}}'
    return texts[id(made[id(root)])]


def to_svg(root: Node, depth: int = 3, width: int = 5) -> str:
    """The top of the tree as an SVG picture: a box per position, wide lines where most visits went."""
    places: dict[int, tuple[float, int]] = {}
    nodes = list(walk(root, depth, width))
    next_x = 0.0
    for node, level in reversed(nodes):
        below = [places[id(child)][0] for child in best_children(node, width) if id(child) in places]
        if not below:
            places[id(node)] = (next_x, level)
            next_x += BOX_WIDTH + GAP_X
        else:
            places[id(node)] = (sum(below) / len(below), level)
    deepest = max(level for _, level in nodes)
    total = (next_x, (deepest + 1) * (BOX_HEIGHT + GAP_Y))
    lines, boxes = [], []
    for node, level in nodes:
        x, y = total[0] - places[id(node)][0] - BOX_WIDTH, level * (BOX_HEIGHT + GAP_Y) + 4
        if node.parent is not None and id(node.parent) in places and node is not root:
            parent_x = total[0] - places[id(node.parent)][0] - BOX_WIDTH
            share = node.visit_count / max(node.parent.visit_count, 1)
            lines.append(
                f'<path d="M{parent_x + BOX_WIDTH / 2:.1f} {y - GAP_Y:.1f} C{parent_x + BOX_WIDTH / 2:.1f} {y - GAP_Y / 2:.1f} '
                f'{x + BOX_WIDTH / 2:.1f} {y - GAP_Y / 2:.1f} {x + BOX_WIDTH / 2:.1f} {y:.1f}" fill="none" stroke="#7a8b6f" '
                f'stroke-width="{0.7 + 7 * share:.1f}" stroke-linecap="round"/>'
            )
        fill = {1: "#f2c9c0", -1: "#cfe3c0", 0: "#dcdcdc", None: "#fbf8ef"}[node.proven]
        boxes.append(
            f'<rect x="{x:.1f}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="{fill}" stroke="#4d5a45"/>'
            f'<text x="{x + BOX_WIDTH / 2:.1f}" y="{y + 19}" text-anchor="middle" font-weight="bold">{escape(node.move or "root")}</text>'
            f'<text x="{x + BOX_WIDTH / 2:.1f}" y="{y + 36}" text-anchor="middle" font-size="11">'
            f"{node.visit_count:,} · {escape(value_text(node))}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]:.0f} {total[1]:.0f}" width="{total[0]:.0f}" '
        f'height="{total[1]:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#22281e">'
        f"{''.join(lines)}{''.join(boxes)}</svg>"
    )
