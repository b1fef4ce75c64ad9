"""Measures what the adapter of Gymnasium adds to an environment's own copy and step, in microseconds per step.

    python -m benches.environments

Both are timed in turn, in one run, and the least of 100 rounds counts: a copy and `env.step` by themselves, and
`state.play` (with the chance node, where steps are random), `legal_actions` and `rewards`, as a search reads them.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium

from pondertree.envs import from_gymnasium

ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1", "FrozenLake-v1", "Blackjack-v1", "MiniGrid-Empty-5x5-v0")
ROUNDS, STEPS = 100, 20


def measure(name: str) -> tuple[float, float]:
    """Returns the microseconds per step of (the environment's own copy and step, the adapter)."""
    env = gymnasium.make(name, disable_env_checker=True)
    env.reset(seed=3)
    state = from_gymnasium(env, seed=1)
    snapshots, token = state._game.snapshots, state._token
    own: list[float] = []
    adapted: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for index in range(STEPS):
            copied = snapshots.restore(token)
            copied.step(index & 1)
        own.append((time.perf_counter() - begun) / STEPS)
        begun = time.perf_counter()
        for index in range(STEPS):
            _read(state, index & 1)
        adapted.append((time.perf_counter() - begun) / STEPS)
    return 1e6 * min(own), 1e6 * min(adapted)


def _read(state: Any, action: int) -> None:
    after = state.play(action)
    if state.is_random:
        after.chance_outcomes()
        after.rewards()
        after = after.play(0)
    if not after.is_terminal:
        after.legal_actions()
    after.rewards()


def main() -> None:
    """Prints a line per environment."""
    for name in ENVIRONMENTS:
        if name.startswith("MiniGrid"):
            try:
                import minigrid
            except ImportError:
                continue
            gymnasium.register_envs(minigrid)
        own, adapted = measure(name)
        print(f"{name:24} own {own:7.1f} us  adapter {adapted:7.1f} us  overhead {adapted - own:6.1f} us a step")


if __name__ == "__main__":
    main()
