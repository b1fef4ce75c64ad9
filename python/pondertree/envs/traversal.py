"""The objects that an environment consists of: what is copied with it, and where its random generators are found."""

from __future__ import annotations

import decimal
import fractions
import functools
import re
import struct
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from pondertree.envs.generators import NoGenerator, is_generator

#: Classes of immutable values, which copies share.
ATOMS: Final = frozenset(
    {
        int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice,
        types.ModuleType, types.CodeType, types.MappingProxyType, types.GetSetDescriptorType,
        np.dtype, np.ufunc, re.Pattern, decimal.Decimal, fractions.Fraction,
    }
)  # fmt: skip
#: Classes whose instances copies share: the record of an episode.
SHARED_CLASSES: Final = frozenset({("pondertree.envs.recording", "Recorder")})
#: The flag of classes that are not static variables of a compiled module (CPython's Py_TPFLAGS_HEAPTYPE).
_HEAP_TYPE: Final = 1 << 9
_POINTER: Final = struct.calcsize("P")


class GeneratorList(list[Any]):
    """The random generators of a copied environment, which it holds itself: several copies may live at once."""

    __slots__ = ()


def is_python_class(kind: type) -> bool:
    """Whether instances consist of attributes alone: they have room for nothing that compiled code would store."""
    fields = len(list(slots_of(kind))) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return bool(kind.__flags__ & _HEAP_TYPE) and kind.__basicsize__ == object.__basicsize__ + _POINTER * fields


def module_of(kind: type) -> str:
    """Returns the name of the module of a class; some compiled ones have none."""
    return getattr(kind, "__module__", "") or ""


def slots_of(kind: type) -> Iterator[str]:
    """Yields the names of the slots of a class, private ones as they are stored."""
    for each in kind.__mro__:
        names = each.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                yield (
                    f"_{each.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
                )


def reached(environment: Any) -> Iterator[Any]:
    """Yields the objects that are reached through attributes, containers and closures, each once."""
    seen: dict[int, Any] = {}
    waiting = deque([environment])
    while waiting:
        value = waiting.popleft()
        kind = type(value)
        if kind in ATOMS or id(value) in seen or isinstance(value, (type, np.generic, NoGenerator, GeneratorList)):
            continue
        if (module_of(kind), kind.__qualname__) in SHARED_CLASSES:
            continue
        seen[id(value)] = value
        yield value
        if is_generator(value):
            if isinstance(value, (np.random.Generator, np.random.RandomState)):
                bits = value.bit_generator if isinstance(value, np.random.Generator) else value._bit_generator
                seen[id(bits)] = bits  # it would be seeded twice
            continue
        waiting.extend(_held(value))


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values(), *getattr(value, "__dict__", {}).values()]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return [*value, *getattr(value, "__dict__", {}).values()]
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.dtype.hasobject else ()
    if isinstance(value, types.FunctionType):
        return [*map(contents, value.__closure__ or ()), *(value.__dict__.values() if value.__closure__ else ())]
    if isinstance(value, types.CellType):
        return (contents(value),)
    if isinstance(value, weakref.ref):
        return (value(),)
    if isinstance(value, types.MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, types.BuiltinMethodType):
        return () if isinstance(value.__self__, types.ModuleType) else (value.__self__,)
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    held = list(getattr(value, "__dict__", {}).values())
    held += [getattr(value, name, None) for name in slots_of(type(value))]
    return held


def contents(cell: Any) -> Any:
    """Returns what a cell of a closure holds; None if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
