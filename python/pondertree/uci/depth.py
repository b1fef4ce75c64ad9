"""How deep a tree is, asked no more often than it is worth: every answer is a walk over the whole tree."""

from __future__ import annotations

import time

from pondertree.forest import Tree

#: Walks may take this part of the time.
PART = 0.02
#: A walk that takes as many seconds is not made between `stop` and its answer.
LONG = 0.01


class Depth:
    """The depth of a tree, as it was last measured: the mean of its simulations, rounded, and the deepest position."""

    def __init__(self, arrived: float) -> None:
        self.mean = self.most = 1
        self._arrived = arrived
        self._together = self._last = 0.0

    def measure(self, tree: Tree, at_the_end: bool = False) -> int:
        """The mean depth; measured anew, unless that would cost too much."""
        begun = time.perf_counter()
        worth_it = self._last < LONG if at_the_end else begun - self._arrived >= self._together / PART
        if worth_it:
            mean, most = tree.result()._view.depths()
            self.mean, self.most = max(round(mean), 1), max(most, 1)
            self._last = time.perf_counter() - begun
            self._together += self._last
        return self.mean
