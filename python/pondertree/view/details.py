"""What a page asks for one position: everything a `Node` has, and one simulation with every term."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from pondertree.config import ScoringRule
from pondertree.result import SearchResult
from pondertree.view.messages import MAX_MESSAGE, cut, encode
from pondertree.view.position import board_message
from pondertree.view.statistics import finite, move_rows

#: The attributes of a node that are shown.
ATTRIBUTES = (
    "action",
    "to_play",
    "visit_count",
    "total_value",
    "q_value",
    "raw_value",
    "nn_value",
    "prior",
    "clean_prior",
    "reward",
    "proven",
    "distance",
    "is_terminal",
    "terminal_or_mate_value",
    "category",
    "forced_depth_left",
    "in_flight",
    "slot",
)
#: What is no term of a formula but describes its edge.
NO_TERMS = {"action", "score"}
#: Compared moves of a choice: those with the best scores, and the chosen one.
MAX_COMPARED = 100
#: The lists of replies that are shortened if the reply is too large.
LISTS = {"node": ("moves", "path"), "solved": ("moves",), "step": ("choices", "nodes")}


def node_details(
    result: SearchResult,
    path: Sequence[int],
    number: int,
    rule: ScoringRule | None,
    write: Callable[[Any, int], str],
    *,
    evaluates: bool,
) -> dict[str, Any]:
    """Returns the details of the node at the end of a path of actions; `number` is the engine's, -1 for a leaf."""
    nodes = [result.root]
    try:
        for action in path:
            nodes.append(nodes[-1].children[action])
        node = nodes[-1]
        texts = [write(above.state, action) for above, action in zip(nodes, path, strict=False)]
        last = "" if len(nodes) == 1 else node.move
        moves = []
        if number >= 0:
            text = functools.partial(write, node.state)
            moves = move_rows(result, rule, text, node=number, evaluates=evaluates)
        return {
            "path": texts,
            "board": board_message(node.state, last),
            "node": {name: _plain(getattr(node, name)) for name in ATTRIBUTES},
            "moves": moves,
        }
    finally:
        # Children refer to their parents: without this, the snapshot would live until the next garbage collection, and
        # the engine would copy the tree before it grows.
        for each in nodes:
            each.__dict__.pop("children", None)


def _plain(value: Any) -> Any:
    if isinstance(value, IntEnum):
        return value.name
    return finite(value) if isinstance(value, float) else value


def step_details(
    row: Any, state: Any, play: Callable[[Any, int], Any], write: Callable[[Any, int], str]
) -> dict[str, Any]:
    """Returns a row of a trace with the moves as texts."""
    choices = []
    for action, terms in zip(row["path"], row["terms"], strict=True):
        compared = [
            {
                "action": edge["action"],
                "text": write(state, edge["action"]),
                "terms": [[name, _plain(value)] for name, value in edge.items() if name not in NO_TERMS],
                "score": finite(edge.get("score")),
            }
            for edge in best_edges(terms["edges"], action, MAX_COMPARED)
        ]
        shared = {name: value for name, value in terms.items() if name not in ("player", "how", "edges")}
        choices.append(
            {
                "player": terms["player"],
                "chosen": action,
                "text": write(state, action),
                "how": terms["how"],
                "shared": [[name, _plain(value)] for name, value in shared.items()],
                "compared": compared,
            }
        )
        state = play(state, action)
    return {"simulation": row["simulation"], "choices": choices, "values": [finite(value) for value in row["values"]]}


def best_edges(edges: Sequence[Any], chosen: int, most: int) -> list[Any]:
    """Returns the edges with the `most` best scores, best first, and the chosen one."""

    def score(edge: Any) -> float:
        value = edge.get("score")
        return -math.inf if value is None or math.isnan(value) else float(value)

    ordered = sorted(edges, key=score, reverse=True)
    return ordered[:most] + [edge for edge in ordered[most:] if edge["action"] == chosen]


def encode_reply(reply: dict[str, Any], most: int = MAX_MESSAGE) -> str:
    """Returns the message of a reply, of at most `most` bytes: less important parts of its lists are left out.

    Of a simulation, these are the compared moves with the lowest scores but the chosen ones; then its last choices.
    """
    if reply["type"] != "step":
        return cut(reply, LISTS[reply["type"]], most)
    count = max((len(choice["compared"]) for choice in reply["choices"]), default=0)
    while count > 1 and len(encode(reply)) > most:
        count //= 2
        choices = [
            {**choice, "compared": best_edges(choice["compared"], choice["chosen"], count)}
            for choice in reply["choices"]
        ]
        reply = {**reply, "choices": choices}
    return cut(reply, LISTS["step"], most)
