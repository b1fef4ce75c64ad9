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


#: Scales that are looked at when the best one is searched for, in centipawns.
SCALES = (10.0, 5000.0)


@dataclass(frozen=True, slots=True)
class Errors:
    """How badly the results of positions are foretold."""

    log: float
    """Mean logarithmic error, in nats; knowing nothing gives 0.693."""
    squared: float
    """Mean squared error, Texel's."""

    def as_json(self) -> dict[str, float]:
        """Plain data."""
        return {"log": self.log, "squared": self.squared}


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), which cannot overflow in this form."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def log_error(x: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithmic error of `sigmoid(x)`: log(1 + exp(x)) - target * x, written so that it cannot overflow."""
    return np.logaddexp(0.0, x) - targets * x


def errors(features: Features, weights: Weights, scale: float) -> Errors:
    """The errors of weights; NaN where there is nothing to foretell."""
    if len(features) == 0:
        return Errors(float("nan"), float("nan"))
    x = features.scores(weights) / scale
    squared = (sigmoid(x) - features.targets) ** 2
    return Errors(float(log_error(x, features.targets).mean()), float(squared.mean()))


def error_and_gradient(features: Features, weights: Weights, log_scale: float) -> tuple[float, Weights, float]:
    """(mean logarithmic error, its gradient by the weights, and by the logarithm of the scale)."""
    scale = float(np.exp(log_scale))
    x = features.scores(weights) / scale
    slopes = (sigmoid(x) - features.targets) / len(features)
    error = float(log_error(x, features.targets).mean())
    return error, features.pull_back(slopes / scale), float(-(slopes * x).sum())


def penalty(weights: Weights, start: Weights, strength: float) -> tuple[float, Weights]:
    """(what it costs to be far from the start, its gradient): `strength / 2` times the squared distance in pawns.

    Without it nothing would hold what the positions do not speak of: squares no piece stood on, and a piece's value
    against a number added to all squares of its table.
    """
    away = (weights - start) / 100.0
    return 0.5 * strength * float((away**2).sum()), strength * away / 100.0


def best_scale(features: Features, weights: Weights) -> float:
    """The scale with which given weights foretell best. The error is convex in 1 / scale: golden section finds it."""
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
