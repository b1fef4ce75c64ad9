"""Fitting by L-BFGS on mean cross-entropy with L2 regularisation towards the start, and early stopping.

The error is convex in the weights and cheap to differentiate, hence full batches (Nocedal 1980; Liu and Nocedal 1989).
Adam, which was tried first, moves every weight by about the same amount, however few positions determine it.

Fitting is deterministic: a fit resumed from a checkpoint equals an uninterrupted one.
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
from pondertree.config import bounded_float, option
from pondertree.errors import InvalidArgumentError
from pondertree.files import read_arrays, reading, write_arrays
from pondertree.match.record import check_same_settings
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

#: L-BFGS history: number of (step, gradient difference) pairs.
MEMORY = 10
#: Sufficient decrease of the backtracking line search (Armijo), and its maximum number of halvings.
ARMIJO, MAX_HALVINGS = 1e-4, 30
#: A fit has converged when a step decreases the cost by less.
MIN_DECREASE = 1e-8

Parameters = NDArray[np.float64]
"""[2 * NUM_TERMS + 1]: the weights in pawns and the log scale, which have similar curvature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of a fit."""

    iterations: int = option(300, validation.count)
    """Maximum number of steps."""
    regularisation: float = option(10.0, bounded_float(0.0))
    """Strength of the L2 penalty towards the start, per squared pawn, divided by twice the number of games."""
    patience: int = option(10, validation.count)
    """Steps without a smaller validation error before early stopping."""
    fit_scale: bool = option(True, validation.flag)
    """Whether the scale of the sigmoid is fitted as well."""
    seed: int = option(0, validation.whole_number)
    """Seed of the train-validation split."""

    def __post_init__(self) -> None:
        validation.check_fields(self)


@dataclass(frozen=True)
class FitState:
    """The state of a fit between two steps."""

    parameters: Parameters
    steps: NDArray[np.float64]
    """[at most MEMORY, len(parameters)]: the last steps, the newest last."""
    gradient_differences: NDArray[np.float64]
    """The gradient differences of these steps."""
    best: Parameters
    """The parameters with the smallest validation error so far."""
    best_error: float
    best_iteration: int = 0
    iteration: int = 0
    converged: bool = False
    """Whether the fit has converged."""
    history: list[tuple[float, float]] = field(default_factory=list)
    """Training and validation error after each step."""

    def is_over(self, options: FitOptions) -> bool:
        """Whether the fit has converged or is stopped by its options."""
        waited = self.iteration - self.best_iteration
        return self.converged or self.iteration >= options.iterations or waited >= options.patience


def unpack(parameters: Parameters) -> tuple[Weights, float]:
    """Returns (weights in centipawns, log scale)."""
    return 100.0 * parameters[:-1].reshape(2, NUM_TERMS), float(parameters[-1])


def begin(train: Features, validation_set: Features, start: Pesto, options: FitOptions) -> FitState:
    """Returns the initial state: the start's weights with their best scale."""
    for name, features in (("to learn from", train), ("held back", validation_set)):
        if len(features) == 0:
            raise InvalidArgumentError(f"there are no positions {name}")
    weights = weights_of(start)
    scale = best_scale(train, weights) if options.fit_scale else start.scale
    parameters = np.append(weights.ravel() / 100.0, np.log(scale))
    empty = np.zeros((0, len(parameters)))
    return FitState(parameters, empty, empty, parameters, errors(validation_set, weights, scale).log)


def fit(
    train: Features,
    validation_set: Features,
    start: Pesto,
    options: FitOptions,
    *,
    state: FitState | None = None,
    progress: Callable[[FitState], object] | None = None,
) -> tuple[FitState, bool]:
    """Returns (the last state, whether the fit is complete); Ctrl-C returns the state after the last complete step.

    `state` resumes an earlier fit; `progress` is called after each step.
    """
    anchor = weights_of(start)
    last: list[Any] = [None, None]  # (parameters, their cost and gradient): a step starts where the last one ended

    def cost(parameters: Parameters) -> tuple[float, Parameters]:
        if parameters is not last[0]:
            last[:] = parameters, cost_and_gradient(train, parameters, anchor, options)
        found: tuple[float, Parameters] = last[1]
        return found

    state = state or begin(train, validation_set, start, options)
    try:
        while not state.is_over(options):
            state = validate(take_step(state, cost), train, validation_set)
            if progress is not None:
                progress(state)
    except KeyboardInterrupt:
        return state, False
    return state, True


def cost_and_gradient(
    features: Features, parameters: Parameters, anchor: Weights, options: FitOptions
) -> tuple[float, Parameters]:
    """Returns (cost, gradient) of error and penalty."""
    weights, log_scale = unpack(parameters)
    error, weights_gradient, scale_gradient = error_and_gradient(features, weights, log_scale)
    cost, cost_gradient = penalty(weights, anchor, options.regularisation / features.games)
    gradient = 100.0 * (weights_gradient + cost_gradient).ravel()
    return error + cost, np.append(gradient, scale_gradient if options.fit_scale else 0.0)


def take_step(state: FitState, cost: Callable[[Parameters], tuple[float, Parameters]]) -> FitState:
    """Takes one L-BFGS step with a backtracking line search, or marks the fit as converged."""
    here = state.parameters
    value, gradient = cost(here)
    direction = -inverse_hessian_times(gradient, state.steps, state.gradient_differences)
    slope = float(direction @ gradient)
    # The first step has no curvature estimate: its largest component is a tenth of a pawn.
    length = 1.0 if len(state.steps) else 0.1 / max(float(np.abs(direction).max()), 1e-12)
    for _ in range(MAX_HALVINGS):
        there = here + length * direction
        np.clip(there[:-1], -MAX_WEIGHT / 100.0, MAX_WEIGHT / 100.0, out=there[:-1])
        reached, slope_there = cost(there)
        if reached <= value + ARMIJO * length * slope:
            break
        length /= 2.0
    else:
        return replace(state, iteration=state.iteration + 1, converged=True)
    step, difference = there - here, slope_there - gradient
    steps, differences = state.steps, state.gradient_differences
    # Pairs without positive curvature, possible by rounding, are discarded.
    if step @ difference > 1e-14:
        steps = np.vstack([steps, step])[-MEMORY:]
        differences = np.vstack([differences, difference])[-MEMORY:]
    converged = value - reached < MIN_DECREASE
    state = replace(state, parameters=there, steps=steps, gradient_differences=differences)
    return replace(state, iteration=state.iteration + 1, converged=converged)


def inverse_hessian_times(
    gradient: Parameters, steps: NDArray[np.float64], differences: NDArray[np.float64]
) -> Parameters:
    """Multiplies the gradient by the inverse Hessian estimate: the two-loop recursion of L-BFGS."""
    result = gradient.copy()
    shares = []
    for step, difference in zip(steps[::-1], differences[::-1], strict=True):
        share = step @ result / (step @ difference)
        result -= share * difference
        shares.append(share)
    if len(steps):
        result *= steps[-1] @ differences[-1] / (differences[-1] @ differences[-1])
    for step, difference, share in zip(steps, differences, shares[::-1], strict=True):
        result += (share - difference @ result / (step @ difference)) * step
    return result


def validate(state: FitState, train: Features, validation_set: Features) -> FitState:
    """Appends training and validation error of the last step and updates the best parameters."""
    weights, log_scale = unpack(state.parameters)
    learned, error = (errors(features, weights, float(np.exp(log_scale))).log for features in (train, validation_set))
    state = replace(state, history=[*state.history, (learned, error)])
    if error < state.best_error:
        return replace(state, best=state.parameters, best_error=error, best_iteration=state.iteration)
    return state


FORMAT = "pondertree-fit"
VERSION = 1
#: Names in checkpoint files and the attributes of `FitState`.
ARRAYS = {
    "numbers": "parameters",
    "best": "best",
    "steps": "steps",
    "bends": "gradient_differences",
    "history": "history",
}
SCALARS = {
    "best_error": "best_error",
    "best_iteration": "best_iteration",
    "iteration": "iteration",
    "arrived": "converged",
}
#: Options that may change on resume.
MUTABLE_OPTIONS = ("iterations",)


def identity(train: Features, validation_set: Features, start: Pesto, options: FitOptions) -> dict[str, Any]:
    """Returns the identity of a fit for its checkpoint: hashes of positions and start, and the options."""
    digest = hashlib.sha256()
    for features in (train, validation_set):
        for array in (features.starts, features.terms, features.counts, features.taper, features.targets):
            digest.update(np.ascontiguousarray(array).tobytes())
    start_digest = hashlib.sha256(weights_of(start).tobytes() + repr((start.scale, start.phase_weights)).encode())
    return {"positions": digest.hexdigest()[:16], "start": start_digest.hexdigest()[:16], **asdict(options)}


def save_state(path: Path, state: FitState, belongs: dict[str, Any]) -> None:
    """Writes a checkpoint as .npz."""
    arrays = {name: np.asarray(getattr(state, attribute), dtype=np.float64) for name, attribute in ARRAYS.items()}
    about = {name: getattr(state, attribute) for name, attribute in SCALARS.items()}
    write_arrays(path, FORMAT, VERSION, arrays, {"state": about, "fit": belongs})


def load_state(path: Path, belongs: dict[str, Any]) -> FitState:
    """Reads a checkpoint; raises an InvalidArgumentError for other positions or options."""
    with reading(path, f"a file of {FORMAT}"):
        arrays, about = read_arrays(path, FORMAT, VERSION, tuple(ARRAYS))
        found, scalars = dict(about["fit"]), about["state"]
        check_same_settings(found, belongs, path, MUTABLE_OPTIONS)
        row = 2 * NUM_TERMS + 1
        for name, array in arrays.items():
            has_shape = name == "history" or array.shape[-1:] == (row,)
            if not has_shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise InvalidArgumentError(f"{name} must be finite numbers, {row} per row")
        steps, differences = (arrays[name].reshape(-1, row) for name in ("steps", "bends"))
        if len(steps) != len(differences) or len(steps) > MEMORY or not ((steps * differences).sum(axis=1) > 0.0).all():
            raise InvalidArgumentError(
                f"steps and bends must be equally many, at most {MEMORY}, and of positive curvature"
            )
        iteration = validation.whole_number(scalars["iteration"], "iteration")
        history = arrays["history"].reshape(-1, 2)
        if len(history) > iteration + 1:
            raise InvalidArgumentError(f"history must have at most {iteration + 1} rows, one for each step")
        return FitState(
            parameters=arrays["numbers"].reshape(row),
            best=arrays["best"].reshape(row),
            steps=steps,
            gradient_differences=differences,
            best_error=validation.number(scalars["best_error"], "best_error"),
            best_iteration=validation.whole_number(scalars["best_iteration"], "best_iteration", most=iteration),
            iteration=iteration,
            converged=validation.flag(scalars["arrived"], "arrived"),
            history=[(float(one), float(other)) for one, other in history],
        )
