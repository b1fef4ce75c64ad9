"""Texel tuning from positions to a weights file: split, fit, round, report; resumable from its folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pondertree import validation
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_path, make_folder, remove_parts, write_bytes, write_json
from pondertree.tune.features import Features, features_of, no_castling, pesto_of
from pondertree.tune.fitting import FitOptions, FitState, fit, identity, load_state, save_state, unpack
from pondertree.tune.positions import Positions, check_some, split, thin
from pondertree.tune.report import Report, make_report

#: File names in the output folder.
CHECKPOINT, WEIGHTS, TEXT, DATA = "checkpoint.npz", "weights.json", "report.txt", "report.json"


def prepare(
    positions: Positions,
    start: Pesto,
    *,
    held_back: float = 0.15,
    per_game: int = 20,
    mirror: bool = False,
    seed: int = 0,
) -> tuple[Features, Features]:
    """Samples `per_game` positions of each game, splits them by games, and extracts features.

    With `mirror`, training positions without castling rights are augmented by their horizontal flips. (Flipping colours
    would duplicate rows.)
    """
    check_some(positions)
    seed = validation.whole_number(seed, "seed")
    positions = thin(positions, validation.count(per_game, "per_game"), seed)
    train_rows, validation_rows = split(positions, held_back, seed)
    train = features_of(positions.take(train_rows), start)
    if validation.flag(mirror, "mirror"):
        train = train.with_flipped(no_castling(positions.take(train_rows)))
    return train, features_of(positions.take(validation_rows), start)


def tune(
    positions: Positions,
    start: Pesto | None = None,
    options: FitOptions | None = None,
    *,
    held_back: float = 0.15,
    per_game: int = 20,
    mirror: bool = False,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[FitState], object] | None = None,
) -> Report:
    """Fits all weights but the phase weights, and the scale, to the results of positions.

    With the folder `out`, a checkpoint is written after each step, and weights and report at the end; with `resume` an
    interrupted fit continues to the same result. Ctrl-C returns the best weights so far.
    """
    start = start or Pesto()
    options = options or FitOptions()
    folder = None if out is None else check_path(out, "out", CHECKPOINT)
    if folder is not None:
        make_folder(folder, "out")
        if (folder / CHECKPOINT).exists() and not resume:
            raise InvalidArgumentError(f"out: {str(folder)!r} has a fit already: continue it (resume), or another name")
    elif resume:
        raise InvalidArgumentError("resume requires out, the folder to continue")
    train, validation_set = prepare(
        positions, start, held_back=held_back, per_game=per_game, mirror=mirror, seed=options.seed
    )
    belongs = identity(train, validation_set, start, options)
    state = None
    if folder is not None:
        # Temporary files of a killed fit.
        for name in (CHECKPOINT, WEIGHTS, TEXT, DATA):
            remove_parts(folder / name)
    if folder is not None and resume and (folder / CHECKPOINT).exists():
        state = load_state(folder / CHECKPOINT, belongs)

    def after_step(state: FitState) -> None:
        if folder is not None:
            save_state(folder / CHECKPOINT, state, belongs)
        if progress is not None:
            progress(state)

    state, finished = fit(train, validation_set, start, options, state=state, progress=after_step)
    weights, log_scale = unpack(state.best)
    scale = float(np.exp(log_scale)) if options.fit_scale else start.scale
    tuned = pesto_of(weights, round(scale, 1) if options.fit_scale else scale, start)
    report = make_report(start, (weights, scale), tuned, train, validation_set, positions, state, finished)
    if folder is not None:
        write_report(report, folder)
    return report


def write_report(report: Report, folder: Path) -> None:
    """Writes the weights, and the report as text and JSON."""
    report.tuned.to_file(folder / WEIGHTS)
    write_bytes(folder / TEXT, f"{report}\n".encode(), "out")
    write_json(folder / DATA, report.as_json(), "out")
