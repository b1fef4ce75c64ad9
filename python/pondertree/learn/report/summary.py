"""The data of a report, read from a run folder: metrics by kind, calibration, configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.learn.data import list_shards, read_shard
from pondertree.learn.evaluation import read_metrics

#: Losses of training, as metrics name them, and their labels.
LOSSES = {
    "policy_loss": "policy",
    "value_loss": "value",
    "reward_loss": "reward",
    "consistency_loss": "consistency",
}
#: Newest games used for the calibration plot, and its buckets.
CALIBRATED_GAMES = 2000
BUCKETS = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """The data of a report."""

    rounds: list[dict[str, Any]]
    """Lines of rounds."""
    evaluations: list[dict[str, Any]]
    """Lines of evaluations."""
    models: list[dict[str, Any]]
    """Lines with the prediction errors of a learned model."""
    calibration: list[tuple[float, float, int]]
    """(mean root value, mean result for the player to move, positions) of each non-empty bucket."""
    config: str
    """The resolved configuration as TOML."""
    actors: dict[str, dict[str, float]] = field(default_factory=dict)
    """The last measurements of the self-play actors in other processes."""

    @property
    def last(self) -> dict[str, Any]:
        """The last line of a round."""
        return self.rounds[-1] if self.rounds else {}


def read_summary(folder: Path) -> Summary:
    """Reads the summary of a run folder."""
    lines = read_metrics(folder / "metrics.jsonl")
    config = folder / "config.toml"
    return Summary(
        [line for line in lines if line["kind"] == "round"],
        [line for line in lines if line["kind"] == "evaluation"],
        [line for line in lines if line["kind"] == "model"],
        calibration(folder / "games"),
        config.read_text(encoding="utf-8", errors="replace") if config.exists() else "",
        next((line["actors"] for line in reversed(lines) if line["kind"] == "actors"), {}),
    )


def calibration(folder: Path) -> list[tuple[float, float, int]]:
    """Computes the calibration of root values against results, on the newest games."""
    values, results = [], []
    games = 0
    for shard in reversed(list_shards(folder)):
        if games >= CALIBRATED_GAMES:
            break
        for game in read_shard(shard):
            games += 1
            if len(game.rewards):
                continue  # root values predict future rewards, results are the sum of all
            # Assumes alternating players: value and result change sign with the player, and passes matter little.
            players = (len(game.opening) + np.arange(len(game.moves))) % len(game.returns)
            values.append(game.values)
            results.append(game.returns[players])
    if not values:
        return []
    value, result = np.concatenate(values), np.concatenate(results)
    bucket = np.clip(((value + 1.0) / 2.0 * BUCKETS).astype(np.int64), 0, BUCKETS - 1)
    return [
        (float(value[bucket == number].mean()), float(result[bucket == number].mean()), int((bucket == number).sum()))
        for number in range(BUCKETS)
        if (bucket == number).any()
    ]
