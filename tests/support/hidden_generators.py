"""Small environments with random generators of their own making, and some that only look like it."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.hidden_randomness import Walk

_MULTIPLIER, _INCREMENT, _MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1


class LcgNoise(Walk):
    """Keeps the state of a linear congruential generator in an attribute."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.number = (seed or 0) * 2654435761 + 12345 & _MASK
        return super().reset(seed=seed)

    def noise(self) -> float:
        self.number = self.number * _MULTIPLIER + _INCREMENT & _MASK
        return self.number / 2**64


class VisibleLcgNoise(LcgNoise):
    """Also starts at a place that depends on the seed, so that no two starts are equal."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = (seed or 0) / 1000
        return self.seen(), {}


class KeyNoise(Walk):
    """Draws from a constant key in an array and a counter."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.key = np.random.default_rng(seed).integers(0, 1 << 63, 2, np.uint64)
        return super().reset(seed=seed)

    def noise(self) -> float:
        return float(np.random.Generator(np.random.Philox(key=self.key, counter=self.steps)).random())


class BytesNoise(Walk):
    """Draws from a chain of hashes in a list of an object."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.parts = {"chain": [str(seed).encode()]}
        return super().reset(seed=seed)

    def noise(self) -> float:
        import hashlib

        self.parts["chain"][0] = hashlib.sha256(self.parts["chain"][0]).digest()
        return self.parts["chain"][0][0] / 256


class TorchNoise(Walk):
    """Draws from a `torch.Generator`."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        import torch

        self.generator = torch.Generator()
        self.generator.manual_seed(seed or 0)
        return super().reset(seed=seed)

    def noise(self) -> float:
        import torch

        return float(torch.rand((), generator=self.generator))


class JaxNoise(Walk):
    """Splits a key of JAX."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        import jax

        self.key = jax.random.PRNGKey(seed or 0)
        return super().reset(seed=seed)

    def noise(self) -> float:
        import jax

        self.key, drawn = jax.random.split(self.key)
        return float(jax.random.uniform(drawn))


class HiddenLayout(Walk):
    """Deterministic, with a layout that the seed chooses and the start does not show."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        answer = super().reset(seed=seed)
        self.slopes = self.np_random.integers(0, 5, 40)
        return answer

    def noise(self) -> float:
        return float(self.slopes[self.steps]) / 10


class HiddenKeyLayout(KeyNoise):
    """Deterministic, but its layout is a number that looks like a key."""


class Board(Walk):
    """Deterministic, with large integers that depend on the actions, and on the seed in plain sight."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        answer = super().reset(seed=seed)
        self.bits = 1 << 20 + (seed or 0)
        self.place = self.bits.bit_length()
        return self.seen(), answer[1]

    def step(self, action: int) -> Any:
        self.bits = self.bits << 1 if action == 1 else self.bits >> 1
        answer = super().step(action)
        self.place = self.bits.bit_length()
        return self.seen(), *answer[1:]


class PrivateSlotNoise(Walk):
    """Keeps its generator in a private slot of a part."""

    class Part:
        __slots__ = ("__generator",)

        def __init__(self) -> None:
            self.__generator = np.random.default_rng(3)

        def draw(self) -> float:
            return float(self.__generator.random())

    def __init__(self) -> None:
        self.part = self.Part()

    def noise(self) -> float:
        return self.part.draw()


class OneArray(Walk):
    """Returns one array that it updates in place."""

    def __init__(self) -> None:
        self.array = np.zeros(2, np.float32)

    def seen(self) -> Any:
        self.array[:] = self.place, self.steps
        return self.array


class LateGlobalNoise(Walk):
    """Draws its first number from `numpy.random` at place 9, which random actions hardly reach."""

    def noise(self) -> float:
        return float(np.random.rand()) if self.place >= 9 else 0.0
