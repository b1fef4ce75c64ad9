"""What a training tells of itself: a line of JSON for each round and each evaluation, kept in step with checkpoints."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.errors import StorageError
from pondertree.files import reading, replace_file
from pondertree.learn.data.shards import list_shards, read_shard
from pondertree.optional import require


class Metrics:
    """The file of metrics, and TensorBoard where it is installed and wanted."""

    def __init__(self, path: Path, last_round: int | None = None, *, tensorboard: bool = False) -> None:
        """Goes on after `last_round`: lines of later rounds, which are played again, are dropped; None begins anew."""
        if tensorboard:
            require("tensorboard", "tensorboard", "watching by TensorBoard")
        self.path = path
        kept = [] if last_round is None else [line for line in read_metrics(path) if line["round"] <= last_round]
        try:
            replace_file(path, b"".join(_line(line) for line in kept))
            self._file = open(path, "ab")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise StorageError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        self.lines: list[dict[str, Any]] = kept
        """All lines so far."""
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(path.parent / "tensorboard"))

    def add(self, line: dict[str, Any]) -> None:
        """One more line."""
        self.lines.append(line)
        try:
            self._file.write(_line(line))
            self._file.flush()
        except OSError as error:
            raise StorageError(f"{str(self.path)!r} cannot be written: {error.strerror}") from error
        if self._board is not None:
            for name, value in line.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                    self._board.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        """Lets go of the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of metrics; one that was cut off by a kill, or is damaged, is left out."""
    with reading(path, "a file of metrics", StorageError) as file:
        content = file.read_bytes() if file.exists() else b""
    lines = []
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if _is_whole(line):
            lines.append(line)
    return lines


def _is_whole(line: Any) -> bool:
    """Whether a line has what every line of its kind has, and nothing that cannot be rated, drawn or reported."""
    if not isinstance(line, dict) or not all(type(line.get(name)) is int for name in ("round", "step")):
        return False
    apart = _APART.get(line.get("kind", "")) if isinstance(line.get("kind"), str) else None
    if apart is None:
        return False
    rest = [value for name, value in line.items() if name not in apart and name != "kind"]
    return all(is_right(line.get(name, _LATER.get(name))) for name, is_right in apart.items()) and all(
        value is None or _is_number(value) for value in rest
    )


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(value is None or _is_number(value) for value in values)


def _are_counts(values: Any) -> bool:
    """Pairs of games that brought 0, 1/2, 1, 3/2 and 2 points."""
    return (
        isinstance(values, list) and len(values) == 5 and all(type(one) is int and 0 <= one < 1 << 31 for one in values)
    )


def _each(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, dict) and all(map(is_right, values.values()))


#: What lines that were written by earlier versions lack, and what stands for it.
_LATER: dict[str, Any] = {"references": {}}
#: The values of each kind of line that are no numbers, and what they must be.
_APART: dict[str, dict[str, Callable[[Any], bool]]] = {
    "round": {},
    "evaluation": {
        "name": lambda name: isinstance(name, str) and re.fullmatch(r"step [0-9]{1,18}", name) is not None,
        "matches": _each(_are_counts),
        "scores": _each(_is_number),
        "references": _each(_each(_are_counts)),
        "elapsed": _is_number,
    },
    "model": {"by_depth": _each(_are_numbers)},
}


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


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
