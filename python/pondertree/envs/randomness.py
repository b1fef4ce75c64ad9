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

from pondertree.envs.generators import PendingGenerator, RandomDrawError, is_generator, is_torch_generator
from pondertree.envs.traversal import contents, is_python_class, module_of, reached
from pondertree.games.state_attributes import frozen
from pondertree.random import GOLDEN, MASK, fold, mix

#: The increment of every PCG64: streams differ by their states, of 128 bits.
_INCREMENT = 0x5851_F42D_4C95_7F2D_1405_7B7E_F767_814F
#: Modules whose compiled classes hold no random generators but those of `is_generator`.
_KNOWN_MODULES = frozenset({"builtins", "collections", "functools", "itertools", "numpy", "re", "types", "weakref"})

#: Packages whose functions draw from the global generators only if code of the environment names them.
_STANDARD = frozenset(sys.stdlib_module_names) | {"numpy"}
_QUIET_PACKAGES = _STANDARD | {
    "ale_py", "gymnasium", "jax", "matplotlib", "mujoco", "pettingzoo", "pondertree", "pygame", "scipy", "torch",
}  # fmt: skip


def state_of(generator: Any) -> Any:
    """Returns the state of a generator, as `set_state` takes it."""
    if isinstance(generator, PendingGenerator):
        made = generator.made
        return generator.key, generator.index, None if made is None else (made, made.bit_generator.state)
    if is_torch_generator(generator):
        return generator.get_state()
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
    elif is_torch_generator(generator):
        generator.set_state(state)
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
        elif is_torch_generator(generator):
            generator.manual_seed(seed >> 1)
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
    return [
        state_of(each).cpu().numpy().tobytes() if is_torch_generator(each) else frozen(state_of(each), type)
        for each in generators
    ]


def global_generators() -> list[Any]:
    """Returns the generators behind the functions of `random`, `numpy.random` and, if it is imported, `torch`."""
    numpy_random: Any = np.random
    found = [random._inst, numpy_random.mtrand._rand]
    torch = sys.modules.get("torch")
    if is_torch_generator(default := getattr(torch, "default_generator", None)):
        found.append(default)
    return found


def own_generators(environment: Any) -> list[Any]:
    """Returns the generators that are reached through attributes of the environment, in a fixed order."""
    return [each for each in reached(environment) if is_generator(each)]


def shared_generators(environment: Any) -> list[Any]:
    """Returns the global generators, and those of the classes and modules of the environment's objects."""
    found = {id(each): each for each in global_generators()}
    classes = {each for value in reached(environment) for each in type(value).__mro__}
    modules = {module_of(each) for each in classes}
    callables = [value for value in reached(environment) if isinstance(value, types.FunctionType)]
    functions = {value.__module__ for value in callables}
    holders: list[Any] = [vars(each) for each in classes]
    holders += [vars(sys.modules[name]) for name in sorted(filter(None, modules | functions)) if name in sys.modules]
    for holder in holders:
        for value in list(holder.values()):
            if is_generator(value):
                found[id(value)] = value
            elif isinstance(value, types.FunctionType) and value.__closure__:
                found.update((id(each), each) for each in map(contents, value.__closure__) if is_generator(each))
    for function in callables:  # the defaults of a function are not copied with it
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        found.update((id(each), each) for each in held if is_generator(each))
    own = {id(each) for each in own_generators(environment)}
    return [each for key, each in found.items() if key not in own]


def watched_generators(environment: Any, shared: Sequence[Any]) -> list[Any]:
    """Returns the shared generators that code of the environment may draw from.

    The global ones are left out if no function of its modules, and of those that they use, names one: reading their
    states takes tens of microseconds. Modules of the standard library and of known packages are not searched.
    """
    known_global = {id(each) for each in global_generators()}
    rest = [each for each in shared if id(each) not in known_global]
    return list(shared) if _names_global_generator(environment) else rest


def _names_global_generator(environment: Any) -> bool:
    values = list(reached(environment))
    names = {module_of(each) for value in values for each in type(value).__mro__}
    names |= {value.__module__ for value in values if isinstance(value, types.FunctionType)}
    waiting, seen = [name for name in names if name.partition(".")[0] not in _QUIET_PACKAGES], set[str]()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in seen or module is None:
            continue
        seen.add(name)
        for value in list(vars(module).values()):
            if isinstance(value, types.ModuleType):
                used: str = value.__name__
            else:
                used = module_of(value if isinstance(value, type) else type(value))
                if isinstance(value, (types.FunctionType, types.BuiltinMethodType)):
                    used = value.__module__ or ""
                    if is_generator(getattr(value, "__self__", None)):
                        return True
            if used == "random" or (used.startswith("numpy.random") and not isinstance(value, type)):
                return True
            if used.partition(".")[0] not in _QUIET_PACKAGES:
                waiting.append(used)
            if isinstance(value, type) and value.__module__ == name:
                functions = [each for each in vars(value).values() if isinstance(each, types.FunctionType)]
            else:
                functions = [value] if isinstance(value, types.FunctionType) and value.__module__ == name else []
            if any("random" in _names_in(each.__code__) for each in functions):
                return True
    return False


def _names_in(code: types.CodeType) -> set[str]:
    """Returns the names that code uses, with that of functions inside."""
    return {*code.co_names}.union(*(_names_in(each) for each in code.co_consts if isinstance(each, types.CodeType)))


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
def undrawn(generators: Sequence[Any]) -> Iterator[None]:
    """Raises `RandomDrawError` if one of the generators was drawn from, and restores their states."""
    states = [state_of(each) for each in generators]
    before = fingerprint(generators)
    yield
    if fingerprint(generators) != before:
        for generator, state in zip(generators, states, strict=True):
            set_state(generator, state)
        raise RandomDrawError


@contextmanager
def preserved(generators: Sequence[Any]) -> Iterator[None]:
    """Restores the states of generators at the end."""
    states = [state_of(each) for each in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            set_state(generator, state)
