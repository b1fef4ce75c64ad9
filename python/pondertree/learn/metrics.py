"""What a training tells of itself: a line of JSON for each round and each evaluation, kept in step with checkpoints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pondertree.errors import StorageError
from pondertree.files import replace_file


class Metrics:
    """The file of metrics, and TensorBoard where it is installed and wanted."""

    def __init__(self, path: Path, last_round: int | None = None, *, tensorboard: bool = False) -> None:
        """Goes on after `last_round`: lines of later rounds, which are played again, are dropped; None begins anew."""
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
            from pondertree.extras import require

            require("tensorboard", "tensorboard", "watching by TensorBoard")
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
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    lines = []
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if _is_whole(line):
            lines.append(line)
    return lines


def _is_whole(line: Any) -> bool:
    """Whether a line has what every line has."""
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
        return False
    return all(type(line.get(name)) is int for name in ("round", "step"))


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
