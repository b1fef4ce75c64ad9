"""A fit on the disk, so that it can go on: numbers as they are, and what they belong to."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ponderosa.chess.pesto import Pesto
from ponderosa.errors import InvalidArgumentError
from ponderosa.tune.features import NUM_TERMS, Features, weights_of
from ponderosa.tune.files import read_arrays, write_arrays
from ponderosa.tune.fitting import FitOptions, FitState

FORMAT = "ponderosa-fit"
VERSION = 1
ARRAYS = ("numbers", "mean", "square", "best")
COUNTS = ("best_epoch", "epoch", "steps", "waited", "halved")
#: What may differ when a fit goes on: how far it goes.
MAY_DIFFER = ("epochs",)


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
    arrays = {name: getattr(state, name) for name in ARRAYS}
    arrays["history"] = np.array(state.history, dtype=np.float64).reshape(-1, 2)
    about = {name: getattr(state, name) for name in (*COUNTS, "best_error")}
    write_arrays(path, FORMAT, VERSION, arrays, {"state": about, "fit": belongs})


def load_state(path: Path, belongs: dict[str, Any]) -> FitState:
    """A fit that `save_state` wrote; one of other positions or options is refused."""
    arrays, about = read_arrays(path, FORMAT, VERSION, (*ARRAYS, "history"))
    try:
        found, told = dict(about["fit"]), dict(about["state"])
        counts = {name: int(told[name]) for name in COUNTS}
        best_error = float(told["best_error"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{str(path)!r} is no file of {FORMAT}, or was damaged: {error}") from None
    for name in belongs:
        if name not in MAY_DIFFER and found.get(name) != belongs[name]:
            raise InvalidArgumentError(
                f"resume: {str(path)!r} was begun with {name} = {found.get(name)!r}, not {belongs[name]!r}"
            )
    for name in ARRAYS:
        if arrays[name].shape != (2 * NUM_TERMS + 1,) or not np.isfinite(arrays[name]).all():
            raise InvalidArgumentError(f"{str(path)!r}: {name} must be {2 * NUM_TERMS + 1} finite numbers")
    history = [(float(row[0]), float(row[1])) for row in arrays.pop("history").reshape(-1, 2)]
    fields: dict[str, Any] = {**arrays, **counts}
    return FitState(**fields, best_error=best_error, history=history)
