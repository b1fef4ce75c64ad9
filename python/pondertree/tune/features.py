"""The sparse feature matrix of the evaluation, and the Texel objective with its gradient.

The score is linear in all weights but the phase weights, which are fixed. With `taper = phase / full_phase` and
`count` for the side to move minus that of the opponent,

    score = sum over terms of count * (taper * middlegame[term] + (1 - taper) * endgame[term])

The engine rounds towards 0, so that its scores differ by less than one centipawn. Colour symmetry is built in: a
position and its colour-flipped mirror image have the same row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.chess.pesto import Pesto
from pondertree.chess.weights import DEFAULTS, MAX_WEIGHT, flat, nested
from pondertree.tune.positions import Positions

#: The field of the phase weights, which are not fitted.
PHASE_FIELD = "phase_weights"
#: The fitted fields and their numbers of terms (each a middlegame and an endgame weight).
FIELDS: dict[str, int] = {name: len(numbers) // 2 for name, numbers in DEFAULTS.items() if name != PHASE_FIELD}
NUM_TERMS = sum(FIELDS.values())
#: The term indices of each field.
FIELD_SLICES: dict[str, slice] = {}
for _name, _count in FIELDS.items():
    _start = sum(place.stop - place.start for place in FIELD_SLICES.values())
    FIELD_SLICES[_name] = slice(_start, _start + _count)
#: The term index after a horizontal flip of the board.
FLIPPED: NDArray[np.int32] = np.arange(NUM_TERMS, dtype=np.int32)
for _name, _place in FIELD_SLICES.items():
    if _name.endswith("_squares"):
        FLIPPED[_place] = _place.start + (np.arange(64) ^ 7)

Weights = NDArray[np.float64]
"""[2, NUM_TERMS]: middlegame, endgame."""


def weights_of(pesto: Pesto) -> Weights:
    """Returns the fitted weights of an evaluation."""
    halves = [np.array(flat(name, getattr(pesto, name)), dtype=np.float64).reshape(2, -1) for name in FIELDS]
    return np.concatenate(halves, axis=1)


def pesto_of(weights: Weights, scale: float, start: Pesto) -> Pesto:
    """Returns an evaluation with fitted weights, rounded to integers; the phase weights are those of `start`."""
    whole = np.clip(np.rint(weights), -MAX_WEIGHT, MAX_WEIGHT).astype(np.int64)
    fields: dict[str, Any] = {
        name: nested(name, whole[:, place].ravel().tolist()) for name, place in FIELD_SLICES.items()
    }
    return replace(start, **fields, scale=float(scale))


def material_only(values: Any = (100, 300, 300, 500, 900)) -> Pesto:
    """Returns an evaluation with piece values only: the initial weights of a fit from scratch."""
    empty = {name: nested(name, [0] * len(DEFAULTS[name])) for name in FIELDS}
    pieces = ("pawn", "knight", "bishop", "rook", "queen")
    counted = {f"{piece}_value": (value, value) for piece, value in zip(pieces, values, strict=True)}
    return Pesto(**{**empty, **counted})


@dataclass(frozen=True)
class Features:
    """A sparse matrix of counts (CSR), one row per position, with the results for the side to move."""

    starts: NDArray[np.int64]
    """[N + 1]: row i is `terms[starts[i] : starts[i + 1]]`. No row is empty, because of the tempo term."""
    terms: NDArray[np.int32]
    counts: NDArray[np.float64]
    taper: NDArray[np.float64]
    """[N]: 1 in the middlegame, 0 in the endgame."""
    targets: NDArray[np.float64]
    """[N]: the result for the side to move, in [0, 1]."""
    games: int
    """Number of games."""

    def __len__(self) -> int:
        return len(self.targets)

    def scores(self, weights: Weights) -> NDArray[np.float64]:
        """Returns unrounded scores [N] in centipawns for the side to move."""
        if len(self) == 0:
            return np.zeros(0)
        middlegame, endgame = (np.add.reduceat(self.counts * half[self.terms], self.starts[:-1]) for half in weights)
        return self.taper * middlegame + (1.0 - self.taper) * endgame

    def gradient(self, slopes: NDArray[np.float64]) -> Weights:
        """Returns the gradient [2, NUM_TERMS] of `sum(slopes * scores)` with respect to the weights."""
        sizes = np.diff(self.starts)
        return np.stack(
            [
                np.bincount(self.terms, self.counts * np.repeat(slopes * share, sizes), minlength=NUM_TERMS)
                for share in (self.taper, 1.0 - self.taper)
            ]
        )

    def with_flipped(self, rows: NDArray[np.bool_]) -> Features:
        """Returns the rows and, after its original, the horizontally flipped copy of each marked one.

        A flip only changes piece squares; without castling rights the flipped position is equivalent.
        """
        order = np.repeat(np.arange(len(self)), 1 + rows.astype(np.int64))
        copied = np.zeros(len(order), dtype=bool)
        copied[1:] = order[1:] == order[:-1]
        sizes = np.diff(self.starts)[order]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][order] - starts[:-1], sizes)
        terms = np.where(np.repeat(copied, sizes), FLIPPED[self.terms[places]], self.terms[places])
        return Features(starts, terms, self.counts[places], self.taper[order], self.targets[order], self.games)


def features_of(positions: Positions, pesto: Pesto) -> Features:
    """Extracts the features of positions; uses only the phase weights of `pesto`."""
    states = positions.states()
    starts, terms, counts, phases = pesto.compiled.features(states)
    to_play = np.array([state.to_play for state in states], dtype=bool)
    targets = np.where(to_play, 1.0 - positions.results, positions.results)
    taper = phases / pesto.compiled.full_phase
    return Features(starts, terms, counts.astype(np.float64), taper, targets, positions.num_games)


def no_castling(positions: Positions) -> NDArray[np.bool_]:
    """Marks the positions without castling rights, which may be flipped horizontally."""
    return np.array([fen.split()[2] == b"-" for fen in positions.fens], dtype=bool)


#: Search interval of the sigmoid scale, in centipawns.
SCALES = (10.0, 5000.0)


@dataclass(frozen=True, slots=True)
class Errors:
    """Prediction errors of the results."""

    log: float
    """Mean cross-entropy in nats; 0.693 for constant predictions of 1/2."""
    squared: float
    """Mean squared error, as in Texel's method."""

    def as_json(self) -> dict[str, float]:
        """Plain data."""
        return {"log": self.log, "squared": self.squared}


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns 1 / (1 + exp(-x)), without overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def log_error(x: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the cross-entropy of `sigmoid(x)`, log(1 + exp(x)) - target * x, without overflow."""
    return np.logaddexp(0.0, x) - targets * x


def errors(features: Features, weights: Weights, scale: float) -> Errors:
    """Returns the errors of weights; NaN without positions."""
    if len(features) == 0:
        return Errors(float("nan"), float("nan"))
    x = features.scores(weights) / scale
    squared = (sigmoid(x) - features.targets) ** 2
    return Errors(float(log_error(x, features.targets).mean()), float(squared.mean()))


def error_and_gradient(features: Features, weights: Weights, log_scale: float) -> tuple[float, Weights, float]:
    """Returns (mean cross-entropy, its gradient by the weights, its derivative by the log scale)."""
    scale = float(np.exp(log_scale))
    x = features.scores(weights) / scale
    slopes = (sigmoid(x) - features.targets) / len(features)
    error = float(log_error(x, features.targets).mean())
    return error, features.gradient(slopes / scale), float(-(slopes * x).sum())


def penalty(weights: Weights, start: Weights, strength: float) -> tuple[float, Weights]:
    """Returns (L2 penalty, its gradient): `strength / 2` times the squared distance from the start in pawns.

    It determines directions without data: unoccupied squares, and a piece value against a constant on its table.
    """
    distance = (weights - start) / 100.0
    return 0.5 * strength * float((distance**2).sum()), strength * distance / 100.0


def best_scale(features: Features, weights: Weights) -> float:
    """Returns the best scale for given weights by golden-section search; the error is convex in 1 / scale."""
    scores = features.scores(weights)

    def error(log_scale: float) -> float:
        return float(log_error(scores * np.exp(-log_scale), features.targets).mean())

    low, high = (float(np.log(bound)) for bound in SCALES)
    ratio = (5.0**0.5 - 1.0) / 2.0
    first, second = high - ratio * (high - low), low + ratio * (high - low)
    errors_there = [error(first), error(second)]
    while high - low > 1e-5:
        if errors_there[0] <= errors_there[1]:
            high, second, errors_there[1] = second, first, errors_there[0]
            first = high - ratio * (high - low)
            errors_there[0] = error(first)
        else:
            low, first, errors_there[0] = first, second, errors_there[1]
            second = low + ratio * (high - low)
            errors_there[1] = error(second)
    return float(np.exp((low + high) / 2.0))
