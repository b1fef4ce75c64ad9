"""Small environments whose copies lie, and whose randomness is hidden in unusual places."""

from __future__ import annotations

import os
import random
from typing import Any

import gymnasium
import numpy as np

_MODULE_GENERATOR = np.random.RandomState(7)
#: States of `Registered`, which knows its own by a number.
_REGISTRY: dict[int, list[int]] = {}


class Walk(gymnasium.Env[Any, int]):
    """A walk on a line, in which `noise` moves the walker further; ends after 30 steps or at place 12."""

    action_space: Any = gymnasium.spaces.Discrete(2)
    observation_space: Any = gymnasium.spaces.Box(-1000.0, 1000.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = 0.0, 0
        return self.seen(), {}

    def seen(self) -> Any:
        return np.array([self.place, self.steps], np.float32)

    def noise(self) -> float:
        return 0.0

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += (1.0 if action == 1 else -1.0) + self.noise()
        self.steps += 1
        return self.seen(), self.place / 10, self.place >= 12, self.steps >= 30, {}


class OwnNoise(Walk):
    """Draws from Gymnasium's generator."""

    def noise(self) -> float:
        return float(self.np_random.normal())


class SpaceNoise(Walk):
    """Draws from the generator of its action space."""

    def __init__(self) -> None:
        self.action_space = gymnasium.spaces.Discrete(2)

    def noise(self) -> float:
        return float(self.action_space.sample())


class ClosureNoise(Walk):
    """Draws from a generator that only a function knows."""

    def __init__(self) -> None:
        generator = np.random.RandomState(3)
        self.draw = lambda: generator.rand()

    def noise(self) -> float:
        return float(self.draw())


class NestedNoise(Walk):
    """Draws from a generator of Python in a list of an object."""

    def __init__(self) -> None:
        self.parts = {"dice": [random.Random(5)]}

    def noise(self) -> float:
        return self.parts["dice"][0].gauss(0.0, 1.0)


class MethodNoise(Walk):
    """Draws by a method of a generator that is nowhere else."""

    def __init__(self) -> None:
        self.noise = random.Random(2).random  # type: ignore[method-assign]


class ModuleNoise(Walk):
    """Draws from a generator of its module."""

    def noise(self) -> float:
        return float(_MODULE_GENERATOR.rand())


class ClassNoise(Walk):
    """Draws from a generator of its class."""

    generator = np.random.default_rng(11)

    def noise(self) -> float:
        return float(self.generator.random())


class GlobalNoise(Walk):
    """Draws from the global generator of NumPy."""

    def noise(self) -> float:
        return float(np.random.rand())


class PythonNoise(Walk):
    """Draws from the global generator of Python."""

    def noise(self) -> float:
        return random.random()


class SystemNoise(Walk):
    """Draws from the operating system."""

    def noise(self) -> float:
        return os.urandom(1)[0] / 256


class LateNoise(Walk):
    """Draws its first random number at place 9, which random actions hardly reach."""

    def noise(self) -> float:
        return float(self.np_random.normal()) if self.place >= 9 else 0.0


class LyingCopy(Walk, gymnasium.utils.EzPickle):
    """`copy.deepcopy` of it is a fresh environment."""

    def __init__(self) -> None:
        gymnasium.utils.EzPickle.__init__(self)
        self.place, self.steps = 0.0, 0


class LyingNoise(LyingCopy, OwnNoise):
    """Random, and `copy.deepcopy` of it is a fresh environment."""


class Registered(Walk):
    """Keeps its state in a table of its module, under a number: copies share it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.number = len(_REGISTRY)
        _REGISTRY[self.number] = [0]
        return super().reset(seed=seed)

    def noise(self) -> float:
        _REGISTRY[self.number][0] += 1
        return float(_REGISTRY[self.number][0])


class ClassList(Walk):
    """Shares a list with its class."""

    visits: list[int] = []  # noqa: RUF012 (the fault)

    def noise(self) -> float:
        self.visits.append(1)
        return float(len(self.visits))


class Fails(Walk):
    """Raises at place 3, beyond the reach of few random steps."""

    def step(self, action: int) -> Any:
        if self.place >= 3:
            raise RuntimeError("the walker fell over")
        return super().step(action)


class NanReward(Walk):
    def step(self, action: int) -> Any:
        seen, reward, *rest = super().step(action)
        return seen, float("nan") if self.place >= 3 else reward, *rest


class Masked(Walk):
    """Allows no step to the left of the start."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0], {"action_mask": self.mask()}

    def mask(self) -> Any:
        return np.array([self.place > 0, 1], np.int8)

    def step(self, action: int) -> Any:
        if not self.mask()[action]:
            raise ValueError("not allowed")
        *rest, _ = super().step(action)
        return *rest, {"action_mask": self.mask()}


class Grid(Walk):
    """Two dimensions of actions."""

    action_space: Any = gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 5])
    taken: Any = None

    def step(self, action: Any) -> Any:
        assert action.shape == (2,)
        assert 5 <= action[1] <= 7
        self.taken = action.tolist()
        return super().step(int(action[0]))
