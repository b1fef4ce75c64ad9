"""Pictures of a training, by matplotlib: losses, strength, lengths of games, how true the values are, and how good a
learned model is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pondertree.learn.evaluation.metrics import Summary
from pondertree.learn.evaluation.ratings import rating_of
from pondertree.optional import require


def draw_plots(summary: Summary, folder: Path, ending: str = "svg") -> list[Path]:
    """Draws all of them into a folder; their paths. Needs matplotlib (`pondertree[viz]`)."""
    require("matplotlib", "viz", "drawing plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    paths = []
    # A fixed salt: the same training gives the same file.
    with rc_context({"svg.hashsalt": "pondertree"}):
        for name, draw in plots_of(summary).items():
            # A figure of its own, without the windows and the global state of pyplot.
            figure = Figure(figsize=(7, 4.2), layout="constrained")
            draw(figure.subplots(), summary)
            path = folder / f"{name}.{ending}"
            figure.savefig(path, dpi=110, metadata={"Date": None} if ending == "svg" else None)
            paths.append(path)
    return paths


def draw_loss(axes: Any, summary: Summary) -> None:
    """What is left to learn, by steps."""
    for name, label in LOSSES:
        found = [(line["step"], line[name]) for line in summary.rounds if name in line]
        if not found and name not in ("policy_loss", "value_loss"):
            continue
        axes.plot([step for step, _ in found], [loss for _, loss in found], label=label)
    axes.set(xlabel="step", ylabel="cross-entropy", title="Loss")
    axes.legend()


def draw_elo(axes: Any, summary: Summary) -> None:
    """Strength by minutes with 95 % intervals; of intervals that are too long, the bound that is known."""
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
    """How long games are, and who wins them."""
    found = [line for line in summary.rounds if "game_length" in line]
    axes.plot([line["games"] for line in found], [line["game_length"] for line in found], label="moves of a game")
    axes.set(xlabel="games", ylabel="moves", title="Games")
    told = [line for line in found if "first_player" in line]
    if told:
        other = axes.twinx()
        other.plot(
            [line["games"] for line in told], [line["first_player"] for line in told], color="tab:orange", alpha=0.6
        )
        other.set(ylabel="mean result of the first player", ylim=(-1, 1))
    axes.legend(loc="lower right")


def draw_calibration(axes: Any, summary: Summary) -> None:
    """Values that searches found against results of games, by bucket; on the diagonal values are true."""
    axes.plot([-1, 1], [-1, 1], color="grey", linewidth=0.8)
    buckets = summary.calibration
    most = max((count for _, _, count in buckets), default=1)
    sizes = [12 + 120 * count / most for _, _, count in buckets]
    axes.scatter([value for value, _, _ in buckets], [result for _, result, _ in buckets], s=sizes, alpha=0.7)
    axes.set(xlabel="value at the root", ylabel="mean result", title="Calibration on the newest games")


def draw_returns(axes: Any, summary: Summary) -> None:
    """What episodes bring, by minutes: while it learns, and played without chance."""
    found = [line for line in summary.rounds if "mean_return" in line]
    minutes = [line["elapsed"] / 60.0 for line in found]
    axes.plot(minutes, [line["mean_return"] for line in found], alpha=0.5, label="self-play")
    told = [line for line in summary.evaluations if "mean_return" in line]
    minutes = [line["elapsed"] / 60.0 for line in told]
    axes.plot(minutes, [line["mean_return"] for line in told], "o-", label="evaluation")
    least, most = [line["least_return"] for line in told], [line["most_return"] for line in told]
    axes.fill_between(minutes, least, most, alpha=0.15, color="tab:orange", label="from the least to the most")
    axes.set(xlabel="minutes", ylabel="rewards of an episode", title="Returns")
    axes.legend()


def draw_model(axes: Any, summary: Summary) -> None:
    """The last model by the number of steps it imagined, on recent games; dashed, the first one."""
    figure = axes.figure
    axes.remove()  # they have scales of their own
    for panel, (name, label) in zip(figure.subplots(2, 2).flat, MODEL_QUALITY.items(), strict=True):
        for line, style, word in ((summary.models[0], "o--", "first"), (summary.models[-1], "o-", "last")):
            depths = len(line["by_depth"]["value"])
            # A gap where nothing was measured.
            errors = [math.nan if number is None else number for number in line["by_depth"][name]]
            # A reward comes with a step, so there is none at depth 0.
            panel.plot(range(depths - len(errors), depths), errors, style, label=word, markersize=4)
        panel.set(xlabel="steps imagined", title=label, ylim=(0, 1.05 if name == "legal" else None))
        panel.title.set_fontsize("medium")
        panel.legend(fontsize="small")


def plots_of(summary: Summary) -> dict[str, Callable[[Any, Summary], None]]:
    """What is drawn of a training, by the name of the file."""
    plots = dict(PLOTS)
    if any("mean_return" in line for line in summary.rounds):
        del plots["elo"], plots["calibration"]
        plots["returns"] = draw_returns
    if summary.models:
        plots["model"] = draw_model
    return plots


#: The losses that there may be.
LOSSES = (
    ("policy_loss", "policy"),
    ("value_loss", "value"),
    ("reward_loss", "reward"),
    ("consistency_loss", "consistency"),
)
#: What is measured of a model by depth.
MODEL_QUALITY = {
    "value": "value (absolute error)",
    "reward": "reward (absolute error)",
    "policy": "policy (Kullback-Leibler)",
    "legal": "share of the policy on legal moves",
}
#: What each file shows, of any training.
PLOTS: dict[str, Callable[[Any, Summary], None]] = {
    "loss": draw_loss,
    "elo": draw_elo,
    "games": draw_length,
    "calibration": draw_calibration,
}
