"""The random generators of an environment: found, reseeded by counter, and restored.

Generators that belong to an environment are copied with it. Shared ones, such as `numpy.random` and those of classes
and modules, are set before a step and restored after it, if the environment draws from them.
"""

from __future__ import annotations

import random
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from pondertree.envs.copying import ATOMS, NoGenerator, is_generator
from pondertree.games.state_attributes import frozen
from pondertree.random import fold

#: Modules whose compiled classes hold no random generators but those of `is_generator`.
_KNOWN_MODULES = frozenset({"builtins", "collections", "functools", "itertools", "numpy", "re", "types", "weakref"})


def state_of(generator: Any) -> Any:
    """Returns the state of a generator, as `set_state` takes it."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return bits_of(generator).state


def set_state(generator: Any, state: Any) -> None:
    """Sets the state of a generator."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        bits_of(generator).state = state


def bits_of(generator: Any) -> Any:
    """Returns the bit generator of a NumPy generator."""
    return generator if isinstance(generator, np.random.BitGenerator) else generator.bit_generator


def reseed(generators: Iterable[Any], key: int) -> None:
    """Reseeds each generator with a number of its own, derived from a key of 64 bits."""
    for index, generator in enumerate(generators):
        seed = fold(key, index)
        if isinstance(generator, random.Random):
            generator.seed(seed)
        elif isinstance(generator, np.random.RandomState):
            generator.seed(seed & 0xFFFF_FFFF)
        else:
            bits = bits_of(generator)
            if type(bits) is np.random.PCG64:
                words = seed << 64 | fold(seed, 1)
                numbers = {"state": words, "inc": (fold(seed, 2) << 64 | fold(seed, 3)) | 1}
                bits.state = {"bit_generator": "PCG64", "state": numbers, "has_uint32": 0, "uinteger": 0}
            else:
                bits.state = type(bits)(seed).state


def fingerprint(generators: Iterable[Any]) -> list[Any]:
    """Returns comparable states of generators."""
    return [frozen(state_of(each), type) for each in generators]


def global_generators() -> list[Any]:
    """Returns the generators behind the functions of `random` and `numpy.random`."""
    return [random._inst, np.random.mtrand._rand]  # type: ignore[attr-defined]


def own_generators(environment: Any) -> list[Any]:
    """Returns the generators that are reached through attributes of the environment, in a fixed order."""
    return [each for each in _reached(environment) if is_generator(each)]


def shared_generators(environment: Any) -> list[Any]:
    """Returns the global generators, and those of the classes and modules of the environment's objects."""
    found = {id(each): each for each in global_generators()}
    classes = {each for value in _reached(environment) for each in type(value).__mro__}
    modules = {each.__module__ for each in classes}
    functions = {value.__module__ for value in _reached(environment) if isinstance(value, types.FunctionType)}
    holders: list[Any] = [vars(each) for each in classes]
    holders += [vars(sys.modules[name]) for name in sorted(filter(None, modules | functions)) if name in sys.modules]
    for holder in holders:
        for value in list(holder.values()):
            if is_generator(value):
                found[id(value)] = value
            elif isinstance(value, types.FunctionType) and value.__closure__:
                found.update((id(each), each) for each in map(_contents, value.__closure__) if is_generator(each))
    own = {id(each) for each in own_generators(environment)}
    return [each for key, each in found.items() if key not in own]


def has_natives(environment: Any) -> bool:
    """Whether objects of compiled libraries are reached, which may hold random generators of their own."""
    for value in _reached(environment):
        kind = type(value)
        if not is_generator(value) and kind.__module__.partition(".")[0] not in _KNOWN_MODULES:
            try:
                object.__new__(kind)
            except TypeError:
                if not isinstance(value, (dict, list, tuple, set, frozenset, np.ndarray, int, float, str, bytes)):
                    return True
    return False


@contextmanager
def preserved(generators: Sequence[Any]) -> Iterator[None]:
    """Restores the states of generators at the end."""
    states = [state_of(each) for each in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            set_state(generator, state)


def _reached(environment: Any) -> Iterator[Any]:
    """Yields the objects that are reached through attributes, containers and closures, each once."""
    seen: dict[int, Any] = {}
    waiting = deque([environment])
    while waiting:
        value = waiting.popleft()
        if type(value) in ATOMS or id(value) in seen or isinstance(value, (type, np.generic, NoGenerator)):
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
        return map(_contents, value.__closure__ or ())
    if isinstance(value, types.MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    held = list(getattr(value, "__dict__", {}).values())
    for each in type(value).__mro__:
        names = each.__dict__.get("__slots__", ())
        held += [getattr(value, name, None) for name in ((names,) if isinstance(names, str) else names)]
    return held


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
