"""Gymnasium environments as games of one player with rewards, to train learned models on.

An environment cannot be copied or reset to an earlier state: `play` steps the environment itself, and only the newest
state of an episode can be played from. An episode is determined by its seed and actions, and resumed by replaying them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.envs.actions import read_actions
from pondertree.envs.spaces import View, view_of
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.optional import require

PREFIX = "gym:"
#: Larger rewards overflow float32 when summed.
MAX_REWARD = 1e30
#: The largest seed that all environments accept.
MAX_SEED = (1 << 31) - 1


def check_reward(reward: float, source: str, most: float = MAX_REWARD) -> None:
    """Raises `GameContractError` unless the reward is finite and its magnitude at most `most`."""
    if not abs(reward) <= most:
        raise GameContractError(f"{source} the reward {reward}: rewards must be finite, and at most {most:.0e}")


class Environments:
    """A pool of environments of one kind, each used for one episode at a time."""

    def __init__(self, name: str, make: Callable[[], Any] | None = None) -> None:
        """`make` creates an environment that is not in the registry of Gymnasium."""
        gymnasium = require("gymnasium", "envs", "an environment")
        self.name = name
        self._make = make if make is not None else lambda: _registered(gymnasium, name)
        first = self._make()
        self.actions = read_actions(first.action_space, name, only_discrete=True)
        self.num_actions = self.actions.count
        self.view: View = view_of(first.observation_space, name)
        self._free = [first]

    def start(self, seed: int) -> EnvironmentState:
        """Returns the first state of the episode with this seed."""
        try:
            environment = self._free.pop()
        except IndexError:
            environment = self._make()
        seed %= MAX_SEED
        try:
            observation, info = environment.reset(seed=seed)
        except Exception as error:
            raise GameContractError(f"{self.name}.reset(seed={seed}) failed: {described(error)}") from error
        name = f"{self.name}.reset(seed={seed})"
        return EnvironmentState(Episode(self, environment), self.view.read(observation, name), info, name)

    def release(self, environment: Any) -> None:
        """Returns an environment to the pool."""
        self._free.append(environment)

    def close(self) -> None:
        """Closes the environments in the pool."""
        while self._free:
            self._free.pop().close()


class Episode:
    """An episode: its environment, and the number of actions so far."""

    __slots__ = ("actions", "environment", "pool")

    def __init__(self, pool: Environments, environment: Any) -> None:
        self.pool = pool
        self.environment: Any = environment
        self.actions = 0

    def name_of(self, action: int) -> str:
        """Returns the name of a step in messages, with the environment's own number of the action."""
        return f"{self.pool.name}.step({self.pool.actions.decode(action)})"

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        """Returns the result of `step`, checked except for the observation."""
        try:
            observation, reward, terminated, truncated, info = self.environment.step(self.pool.actions.decode(action))
            reward = float(reward)
        except Exception as error:
            raise GameContractError(f"{self.name_of(action)} failed: {described(error)}") from error
        check_reward(reward, f"{self.name_of(action)} gave")
        self.actions += 1
        return observation, reward, bool(terminated), bool(truncated), info

    def release(self) -> None:
        """Returns the environment to its pool."""
        if self.environment is not None:
            self.pool.release(self.environment)
            self.environment = None


class EnvironmentState:
    """A state of an environment, with the interface of a state of a game (`pondertree.Game`)."""

    __slots__ = ("_actions", "_episode", "_legal", "_observation", "_reward", "is_terminal", "total", "truncated")

    num_players = 1
    to_play = 0
    zero_sum = False

    def __init__(
        self,
        episode: Episode,
        observation: NDArray[np.float32],
        info: Any,
        name: str,
        *,
        reward: float = 0.0,
        total: float = 0.0,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """`name` is the name in messages of the step that led here."""
        self._episode = episode
        self._actions = episode.actions
        self._observation = observation
        self._reward = reward
        self.total = total
        """The return of the episode so far."""
        self.truncated = truncated and not terminated
        """Whether a time limit ended the episode, so that its return is incomplete."""
        self.is_terminal = terminated or truncated
        self._legal = [] if self.is_terminal else episode.pool.actions.legal(info, name)

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return self._episode.pool.num_actions

    def legal_actions(self) -> list[int]:
        """Returns the actions that `info["action_mask"]` allows; all without a mask."""
        return self._legal.copy()

    def observation(self) -> NDArray[np.float32]:
        """Returns the observation as a network takes it."""
        return self._observation

    def play(self, action: int) -> EnvironmentState:
        """Returns the state after an action; this state cannot be played from any more."""
        episode = self._episode
        if episode.environment is None or episode.actions != self._actions:
            raise UsageError("an environment cannot go back: play from the newest state of its episode")
        if action not in self._legal:
            raise UsageError(f"action {action} is not allowed here: allowed are {self._legal}")
        observation, reward, terminated, truncated, info = episode.step(action)
        name = episode.name_of(action)
        view = episode.pool.view.read(observation, name)
        if terminated or truncated:
            episode.release()
        return EnvironmentState(
            episode,
            view,
            info,
            name,
            reward=reward,
            total=self.total + reward,
            terminated=terminated,
            truncated=truncated,
        )

    def close(self) -> None:
        """Ends the episode and releases its environment."""
        self._episode.release()

    def rewards(self) -> list[float]:
        """Returns the reward of the last action."""
        return [self._reward]

    def returns(self) -> list[float]:
        """Returns the return of the episode."""
        return [self.total]


def _registered(gymnasium: Any, name: str) -> Any:
    """Returns a registered environment; an error suggests the nearest name."""
    try:
        return gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        near = difflib.get_close_matches(name, list(gymnasium.registry), n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near and name not in gymnasium.registry else ""
        raise InvalidArgumentError(f"environment {name!r} cannot be made: {error}{hint}") from None
    except Exception as error:
        raise InvalidArgumentError(f"environment {name!r} cannot be made: {described(error)}") from error


def described(error: BaseException) -> str:
    """Returns the class and the message of an exception."""
    return f"{type(error).__name__}: {error}"
