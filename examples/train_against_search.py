"""Stable-Baselines3 learns tic-tac-toe against UCT.

Install it: pip install sb3-contrib. Run it: python examples/train_against_search.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

import pondertree
from pondertree.envs import as_gymnasium
from pondertree.games import TicTacToe

STEPS = 32_768
#: Episodes of a measurement.
EPISODES = 200


def make() -> Any:
    """Returns the environment: the agent plays either side against UCT with 20 simulations per move."""
    return as_gymnasium(TicTacToe, pondertree.UCT(20), side="random")


def score(choose: Callable[[Any, Any], Any]) -> float:
    """Returns the mean score of an agent, a draw counting 1/2; `choose(env, observation)` returns an action."""
    env, total = make(), 0.0
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        over, reward = False, 0.0
        while not over:
            observation, reward, over, _, _ = env.step(choose(env, observation))
        total += (reward + 1) / 2
    return total / EPISODES


def main() -> None:
    """Trains for some seconds and prints scores against UCT."""
    torch.set_num_threads(1)
    envs = make_vec_env(make, n_envs=8, seed=1)
    options = {"n_steps": 256, "batch_size": 256, "learning_rate": 1e-3, "ent_coef": 0.01, "gamma": 1.0}
    model = MaskablePPO("MlpPolicy", envs, **options, seed=1, device="cpu")

    def agent(env: Any, observation: Any) -> Any:
        return model.predict(observation, action_masks=env.action_masks(), deterministic=True)[0]

    rival = pondertree.UCT(20, seed=2)
    print(f"UCT against itself: {score(lambda env, _: rival.search(env.game_state)):.2f}")
    print(f"untrained agent: {score(agent):.2f}")
    model.learn(STEPS)
    print(f"after {model.num_timesteps:,} steps: {score(agent):.2f}")


if __name__ == "__main__":
    main()
