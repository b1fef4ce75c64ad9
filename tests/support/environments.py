"""Small Gymnasium environments for training tests, and invalid ones."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Corridor(gymnasium.Env[Any, int]):
    """Going right four times ends the episode with a reward; left leads back. Truncated after eight steps."""

    action_space: Any = gymnasium.spaces.Discrete(2)
    observation_space: Any = gymnasium.spaces.Box(-10.0, 10.0, (3,), np.float32)
    wrong_step = 3

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        self.wind = float(self.np_random.uniform())
        return self.observe(), self.info()

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.place = max(self.place + (1 if action == 1 else -1), 0)
        self.steps += 1
        over = self.place == 4
        return self.observe(), 1.0 if over else -0.1, over, self.steps >= 8, self.info()

    def observe(self) -> Any:
        return np.array([self.place, self.steps, self.wind], np.float32)

    def info(self) -> dict[str, Any]:
        return {}


class Endless(Corridor):
    def step(self, action: int) -> Any:
        return (*super().step(action)[:2], False, False, {})


class Raises(Corridor):
    def step(self, action: int) -> Any:
        if self.steps == self.wrong_step:
            raise RuntimeError("the robot fell over")
        return super().step(action)


class Nan(Corridor):
    def observe(self) -> Any:
        seen = super().observe()
        return np.full_like(seen, np.nan) if self.steps == self.wrong_step else seen


class NanReward(Corridor):
    def step(self, action: int) -> Any:
        seen, reward, over, cut, info = super().step(action)
        return seen, float("nan") if self.steps == self.wrong_step else reward, over, cut, info


class HugeReward(Corridor):
    def step(self, action: int) -> Any:
        seen, reward, over, cut, info = super().step(action)
        return seen, -1e300 if self.steps == self.wrong_step else reward, over, cut, info


class Grows(Corridor):
    def observe(self) -> Any:
        return super().observe().repeat(2) if self.steps == self.wrong_step else super().observe()


class NoWayOut(Corridor):
    def info(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, 1], np.int8) if self.steps < self.wrong_step else np.zeros(2, np.int8)}


class Fractions(Corridor):
    wrong: Any = 0.5

    def info(self) -> dict[str, Any]:
        return {"action_mask": [self.wrong if self.steps == self.wrong_step else 1.0, 1.0]}


class NanMask(Fractions):
    wrong = float("nan")


class Huge(Corridor):
    """Gives values beyond float32."""

    def observe(self) -> Any:
        return np.full(3, 1e300) if self.steps == self.wrong_step else super().observe()


class WrongMask(Corridor):
    def info(self) -> dict[str, Any]:
        return {"action_mask": [1, 1, 1]}


class OnlyRight(Corridor):
    """Its mask allows one action."""

    def info(self) -> dict[str, Any]:
        return {"action_mask": np.array([0, 1], np.int8)}


class Continuous(Corridor):
    action_space: Any = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)


class Nested(Corridor):
    observation_space: Any = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)})


class Unrepeatable(Corridor):
    """Its observations do not follow from the seed."""

    made = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        Unrepeatable.made += 1
        self.wind = float(Unrepeatable.made)
        return self.observe(), {}
