"""Golden trees: storage, reproduction by both implementations, and comparison."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.tabular import Tabular
from tests.support.search_helpers import every_node

import pondertree
from pondertree.reference import gumbel, muzero

WITHIN = 1e-5
"""Tolerance of values and policies, relative for values above 1."""


@dataclass(frozen=True)
class TreeSummary:
    """The result of a search. Nodes are numbered in order of expansion; the root is 0."""

    expansions: list[tuple[int, int]]
    """(Parent, action) of each node but the root."""
    visits: list[int]
    values: list[float]
    """For the player to move at each node."""
    action: int | None = None
    """The selected action of Gumbel search."""
    policy: list[float] | None = None
    """Its improved policy, for every action."""


@dataclass(frozen=True)
class Golden:
    """A search with its parameters, and the tree built by mctx."""

    search: str
    model: Tabular
    root: int
    """The row index of the root in the model's tables."""
    legal_actions: list[int] | None
    simulations: int
    options: dict[str, Any]
    """Parameters of the search, in this package's names: mctx's discount -1 means two players."""
    gumbel: list[float] | None = None
    grown: TreeSummary = field(default_factory=lambda: TreeSummary([], [], []))

    def to_json(self) -> dict[str, Any]:
        """Returns plain data without default values."""
        data = dataclasses.asdict(self)
        defaults = {each.name: each.default for each in dataclasses.fields(Tabular)}
        data["model"] = {name: value for name, value in data["model"].items() if value != defaults[name]}
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Golden:
        """Returns the search of plain data."""
        model = dict(data["model"])
        if "discounts" in model:
            model["discounts"] = tuple(model["discounts"])
        grown = dict(data["grown"])
        grown["expansions"] = [tuple(pair) for pair in grown["expansions"]]
        return cls(**{"legal_actions": None} | data | {"model": Tabular(**model), "grown": TreeSummary(**grown)})


def stored_trees() -> list[Golden]:
    """Returns all golden trees."""
    files = sorted(Path(__file__).parent.glob("*.json"))
    return [Golden.from_json(tree) for file in files for tree in json.loads(file.read_text(encoding="utf-8"))]


def searcher(golden: Golden, of_muzero: Any = muzero.MCTS, of_gumbel: Any = gumbel.MCTS) -> Any:
    """Returns the reference search of a golden tree."""
    if golden.search == "muzero":
        return of_muzero(golden.model, **golden.options)
    return of_gumbel(golden.model, gumbel=golden.gumbel, **golden.options)


def build_with_reference(golden: Golden) -> TreeSummary:
    """Returns the tree built by the reference."""
    search = searcher(golden)
    tree = search.tree(observation=[golden.root], legal_actions=golden.legal_actions, trace=True)
    search.simulate(tree, golden.simulations)
    numbers = {(): 0}
    expansions, nodes = [], [tree.root]
    for row in tree.trace:
        *before, action = row["path"]
        parent = numbers[tuple(before)]
        numbers[tuple(row["path"])] = len(numbers)
        expansions.append((parent, action))
        nodes.append(nodes[parent].children[action])
    grown = TreeSummary(expansions, [node.visit_count for node in nodes], [node.value() for node in nodes])
    if golden.search == "muzero":
        return grown
    result = search.result(tree)
    policy = [result.policy.get(action, 0.0) for action in range(golden.model.actions)]
    return dataclasses.replace(grown, action=result.action, policy=policy)


def build_with_engine(golden: Golden) -> TreeSummary:
    """Returns the tree built by the engine."""
    search = searcher(golden, pondertree.MuZero, pondertree.Gumbel)
    tree = search.tree(observation=[golden.root], legal_actions=golden.legal_actions)
    result = tree.simulate(golden.simulations).result()
    # The engine numbers nodes in order of expansion, too.
    below = {child._index: child for node in every_node(result.root) for child in node.children.values()}
    nodes = [result.root, *(below[index] for index in range(1, golden.simulations + 1))]
    expansions = [(node.parent._index, node.action) for node in nodes[1:]]
    grown = TreeSummary(expansions, [node.visit_count for node in nodes], [node.q_value for node in nodes])
    if golden.search == "muzero":
        return grown
    return dataclasses.replace(grown, action=result.action, policy=result.policy.tolist())


def describe_difference(golden: Golden, other: TreeSummary) -> str | None:
    """Returns the first difference of another tree from the golden one; None if equal."""
    grown = golden.grown
    for simulation, (right, given) in enumerate(zip(grown.expansions, other.expansions, strict=False)):
        if tuple(right) != tuple(given):
            return f"simulation {simulation} expands (parent, action) {given} instead of {right}"
    if len(grown.expansions) != len(other.expansions):
        return f"{len(other.expansions)} expansions instead of {len(grown.expansions)}"
    if list(grown.visits) != list(other.visits):
        return f"the visits are {other.visits} instead of {grown.visits}"
    for node, (right_value, value) in enumerate(zip(grown.values, other.values, strict=True)):
        if not abs(right_value - value) <= WITHIN * max(1.0, abs(right_value)):
            return f"node {node} has the value {value} instead of {right_value}"
    if grown.action is not None and grown.action != other.action:
        return f"the action is {other.action} instead of {grown.action}"
    for action, (right_share, share) in enumerate(zip(grown.policy or (), other.policy or (), strict=True)):
        if not abs(right_share - share) <= WITHIN:
            return f"action {action} has {share} of the policy instead of {right_share}"
    return None
