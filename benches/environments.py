"""Measures what adapters add to an environment's own copy and step, in microseconds per step.

    python -m benches.environments

Both are timed in turn, in one run, and the least of 100 rounds counts: a copy and `env.step` by themselves (with
`env.observe`, which has the mask, in PettingZoo), and `state.play` (with the chance node, where steps are random),
`legal_actions` and `rewards`, as a search reads them.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium

from pondertree.envs import from_gymnasium, from_pettingzoo

try:
    import pettingzoo
    import pygame  # noqa: F401 (of its classic environments)
except ImportError:
    pettingzoo = None

ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1", "FrozenLake-v1", "Blackjack-v1", "MiniGrid-Empty-5x5-v0")
AGENTS = ("connect_four-v3", "tictactoe-v3", "go-v5")
ROUNDS, STEPS = 100, 20


def measure(name: str) -> tuple[float, float]:
    """Returns the microseconds per step of (the environment's own copy and step, the adapter)."""
    env = gymnasium.make(name, disable_env_checker=True)
    env.reset(seed=3)
    state = from_gymnasium(env, seed=1)
    return _compared(state, state._game.snapshots, lambda env, action: env.step(action), [0, 1])


def measure_agents(name: str) -> tuple[float, float]:
    """Returns the same for a classic environment of PettingZoo."""
    env = pettingzoo.make("aec", f"classic/{name}")
    env.reset(seed=3)
    state = from_pettingzoo(env, seed=1)

    def step(env: Any, action: int) -> None:
        env.step(action)
        env.observe(env.agent_selection)

    return _compared(state, state._game.snapshots, step, state.legal_actions()[:2])


def _compared(state: Any, snapshots: Any, step: Any, actions: list[int]) -> tuple[float, float]:
    token = state._token
    own: list[float] = []
    adapted: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for index in range(STEPS):
            copied = snapshots.restore(token)
            step(copied, actions[index & 1])
        own.append((time.perf_counter() - begun) / STEPS)
        begun = time.perf_counter()
        for index in range(STEPS):
            _read(state, actions[index & 1])
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
    if hasattr(after, "rewards"):
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
        _print(name, *measure(name))
    for name in AGENTS if pettingzoo is not None else ():
        _print(name, *measure_agents(name))


def _print(name: str, own: float, adapted: float) -> None:
    print(f"{name:24} own {own:7.1f} us  adapter {adapted:7.1f} us  overhead {adapted - own:6.1f} us a step")


if __name__ == "__main__":
    main()
