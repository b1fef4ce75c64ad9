"""Games that each draw random numbers in `play`, or change their answers by chance."""

from __future__ import annotations

import copy
import itertools
import random
import time
from typing import Any

import numpy as np
from tests.support.broken_games import Pile


class Dice(Pile):
    rolls = itertools.count()

    def play(self, action: int) -> Any:
        after = super().play(action)
        if not after.is_terminal and next(self.rolls) % 3 == 0:
            after.stones[0] -= 1
        return after


class RollsASharedDie(Pile):
    die = random.Random(1)

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = self.die.randrange(2)
        return after


class RollsAGlobalDie(Pile):
    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = random.randrange(6) // 5
        return after


class RollsANumPyDie(Pile):
    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = int(np.random.randint(2))
        return after


class AsksTheTime(Pile):
    def play(self, action: int) -> Any:
        after = super().play(action)
        after.to_play = time.perf_counter_ns() // 100 % 2
        return after


class SharesItsGenerator(Pile):
    """Parent and child have one generator."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator = np.random.default_rng(1)

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.generator = self.generator
        after.to_play = int(self.generator.integers(2))
        return after


class HidesItsDie(Pile):
    """A die that shows at the end alone, in a class without ==."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, stones: tuple[int, ...] = (7,), to_play: Any = 0, lucky: bool = False) -> None:
        super().__init__(stones, to_play)
        self.lucky = lucky

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.lucky = random.random() < 0.5
        return after

    def returns(self) -> Any:
        return [1.0, -1.0] if self.lucky and self.is_terminal else super().returns()


class CopiesItsGenerator(Pile):
    """`play` is a pure function, and a search knows how the dice will fall."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator: Any = random.Random(1)

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.generator = copy.deepcopy(self.generator)
        after.to_play = int(after.generator.random() < 0.5)
        return after


class CopiesANumPyGenerator(CopiesItsGenerator):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator = np.random.default_rng(1)


class CopiesARandomState(CopiesItsGenerator):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.generator = np.random.RandomState(1)


class Cup:
    def __init__(self, generator: Any) -> None:
        self.generator = generator


class KeepsItsGeneratorInAPart(Pile):
    __slots__ = ("cup",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cup = Cup(random.Random(1))

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.cup = copy.deepcopy(self.cup)
        after.to_play = int(after.cup.generator.random() < 0.5)
        return after


class KeepsItsGeneratorInADict(Pile):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.tools = {"die": random.Random(1)}

    def play(self, action: int) -> Any:
        after = super().play(action)
        after.tools = copy.deepcopy(self.tools)
        after.tools["die"].random()
        return after


class FlickeringObservation(Pile):
    clock = itertools.count()

    def observation(self) -> Any:
        return np.array([next(self.clock)], dtype=np.float32)
