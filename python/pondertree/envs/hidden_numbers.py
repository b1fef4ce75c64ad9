"""Numbers in the attributes of an environment that may be the state of a hand-written random generator.

What cannot be told from the rules of an environment stays undecided: a constant key whose effect starts only where the
visible start differs too, and small or floating-point states that depend on the actions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from pondertree.envs.generators import is_generator
from pondertree.envs.traversal import GeneratorList, slots_of

Path = tuple[tuple[str, Any], ...]
"""The way to a number: ("attribute", name) or ("entry", index or key) each."""

#: Integers from here on are no counts or places, as a rule.
LARGE: Final = 1 << 12
#: Numbers that are compared, at most.
MAX_NUMBERS: Final = 64
_MAX_DEPTH: Final = 8


def seed_dependent(one: Any, other: Any) -> list[tuple[Path, Any]]:
    """Returns the integers and bytes that differ between two environments, with the path and the value in `other`."""
    found: list[tuple[Path, Any]] = []
    for path, value, replacement in _differing(one, other, (), set()):
        if len(found) == MAX_NUMBERS:
            break
        if type(value) is type(replacement):
            found.append((path, replacement))
    return found


def _differing(one: Any, other: Any, path: Path, seen: set[int]) -> Iterator[tuple[Path, Any, Any]]:
    if len(path) > _MAX_DEPTH or id(one) in seen or type(one) is not type(other) or isinstance(one, GeneratorList):
        return
    if _is_number(one):
        if _integer(one) != _integer(other):
            yield path, one, other
        return
    if isinstance(one, (str, float, np.ndarray, np.generic, type)) or one is None or is_generator(one):
        return
    seen.add(id(one))
    if isinstance(one, dict):
        for key in one:
            if key in other:
                yield from _differing(one[key], other[key], (*path, ("entry", key)), seen)
    elif isinstance(one, list):
        for index, (first, second) in enumerate(zip(one, other, strict=False)):
            yield from _differing(first, second, (*path, ("entry", index)), seen)
    for name in [*getattr(one, "__dict__", {}), *slots_of(type(one))]:
        first, second = getattr(one, name, None), getattr(other, name, None)
        yield from _differing(first, second, (*path, ("attribute", name)), seen)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, bytes, np.integer)) or _is_integer_array(value)


def _is_integer_array(value: Any) -> bool:
    """Whether a value is an array of integers of NumPy or another library, such as a key of JAX."""
    dtype = getattr(value, "dtype", None)
    try:
        return isinstance(dtype, np.dtype) and dtype.kind in "iu" and 0 < value.size <= 4096
    except Exception:
        return False


def _integer(value: Any) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "little")
    if _is_integer_array(value):
        return int.from_bytes(np.asarray(value).tobytes(), "little")
    return int(value)


def is_large(value: Any) -> bool:
    """Whether a number is larger than counts and places are."""
    if _is_integer_array(value):
        return bool(np.any(np.abs(np.asarray(value).astype(np.float64)) >= LARGE))
    return abs(_integer(value)) >= LARGE


def is_irregular(values: list[Any]) -> bool:
    """Whether numbers change in every step, by different amounts, and are large."""
    numbers = [_integer(each) for each in values]
    changes = [second - first for first, second in itertools.pairwise(numbers)]
    return 0 not in changes and len(set(changes)) == len(changes) and any(map(is_large, values))


def value_at(env: Any, path: Path) -> int:
    """Returns the number under a path; 0 if there is none any more."""
    try:
        for kind, name in path:
            env = getattr(env, name) if kind == "attribute" else env[name]
    except (AttributeError, KeyError, IndexError, TypeError):
        return 0
    return _integer(env) if _is_number(env) else 0


def assign(env: Any, path: Path, value: Any) -> None:
    """Sets the number under a path."""
    for kind, name in path[:-1]:
        env = getattr(env, name) if kind == "attribute" else env[name]
    kind, name = path[-1]
    if isinstance(value, np.ndarray):
        value = value.copy()
    if kind == "entry":
        env[name] = value
    elif name in getattr(env, "__dict__", {}):
        env.__dict__[name] = value
    else:
        object.__setattr__(env, name, value)


def shown_path(path: Path) -> str:
    """Returns a path as text: `.rng.state[0]`."""
    return "".join(f".{name}" if kind == "attribute" else f"[{name!r}]" for kind, name in path).lstrip(".")
