"""What the evaluation counts in positions, as arrays; and weights as numbers that can be fitted.

The score of a position is linear in its weights, but for the phase weights, which stay as they are: with
`taper = phase / full_phase`, and `count` for the side to move less that of the other side,

    score = sum over terms of count * (taper * middlegame[term] + (1 - taper) * endgame[term])

The engine rounds it towards 0, so that scores here and there differ by less than one centipawn.
Colours are alike by construction: a position and its mirror image of the other colour are one row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.chess.pesto import Pesto
from pondertree.chess.weights import DEFAULTS, MAX_WEIGHT, flat, nested
from pondertree.tune.positions import Positions

#: The field that shapes the phase, and is not fitted.
PHASE_FIELD = "phase_weights"
#: The fields that are fitted, and how many terms (a middlegame and an endgame weight) each has.
FIELDS: dict[str, int] = {name: len(numbers) // 2 for name, numbers in DEFAULTS.items() if name != PHASE_FIELD}
NUM_TERMS = sum(FIELDS.values())
#: Where the terms of each field stand.
PLACES: dict[str, slice] = {}
for _name, _count in FIELDS.items():
    _start = sum(place.stop - place.start for place in PLACES.values())
    PLACES[_name] = slice(_start, _start + _count)
#: The same term on the board with left and right exchanged.
EXCHANGED: NDArray[np.int32] = np.arange(NUM_TERMS, dtype=np.int32)
for _name, _place in PLACES.items():
    if _name.endswith("_squares"):
        EXCHANGED[_place] = _place.start + (np.arange(64) ^ 7)

Weights = NDArray[np.float64]
"""[2, NUM_TERMS]: middlegame, endgame."""


def weights_of(pesto: Pesto) -> Weights:
    """The weights of an evaluation as numbers to fit."""
    halves = [np.array(flat(name, getattr(pesto, name)), dtype=np.float64).reshape(2, -1) for name in FIELDS]
    return np.concatenate(halves, axis=1)


def pesto_of(weights: Weights, scale: float, start: Pesto) -> Pesto:
    """Fitted weights as an evaluation, in whole numbers; the phase weights are those of `start`."""
    whole = np.clip(np.rint(weights), -MAX_WEIGHT, MAX_WEIGHT).astype(np.int64)
    fields: dict[str, Any] = {name: nested(name, whole[:, place].ravel().tolist()) for name, place in PLACES.items()}
    return replace(start, **fields, scale=float(scale))


def material_only(values: Any = (100, 300, 300, 500, 900)) -> Pesto:
    """Pieces count with the same values everywhere and nothing else counts: where a fit from nothing begins."""
    empty = {name: nested(name, [0] * len(DEFAULTS[name])) for name in FIELDS}
    pieces = ("pawn", "knight", "bishop", "rook", "queen")
    counted = {f"{piece}_value": (value, value) for piece, value in zip(pieces, values, strict=True)}
    return Pesto(**{**empty, **counted})


@dataclass(frozen=True)
class Features:
    """Rows of counts, one for each position, without their zeros; and the results for the side to move."""

    starts: NDArray[np.int64]
    """[N + 1]: row i is `terms[starts[i] : starts[i + 1]]`. No row is empty: the right to move always counts."""
    terms: NDArray[np.int32]
    counts: NDArray[np.float64]
    taper: NDArray[np.float64]
    """[N]: 1 in the middlegame, 0 in the endgame."""
    targets: NDArray[np.float64]
    """[N]: the result for the side to move, from 0 to 1."""
    games: int
    """How many games they come from."""

    def __len__(self) -> int:
        return len(self.targets)

    def scores(self, weights: Weights) -> NDArray[np.float64]:
        """[N]: centipawns for the side to move, not rounded."""
        if len(self) == 0:
            return np.zeros(0)
        middlegame, endgame = (np.add.reduceat(self.counts * half[self.terms], self.starts[:-1]) for half in weights)
        return self.taper * middlegame + (1.0 - self.taper) * endgame

    def pull_back(self, slopes: NDArray[np.float64]) -> Weights:
        """[2, NUM_TERMS]: the gradient of `sum(slopes * scores)` by the weights."""
        sizes = np.diff(self.starts)
        return np.stack(
            [
                np.bincount(self.terms, self.counts * np.repeat(slopes * share, sizes), minlength=NUM_TERMS)
                for share in (self.taper, 1.0 - self.taper)
            ]
        )

    def with_exchanged(self, rows: NDArray[np.bool_]) -> Features:
        """These rows and, each behind its original, the marked ones with left and right exchanged.

        Nothing but the squares of pieces changes by that, and nothing at all where nobody may castle any more.
        """
        order = np.repeat(np.arange(len(self)), 1 + rows.astype(np.int64))
        copied = np.zeros(len(order), dtype=bool)
        copied[1:] = order[1:] == order[:-1]
        sizes = np.diff(self.starts)[order]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][order] - starts[:-1], sizes)
        terms = np.where(np.repeat(copied, sizes), EXCHANGED[self.terms[places]], self.terms[places])
        return Features(starts, terms, self.counts[places], self.taper[order], self.targets[order], self.games)


def features_of(positions: Positions, pesto: Pesto) -> Features:
    """The features of positions; of `pesto`, the phase weights count alone."""
    states = positions.states()
    starts, terms, counts, phases = pesto.compiled.features(states)
    to_play = np.array([state.to_play for state in states], dtype=bool)
    targets = np.where(to_play, 1.0 - positions.results, positions.results)
    taper = phases / pesto.compiled.full_phase
    return Features(starts, terms, counts.astype(np.float64), taper, targets, positions.num_games)


def no_castling(positions: Positions) -> NDArray[np.bool_]:
    """Where neither side may castle: left and right are alike there."""
    return np.array([fen.split()[2] == b"-" for fen in positions.fens], dtype=bool)
