"""What a training's folder tells of it: metrics, evaluations, how true its values are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.learn.metrics import read_metrics
from pondertree.learn.shards import list_shards, read_shard

#: Games that the calibration looks at, the newest ones, and its buckets.
CALIBRATED_GAMES = 2000
BUCKETS = 20


@dataclass(frozen=True, slots=True)
class Summary:
    """A training in numbers."""

    rounds: list[dict[str, Any]]
    """Lines of rounds."""
    evaluations: list[dict[str, Any]]
    """Lines of evaluations."""
    models: list[dict[str, Any]]
    """Lines on how good a learned model is."""
    calibration: list[tuple[float, float, int]]
    """(mean value at the root, mean result for the player to move, positions) of each bucket that has some."""
    config: str
    """The resolved configuration."""

    @property
    def last(self) -> dict[str, Any]:
        """The last round."""
        return self.rounds[-1] if self.rounds else {}


def read_summary(folder: Path) -> Summary:
    """Reads a training's folder."""
    lines = read_metrics(folder / "metrics.jsonl")
    config = folder / "config.toml"
    return Summary(
        [line for line in lines if line["kind"] == "round"],
        [line for line in lines if line["kind"] == "evaluation"],
        [line for line in lines if line["kind"] == "model"],
        calibration(folder / "games"),
        config.read_text(encoding="utf-8", errors="replace") if config.exists() else "",
    )


def calibration(folder: Path) -> list[tuple[float, float, int]]:
    """Values of searches against results, on the newest games."""
    values, results = [], []
    games = 0
    for shard in reversed(list_shards(folder)):
        if games >= CALIBRATED_GAMES:
            break
        for game in read_shard(shard):
            games += 1
            if len(game.rewards):
                continue  # values are of rewards to come, and results of all of them
            # Whose move it was need not be known: with two players a value and its result change sign together,
            # and players alternate but for passes, where the difference is small.
            turns = (len(game.opening) + np.arange(len(game.moves))) % len(game.returns)
            values.append(game.values)
            results.append(game.returns[turns])
    if not values:
        return []
    found, told = np.concatenate(values), np.concatenate(results)
    bucket = np.clip(((found + 1.0) / 2.0 * BUCKETS).astype(np.int64), 0, BUCKETS - 1)
    return [
        (float(found[bucket == number].mean()), float(told[bucket == number].mean()), int((bucket == number).sum()))
        for number in range(BUCKETS)
        if (bucket == number).any()
    ]
