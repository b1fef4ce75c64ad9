"""What a state written in Python holds: its attributes in a form that can be compared, and random generators."""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A state may be one of these, with or without attributes: a `DictState`, a named tuple.
CONTAINERS = (dict, list, tuple, deque)
#: Longer lists and dicts are not searched for random generators.
LONGEST_CONTAINER = 16
#: A generator was drawn from if its next words are found among so many of the one it was copied from.
MOST_WORDS = 2000
#: So many words in a row do not agree by chance.
WORDS_COMPARED = 4


def attribute_names(state: Any) -> Iterator[str]:
    """The names of what a state holds in `__dict__` and `__slots__`."""
    yield from getattr(state, "__dict__", {})
    for kind in type(state).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def attributes(state: Any) -> dict[str, Any]:
    """A copy of what a state holds, in a form that can be compared."""
    kind = type(state)
    return {name: frozen(value, kind) for name, value in parts(state) if not name.startswith("__")}


def frozen(value: Any, kind: type, depth: int = 0) -> Any:
    """A copy of a part of a state of class `kind`, in a form that can be compared."""
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        return value
    if isinstance(value, float):
        return repr(value)  # NaN is not equal to itself
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
    if _is_generator(value):
        return id(value)  # what was drawn from it is compared by `drawn_from`
    # Other states (such as the one before) have their own turn; else a state would be as long as its history.
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
    """Whether an attribute is as it was. What was None or not there may have been filled in: a cache is no change."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(is_same(entry, after.get(key)) for key, entry in before.items())
    return bool(before == after)


def hold_the_same(one: Any, other: Any, depth: int = 0) -> bool:
    """Whether two objects of one class hold equal values, at any depth up to 8. Parts that both share are equal."""
    try:
        if one.__dict__ == other.__dict__ and not hasattr(one, "__slots__") and not isinstance(one, CONTAINERS):
            return True
    except Exception:  # no `__dict__`, or arrays in it: what follows takes more time
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
    """The random generators that a state carries, by their places: in its attributes, or in one of these."""
    found = {}
    for name, value in parts(state):
        if _is_generator(value):
            found[name] = value
        elif not isinstance(value, (type, type(state))):
            found.update({f"{name}{inner}": part for inner, part in _entries(value) if _is_generator(part)})
    return found


def generator_states(state: Any) -> dict[str, Any]:
    """For each random generator that a state carries: its internal state, and the words that it gives next."""
    return {place: (_internal_state(part), _next_words(part)) for place, part in generators(state).items()}


def drawn_from(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The places of generators in `after` that are those of `before`, drawn from; others may be new ones."""
    return [place for place, now in after.items() if place in before and _is_ahead(before[place], now)]


def _is_ahead(before: tuple[Any, NDArray[Any] | None], after: tuple[Any, NDArray[Any] | None]) -> bool:
    """Whether drawing from a generator leads from one of its states to another."""
    (state, words), (now, later) = before, after
    if state == now or words is None or later is None or words.dtype != later.dtype:
        return False
    starts = np.flatnonzero(words[:MOST_WORDS] == later[0])
    return any(np.array_equal(words[start : start + WORDS_COMPARED], later[:WORDS_COMPARED]) for start in starts)


def _next_words(generator: Any) -> NDArray[Any] | None:
    """What a copy of a generator draws next, in words of its own size; None if it cannot be copied."""
    count = MOST_WORDS + WORDS_COMPARED
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
    # One that asks the operating system has no internal state, and no copy of it repeats its numbers.
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
    """The attributes of an object; of a container also its entries, as `[0]` or `['key']`."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items())
    elif isinstance(value, CONTAINERS):
        yield from ((f"[{index}]", entry) for index, entry in enumerate(value))
    for name in attribute_names(value):
        if name not in ("__dict__", "__weakref__"):
            yield name, getattr(value, name, None)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a container or an object, each with what is written behind its name to get it."""
    if isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", entry) for index, entry in enumerate(value[:LONGEST_CONTAINER]))
    elif isinstance(value, dict):
        if len(value) <= LONGEST_CONTAINER:
            yield from ((f"[{key!r}]", entry) for key, entry in value.items())
    else:
        yield from ((f".{name}", part) for name, part in parts(value))
