"""Agents of Stable-Baselines3 learn in `as_gymnasium`. That they get better is tested by the example."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pondertree
from pondertree.envs import as_gymnasium
from pondertree.games import Pig, TicTacToe

torch = pytest.importorskip("torch")
stable_baselines3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 comes with sb3-contrib")
checker = pytest.importorskip("stable_baselines3.common.env_checker")
vectors = pytest.importorskip("stable_baselines3.common.env_util")
sb3_contrib = pytest.importorskip("sb3_contrib", reason="MaskablePPO is in sb3-contrib")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small networks are slower on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore::UserWarning:stable_baselines3")  # advice on images, which planes look like
@pytest.mark.parametrize("factory", [TicTacToe, Pig], ids=lambda made: made.__name__)
def test_stable_baselines_accepts_the_environment(factory: type) -> None:
    checker.check_env(as_gymnasium(factory, pondertree.UCT(10), side="random"))


def test_masked_agent_plays_no_illegal_action() -> None:
    """`illegal_reward=None` raises on the first one."""

    def make() -> object:
        return as_gymnasium(TicTacToe, pondertree.UCT(10), side="random", illegal_reward=None)

    envs = vectors.make_vec_env(make, n_envs=2, seed=1)
    agent = sb3_contrib.MaskablePPO("MlpPolicy", envs, n_steps=64, batch_size=32, seed=1, device="cpu").learn(128)
    assert agent.num_timesteps == 128


@pytest.mark.slow
def test_agent_without_masks_learns_what_is_legal() -> None:
    env = as_gymnasium(TicTacToe, "random", illegal_reward=-1.0)
    agent = stable_baselines3.PPO("MlpPolicy", env, n_steps=512, learning_rate=3e-3, seed=1, device="cpu")

    def illegal() -> int:
        """Returns the number of episodes of 100 that end by an illegal action."""
        count = 0
        for seed in range(100):
            observation, info = env.reset(seed=seed)
            over = False
            while not over:
                observation, _, over, _, info = env.step(agent.predict(observation, deterministic=True)[0])
            count += "illegal_action" in info
        return count

    before = illegal()
    agent.learn(4096)
    assert illegal() < before - 20
