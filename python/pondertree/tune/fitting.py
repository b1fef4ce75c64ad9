"""Fitting: L-BFGS on the mean logarithmic error and a pull towards the start, stopped early by held-back positions.

The error is convex in the weights and cheap to differentiate, so all positions take part in every step (Nocedal 1980,
Liu and Nocedal 1989). Adam, which was tried first, moves every weight by about the same, whether many positions speak
of it or a few by chance.

Nothing is random here. So a fit that goes on from a checkpoint gives the numbers of one that was never interrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.chess.pesto import Pesto
from pondertree.chess.weights import MAX_WEIGHT
from pondertree.errors import InvalidArgumentError
from pondertree.files import read_arrays, reading, write_arrays
from pondertree.tune.features import (
    NUM_TERMS,
    Features,
    Weights,
    best_scale,
    error_and_gradient,
    errors,
    penalty,
    weights_of,
)

#: Steps that are remembered for the curvature.
MEMORY = 10
#: A step must gain this share of what the slope promises (Armijo); else it is halved, so many times at most.
ARMIJO, HALVINGS = 1e-4, 30
#: A fit that gains less than this in a step has arrived.
LEAST_GAIN = 1e-8

Numbers = NDArray[np.float64]
"""[2 * NUM_TERMS + 1]: the weights in pawns and, last, the logarithm of the scale: about alike in what a step does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """How weights are fitted."""

    iterations: int = 300
    """Most steps."""
    regularisation: float = 10.0
    """The pull towards the start: what a pawn's distance costs a weight, squared, halved, and over the number of games.
    With more games the same pull weighs less."""
    patience: int = 10
    """Steps without a smaller error on the held-back positions before the fit ends."""
    fit_scale: bool = True
    """Whether the scale of the sigmoid is fitted too; else it stays that of the start."""
    seed: int = 0
    """Of the games that are held back."""

    def __post_init__(self) -> None:
        for name in ("iterations", "patience"):
            object.__setattr__(self, name, validation.count(getattr(self, name), name))
        object.__setattr__(self, "seed", validation.whole_number(self.seed, "seed"))
        object.__setattr__(self, "regularisation", validation.number(self.regularisation, "regularisation", least=0.0))
        object.__setattr__(self, "fit_scale", validation.flag(self.fit_scale, "fit_scale"))


@dataclass(frozen=True)
class FitState:
    """A fit between two steps."""

    numbers: Numbers
    steps: NDArray[np.float64]
    """[at most MEMORY, len(numbers)]: the last steps, the newest last."""
    bends: NDArray[np.float64]
    """The same of the changes of the gradient."""
    best: Numbers
    """The numbers with the smallest error on the held-back positions so far."""
    best_error: float
    best_iteration: int = 0
    iteration: int = 0
    arrived: bool = False
    """No step gains anything any more."""
    history: list[tuple[float, float]] = field(default_factory=list)
    """After each step: the error on the positions learned from, and on those held back."""

    def is_over(self, options: FitOptions) -> bool:
        """Whether the fit has come to its end."""
        waited = self.iteration - self.best_iteration
        return self.arrived or self.iteration >= options.iterations or waited >= options.patience


def unpack(numbers: Numbers) -> tuple[Weights, float]:
    """(weights in centipawns, logarithm of the scale)."""
    return 100.0 * numbers[:-1].reshape(2, NUM_TERMS), float(numbers[-1])


def begin(train: Features, held: Features, start: Pesto, options: FitOptions) -> FitState:
    """The state before the first step: the start's weights, and the scale that suits them."""
    for name, features in (("to learn from", train), ("held back", held)):
        if len(features) == 0:
            raise InvalidArgumentError(f"there are no positions {name}")
    weights = weights_of(start)
    scale = best_scale(train, weights) if options.fit_scale else start.scale
    numbers = np.append(weights.ravel() / 100.0, np.log(scale))
    nothing = np.zeros((0, len(numbers)))
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
    """(the last state, whether the fit came to its end): Ctrl-C gives the state after the last whole step.

    `state` goes on from an earlier one; `progress` is called after each step.
    """
    anchor = weights_of(start)

    def cost(numbers: Numbers) -> tuple[float, Numbers]:
        return cost_and_gradient(train, numbers, anchor, options)

    state = state or begin(train, held, start, options)
    try:
        while not state.is_over(options):
            state = judge(take_step(state, cost), train, held)
            if progress is not None:
                progress(state)
    except KeyboardInterrupt:
        return state, False
    return state, True


def cost_and_gradient(
    features: Features, numbers: Numbers, anchor: Weights, options: FitOptions
) -> tuple[float, Numbers]:
    """(error and penalty, their gradient by all numbers)."""
    weights, log_scale = unpack(numbers)
    error, by_weights, by_scale = error_and_gradient(features, weights, log_scale)
    held, pull = penalty(weights, anchor, options.regularisation / features.games)
    return error + held, np.append(100.0 * (by_weights + pull).ravel(), by_scale if options.fit_scale else 0.0)


def take_step(state: FitState, cost: Callable[[Numbers], tuple[float, Numbers]]) -> FitState:
    """One step of L-BFGS, as long as it gains something."""
    here = state.numbers
    value, gradient = cost(here)
    direction = -curved(gradient, state.steps, state.bends)
    slope = float(direction @ gradient)
    # Without a memory the length is unknown: a tenth of a pawn at most, for the weight that moves most.
    length = 1.0 if len(state.steps) else 0.1 / max(float(np.abs(direction).max()), 1e-12)
    for _ in range(HALVINGS):
        there = here + length * direction
        np.clip(there[:-1], -MAX_WEIGHT / 100.0, MAX_WEIGHT / 100.0, out=there[:-1])
        reached, slope_there = cost(there)
        if reached <= value + ARMIJO * length * slope:
            break
        length /= 2.0
    else:
        return replace(state, iteration=state.iteration + 1, arrived=True)
    step, bend = there - here, slope_there - gradient
    steps, bends = state.steps, state.bends
    # A pair without curvature, which rounding can bring about, would spoil the memory.
    if step @ bend > 1e-14:
        steps, bends = (np.vstack([old, new])[-MEMORY:] for old, new in ((steps, step), (bends, bend)))
    arrived = value - reached < LEAST_GAIN
    return replace(state, numbers=there, steps=steps, bends=bends, iteration=state.iteration + 1, arrived=arrived)


def curved(gradient: Numbers, steps: NDArray[np.float64], bends: NDArray[np.float64]) -> Numbers:
    """The gradient times the inverse curvature that the last steps have shown: the two loops of L-BFGS."""
    result = gradient.copy()
    shares = []
    for step, bend in zip(steps[::-1], bends[::-1], strict=True):
        share = step @ result / (step @ bend)
        result -= share * bend
        shares.append(share)
    if len(steps):
        result *= steps[-1] @ bends[-1] / (bends[-1] @ bends[-1])
    for step, bend, share in zip(steps, bends, shares[::-1], strict=True):
        result += (share - bend @ result / (step @ bend)) * step
    return result


def judge(state: FitState, train: Features, held: Features) -> FitState:
    """What positions say of the last step; those held back tell whether it is the best so far."""
    weights, log_scale = unpack(state.numbers)
    learned, error = (errors(features, weights, float(np.exp(log_scale))).log for features in (train, held))
    state = replace(state, history=[*state.history, (learned, error)])
    if error < state.best_error:
        return replace(state, best=state.numbers, best_error=error, best_iteration=state.iteration)
    return state


FORMAT = "pondertree-fit"
VERSION = 1
ARRAYS = ("numbers", "best", "steps", "bends", "history")
PLAIN = ("best_error", "best_iteration", "iteration", "arrived")
#: What may differ when a fit goes on: how far it goes.
MAY_DIFFER = ("iterations",)


def identity(train: Features, held: Features, start: Pesto, options: FitOptions) -> dict[str, Any]:
    """What a fit belongs to: positions, start and options."""
    told = hashlib.sha256()
    for features in (train, held):
        for array in (features.starts, features.terms, features.counts, features.taper, features.targets):
            told.update(np.ascontiguousarray(array).tobytes())
    begun = hashlib.sha256(weights_of(start).tobytes() + repr((start.scale, start.phase_weights)).encode())
    return {"positions": told.hexdigest()[:16], "start": begun.hexdigest()[:16], **asdict(options)}


def save_state(path: Path, state: FitState, belongs: dict[str, Any]) -> None:
    """Writes a fit as .npz."""
    arrays = {name: np.asarray(getattr(state, name), dtype=np.float64) for name in ARRAYS}
    about = {name: getattr(state, name) for name in PLAIN}
    write_arrays(path, FORMAT, VERSION, arrays, {"state": about, "fit": belongs})


def load_state(path: Path, belongs: dict[str, Any]) -> FitState:
    """A fit that `save_state` wrote; one of other positions or options is refused."""
    with reading(path, f"a file of {FORMAT}"):
        arrays, about = read_arrays(path, FORMAT, VERSION, ARRAYS)
        found, told = dict(about["fit"]), about["state"]
        for name in belongs:
            if name not in MAY_DIFFER and found.get(name) != belongs[name]:
                raise InvalidArgumentError(
                    f"resume: {str(path)!r} was begun with {name} = {found.get(name)!r}, not {belongs[name]!r}"
                )
        row = 2 * NUM_TERMS + 1
        for name, array in arrays.items():
            is_wide = name == "history" or array.shape[-1:] == (row,)
            if not is_wide or array.dtype != np.float64 or not np.isfinite(array).all():
                raise InvalidArgumentError(f"{name} must be finite numbers, {row} in a row")
        steps, bends = (arrays[name].reshape(-1, row) for name in ("steps", "bends"))
        if len(steps) != len(bends) or len(steps) > MEMORY or not ((steps * bends).sum(axis=1) > 0.0).all():
            raise InvalidArgumentError(f"steps and bends must be as many, at most {MEMORY}, and of positive curvature")
        iteration = validation.whole_number(told["iteration"], "iteration")
        history = arrays["history"].reshape(-1, 2)
        if len(history) > iteration + 1:
            raise InvalidArgumentError(f"history must have at most {iteration + 1} rows, one for each step")
        return FitState(
            numbers=arrays["numbers"].reshape(row),
            best=arrays["best"].reshape(row),
            steps=steps,
            bends=bends,
            best_error=validation.number(told["best_error"], "best_error"),
            best_iteration=validation.whole_number(told["best_iteration"], "best_iteration", most=iteration),
            iteration=iteration,
            arrived=validation.flag(told["arrived"], "arrived"),
            history=[(float(one), float(other)) for one, other in history],
        )
