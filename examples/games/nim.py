"""Nim, two players: take any number of stones from one heap; whoever takes the last stone wins.

The player to move wins unless the XOR of the heap sizes is 0 (Bouton 1901). From 2, 3, 5 the only winning move takes
four stones from the last heap. Run it: python examples/games/nim.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LARGEST = 5


@dataclass(frozen=True)
class Nim:
    """Heaps of at most `LARGEST` stones. Action `heap * LARGEST + stones - 1` takes `stones` from `heap`."""

    heaps: tuple[int, ...] = (2, 3, 5)
    to_play: int = 0

    num_players = 2

    @property
    def num_actions(self) -> int:
        return len(self.heaps) * LARGEST

    @property
    def is_terminal(self) -> bool:
        return not any(self.heaps)

    def legal_actions(self) -> list[int]:
        return [heap * LARGEST + stones for heap, size in enumerate(self.heaps) for stones in range(size)]

    def play(self, action: int) -> Nim:
        if action not in self.legal_actions():
            raise ValueError(f"action {action} is not legal in {self}")
        heap, stones = divmod(action, LARGEST)
        heaps = list(self.heaps)
        heaps[heap] -= stones + 1
        return Nim(tuple(heaps), 1 - self.to_play)

    def returns(self) -> tuple[float, float]:
        # The player to move without stones has lost.
        return (-1.0, 1.0) if self.to_play == 0 else (1.0, -1.0)

    def observation(self) -> np.ndarray:
        """Network input, [heaps, LARGEST]: the size of each heap in unary."""
        return np.array([[stone < size for stone in range(LARGEST)] for size in self.heaps], dtype=np.float32)

    def action_to_string(self, action: int) -> str:
        return f"{'abcdefghij'[action // LARGEST]}-{action % LARGEST + 1}"

    def parse_action(self, text: str) -> int:
        return "abcdefghij".index(text[0]) * LARGEST + int(text[2:]) - 1


if __name__ == "__main__":
    import pondertree

    result = pondertree.UCT(num_simulations=2000, seed=0).run(Nim())
    print(f"From {Nim().heaps}: play {result.move}, value {result.value:+.2f}")
    print("Then", " ".join(result.pv[1:]))
