"""The trace of a search, one row per simulation. The engine records the same rows."""

from __future__ import annotations

from typing import TypedDict

Scores = list[tuple[int, float]]


class TraceRow(TypedDict):
    """One simulation. Rows are ordered by simulation number, which is the order of the descents."""

    simulation: int
    """The index of the simulation, from 0, over the lifetime of the tree."""
    path: list[int]
    """The actions from the root to the leaf."""
    scores: list[Scores | None]
    """For each action of the path: the (action, score) pairs it was selected from, in order of comparison; None where
    an unexpanded action was expanded."""
    values: list[float]
    """The values of the leaf, one per player, before the rewards on the path are added."""
