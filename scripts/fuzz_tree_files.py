"""Fuzzes saved trees for `fuzz_files.py`: damaged files, and forged metadata and columns with a valid checksum."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import as_json, damaged, endless, forged, forged_arrays, naming, write

import pondertree
from pondertree.errors import GameOverError, UsageError
from pondertree.evaluators import Rollout, Uniform
from pondertree.files import COLUMNS_MAGIC, read_columns
from pondertree.games import Chess, ConnectFour


class Pile:
    """A game of one pile: players take one to three, and who takes the last wins."""

    num_actions = 3
    num_players = 2

    def __init__(self, left: int = 12, to_play: int = 0) -> None:
        self.left = left
        self.to_play = to_play

    @property
    def is_terminal(self) -> bool:
        return self.left == 0

    def legal_actions(self) -> list[int]:
        return list(range(min(self.left, 3)))

    def play(self, action: int) -> Pile:
        return Pile(self.left - action - 1, 1 - self.to_play)

    def returns(self) -> list[float]:
        return [float(2 * player - 1) * (1 - 2 * self.to_play) * -1.0 for player in (0, 1)]


class Cosine:
    """A learned model of three actions."""

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = np.asarray(observations, np.float32)
        return hidden, np.repeat(hidden[:, :1], 3, axis=1) * np.arange(3), hidden.sum(axis=1)

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        hidden, logits, values = self.initial_inference(np.cos(hidden * 3 + actions[:, None]))
        return hidden, np.sin(hidden[:, 0]), logits, values


def evaluate(observations: Any) -> tuple[Any, Any]:
    return np.asarray(observations).reshape(len(observations), -1)[:, :7], np.zeros(len(observations))


Arguments = tuple[Any, Any]


@functools.cache
def trees() -> dict[str, tuple[bytes, Callable[[], Arguments]]]:
    """Returns files of trees and results, with the arguments (search, state) that continue them."""
    muzero = pondertree.MuZero(Cosine(), seed=1, num_players=1, normalize="tree")
    network = pondertree.AlphaZero(evaluate, seed=1, in_flight=2)
    searches: dict[str, tuple[Any, Callable[[], Arguments]]] = {
        "uct": (pondertree.UCT(seed=1, trace=True).tree(ConnectFour()), lambda: (None, None)),
        "minimax": (pondertree.UCT(seed=1, minimax_depth=2, forced_depth=2).tree(ConnectFour()), lambda: (None, None)),
        "alphazero": (pondertree.AlphaZero(Rollout(), seed=1).tree(ConnectFour()), lambda: (None, None)),
        "gumbel": (pondertree.Gumbel(Uniform(), seed=1).tree(ConnectFour()), lambda: (None, None)),
        "hybrid": (pondertree.Hybrid(seed=1).tree(Chess()), lambda: (None, None)),
        "network": (network.tree(ConnectFour()), lambda: (network, None)),
        "python": (pondertree.UCT(seed=1, solve=False).tree(Pile()), lambda: (None, Pile())),
        "muzero": (muzero.tree(observation=np.array([0.5, 0.25])), lambda: (muzero, None)),
    }
    found: dict[str, tuple[bytes, Callable[[], Arguments]]] = {}
    path = Path(tempfile.mkdtemp(dir=".")) / "x"
    for name, (tree, arguments) in searches.items():
        tree.simulate(60)
        tree.advance(tree.result().action)
        tree.simulate(30)
        tree.save(path)
        found[name] = path.read_bytes(), arguments
        tree.result().save(path)
        state = arguments()[1]
        after = None if state is None else tree.state
        found[f"{name} result"] = path.read_bytes(), lambda after=after: (None, after)
    return found


def file_of(about: dict[str, Any], columns: dict[str, Any], numbers: random.Random) -> bytes:
    """Returns a file with a valid checksum of forged data and columns."""
    places, data = {}, b""
    for name, column in columns.items():
        column = np.ascontiguousarray(column)
        places[name] = [column.dtype.str, list(column.shape), len(data)]
        data += column.tobytes() + bytes(-column.nbytes % 64)
    about = {**about, "columns": places}
    for _ in range(numbers.choice((0, 0, 1))):
        about = forged(numbers, about)
    text = as_json(about).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 64)
    version = 1 if numbers.random() < 0.98 else numbers.choice((0, 2, 2**32 - 1))
    head = struct.pack("<8sIIQ8x", COLUMNS_MAGIC, version, len(text), 64 + len(text) + len(data))
    return head + hashlib.sha256(head + text + data).digest() + text + data


def make_tree(numbers: random.Random) -> Callable[[], object]:
    """Loads a mutated tree, reads it and continues it."""
    name = numbers.choice(sorted(trees()))
    content, arguments = trees()[name]
    if numbers.random() < 0.2:
        content = damaged(numbers, content, *(other for other, _ in trees().values()))
    elif numbers.random() < 0.02:
        content = COLUMNS_MAGIC + endless(numbers)
    else:
        about, columns = read_columns(write("whole", content))
        content = file_of(about, forged_columns(numbers, columns), numbers)
    search, state = arguments() if numbers.random() < 0.9 else (None, None)

    def call() -> None:
        path = write("x.tree", content)
        tree = naming(path, lambda: pondertree.load_tree(path, search, state))
        use(tree)
        with contextlib.suppress(UsageError):  # read-only
            tree.simulate(25)
            with contextlib.suppress(GameOverError):
                tree.advance(int(tree.result().edges.actions[0]))
            use(tree.simulate(10))
            tree.save("y.tree")

    return call


def forged_columns(numbers: random.Random, columns: dict[str, Any]) -> dict[str, Any]:
    """Returns columns of other shapes, types or, most often, with other entries of their type."""
    if numbers.random() < 0.3:
        return forged_arrays(numbers, columns)
    columns = dict(columns)
    for _ in range(numbers.choice((0, 1, 1, 2, 4))):
        name = numbers.choice([name for name, column in columns.items() if column.size])
        column = columns[name].copy().reshape(-1)
        entries = [0, 1, 2, 3, int(numbers.choice(column.tolist())) if column.dtype.kind != "f" else 0.5]
        if column.dtype.kind in "iu":
            limits = np.iinfo(column.dtype)
            entries += [limits.min, limits.max, limits.max - 1, limits.max // 2, min(limits.max, len(column))]
        elif column.dtype.kind == "f":
            entries += [-1.0, 1e30, -1e38, 1e-30, float("nan"), float("inf")]
        with np.errstate(over="ignore"):
            column[numbers.randrange(column.size)] = numbers.choice(entries)
        columns[name] = column.reshape(columns[name].shape)
    return columns


def use(tree: pondertree.Tree) -> None:
    """Reads everything of a tree."""
    result = tree.result()
    _ = repr(tree), result.moves, result.policy, result.q, result.values, result.pv, result.depths(), result.memory
    tree.result(temperature=1.0).policy_at(0.5)
    nodes = [result.root]
    while nodes:
        node = nodes.pop()
        _ = node.total_value, node.clean_prior, node.reward, node.proven, node.distance, node.nn_value, node.category
        nodes.extend(child for child in node.children.values() if child.visit_count)
