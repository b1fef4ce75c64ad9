"""Checks of arguments: each returns the validated value or raises an error that names the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from pondertree._core import usable_cpus
from pondertree.errors import InvalidArgumentError

T = TypeVar("T")


def shown(value: Any, most: int = 200) -> str:
    """Returns the `repr` of a value for a message, cut to `most` characters; its class if `repr` raises."""
    try:
        text = repr(value)
    except Exception:  # an int with more digits than Python prints, an object whose own repr raises
        return f"<{type(value).__name__}>"
    return brief(text, most)


def brief(text: str, most: int = 300) -> str:
    """Returns a text cut to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def whole_number(value: Any, name: str, *, least: int = 0, most: int = (1 << 64) - 1) -> int:
    """Returns an int (also of NumPy) from `least` to `most`."""
    try:
        if isinstance(value, bool):
            raise TypeError("a bool is not a whole number")
        number = operator.index(value)
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"{name} must be a whole number, not {shown(value)}") from error
    if number < least:
        raise InvalidArgumentError(f"{name} must be at least {least}, not {shown(number)}")
    if number > most:
        raise InvalidArgumentError(f"{name} must be at most {most}, not {shown(number)}")
    return number


def count(value: Any, name: str) -> int:
    """Returns a whole number of at least 1."""
    return whole_number(value, name, least=1, most=(1 << 32) - 1)


def threads(value: Any, name: str = "threads") -> int:
    """Returns a number of threads from 1 to 1024; `useful_threads` limits those that are started."""
    return whole_number(value, name, least=1, most=1024)


def useful_threads(requested: int) -> int:
    """Returns the number of threads to start: at most one per CPU."""
    # Reading the affinity mask and the CPU quota takes longer than a short search.
    return min(requested, usable_cpus()) if requested > 1 else requested


def number(value: Any, name: str, *, least: float = -math.inf, most: float = math.inf, finite: bool = True) -> float:
    """Returns a number from `least` to `most`; with `finite=False` also an infinite one or NaN."""
    try:
        if isinstance(value, (bool, np.bool_, str, bytes)):
            raise TypeError(f"a {type(value).__name__} is not a number")
        result = float(value)
    except MemoryError:
        raise
    except OverflowError as error:
        raise InvalidArgumentError(f"{name} must be a number that a float can hold") from error
    except Exception as error:
        raise InvalidArgumentError(f"{name} must be a number, not {shown(value)}") from error
    if not finite:
        return result
    if not math.isfinite(result):
        raise InvalidArgumentError(f"{name} must be a finite number, not {result}")
    if not least <= result <= most:
        span = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise InvalidArgumentError(f"{name} must be {span}, not {result}")
    return result


def positive_number(value: Any, name: str) -> float:
    """Returns a finite number above 0."""
    result = number(value, name)
    if result <= 0:
        raise InvalidArgumentError(f"{name} must be above 0, not {result}")
    return result


def seconds(value: Any, name: str) -> float:
    """Returns a duration above 0 in seconds, from a number or a `timedelta`."""
    return positive_number(value.total_seconds() if isinstance(value, timedelta) else value, name)


def flag(value: Any, name: str) -> bool:
    """Returns True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgumentError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def optional_flag(value: Any, name: str) -> bool | None:
    """Returns None, True or False."""
    return None if value is None else flag(value, name)


def is_one_of(value: Any, names: Collection[Any]) -> bool:
    """Whether `value` is one of some names; False for objects without a boolean comparison, such as arrays."""
    return (value is None or isinstance(value, str)) and value in names


def one_of(value: Any, name: str, values: Collection[Any], listed: str) -> Any:
    """Returns one of some names; `listed` enumerates them in the message."""
    if not is_one_of(value, values):
        raise InvalidArgumentError(f"{name} must be {listed}, not {shown(value)}")
    return value


def text(value: Any, name: str) -> str:
    """Returns a str."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be text, not {shown(value)}")
    return value


def instance(value: Any, kind: type[T], name: str) -> T:
    """Returns an instance of a class."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InvalidArgumentError(f"{name} must be {article} {kind.__name__}, not {shown(value)}")
    return value


def temperature(value: Any, name: str = "temperature") -> float:
    """Returns a finite number of at least 0."""
    return number(value, name, least=0.0)


def optional_temperature(value: Any, name: str = "temperature") -> float | None:
    """Returns None, or a finite number of at least 0."""
    return None if value is None else temperature(value, name)


def is_listed(value: Any) -> bool:
    """Whether `value` is a list of entries (a list, a tuple, an array with an axis) rather than a single entry."""
    if value is None or isinstance(value, (int, float)):
        return False  # the usual entries: a check of an abstract class is slow
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def no_iterator(value: Any, name: str, several: str) -> None:
    """Raises `InvalidArgumentError` for an iterator, which has no length and can be read only once."""
    if isinstance(value, Iterator) and not hasattr(value, "legal_actions"):
        raise InvalidArgumentError(f"{name} is a {type(value).__name__}: give a list for several {several}")


def check_fields(part: Any, section: str = "") -> None:
    """Applies the checks that the fields of a dataclass declare (`config.option`); errors name `section` + field."""
    for each in fields(part):
        if "check" in each.metadata:
            value = each.metadata["check"](getattr(part, each.name), section + each.name)
            object.__setattr__(part, each.name, value)


def function(value: Any, name: str, kind: str = "function") -> None:
    """Raises `InvalidArgumentError` unless the value is callable; `kind` describes it in the message."""
    if not callable(value):
        raise InvalidArgumentError(f"{name} must be a {kind}, not {shown(value)}")


def per_row(value: Any, rows: int, name: str, check: Callable[[Any, str], Any] | None = None) -> list[Any]:
    """Returns a value for each of `rows`, from one for all or a sequence; `check` gets the name of the row."""
    if is_listed(value):
        if len(value) != rows:
            raise InvalidArgumentError(f"{name} has {len(value)} entries for {rows} states: give one, or one per state")
        values = list(value)
        return values if check is None else [check(entry, f"{name}[{row}]") for row, entry in enumerate(values)]
    return [value if check is None else check(value, name)] * rows
