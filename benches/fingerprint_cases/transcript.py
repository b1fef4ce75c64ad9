"""The results of a case as text and as hashes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Clean priors of more moves are recorded only where the moves were visited: each is a lookup among all of them.
MAX_CLEAN_PRIORS = 100


@dataclass
class Transcript:
    """The results of a case as lines of text; floats in their shortest exact form."""

    answers: list[str] = field(default_factory=list)
    """The lines of simulations, visits and actions."""
    lines: list[str] = field(default_factory=list)
    """All lines."""
    failed: bool = False
    """The case raised an exception."""

    def write(self, *values: Any) -> None:
        """Adds a line."""
        self.lines.append(" ".join(map(plain, values)))

    def answer(self, *values: Any) -> None:
        """Adds a line that belongs to the answers."""
        self.write(*values)
        self.answers.append(self.lines[-1])

    def result(self, result: Any) -> None:
        """Adds a search result with its whole tree."""
        self.answer("simulations", result.simulations, "action", result.action, "move", result.move)
        self.answer("visits", sparse(result.visits))
        self.write("value", result.value, "values", result.values, "proven", result.proven, "seed", result.seed)
        self.write("q", sparse(result.q))
        self.write("policy", sparse(result.policy), "at 0.5", sparse(result.policy_at(0.5)))
        self.write("pv", result.pv)
        for row in result.moves[:8]:
            statistics = (row.share, row.prior, row.q, row.proven, row.distance, row.pv)
            self.write("move", row.action, row.move, row.visits, *statistics)
        self.tree(result.root)

    def tree(self, root: Any) -> None:
        """Adds every node in the order of the engine's edges; unvisited moves as pairs of action and prior."""
        stack = [(root, 0)]
        while stack:
            node, depth = stack.pop()
            children = node.children
            tried = [child for child in children.values() if child.visit_count]
            untried = [(action, child.prior) for action, child in children.items() if not child.visit_count]
            self.write(
                "node",
                depth,
                node.action,
                node.to_play,
                node.visit_count,
                node.total_value,
                node.q_value,
                node.prior,
                node.raw_value,
                node.nn_value,
                node.reward,
                node.proven,
                node.distance,
                node.is_terminal,
                node.terminal_or_mate_value,
                node.in_flight,
                node.forced_depth_left,
                None if node.category is None else int(node.category),
                untried,
            )
            if node.parent is None:
                shown = children.values() if len(children) <= MAX_CLEAN_PRIORS else tried
                self.write("clean priors", [child.clean_prior for child in shown])
            stack.extend((child, depth + 1) for child in reversed(tried))

    def digests(self) -> str:
        """Hashes of the answers and of everything."""
        return f"{_digest(self.answers, 4)} {_digest(self.lines, 6)}"


def _digest(lines: Sequence[str], size: int) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=size).hexdigest()


def plain(value: Any) -> str:
    """Formats a value independently of NumPy's scalar formatting."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(plain, value))}]"
    return str(value) if isinstance(value, str) else repr(value)


def sparse(array: Any) -> list[tuple[int, Any]]:
    """Returns the entries other than 0 and NaN, with their indices."""
    entries = enumerate(np.asarray(array).tolist())
    return [(place, entry) for place, entry in entries if not (entry == 0 or math.isnan(entry))]
