"""The metrics file, one JSON line per round and evaluation in step with checkpoints."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pondertree.errors import StorageError
from pondertree.files import append_lines, reading, replace_file, write_all
from pondertree.optional import require

#: Fields of an actor that are no quantities.
IDENTITIES = ("pid", "lease")


class Metrics:
    """Appends to the metrics file, and to TensorBoard on request."""

    def __init__(self, path: Path, last_round: int | None = None, *, tensorboard: bool = False) -> None:
        """Continues after `last_round`, dropping lines of later rounds, which will be repeated; None starts anew."""
        if tensorboard:
            require("tensorboard", "tensorboard", "logging to TensorBoard")
        self.path = path
        lines = [] if last_round is None else [line for line in read_metrics(path) if line["round"] <= last_round]
        try:
            replace_file(path, b"".join(_line(line) for line in lines))
            self._file = append_lines(path)
        except OSError as error:
            raise StorageError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        self.lines: list[dict[str, Any]] = lines
        """All lines so far."""
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(path.parent / "tensorboard"))

    def add(self, line: dict[str, Any]) -> None:
        """Appends a line."""
        self.lines.append(line)
        try:
            write_all(self._file, _line(line))
        except OSError as error:
            raise StorageError(f"{str(self.path)!r} cannot be written: {error.strerror}") from error
        if self._board is not None:
            numbers = dict(line)
            for actor, measured in line.get("actors", {}).items():
                numbers |= {f"{actor}/{name}": value for name, value in measured.items() if name not in IDENTITIES}
            for name, value in numbers.items():
                if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                    self._board.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        """Closes the files."""
        with suppress(OSError):
            self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Reads the lines of a metrics file, leaving out truncated and corrupt ones."""
    with reading(path, "a file of metrics", StorageError) as file:
        content = file.read_bytes() if file.exists() else b""
    lines = []
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if _is_valid(line):
            lines.append(line)
    return lines


def _is_valid(line: Any) -> bool:
    """Whether a line has the fields of its kind, all of valid types."""
    if not isinstance(line, dict) or not all(type(line.get(name)) is int for name in ("round", "step")):
        return False
    validators = _VALIDATORS.get(line.get("kind", "")) if isinstance(line.get("kind"), str) else None
    if validators is None:
        return False
    rest = [value for name, value in line.items() if name not in validators and name != "kind"]
    return all(is_valid(line.get(name, _DEFAULTS.get(name))) for name, is_valid in validators.items()) and all(
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
    """Whether these are counts of pairs of games by points: 0, 1/2, 1, 3/2, 2."""
    return (
        isinstance(values, list) and len(values) == 5 and all(type(one) is int and 0 <= one < 1 << 31 for one in values)
    )


def _each(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, dict) and all(map(is_valid, values.values()))


#: Defaults of fields that older lines lack.
_DEFAULTS: dict[str, Any] = {"references": {}}
#: Validators of the non-numeric fields, by kind of line.
_VALIDATORS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "round": {},
    "evaluation": {
        "name": lambda name: isinstance(name, str) and re.fullmatch(r"step [0-9]{1,18}", name) is not None,
        "matches": _each(_are_counts),
        "scores": _each(_is_number),
        "references": _each(_each(_are_counts)),
        "elapsed": _is_number,
    },
    "model": {"by_depth": _each(_are_numbers)},
    "actors": {"actors": _each(_each(_is_number))},
}


def _line(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
