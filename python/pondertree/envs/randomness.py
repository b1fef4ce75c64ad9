"""The random generators of an environment: found, reseeded by counter, and restored.

Generators that belong to an environment are copied with it. Shared ones, such as `numpy.random` and those of classes
and modules, are set before a step and restored after it, if the environment draws from them.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pondertree.envs.copying import contents, is_python_class, module_of, reached
from pondertree.envs.generators import PendingGenerator, is_generator
from pondertree.games.state_attributes import frozen
from pondertree.random import GOLDEN, MASK, fold, mix

#: The increment of every PCG64: streams differ by their states, of 128 bits.
_INCREMENT = 0x5851_F42D_4C95_7F2D_1405_7B7E_F767_814F
#: Modules whose compiled classes hold no random generators but those of `is_generator`.
_KNOWN_MODULES = frozenset({"builtins", "collections", "functools", "itertools", "numpy", "re", "types", "weakref"})


def state_of(generator: Any) -> Any:
    """Returns the state of a generator, as `set_state` takes it."""
    if isinstance(generator, PendingGenerator):
        made = generator.made
        return generator.key, generator.index, None if made is None else (made, made.bit_generator.state)
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return bits_of(generator).state


def set_state(generator: Any, state: Any) -> None:
    """Sets the state of a generator."""
    if isinstance(generator, PendingGenerator):
        generator.key, generator.index, made = state
        generator.made = None if made is None else made[0]
        if made is not None:
            made[0].bit_generator.state = made[1]
    elif isinstance(generator, random.Random):
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
        if type(generator) is PendingGenerator:
            generator.key, generator.index, generator.made = key, index, None
            continue
        seed = fold(key, index)
        if isinstance(generator, random.Random):
            generator.seed(seed)
        elif isinstance(generator, np.random.RandomState):
            generator.seed(seed & 0xFFFF_FFFF)
        else:
            bits = bits_of(generator)
            if type(bits) is np.random.PCG64:
                numbers = {"state": seed << 64 | mix(seed + GOLDEN & MASK), "inc": _INCREMENT}
                state: Any = {"bit_generator": "PCG64", "state": numbers, "has_uint32": 0, "uinteger": 0}
                bits.state = state
            else:
                bits.state = type(bits)(seed).state


def fingerprint(generators: Iterable[Any]) -> list[Any]:
    """Returns comparable states of generators."""
    return [frozen(state_of(each), type) for each in generators]


def global_generators() -> list[Any]:
    """Returns the generators behind the functions of `random` and `numpy.random`."""
    numpy_random: Any = np.random
    return [random._inst, numpy_random.mtrand._rand]


def own_generators(environment: Any) -> list[Any]:
    """Returns the generators that are reached through attributes of the environment, in a fixed order."""
    return [each for each in reached(environment) if is_generator(each)]


def shared_generators(environment: Any) -> list[Any]:
    """Returns the global generators, and those of the classes and modules of the environment's objects."""
    found = {id(each): each for each in global_generators()}
    classes = {each for value in reached(environment) for each in type(value).__mro__}
    modules = {module_of(each) for each in classes}
    functions = {value.__module__ for value in reached(environment) if isinstance(value, types.FunctionType)}
    holders: list[Any] = [vars(each) for each in classes]
    holders += [vars(sys.modules[name]) for name in sorted(filter(None, modules | functions)) if name in sys.modules]
    for holder in holders:
        for value in list(holder.values()):
            if is_generator(value):
                found[id(value)] = value
            elif isinstance(value, types.FunctionType) and value.__closure__:
                found.update((id(each), each) for each in map(contents, value.__closure__) if is_generator(each))
    own = {id(each) for each in own_generators(environment)}
    return [each for key, each in found.items() if key not in own]


def has_natives(environment: Any) -> bool:
    """Whether objects of compiled libraries are reached, which may hold random generators of their own."""
    for value in reached(environment):
        kind = type(value)
        if not is_generator(value) and module_of(kind).partition(".")[0] not in _KNOWN_MODULES:
            known = (dict, list, tuple, set, frozenset, np.ndarray, int, float, str, bytes)
            if not is_python_class(kind) and not isinstance(value, known):
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
