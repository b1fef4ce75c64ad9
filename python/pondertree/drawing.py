"""Drawings of a tree as text, Graphviz DOT, JSON, SVG and HTML, without dependencies; the best move comes first."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any, Protocol

from pondertree.game import CHANCE, perspective, state_text

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 62, 58, 8, 40, 6
FILLS = {1: "#cfe3c0", -1: "#f2c9c0", 0: "#dcdcdc", None: "#fbf8ef"}
#: The size of the tree in notebooks: moves per position, and levels.
NOTEBOOK_DEPTH, NOTEBOOK_WIDTH = 2, 3
#: Limits there: moves of the table, characters of a move and of a line of moves, size of a text and of a picture.
MAX_MOVES, MAX_LABEL, MAX_LINE, MAX_ROWS, MAX_COLUMNS, MAX_PICTURE = 10, 32, 64, 40, 100, 1 << 18
#: What XML cannot represent even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class SearchedNode(Protocol):
    """The interface that `pondertree.Node` and the reference implementation's `MCTSNode` share."""

    @property
    def children(self) -> Mapping[int, Any]: ...
    @property
    def to_play(self) -> int: ...
    @property
    def visit_count(self) -> int: ...
    @property
    def proven(self) -> int | None: ...
    @property
    def distance(self) -> int | None: ...


class RootMove(Protocol):
    """The interface of a move at the root for tables; see `pondertree.MoveStatistics`."""

    @property
    def action(self) -> int: ...
    @property
    def move(self) -> str: ...
    @property
    def visits(self) -> int: ...
    @property
    def share(self) -> float: ...
    @property
    def prior(self) -> float: ...
    @property
    def q(self) -> float: ...
    @property
    def proven(self) -> int | None: ...
    @property
    def distance(self) -> int | None: ...
    @property
    def pv(self) -> Sequence[str]: ...


class TreeNode(SearchedNode, Protocol):
    """The interface of a node for drawings; see `pondertree.Node`."""

    @property
    def action(self) -> int | None: ...
    @property
    def parent(self) -> TreeNode | None: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def move(self) -> str: ...
    @property
    def state(self) -> Any: ...
    @property
    def prior(self) -> float: ...
    @property
    def total_value(self) -> float: ...
    @property
    def q_value(self) -> float: ...
    @property
    def reward(self) -> float: ...
    @property
    def is_terminal(self) -> bool: ...


def sign_of(node: TreeNode) -> int:
    """Returns -1 if the player who chose the move is not the player to move, else 1; chance counts as player 0."""
    return 1 if node.parent is None or perspective(node.to_play) == perspective(node.parent.to_play) else -1


def is_chance(node: SearchedNode) -> bool:
    """Whether a node is a chance node, drawn as an ellipse; terminal nodes have no children."""
    return node.to_play == CHANCE and bool(node.children)


def for_chooser(node: TreeNode) -> int | None:
    """Returns the proven result for the player who chose the move (at the root: for the player to move)."""
    return None if node.proven is None else sign_of(node) * node.proven


def value_text(node: TreeNode) -> str:
    """Returns the value or proven result, for the player who chose the move (at the root: for the player to move)."""
    proven = for_chooser(node)
    if proven is not None:
        # Plies count from where the move is chosen, itself included, so that the root and its best move agree.
        return proven_text(proven, (node.distance or 0) + (node.parent is not None))
    return f"{sign_of(node) * node.q_value:+.3f}"


def proven_text(proven: int, plies: int) -> str:
    """Returns a proven result in words."""
    word = {1: "win", 0: "draw", -1: "loss"}[proven]
    return f"{word} in {plies}" if plies else word


def label(text: str, longest: int = MAX_LABEL) -> str:
    """Returns text of a game for XML: truncated and escaped."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return escape(NOT_XML.sub("\ufffd", shown))


def merit(child: TreeNode) -> tuple[int, int, int]:
    """Returns the sort key of the best move: the shortest proven win, then visits, then the longest proven loss."""
    proven, distance = for_chooser(child), child.distance or 0
    if proven == 1:
        return 1, -distance, child.visit_count
    return (-1, distance, child.visit_count) if proven == -1 else (0, 0, child.visit_count)


def best_children(node: TreeNode, width: int | None) -> list[TreeNode]:
    """Returns at most `width` children: the best, proven wins, then by visits; None returns all, unvisited ones too."""
    children = [child for child in node.children.values() if child.visit_count or width is None]
    if is_chance(node):
        return sorted(children, key=lambda child: -child.visit_count)[:width]
    best = max(children, key=merit, default=None)
    return sorted(children, key=lambda child: (child is not best, for_chooser(child) != 1, -child.visit_count))[:width]


def best_line(root: TreeNode, depth: int | None, width: int | None) -> set[int]:
    """Returns the ids of the nodes on the principal variation, as far as they are drawn."""
    line: set[int] = set()
    children = best_children(root, width)
    while children and children[0].visit_count and (depth is None or len(line) < depth):
        line.add(id(children[0]))
        children = best_children(children[0], width)
    return line


def walk(root: TreeNode, depth: int | None, width: int | None) -> Iterator[tuple[TreeNode, int]]:
    """Yields the nodes of the top of the tree with their depth, in preorder and without recursion."""
    stack = [(root, 0)]
    while stack:
        node, level = stack.pop()
        yield node, level
        if depth is None or level < depth:
            stack.extend((child, level + 1) for child in reversed(best_children(node, width)))


def to_text(root: TreeNode, depth: int = 2, width: int = 5) -> str:
    """Returns the top of the tree as text.

    Values are for the player who chose the move, those of outcomes of chance for the first player.
    """
    lines = [f"root  {root.visit_count} visits  {value_text(root)}"]
    stack = [(child, "") for child in reversed(best_children(root, width))]
    last = {id(stack[0][0])} if stack else set()
    level_of = {id(child): 1 for child, _ in stack}
    while stack:
        node, indent = stack.pop()
        is_last = id(node) in last
        share = node.visit_count / max(node.parent.visit_count if node.parent else 1, 1)
        branch = f"{indent}{'└─' if is_last else '├─'}"
        chance = "  chance" if is_chance(node) else ""
        lines.append(f"{branch} {node.move:<6} {node.visit_count:>8} {share:>6.1%}  {value_text(node)}{chance}")
        if level_of[id(node)] < depth:
            children = best_children(node, width)
            if children:
                last.add(id(children[-1]))
            for child in reversed(children):
                level_of[id(child)] = level_of[id(node)] + 1
                stack.append((child, indent + ("   " if is_last else "│  ")))
    return "\n".join(lines)


def to_dot(root: TreeNode, depth: int = 2, width: int = 4) -> str:
    """Returns the top of the tree in DOT: line widths show visit shares, thick boxes the principal variation, ellipses
    chance nodes.
    """
    lines = ["digraph tree {", "  node [shape=box, style=rounded, fontname=Helvetica, fontsize=10];"]
    number = {id(node): place for place, (node, _) in enumerate(walk(root, depth, width))}
    line = best_line(root, depth, width)
    for node, _ in walk(root, depth, width):
        move = (node.move or "root").replace("\\", "\\\\").replace('"', '\\"')
        label = f"{move}\\n{node.visit_count}\\n{value_text(node)}"
        bold = (", penwidth=2.5" if id(node) in line else "") + (", shape=ellipse" if is_chance(node) else "")
        lines.append(f'  n{number[id(node)]} [label="{label}"{bold}];')
        if node.parent is not None and node is not root:
            share = node.visit_count / max(node.parent.visit_count, 1)
            lines.append(f"  n{number[id(node.parent)]} -> n{number[id(node)]} [penwidth={0.5 + 4 * share:.2f}];")
    return "\n".join([*lines, "}"])


def as_dict(node: TreeNode) -> dict[str, Any]:
    """Returns one node as plain data, without its children."""
    return {
        "action": node.action,
        "move": node.move,
        "to_play": node.to_play,
        "prior": node.prior,
        "visit_count": node.visit_count,
        "total_value": node.total_value,
        "q_value": node.q_value,
        "reward": node.reward,
        **({} if node.slot is None else {"slot": node.slot}),
        "proven": node.proven,
        "terminal": node.is_terminal,
        "children": [],
    }


def to_json(root: TreeNode, depth: int | None = None, width: int | None = None) -> str:
    """Returns the tree, or its top, as JSON: nested nodes with lists of children."""
    made: dict[int, dict[str, Any]] = {}
    for node, _ in walk(root, depth, width):
        made[id(node)] = as_dict(node)
        if node.parent is not None and node is not root:
            made[id(node.parent)]["children"].append(made[id(node)])
    # `json` recurses: deep trees are assembled from the leaves up.
    texts: dict[int, str] = {}
    for key in reversed(made):
        data = made[key]
        children = ",".join(texts.pop(id(child)) for child in data.pop("children"))
        texts[id(data)] = f'{json.dumps(data)[:-1]}, "children": [{children}]}}'
    return texts[id(made[id(root)])]


def to_svg(root: TreeNode, depth: int = 2, width: int = 4) -> str:
    """Returns the top of the tree as SVG: a box per position with its move, visits and value.

    Line widths show visit shares, thick boxes the principal variation. Green is a proven win for the player who chose
    the move (at the root: for the player to move), red a loss, grey a draw. Chance nodes have round ends.
    """
    nodes = list(walk(root, depth, width))
    line = best_line(root, depth, width)
    texts = {id(node): (label(node.move or "root"), f"{node.visit_count:,}", value_text(node)) for node, _ in nodes}
    # Text widths are estimates for Helvetica in the two sizes.
    longest = (max(8 * len(unescape(move)), 6.2 * len(visits)) for move, visits, _ in texts.values())
    box = max(BOX_WIDTH, *(round(width + 12) for width in longest))
    # Leaves take the next column, from the right, since the walk is read backwards; inner nodes are centred
    # over their children.
    places: dict[int, float] = {}
    below: dict[int, list[float]] = {}
    taken = 0
    for node, _ in reversed(nodes):
        if id(node) in below:
            places[id(node)] = sum(below[id(node)]) / len(below[id(node)])
        else:
            places[id(node)] = taken * (box + GAP_X)
            taken += 1
        if node.parent is not None and node is not root:
            below.setdefault(id(node.parent), []).append(places[id(node)])
    total = taken * (box + GAP_X) - GAP_X + 2 * MARGIN
    height = max(level for _, level in nodes) * (BOX_HEIGHT + GAP_Y) + BOX_HEIGHT + 2 * MARGIN
    middles = {key: total - MARGIN - place - box / 2 for key, place in places.items()}
    lines, boxes = [], []
    for node, level in nodes:
        x, y = middles[id(node)], level * (BOX_HEIGHT + GAP_Y) + MARGIN
        if node.parent is not None and node is not root:
            above, half = middles[id(node.parent)], y - GAP_Y / 2
            share = node.visit_count / max(node.parent.visit_count, 1)
            lines.append(
                f'<path d="M{above:.1f} {y - GAP_Y} C{above:.1f} {half:.1f} {x:.1f} {half:.1f} {x:.1f} {y}" '
                f'fill="none" stroke="#7a8b6f" stroke-width="{0.7 + 7 * share:.1f}" stroke-linecap="round"/>'
            )
        move, visits, value = texts[id(node)]
        corner = 28 if is_chance(node) else 8
        stroke = 'stroke="#c07a12" stroke-width="3"' if id(node) in line else 'stroke="#4d5a45"'
        boxes.append(
            f'<rect x="{x - box / 2:.1f}" y="{y}" width="{box}" height="{BOX_HEIGHT}" rx="{corner}" '
            f'fill="{FILLS[for_chooser(node)]}" {stroke}/>'
            f'<text x="{x:.1f}" y="{y + 19}" font-weight="bold">{move}</text>'
            f'<text x="{x:.1f}" y="{y + 35}" font-size="11">{visits}</text>'
            f'<text x="{x:.1f}" y="{y + 50}" font-size="11">{value}</text>'
        )
    best = next((f", best move {texts[id(node)][0]}" for node, _ in nodes if id(node) in line), "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#22281e" text-anchor="middle" role="img">'
        f"<title>Search tree: {root.visit_count:,} visits{best}</title>"
        f"{''.join(lines)}{''.join(boxes)}</svg>"
    )


def to_html(root: TreeNode, moves: Sequence[RootMove], action: int | None, summary: str) -> str:
    """Returns a card for notebooks: the position, a table of the best moves and the top of the tree.

    `action` is the selected one. Pictures are embedded, so that nothing in them is executed or loaded; colours are
    those of the page.
    """
    selected = next((row.move for row in moves if row.action == action), "not searched yet")
    value = value_text(root) if root.proven is not None else f"value {value_text(root)}"
    names = ("move", "visits", "share", "Q", "prior", "proven", "expected line")
    rows = [
        (
            label(row.move),
            f"{row.visits:,}",
            f"{row.share:.1%}",
            f"{row.q:+.3f}" if row.q == row.q else "",
            f"{row.prior:.1%}",
            "" if row.proven is None else proven_text(row.proven, row.distance or 0),
            label(" ".join(row.pv), MAX_LINE),
        )
        for row in moves[:MAX_MOVES]
    ]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows)
    more = f"<p>and {len(moves) - MAX_MOVES:,} more moves</p>" if len(moves) > MAX_MOVES else ""
    return (
        f"<div><p><b>{label(selected)}</b>, {value}, {label(summary, MAX_COLUMNS)}</p>"
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f"<div>{_position(root.state)}</div><div><table><tr>{head}</tr>{body}</table>{more}</div></div>"
        f"{_image(to_svg(root, NOTEBOOK_DEPTH, NOTEBOOK_WIDTH), 'search tree')}</div>"
    )


def _position(state: Any) -> str:
    """Returns the picture of a state that draws itself for notebooks, or its text."""
    draw = getattr(state, "_repr_svg_", None)
    picture = draw() if callable(draw) else None
    if isinstance(picture, str) and len(picture) <= MAX_PICTURE:
        return _image(picture, "position")
    lines = state_text(state)[: MAX_ROWS * MAX_COLUMNS].split("\n")[:MAX_ROWS]
    text = "\n".join(label(line, MAX_COLUMNS) for line in lines)
    return f"<pre>{text}</pre>"


def _image(picture: str, name: str) -> str:
    data = base64.b64encode(picture.encode("utf-8", "replace")).decode()
    return f'<img alt="{name}" style="max-width:100%;max-height:30em" src="data:image/svg+xml;base64,{data}"/>'
