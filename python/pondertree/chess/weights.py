"""Validation and files of the classical evaluation's weights; errors name the field.

A file is JSON: `{"format": "pondertree-pesto", "version": 1, "scale": ..., "weights": {field: numbers}}` with exactly
the fields of `Pesto`; pairs are [middlegame, endgame], tables 64 numbers from a8 to h1, from White's side.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pondertree import validation
from pondertree._core import PestoWeights
from pondertree.errors import InvalidArgumentError
from pondertree.files import current_format, reading, unique_names, write_bytes
from pondertree.validation import shown

FORMAT = "pondertree-pesto"
VERSION = 1

#: Largest absolute value of a weight (as in the engine).
MAX_WEIGHT = 20_000

#: All fields in order with their default weights: middlegame before endgame.
DEFAULTS: dict[str, list[int]] = dict(PestoWeights.defaults())
DEFAULT_SCALE = PestoWeights.default_scale()

#: Fields with at least this many numbers are two lists, middlegame and endgame.
_TWO_LISTS = 16


def nested(name: str, flat: Sequence[int]) -> Any:
    """Returns the numbers of a field in its shape: a pair, five phase weights, or two tuples."""
    if len(DEFAULTS[name]) < _TWO_LISTS:
        return tuple(flat)
    half = len(flat) // 2
    return tuple(flat[:half]), tuple(flat[half:])


#: The default weights of each field, in its shape.
DEFAULT_FIELDS: dict[str, Any] = {name: nested(name, numbers) for name, numbers in DEFAULTS.items()}


def check_field(name: str, value: Any) -> Any:
    """Returns the validated numbers of a field in its shape."""
    count = len(DEFAULTS[name])
    if count < _TWO_LISTS:
        return tuple(_numbers(value, name, count))
    halves = _items(value, name, 2, "lists, the middlegame's and the endgame's")
    return tuple(tuple(_numbers(half, f"{name}[{place}]", count // 2)) for place, half in enumerate(halves))


def flat(name: str, value: Any) -> list[int]:
    """Returns the numbers of a checked field as a flat list."""
    return list(value) if len(DEFAULTS[name]) < _TWO_LISTS else [*value[0], *value[1]]


def _items(value: Any, name: str, count: int, what: str) -> list[Any]:
    listed = value.ndim > 0 if isinstance(value, np.ndarray) else isinstance(value, Sequence)
    if not listed or isinstance(value, (str, bytes)):
        raise InvalidArgumentError(f"{name} must be {count} {what}, not {shown(value)}")
    if len(value) != count:
        raise InvalidArgumentError(f"{name} must be {count} {what}: it has {len(value)}")
    return list(value)


def _numbers(value: Any, name: str, count: int) -> list[int]:
    return [_whole(number, f"{name}[{place}]") for place, number in enumerate(_items(value, name, count, "numbers"))]


def _whole(value: Any, name: str) -> int:
    """Validates an integer; integral floats are accepted."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and float(value).is_integer():
        value = int(value)
    return validation.whole_number(value, name, least=-MAX_WEIGHT, most=MAX_WEIGHT)


# --- files ------------------------------------------------------------------------------------------------------------


def write_file(path: str | os.PathLike[str], scale: float, weights: Mapping[str, Any]) -> None:
    """Writes the weights atomically, tables as board diagrams."""
    lines = [
        f'  "format": {json.dumps(FORMAT)},',
        f'  "version": {VERSION},',
        f'  "scale": {scale!r},',
        '  "weights": {',
    ]
    fields = [f'    "{name}": {_text(weights[name])}' for name in DEFAULTS]
    write_bytes(path, "\n".join(["{", *lines, ",\n".join(fields), "  }", "}", ""]).encode(), "path")


def _text(numbers: Any) -> str:
    if isinstance(numbers[0], int):
        return json.dumps(numbers)
    if len(numbers[0]) <= 8:
        return "[" + ", ".join(json.dumps(half) for half in numbers) + "]"
    halves = []
    for half in numbers:
        rows = [", ".join(f"{number:4}" for number in half[start : start + 8]) for start in range(0, len(half), 8)]
        halves.append("[\n      " + ",\n      ".join(rows) + "\n    ]")
    return "[" + ", ".join(halves) + "]"


def read_file(path: str | os.PathLike[str]) -> tuple[float, dict[str, Any]]:
    """Returns (scale, weights) of a file."""
    with reading(path, "a file of weights") as file:
        return _read(json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=unique_names))


def _read(content: Any) -> tuple[float, dict[str, Any]]:
    _check_names(content, "the file", ["format", "version", "scale", "weights"])
    if current_format(content["format"]) != FORMAT:
        raise InvalidArgumentError(f"format must be {FORMAT!r}, not {shown(content['format'])}")
    if content["version"] != VERSION or isinstance(content["version"], bool):
        raise InvalidArgumentError(f"version must be {VERSION}, not {shown(content['version'])}")
    _check_names(content["weights"], "weights", list(DEFAULTS))
    weights = {name: check_field(name, content["weights"][name]) for name in DEFAULTS}
    return validation.positive_number(content["scale"], "scale"), weights


def _check_names(given: Any, what: str, expected: list[str]) -> None:
    if not isinstance(given, dict):
        raise InvalidArgumentError(f"{what} must be an object with {', '.join(expected[:4])}, ..., not {shown(given)}")
    missing = [name for name in expected if name not in given]
    unknown = [name for name in given if name not in expected]
    if missing:
        raise InvalidArgumentError(f"{what} has no {missing[0]}")
    if unknown:
        raise InvalidArgumentError(f"{what} has {unknown[0]!r}, which is unknown")
