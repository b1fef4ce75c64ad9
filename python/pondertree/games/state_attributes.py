"""The attributes of states written in Python, in comparable form, and their random generators."""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: States may be containers, with or without attributes: a `DictState`, a named tuple.
CONTAINERS = (dict, list, tuple, deque)
#: Longer lists and dicts are not searched for random generators.
MAX_CONTAINER_LENGTH = 16
#: A generator was drawn from if its next words are among this many next words of the original.
MAX_WORDS = 2000
#: This many equal consecutive words are no coincidence.
WORDS_COMPARED = 4


def attribute_names(state: Any) -> Iterator[str]:
    """Yields the names of attributes in `__dict__` and `__slots__`."""
    yield from getattr(state, "__dict__", {})
    for kind in type(state).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def attributes(state: Any) -> dict[str, Any]:
    """Returns a comparable copy of the attributes of a state."""
    kind = type(state)
    return {name: frozen(value, kind) for name, value in parts(state) if not name.startswith("__")}


def frozen(value: Any, kind: type, depth: int = 0) -> Any:
    """Returns a comparable copy of a part of a state of class `kind`."""
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        return value
    if isinstance(value, float):
        return repr(value)  # NaN is not equal to itself
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
    if _is_generator(value) or getattr(type(value), "is_shared_by_states", False):
        return id(value)  # what was drawn from a generator is compared by `drawn_from`
    # Other states (such as the previous one) are not followed: a state would grow with its history.
    if depth < 8 and not isinstance(value, (kind, type)):
        if isinstance(value, (list, tuple, deque)):
            return [frozen(entry, kind, depth + 1) for entry in value]
        if isinstance(value, (set, frozenset)):
            return frozenset(value)
        if isinstance(value, dict):
            return {key: frozen(entry, kind, depth + 1) for key, entry in value.items()}
        if isinstance(value, bytearray):
            return bytes(value)
        if not callable(value):
            names = [name for name in attribute_names(value) if not name.startswith("__")]
            return id(value), {name: frozen(getattr(value, name, None), kind, depth + 1) for name in names}
    return id(value)


def is_same(before: Any, after: Any) -> bool:
    """Whether an attribute is unchanged. None or missing may have been filled in: caches are no mutation."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(is_same(entry, after.get(key)) for key, entry in before.items())
    return bool(before == after)


def hold_the_same(one: Any, other: Any, depth: int = 0) -> bool:
    """Whether two objects of one class hold equal values, to depth 8. Shared parts are equal."""
    try:
        if one.__dict__ == other.__dict__ and not hasattr(one, "__slots__") and not isinstance(one, CONTAINERS):
            return True
    except Exception:  # no `__dict__`, or arrays in it: the slower comparison follows
        pass
    held, others = dict(parts(one)), dict(parts(other))
    return held.keys() == others.keys() and all(_equal(held[name], others[name], depth) for name in held)


def _equal(one: Any, other: Any, depth: int) -> bool:
    if one is other or depth >= 8:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple, deque)):
        return len(one) == len(other) and all(_equal(a, b, depth + 1) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(entry, other[key], depth + 1) for key, entry in one.items())
    if isinstance(one, np.ndarray):
        return bool(frozen(one, type) == frozen(other, type))
    if isinstance(one, (float, np.generic, Number)):
        return repr(one) == repr(other)  # NaN is not equal to itself
    if isinstance(one, (int, str, bytes, bytearray, set, frozenset)):
        try:
            return bool(one == other)
        except Exception:  # entries that cannot be compared
            return True
    return callable(one) or hold_the_same(one, other, depth + 1)


def generators(state: Any) -> dict[str, Any]:
    """Returns the random generators of a state by place: in its attributes, or one level below."""
    found = {}
    for name, value in parts(state):
        if _is_generator(value):
            found[name] = value
        elif not isinstance(value, (type, type(state))):
            found.update({f"{name}{inner}": part for inner, part in _entries(value) if _is_generator(part)})
    return found


def generator_states(state: Any) -> dict[str, Any]:
    """Returns (internal state, next words) of each random generator of a state."""
    return {place: (_internal_state(part), _next_words(part)) for place, part in generators(state).items()}


def drawn_from(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Returns the places of generators in `after` that were drawn from since `before`; others may be new."""
    return [place for place, now in after.items() if place in before and _is_ahead(before[place], now)]


def _is_ahead(before: tuple[Any, NDArray[Any] | None], after: tuple[Any, NDArray[Any] | None]) -> bool:
    """Whether drawing from a generator leads from the first state to the second."""
    (state, words), (now, later) = before, after
    if state == now or words is None or later is None or words.dtype != later.dtype:
        return False
    starts = np.flatnonzero(words[:MAX_WORDS] == later[0])
    return any(np.array_equal(words[start : start + WORDS_COMPARED], later[:WORDS_COMPARED]) for start in starts)


def _next_words(generator: Any) -> NDArray[Any] | None:
    """Returns the next words of a copy of a generator, in its own word size; None if it cannot be copied."""
    count = MAX_WORDS + WORDS_COMPARED
    try:
        if isinstance(generator, random.Random):
            copied = random.Random(0)
            copied.setstate(generator.getstate())
            return np.frombuffer(copied.getrandbits(32 * count).to_bytes(4 * count, "little"), dtype="<u4")
        is_new = isinstance(generator, np.random.Generator)
        source: Any = generator.bit_generator if is_new else generator._bit_generator
        return np.asarray(copy.deepcopy(source).random_raw(count))
    except Exception:
        return None


def _is_generator(value: Any) -> bool:
    # SystemRandom has no state that a copy could repeat.
    if isinstance(value, random.SystemRandom):
        return False
    return isinstance(value, (random.Random, np.random.Generator, np.random.RandomState))


def _internal_state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return frozen(generator.bit_generator.state, type)
    return frozen(generator.get_state(legacy=False), type)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the attributes of an object; of a container also its entries, as `[0]` or `['key']`."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items())
    elif isinstance(value, CONTAINERS):
        yield from ((f"[{index}]", entry) for index, entry in enumerate(value))
    for name in attribute_names(value):
        if name not in ("__dict__", "__weakref__"):
            yield name, getattr(value, name, None)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the parts of a container or an object, with the suffix that accesses them."""
    if isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", entry) for index, entry in enumerate(value[:MAX_CONTAINER_LENGTH]))
    elif isinstance(value, dict):
        if len(value) <= MAX_CONTAINER_LENGTH:
            yield from ((f"[{key!r}]", entry) for key, entry in value.items())
    else:
        yield from ((f".{name}", part) for name, part in parts(value))
