"""A robot that plans in its head: MuZero and Gumbel search in a model of a small world, with NumPy and nothing else.

The robot walks on a grid to the flag (F), which pays 1; the pit (o) costs 1; both end the walk. It does not see the
grid: it asks a model, written by hand here where MuZero would have learned one. Run it: python examples/muzero.py
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
DISCOUNT = 0.95  # a flag is worth less the later it is reached


def step(places: Any, actions: Any) -> tuple[Any, Any, Any]:
    """Where robots come from `places` [B, 2] by `actions` [B], what that pays, and whether it was the last step."""
    onto = np.clip(places + MOVES[actions], 0, np.array(CELLS.shape) - 1)
    blocked = CELLS[onto[:, 0], onto[:, 1]] == "#"
    onto = np.where(blocked[:, None], places, onto)
    cells = CELLS[onto[:, 0], onto[:, 1]]
    return onto, 1.0 * (cells == "F") - 1.0 * (cells == "o"), np.isin(cells, ["F", "o"])


class World:
    """The model. A hidden state is the place of the robot; what it is worth is guessed, as the crow flies."""

    num_players = 1

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """(hidden state, logits, value) of observations [B, 2]."""
        places = np.asarray(observations)
        return places, *self.look(places)

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        """(hidden state, reward, logits, value, discount) after the actions; the last one has the discount 0."""
        onto, rewards, over = step(hidden_states, actions)
        return onto, rewards, *self.look(onto), np.where(over, 0.0, DISCOUNT)

    def look(self, places: Any) -> tuple[Any, Any]:
        """Even logits, and values that know of no walls and no pit."""
        away = np.abs(places - FLAG).sum(axis=1)
        return np.zeros((len(places), len(NAMES))), DISCOUNT ** np.maximum(away - 1, 0)


def walk(search: Any, most_steps: int = 20) -> tuple[list[str], float]:
    """A walk from S, the tree kept from step to step: the steps taken, and what they paid."""
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
    """Both searches on the way to the flag, and what they think at the start."""
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
