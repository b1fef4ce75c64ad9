"""Fitting: Adam on the mean logarithmic error, stopped early by positions that are held back.

All that happens in an epoch comes from the state at its beginning, the seed and the epoch's number. So a fit that goes
on from a checkpoint gives the numbers of one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ponderosa import check
from ponderosa.chess.pesto import Pesto
from ponderosa.chess.weights import MAX_WEIGHT
from ponderosa.errors import InvalidArgumentError
from ponderosa.tune.features import NUM_TERMS, Features, Weights, weights_of
from ponderosa.tune.objective import best_scale, error_and_gradient, errors, penalty

#: Adam's memory of gradients and of their squares, and what keeps it from dividing by 0 (Kingma and Ba, 2015).
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How weights are fitted."""

    epochs: int = 200
    """Most passes over the positions."""
    rate: float = 2.0
    """How far a weight moves in a step, about, in centipawns; the scale moves by as many percent."""
    batch_size: int = 16_384
    """Positions a step."""
    regularisation: float = 2e-4
    """What a pawn's distance from the start costs, squared and halved, for each weight."""
    patience: int = 4
    """Epochs without a smaller error on the held-back positions before the rate is halved."""
    halvings: int = 3
    """So many times; then the fit ends."""
    fit_scale: bool = True
    """Whether the scale of the sigmoid is fitted too; else it stays that of the start."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            object.__setattr__(self, name, check.count(getattr(self, name), name))
        for name in ("halvings", "seed"):
            object.__setattr__(self, name, check.whole_number(getattr(self, name), name))
        object.__setattr__(self, "rate", check.positive_number(self.rate, "rate"))
        object.__setattr__(self, "regularisation", check.number(self.regularisation, "regularisation", least=0.0))
        object.__setattr__(self, "fit_scale", check.flag(self.fit_scale, "fit_scale"))


@dataclass(frozen=True)
class FitState:
    """A fit between two epochs. Its numbers are the weights and, last, the logarithm of the scale in hundredths."""

    numbers: NDArray[np.float64]
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    """Adam's moments."""
    best: NDArray[np.float64]
    """The numbers with the smallest error on the held-back positions so far."""
    best_error: float
    best_epoch: int = 0
    epoch: int = 0
    steps: int = 0
    """Steps since the moments were 0."""
    waited: int = 0
    """Epochs since the best, or since the rate was halved."""
    halved: int = 0
    history: list[tuple[float, float]] = field(default_factory=list)
    """For each epoch: the error on the way, and that on the held-back positions after it."""

    def is_over(self, options: FitOptions) -> bool:
        """Whether the fit has come to its end."""
        return self.epoch >= options.epochs or self.halved > options.halvings


def unpack(numbers: NDArray[np.float64]) -> tuple[Weights, float]:
    """(weights, logarithm of the scale)."""
    return numbers[:-1].reshape(2, NUM_TERMS), float(numbers[-1]) / 100.0


def begin(train: Features, held: Features, start: Pesto, options: FitOptions) -> FitState:
    """The state before the first epoch: the start's weights, and the scale that suits them."""
    for name, features in (("to learn from", train), ("held back", held)):
        if len(features) == 0:
            raise InvalidArgumentError(f"there are no positions {name}")
    weights = weights_of(start)
    scale = best_scale(train, weights) if options.fit_scale else start.scale
    numbers = np.append(weights.ravel(), 100.0 * np.log(scale))
    nothing = np.zeros_like(numbers)
    return FitState(numbers, nothing, nothing, numbers, errors(held, weights, scale).log)


def fit(
    train: Features,
    held: Features,
    start: Pesto,
    options: FitOptions,
    *,
    state: FitState | None = None,
    progress: Callable[[FitState], object] | None = None,
) -> tuple[FitState, bool]:
    """(the last state, whether the fit came to its end): Ctrl-C gives the state after the last whole epoch.

    `state` goes on from an earlier one; `progress` is called after each epoch.
    """
    anchor = weights_of(start)
    state = state or begin(train, held, start, options)
    try:
        while not state.is_over(options):
            state = judge(learn(state, train, anchor, options), held, options)
            if progress is not None:
                progress(state)
    except KeyboardInterrupt:
        return state, False
    return state, True


def learn(state: FitState, train: Features, anchor: Weights, options: FitOptions) -> FitState:
    """One pass over the positions, in batches of neighbours; the batches come in a random order."""
    numbers, mean, square = state.numbers.copy(), state.mean.copy(), state.square.copy()
    rate = options.rate / 2**state.halved
    steps, total = state.steps, 0.0
    firsts = np.arange(0, len(train), options.batch_size)
    for first in np.random.default_rng([options.seed, 1, state.epoch]).permutation(firsts):
        batch = train.rows(first, min(first + options.batch_size, len(train)))
        error, gradient = slope(batch, numbers, anchor, options)
        total += error * len(batch)
        steps += 1
        mean += (1.0 - BETA1) * (gradient - mean)
        square += (1.0 - BETA2) * (gradient**2 - square)
        step = mean / (1.0 - BETA1**steps) / (np.sqrt(square / (1.0 - BETA2**steps)) + EPSILON)
        numbers -= rate * step
        numbers[:-1] = np.clip(numbers[:-1], -MAX_WEIGHT, MAX_WEIGHT)
    history = [*state.history, (total / len(train), float("nan"))]
    return replace(
        state, numbers=numbers, mean=mean, square=square, steps=steps, epoch=state.epoch + 1, history=history
    )


def slope(
    batch: Features, numbers: NDArray[np.float64], anchor: Weights, options: FitOptions
) -> tuple[float, NDArray[np.float64]]:
    """(the error of a batch, the gradient of error and penalty by all numbers)."""
    weights, log_scale = unpack(numbers)
    error, by_weights, by_scale = error_and_gradient(batch, weights, log_scale)
    _, pull = penalty(weights, anchor, options.regularisation)
    gradient = np.append((by_weights + pull).ravel(), by_scale / 100.0 if options.fit_scale else 0.0)
    return error, gradient


def judge(state: FitState, held: Features, options: FitOptions) -> FitState:
    """What the held-back positions say of the last epoch: the best so far, or patience, or back to the best."""
    weights, log_scale = unpack(state.numbers)
    error = errors(held, weights, float(np.exp(log_scale))).log
    state = replace(state, history=[*state.history[:-1], (state.history[-1][0], error)])
    if error < state.best_error:
        return replace(state, best=state.numbers, best_error=error, best_epoch=state.epoch, waited=0)
    if state.waited + 1 < options.patience:
        return replace(state, waited=state.waited + 1)
    nothing = np.zeros_like(state.best)
    return replace(state, numbers=state.best, mean=nothing, square=nothing, steps=0, waited=0, halved=state.halved + 1)
