"""Connect 4 as a game of arrays: NumPy plays thousands of positions in one call.

Run it: python examples/games/connect_four_arrays.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Bits per column: six cells and an empty one, which keeps lines from running into the next column.
HEIGHT = 7
BOTTOM = np.array([1 << HEIGHT * column for column in range(7)], dtype=np.uint64)
TOP = BOTTOM << np.uint64(5)
CELLS = np.array([1 << HEIGHT * column + row for row in range(6) for column in range(7)], dtype=np.uint64)
States = NDArray[np.uint64]


class ConnectFourArrays:
    """A state has four words: stones of the player to move, all stones, their number, whether the last move won."""

    num_actions, num_players = 7, 2

    def start(self, count: int = 1) -> States:
        """Returns `count` empty boards."""
        return np.zeros((count, 4), dtype=np.uint64)

    def legal_mask(self, states: States) -> NDArray[np.bool_]:
        return (states[:, 1, None] & TOP) == 0

    def play(self, states: States, actions: NDArray[np.int64]) -> States:
        own, occupied, plies, _ = states.T
        after = occupied | (occupied + BOTTOM[actions])
        moved = own | (after ^ occupied)
        won = np.zeros(len(states), dtype=np.uint64)
        for shift in (1, HEIGHT - 1, HEIGHT, HEIGHT + 1):
            pairs = moved & (moved >> np.uint64(shift))
            won |= pairs & (pairs >> np.uint64(2 * shift))
        return np.stack([after ^ moved, after, plies + np.uint64(1), np.minimum(won, np.uint64(1))], axis=1)

    def is_terminal(self, states: States) -> NDArray[np.bool_]:
        return (states[:, 3] > 0) | (states[:, 2] == 42)

    def to_play(self, states: States) -> NDArray[np.int64]:
        return (states[:, 2] % np.uint64(2)).astype(np.int64)

    def returns(self, states: States) -> NDArray[np.float64]:
        # The player to move has lost if the last move won.
        lost = states[:, 3].astype(np.float64)
        first = np.where(self.to_play(states) == 0, -lost, lost)
        return np.stack([first, -first], axis=1)

    def observation(self, states: States) -> NDArray[np.float32]:
        """Network input, [n, 2, 6, 7]: stones of the player to move and of the other, from the lowest row."""
        planes = np.stack([states[:, 0], states[:, 0] ^ states[:, 1]], axis=1)[:, :, None]
        return ((planes & CELLS) != 0).reshape(-1, 2, 6, 7).astype(np.float32)

    def action_to_string(self, action: int) -> str:
        return str(action + 1)

    def parse_action(self, text: str) -> int:
        return int(text) - 1


if __name__ == "__main__":
    import pondertree
    from pondertree.games import batch_states

    roots = batch_states(ConnectFourArrays(), ConnectFourArrays().start(256))
    results = pondertree.UCT(num_simulations=200, seed=1).run(roots)
    print(np.sum([result.visits for result in results], axis=0))
