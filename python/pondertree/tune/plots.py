"""Pictures of a fit, by matplotlib: the error curve, predictions against results, the tables as heat maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pondertree.extras import require
from pondertree.tune.report import PIECES, Report

#: What each file shows.
PLOTS = ("error", "calibration", "tables")


def draw_plots(report: Report, folder: Path, ending: str = "png") -> list[Path]:
    """Draws all of them into a folder; their paths. Needs matplotlib (`pondertree[viz]`)."""
    require("matplotlib", "viz", "drawing plots")
    from matplotlib.figure import Figure

    draw = {"error": draw_error, "calibration": draw_calibration, "tables": draw_tables}
    paths = []
    for name in PLOTS:
        # A figure of its own, without the windows and the global state of pyplot.
        figure = Figure(figsize=(14, 9) if name == "tables" else (7, 5), layout="constrained")
        draw[name](figure, report)
        path = folder / f"{name}.{ending}"
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def draw_error(figure: Any, report: Report) -> None:
    """The error after each step."""
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
    """Predicted against actual score, by bucket; on the diagonal predictions are true."""
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
    """What each square adds after tuning, and what tuning changed."""
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
