"""A grid-world environment for Gymnasium: a robot must reach the treasure before its lamp burns out, avoiding pits.

Observations are images and the only reward comes at the end of an episode; MuZero learns a model of it. Print a cave:
python examples/environments/treasure.py. Train on it:
pondertree train gym:examples.environments.treasure:Treasure-v0 --out runs/treasure --minutes 10
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

SIDE, PITS, LIGHT = 5, 3, 15
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
#: Colour channels of the image.
ROBOT, GOLD, PIT = range(3)


class Treasure(gymnasium.Env[Any, int]):
    """Actions: 0 up, 1 right, 2 down, 3 left; `info["action_mask"]` marks the legal ones."""

    action_space = gymnasium.spaces.Discrete(len(MOVES))
    observation_space = gymnasium.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        cells = self.np_random.permutation(SIDE * SIDE)[: 2 + PITS]
        robot, gold, *pits = ((int(cell) // SIDE, int(cell) % SIDE) for cell in cells)
        self.robot, self.gold, self.pits, self.light = robot, gold, set(pits), LIGHT
        return self.image(), {"action_mask": self.open_sides()}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.open_sides()[action]:
            raise ValueError(f"there is a wall in direction {action}")
        down, right = MOVES[action]
        self.robot = (self.robot[0] + down, self.robot[1] + right)
        self.light -= 1
        found = self.robot == self.gold
        over = found or self.robot in self.pits or self.light == 0
        return self.image(), float(found), over, False, {"action_mask": self.open_sides()}

    def open_sides(self) -> Any:
        """Mask of the moves that do not run into a wall, [4]."""
        row, column = self.robot
        return np.array([0 <= row + down < SIDE and 0 <= column + right < SIDE for down, right in MOVES])

    def image(self) -> Any:
        """Top-down RGB image: the robot is red and fades with its lamp, gold is green, pits are blue."""
        image = np.zeros((SIDE, SIDE, 3), np.uint8)
        image[(*self.robot, ROBOT)] = 30 + 15 * self.light
        image[(*self.gold, GOLD)] = 255
        for pit in self.pits:
            image[(*pit, PIT)] = 255
        return image


gymnasium.register("Treasure-v0", entry_point=Treasure)


if __name__ == "__main__":
    cave, _ = gymnasium.make("Treasure-v0").reset(seed=1)
    for line in cave:
        print(" ".join("·RGB"[int(np.argmax([1, *cell]))] for cell in line.tolist()))
