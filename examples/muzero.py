"""Planning in a model: MuZero and Gumbel search in a hand-written model of a grid world, with NumPy alone.

The robot walks from S to the flag (F), reward 1; the pit (o) has reward -1; both end the episode. Walls are #. The
searches use only the model, which MuZero would otherwise learn. Run it: python examples/muzero.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pondertree

GRID = [
    "S...",
    ".##.",
    ".#.F",
    "...o",
]
STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
NAMES, MOVES = list(STEPS), np.array(list(STEPS.values()))
CELLS = np.array([list(row) for row in GRID])
FLAG = np.argwhere(CELLS == "F")[0]
DISCOUNT = 0.95


def step(places: Any, actions: Any) -> tuple[Any, Any, Any]:
    """Next positions [B, 2], rewards [B] and terminal flags [B] after `actions` [B] at `places` [B, 2]."""
    onto = np.clip(places + MOVES[actions], 0, np.array(CELLS.shape) - 1)
    blocked = CELLS[onto[:, 0], onto[:, 1]] == "#"
    onto = np.where(blocked[:, None], places, onto)
    cells = CELLS[onto[:, 0], onto[:, 1]]
    return onto, 1.0 * (cells == "F") - 1.0 * (cells == "o"), np.isin(cells, ["F", "o"])


class World:
    """The model: the hidden state is the robot's position, its value the discounted Manhattan distance to the flag."""

    num_players = 1

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Returns (hidden state, logits, value) of observations [B, 2]."""
        places = np.asarray(observations)
        return places, *self.predict(places)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """Returns (hidden state, reward, logits, value, discount) after the actions; discount 0 ends an episode."""
        onto, rewards, over = step(hidden_states, actions)
        return onto, rewards, *self.predict(onto), np.where(over, 0.0, DISCOUNT)

    def predict(self, places: Any) -> tuple[Any, Any]:
        """Returns uniform logits, and values that ignore walls and the pit."""
        distance = np.abs(places - FLAG).sum(axis=1)
        return np.zeros((len(places), len(NAMES))), DISCOUNT ** np.maximum(distance - 1, 0)


def walk(search: Any, most_steps: int = 20) -> tuple[list[str], float]:
    """Plays an episode from S with tree reuse; returns the steps and the reward."""
    place = np.argwhere(CELLS == "S")[0]
    tree = search.tree(observation=place)
    taken: list[str] = []
    while len(taken) < most_steps:
        action = tree.simulate().result().action
        taken.append(NAMES[action])
        places, rewards, over = step(place[None], np.array([action]))
        if over[0]:
            return taken, float(rewards[0])
        place = places[0]
        tree.advance(action, observation=place)
    return taken, 0.0


def main() -> None:
    """Plays an episode with each search, then prints visits and Q of the start position."""
    print("\n".join(GRID))
    for search in (
        pondertree.MuZero(World(), num_simulations=60, seed=1),
        pondertree.Gumbel(World(), num_simulations=16, seed=1),
    ):
        taken, paid = walk(search)
        print(f"{type(search).__name__}: {' '.join(taken)}, paid {paid:+.0f}")
    result = pondertree.MuZero(World(), num_simulations=2000, seed=1).run(observation=[0, 0])
    for name, visits, q in zip(NAMES, result.visits, result.q, strict=True):
        print(f"  {name:<6} {visits:>5} visits  {q:+.3f}")
    print(f"Exact is {DISCOUNT**4:.3f}: the flag is five steps away, and the first is not discounted.")


if __name__ == "__main__":
    main()
