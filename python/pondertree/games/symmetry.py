"""Symmetries of games: what `symmetries()` of a state gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import InvalidArgumentError


class Symmetry(NamedTuple):
    """A permutation of cells with the corresponding permutation of actions."""

    cells: NDArray[np.int64]
    """Cell i of the transformed board is cell `cells[i]` of the board (without a board: of the flat observation)."""
    actions: NDArray[np.int64]
    """Action a on the board is action `actions[a]` on the transformed one."""


def checked_symmetries(given: Any) -> list[Symmetry]:
    """Validates pairs of permutations, all of the same two lengths."""
    try:
        symmetries = [Symmetry(*(np.asarray(part).astype(np.int64, casting="safe") for part in pair)) for pair in given]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"symmetries must be pairs (cells, actions) of whole numbers: {error}") from error
    if not symmetries:
        raise InvalidArgumentError("symmetries is empty: give at least the identity")
    for number, symmetry in enumerate(symmetries):
        for name, part, first in zip(Symmetry._fields, symmetry, symmetries[0], strict=True):
            if part.ndim != 1 or not np.array_equal(np.sort(part), np.arange(first.size)):
                raise InvalidArgumentError(
                    f"symmetries[{number}].{name} must hold every number from 0 to {first.size - 1} once"
                )
    return symmetries
