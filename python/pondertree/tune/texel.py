"""Tuning from positions to a weights file: split, fit, round, report; in a folder from which it goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pondertree import validation
from pondertree.chess.pesto import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.files import check_path, make_folder, part_of, write_bytes, write_json
from pondertree.tune.features import Features, features_of, no_castling, pesto_of
from pondertree.tune.fitting import FitOptions, FitState, fit, identity, load_state, save_state, unpack
from pondertree.tune.positions import Positions, check_some, split, thin
from pondertree.tune.report import Report, make_report

#: The files of a folder.
CHECKPOINT, WEIGHTS, TEXT, DATA = "checkpoint.npz", "weights.json", "report.txt", "report.json"


@dataclass(frozen=True)
class Prepared:
    """Positions ready for a fit."""

    train: Features
    held: Features


def prepare(
    positions: Positions,
    start: Pesto,
    *,
    held_back: float = 0.15,
    per_game: int = 20,
    mirror: bool = False,
    seed: int = 0,
) -> Prepared:
    """Splits positions by their games, at most `per_game` of each, and counts what they have.

    With `mirror`, positions to learn from in which nobody may castle are used a second time, left and right exchanged.
    (Colours exchanged would be the same row again.)
    """
    check_some(positions)
    seed = validation.whole_number(seed, "seed")
    positions = thin(positions, validation.count(per_game, "per_game"), seed)
    kept, aside = split(positions, held_back, seed)
    train = features_of(positions.take(kept), start)
    if validation.flag(mirror, "mirror"):
        train = train.with_exchanged(no_castling(positions.take(kept)))
    return Prepared(train, features_of(positions.take(aside), start))


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

    With the folder `out`, each step is written there, and weights and report at the end; with `resume` a fit goes on
    from there, to the same result as if it had never stopped. Ctrl-C gives the best so far.
    """
    start = start or Pesto()
    options = options or FitOptions()
    folder = None if out is None else check_path(out, "out", CHECKPOINT)
    if folder is not None:
        make_folder(folder, "out")
        if (folder / CHECKPOINT).exists() and not resume:
            raise InvalidArgumentError(
                f"out: {str(folder)!r} has a fit already: go on with it (resume), or another name"
            )
    elif resume:
        raise InvalidArgumentError("resume needs out, the folder to go on with")
    ready = prepare(positions, start, held_back=held_back, per_game=per_game, mirror=mirror, seed=options.seed)
    belongs = identity(ready.train, ready.held, start, options)
    state = None
    if folder is not None:
        # Left behind by a fit that was killed while it wrote.
        for name in (CHECKPOINT, WEIGHTS, TEXT, DATA):
            part_of(folder / name).unlink(missing_ok=True)
    if folder is not None and resume and (folder / CHECKPOINT).exists():
        state = load_state(folder / CHECKPOINT, belongs)

    def after_step(state: FitState) -> None:
        if folder is not None:
            save_state(folder / CHECKPOINT, state, belongs)
        if progress is not None:
            progress(state)

    state, finished = fit(ready.train, ready.held, start, options, state=state, progress=after_step)
    weights, log_scale = unpack(state.best)
    scale = float(np.exp(log_scale)) if options.fit_scale else start.scale
    tuned = pesto_of(weights, round(scale, 1) if options.fit_scale else scale, start)
    report = make_report(
        start,
        (weights, scale),
        tuned,
        ready.train,
        ready.held,
        positions,
        state.history,
        state.best_iteration,
        finished,
    )
    if folder is not None:
        write_report(report, folder)
    return report


def write_report(report: Report, folder: Path) -> None:
    """Weights, and the report as text and as JSON."""
    report.tuned.to_file(folder / WEIGHTS)
    write_bytes(folder / TEXT, f"{report}\n".encode(), "out")
    write_json(folder / DATA, report.as_json(), "out")
