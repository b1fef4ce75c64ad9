"""Leaves in flight: a search descends several times before it asks what the leaves are worth.

This is the same for every search. What differs is how it descends, and what goes back up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from pondertree.reference.playout import Leaf
from pondertree.reference.proof import note_end, prove_ancestors
from pondertree.reference.random import SELECT, Random, fold
from pondertree.reference.trace import Scores, TraceRow
from pondertree.reference.tree import N, SearchTree

MOST_ENDS_PER_BATCH = 1024
"""Ends of game are backed up at once while leaves are gathered; this bounds how long one gathering may take."""


@dataclass(slots=True)
class Pending(Generic[N]):
    """A leaf in flight."""

    leaf: N
    sim_key: int
    row: TraceRow | None

    @property
    def question(self) -> Leaf:
        """What is asked about it, in the form in which playouts and networks want it."""
        return self.leaf.state, self.leaf.chooser, self.sim_key


class Gathering(Generic[N]):
    """A search that gathers up to `in_flight` leaves at once; with `solve` it proves what it can on the way."""

    in_flight: int
    solve: bool

    def _select(self, root: N, random: Random, record: list[Scores | None] | None = None) -> N:
        """Walks down to a node below which nothing is to be chosen, and writes the scores it chose by in `record`."""
        raise NotImplementedError

    def _descend(self, tree: SearchTree[N], random: Random, record: list[Scores | None] | None) -> N:
        """Walks down from the root, for a search that chooses by more than the nodes it meets."""
        return self._select(tree.root, random, record)

    def _open(self, leaf: N, random: Random, record: list[Scores | None] | None) -> N:
        """The new leaf, for a search that makes it only once a descent is over; others have it already."""
        return leaf

    def _backpropagate(self, leaf: N, values: Sequence[float]) -> None:
        """Takes the values of a leaf, one per player, up to the root."""
        raise NotImplementedError

    def _gather(self, tree: SearchTree[N], limit: int) -> list[Pending[N]]:
        """Descends until `in_flight` leaves wait for values; what needs no evaluation is finished on the way."""
        root = tree.root
        pending: list[Pending[N]] = []
        ends = 0
        while (
            len(pending) < self.in_flight
            and tree.simulations + len(pending) < limit
            and ends < MOST_ENDS_PER_BATCH
            and root.proven is None
        ):
            simulation = tree.simulations + len(pending)
            sim_key = fold(tree.key, simulation)
            random = Random(sim_key, SELECT)
            scores: list[Scores | None] = []
            record = scores if tree.trace is not None else None
            leaf = self._descend(tree, random, record)
            if leaf.is_waiting:
                # It has no value yet to choose by. Nothing was changed on the way down, so there is nothing to undo,
                # and the simulation number was not used up: the next batch begins with it.
                break
            leaf = self._open(leaf, random, record)
            if self.solve:
                note_end(leaf)
            row: TraceRow | None = None
            if tree.trace is not None:
                row = {"simulation": simulation, "path": leaf.path(), "scores": scores, "values": []}
                tree.trace.append(row)
            exact = leaf.exact_values()
            if exact is None:
                self._mark_in_flight(leaf, +1)
                pending.append(Pending(leaf, sim_key, row))
            else:
                self._finish(tree, leaf, exact, row)
                prove_ancestors(leaf)
                ends += 1
        return pending

    def _finish(self, tree: SearchTree[N], leaf: N, values: list[float], row: TraceRow | None) -> None:
        """The last step of a simulation."""
        if row is not None:
            row["values"] = list(values)
        self._backpropagate(leaf, values)
        tree.simulations += 1

    def _mark_in_flight(self, leaf: N, change: int) -> None:
        """Counts a leaf in flight on its whole path (+1), or takes it back (-1)."""
        node: N | None = leaf
        while node is not None:
            node.in_flight += change
            node = node.parent
