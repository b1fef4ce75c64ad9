"""Plots of a run by matplotlib: losses, Elo, game lengths, calibration, prediction errors of a learned model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pondertree.learn.evaluation import rating_of
from pondertree.learn.report.summary import LOSSES, Summary
from pondertree.optional import require


def draw_plots(summary: Summary, folder: Path, ending: str = "svg") -> list[Path]:
    """Draws all plots into a folder and returns their paths. Needs matplotlib (`pondertree[viz]`)."""
    require("matplotlib", "viz", "drawing plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    paths = []
    # A fixed salt makes the files reproducible.
    with rc_context({"svg.hashsalt": "pondertree"}):
        for name, draw in plots_of(summary).items():
            # A figure without pyplot's windows and global state.
            figure = Figure(figsize=(7, 4.2), layout="constrained")
            draw(figure.subplots(), summary)
            path = folder / f"{name}.{ending}"
            figure.savefig(path, dpi=110, metadata={"Date": None} if ending == "svg" else None)
            paths.append(path)
    return paths


def draw_loss(axes: Any, summary: Summary) -> None:
    """Plots losses by steps."""
    for name, label in LOSSES.items():
        found = [(line["step"], line[name]) for line in summary.rounds if name in line]
        if not found and name not in ("policy_loss", "value_loss"):
            continue
        axes.plot([step for step, _ in found], [loss for _, loss in found], label=label)
    axes.set(xlabel="step", ylabel="cross-entropy", title="Loss")
    axes.legend()


def draw_elo(axes: Any, summary: Summary) -> None:
    """Plots Elo by minutes with 95 % intervals; of unbounded intervals, the informative bound."""
    rated = [(line["elapsed"] / 60.0, rating_of(line)) for line in summary.evaluations]
    found = [(minute, rating) for minute, rating in rated if rating is not None]
    known = [(minute, rating) for minute, rating in found if rating.bound is None]
    if known:
        bars = [[rating.elo - rating.low for _, rating in known], [rating.high - rating.elo for _, rating in known]]
        axes.errorbar([minute for minute, _ in known], [rating.elo for _, rating in known], bars, fmt="o", capsize=3)
    axes.plot([minute for minute, _ in found], [rating.shown for _, rating in found], color="tab:blue", linewidth=0.8)
    for sign, marker, label in ((">", "^", "at least"), ("<", "v", "at most")):
        bounds = [(minute, rating.shown) for minute, rating in found if rating.bound == sign]
        if bounds:
            axes.plot([minute for minute, _ in bounds], [elo for _, elo in bounds], marker, label=label)
            axes.legend()
    axes.axhline(0.0, color="grey", linewidth=0.8)
    axes.set(xlabel="minutes", ylabel="Elo above the weakest opponent", title="Strength, with 95 % intervals")


def draw_length(axes: Any, summary: Summary) -> None:
    """Plots game lengths and mean results of the first player."""
    found = [line for line in summary.rounds if "game_length" in line]
    axes.plot([line["games"] for line in found], [line["game_length"] for line in found], label="moves of a game")
    axes.set(xlabel="games", ylabel="moves", title="Games")
    found = [line for line in found if "first_player" in line]
    if found:
        other = axes.twinx()
        other.plot(
            [line["games"] for line in found], [line["first_player"] for line in found], color="tab:orange", alpha=0.6
        )
        other.set(ylabel="mean result of the first player", ylim=(-1, 1))
    axes.legend(loc="lower right")


def draw_calibration(axes: Any, summary: Summary) -> None:
    """Plots root values against results by bucket; calibrated values lie on the diagonal."""
    axes.plot([-1, 1], [-1, 1], color="grey", linewidth=0.8)
    buckets = summary.calibration
    most = max((count for _, _, count in buckets), default=1)
    sizes = [12 + 120 * count / most for _, _, count in buckets]
    axes.scatter([value for value, _, _ in buckets], [result for _, result, _ in buckets], s=sizes, alpha=0.7)
    axes.set(xlabel="value at the root", ylabel="mean result", title="Calibration on the newest games")


def draw_returns(axes: Any, summary: Summary) -> None:
    """Plots returns of episodes by minutes, in self-play and in evaluations with 95 % intervals."""
    found = [line for line in summary.rounds if "mean_return" in line]
    minutes = [line["elapsed"] / 60.0 for line in found]
    axes.plot(minutes, [line["mean_return"] for line in found], alpha=0.5, label="self-play")
    evaluated = [line for line in summary.evaluations if "mean_return" in line]
    minutes = [line["elapsed"] / 60.0 for line in evaluated]
    means = [line["mean_return"] for line in evaluated]
    axes.plot(minutes, means, "o-", label="evaluation")
    # Files of older versions have no intervals.
    errors = [line.get("return_high", mean) - mean for line, mean in zip(evaluated, means, strict=True)]
    axes.errorbar(minutes, means, errors, fmt="none", ecolor="tab:orange", capsize=3)
    least, most = [line["least_return"] for line in evaluated], [line["most_return"] for line in evaluated]
    axes.fill_between(minutes, least, most, alpha=0.15, color="tab:orange", label="minimum to maximum")
    for name, style in (("random", ":"), ("greedy", "--")):
        means = [line[f"{name}_return"] for line in evaluated if f"{name}_return" in line]
        if means:
            axes.axhline(means[-1], color="grey", linewidth=0.8, linestyle=style, label=f"{name} play")
    axes.set(xlabel="minutes", ylabel="rewards of an episode", title="Returns")
    axes.legend()


def draw_model(axes: Any, summary: Summary) -> None:
    """Plots the prediction errors of the last model by unroll depth; dashed, of the first one."""
    figure = axes.figure
    axes.remove()  # each panel has its own scale
    for panel, (name, label) in zip(figure.subplots(2, 2).flat, MODEL_QUALITY.items(), strict=True):
        for line, style, word in ((summary.models[0], "o--", "first"), (summary.models[-1], "o-", "last")):
            depths = len(line["by_depth"]["value"])
            # A gap where nothing was measured.
            errors = [math.nan if number is None else number for number in line["by_depth"][name]]
            # Rewards begin at depth 1.
            panel.plot(range(depths - len(errors), depths), errors, style, label=word, markersize=4)
        panel.set(xlabel="unroll steps", title=label, ylim=(0, 1.05 if name == "legal" else None))
        panel.title.set_fontsize("medium")
        panel.legend(fontsize="small")


def plots_of(summary: Summary) -> dict[str, Callable[[Any, Summary], None]]:
    """Returns the plots of a run by file name."""
    plots = dict(PLOTS)
    if any("mean_return" in line for line in summary.rounds):
        del plots["elo"], plots["calibration"]
        plots["returns"] = draw_returns
    if summary.models:
        plots["model"] = draw_model
    return plots


#: Prediction errors of a model and their labels.
MODEL_QUALITY = {
    "value": "value (absolute error)",
    "reward": "reward (absolute error)",
    "policy": "policy (Kullback-Leibler)",
    "legal": "probability on legal moves",
}
#: Plots of every run by file name.
PLOTS: dict[str, Callable[[Any, Summary], None]] = {
    "loss": draw_loss,
    "elo": draw_elo,
    "games": draw_length,
    "calibration": draw_calibration,
}
