"""Random generators in copies of environments: copied, created when they are first used, or absent."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np


class RandomDrawError(Exception):
    """A random number was drawn in an environment in which none were drawn before."""


class NoGenerator:
    """Takes the place of a random generator in copies of environments that draw no random numbers."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RandomDrawError


NO_GENERATOR: Final = NoGenerator()


class PendingGenerator:
    """The generator of an environment that has not been used: created from its key at the first use.

    Gymnasium would create it from the operating system's entropy.
    """

    __slots__ = ("index", "key", "made")

    def __init__(self, key: int = 0, index: int = 0) -> None:
        self.key = key
        self.index = index
        self.made: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.made is None:
            self.made = np.random.default_rng([self.key, self.index])
        return getattr(self.made, name)


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """Seeds a generator whose state is set next; NumPy's own seeding takes several microseconds."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return np.zeros(n_words, dtype)


_NO_SEED: Final[Any] = _NoSeed()


def is_torch_generator(value: Any) -> bool:
    """Whether a value is a `torch.Generator`; torch is not imported for it."""
    kind = type(value)
    return kind.__name__ == "Generator" and kind.__module__.partition(".")[0] == "torch"


def copy_generator(generator: Any) -> Any:
    """Returns a random generator in the same state."""
    if is_torch_generator(generator):
        copied = type(generator)(device=generator.device)
        copied.set_state(generator.get_state())
        return copied
    if isinstance(generator, PendingGenerator):
        pending = PendingGenerator(generator.key, generator.index)
        pending.made = None if generator.made is None else copy_generator(generator.made)
        return pending
    if isinstance(generator, random.Random):
        new = type(generator)()
        new.setstate(generator.getstate())
        return new
    if isinstance(generator, np.random.RandomState):
        bits = generator._bit_generator
        state = np.random.RandomState(type(bits)(0))
        state.set_state(generator.get_state(legacy=False))
        return state
    if isinstance(generator, np.random.BitGenerator):
        bits = type(generator)(_NO_SEED)
        bits.state = generator.state
        return bits
    bits = type(generator.bit_generator)(_NO_SEED)
    bits.state = generator.bit_generator.state
    return type(generator)(bits)


def is_generator(value: Any) -> bool:
    """Whether a value is a random generator with a state; the operating system's has none."""
    known = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator, PendingGenerator)
    if isinstance(value, known):
        return not isinstance(value, random.SystemRandom)
    return is_torch_generator(value)
