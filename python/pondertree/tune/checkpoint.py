"""A fit on the disk, so that it can go on: numbers as they are, and what they belong to."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pondertree import check
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.files import read_arrays, reading, write_arrays
from pondertree.tune.features import NUM_TERMS, Features, weights_of
from pondertree.tune.fitting import MEMORY, FitOptions, FitState

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
        iteration = check.whole_number(told["iteration"], "iteration")
        history = arrays["history"].reshape(-1, 2)
        if len(history) > iteration + 1:
            raise InvalidArgumentError(f"history must have at most {iteration + 1} rows, one for each step")
        return FitState(
            numbers=arrays["numbers"].reshape(row),
            best=arrays["best"].reshape(row),
            steps=steps,
            bends=bends,
            best_error=check.number(told["best_error"], "best_error"),
            best_iteration=check.whole_number(told["best_iteration"], "best_iteration", most=iteration),
            iteration=iteration,
            arrived=check.flag(told["arrived"], "arrived"),
            history=[(float(one), float(other)) for one, other in history],
        )
