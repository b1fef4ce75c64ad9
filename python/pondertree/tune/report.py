"""The report of a fit: errors, changes of the weights, calibration, plots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.chess.pesto import Pesto
from pondertree.optional import require
from pondertree.tune.features import FIELD_SLICES, Errors, Features, best_scale, errors, sigmoid, weights_of
from pondertree.tune.fitting import FitState
from pondertree.tune.positions import Positions

#: Number of calibration buckets.
BUCKETS = 20
PIECES = ("pawn", "knight", "bishop", "rook", "queen", "king")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Positions with similar predictions."""

    predicted: float
    actual: float
    """Mean result of these positions."""
    count: int


@dataclass(frozen=True)
class Report:
    """The result of a fit and its statistics."""

    start: Pesto
    tuned: Pesto
    """Rounded to integers."""
    before: dict[str, Errors]
    """Errors of the start with its own scale, on the training ("train") and the validation set ("held_back")."""
    rescaled: dict[str, Errors]
    """Errors of the start with its best scale: the baseline for the weights alone."""
    fitted: dict[str, Errors]
    """Errors of the fitted weights before rounding."""
    after: dict[str, Errors]
    """Errors of the tuned weights after rounding."""
    history: list[tuple[float, float]]
    best_iteration: int
    calibration: dict[str, list[Bucket]]
    """Calibration on the validation set, "before" and "after"."""
    counts: dict[str, int]
    """Numbers of positions and games."""
    skipped: dict[str, Any]
    finished: bool = True

    def changes(self) -> dict[str, dict[str, Any]]:
        """Returns, per field and for middlegame and endgame, means before and after, mean and largest change."""
        old, new = weights_of(self.start), weights_of(self.tuned)
        return {
            name: {
                "before": np.round(old[:, place].mean(axis=1), 1).tolist(),
                "after": np.round(new[:, place].mean(axis=1), 1).tolist(),
                "mean_change": np.round(np.abs(new - old)[:, place].mean(axis=1), 1).tolist(),
                "largest_change": int(np.abs(new - old)[:, place].max()),
            }
            for name, place in FIELD_SLICES.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        kinds = ("before", "rescaled", "fitted", "after")
        return {
            "finished": self.finished,
            "steps": len(self.history),
            "best_iteration": self.best_iteration,
            "positions": dict(self.counts),
            "skipped": dict(self.skipped),
            "errors": {kind: {name: one.as_json() for name, one in getattr(self, kind).items()} for kind in kinds},
            "scale": {"before": self.start.scale, "after": self.tuned.scale},
            "changes": self.changes(),
            "history": [list(entry) for entry in self.history],
            "calibration": {
                when: [[bucket.predicted, bucket.actual, bucket.count] for bucket in buckets]
                for when, buckets in self.calibration.items()
            },
        }

    def __str__(self) -> str:
        counts, skipped = self.counts, self.skipped
        lines = [
            f"{counts['train']:,} positions to learn from, {counts['held_back']:,} held back, "
            f"of {counts['games']:,} games; {skipped['count']:,} skipped, {skipped['not_quiet']:,} not quiet",
            *(f"  skipped: {text}" for text in skipped["named"]),
            f"{len(self.history)} steps, the best was {self.best_iteration}"
            + ("" if self.finished else "; interrupted: this is the best so far"),
            "",
            f"{'error':<26}{'log':>10}{'squared':>10}{'held back':>12}{'squared':>10}",
        ]
        rows = (
            (f"start, scale {self.start.scale:.1f}", self.before),
            ("start, best scale", self.rescaled),
            ("fitted", self.fitted),
            (f"in whole numbers, {self.tuned.scale:.1f}", self.after),
        )
        for label, found in rows:
            train, held = found["train"], found["held_back"]
            lines.append(f"{label:<26}{train.log:10.5f}{train.squared:10.5f}{held.log:12.5f}{held.squared:10.5f}")
        lines += ["", f"{'mean weight':<28}{'middlegame':>18}{'endgame':>18}{'moved':>12}{'most':>6}"]
        for name, change in self.changes().items():
            spans = [f"{old:g} -> {new:g}" for old, new in zip(change["before"], change["after"], strict=True)]
            moved = " ".join(f"{number:g}" for number in change["mean_change"])
            lines.append(f"{name:<28}{spans[0]:>18}{spans[1]:>18}{moved:>12}{change['largest_change']:>6}")
        return "\n".join(lines)


def make_report(
    start: Pesto,
    fitted: tuple[Any, float],
    tuned: Pesto,
    train: Features,
    validation_set: Features,
    positions: Positions,
    state: FitState,
    finished: bool,
) -> Report:
    """Computes the report; `fitted` are weights and scale before rounding."""
    parts = {"train": train, "held_back": validation_set}
    old, new = weights_of(start), weights_of(tuned)
    scale_of_start = best_scale(train, old)

    def of(weights: Any, scale: float) -> dict[str, Errors]:
        return {name: errors(features, weights, scale) for name, features in parts.items()}

    return Report(
        start=start,
        tuned=tuned,
        before=of(old, start.scale),
        rescaled=of(old, scale_of_start),
        fitted=of(*fitted),
        after=of(new, tuned.scale),
        history=state.history,
        best_iteration=state.best_iteration,
        calibration={
            "before": calibration(validation_set, start),
            "after": calibration(validation_set, tuned),
        },
        counts={"train": len(train), "held_back": len(validation_set), "games": positions.num_games},
        skipped=positions.skipped.as_json(),
        finished=finished,
    )


def calibration(features: Features, pesto: Pesto) -> list[Bucket]:
    """Returns mean prediction and mean result of each non-empty bucket."""
    predicted = sigmoid(features.scores(weights_of(pesto)) / pesto.scale)
    bucket = np.minimum((predicted * BUCKETS).astype(np.int64), BUCKETS - 1)
    found = []
    for number in range(BUCKETS):
        here = bucket == number
        if here.any():
            means = float(predicted[here].mean()), float(features.targets[here].mean())
            found.append(Bucket(*means, int(here.sum())))
    return found


#: The plots, by file name.
PLOTS = ("error", "calibration", "tables")


def draw_plots(report: Report, folder: Path, ending: str = "png") -> list[Path]:
    """Writes all plots to a folder and returns their paths. Needs matplotlib (`pondertree[viz]`)."""
    require("matplotlib", "viz", "drawing plots")
    from matplotlib.figure import Figure

    draw = {"error": draw_error, "calibration": draw_calibration, "tables": draw_tables}
    paths = []
    for name in PLOTS:
        # A separate figure, without the global state of pyplot.
        figure = Figure(figsize=(14, 9) if name == "tables" else (7, 5), layout="constrained")
        draw[name](figure, report)
        path = folder / f"{name}.{ending}"
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def draw_error(figure: Any, report: Report) -> None:
    """Plots the errors by step."""
    axes = figure.subplots()
    steps = np.arange(1, len(report.history) + 1)
    axes.plot(steps, [entry[0] for entry in report.history], label="positions learned from")
    axes.plot(steps, [entry[1] for entry in report.history], label="held-back positions")
    axes.axhline(report.rescaled["held_back"].log, color="grey", linestyle=":", label="start, held back, best scale")
    if report.best_iteration:
        axes.axvline(report.best_iteration, color="grey", linewidth=0.8)
    axes.set(xlabel="step", ylabel="mean logarithmic error", title="Error")
    axes.legend()


def draw_calibration(figure: Any, report: Report) -> None:
    """Plots mean results against predictions, by bucket."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for when, buckets in report.calibration.items():
        most = max((bucket.count for bucket in buckets), default=1)
        sizes = [12 + 120 * bucket.count / most for bucket in buckets]
        places = [bucket.predicted for bucket in buckets], [bucket.actual for bucket in buckets]
        axes.scatter(*places, s=sizes, alpha=0.7, label=when)
    axes.set(xlabel="predicted score", ylabel="mean result", title="Calibration on held-back positions")
    axes.legend()


def draw_tables(figure: Any, report: Report) -> None:
    """Plots the tuned piece-square tables and their changes."""
    grid = figure.subplots(4, len(PIECES))
    for column, piece in enumerate(PIECES):
        for half, phase in enumerate(("middlegame", "endgame")):
            old, new = (
                np.reshape(getattr(one, f"{piece}_squares")[half], (8, 8)) for one in (report.start, report.tuned)
            )
            for row, (table, label) in enumerate(((new, phase), (new - old, f"{phase}, change"))):
                axes = grid[2 * half + row][column]
                bound = max(int(np.abs(table).max()), 1)
                axes.imshow(table, cmap="RdBu", vmin=-bound, vmax=bound)
                axes.set(xticks=[], yticks=[], title=f"{piece}, {label} (±{bound})")
                axes.title.set_fontsize(8)
