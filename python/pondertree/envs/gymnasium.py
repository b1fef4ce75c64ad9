"""Environments of Gymnasium as games of one player with rewards: what a model learns from where there are no rules.

An environment cannot go back, so a state of it is one with a string attached: playing moves the environment itself on,
and only the newest state of an episode can be played from. Everything it does follows from its seed and the actions,
which is how an episode that was under way is taken up again.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.envs.spaces import View, view_of
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.optional import require

PREFIX = "gym:"
#: More than the engine can number.
MOST_ACTIONS = 65_535
#: Larger rewards overflow when they are added up.
MOST_REWARD = 1e30
#: Seeds that every environment takes.
MOST_SEED = (1 << 31) - 1


def refuse_reward(reward: float, said: str) -> None:
    """Refuses rewards that cannot be learned, nor added up in float32; `said` is who gave it."""
    if not abs(reward) <= MOST_REWARD:
        raise GameContractError(f"{said} the reward {reward}: rewards must be finite, and at most {MOST_REWARD:.0e}")


class Environments:
    """Environments of one kind, lent for an episode each and used again."""

    def __init__(self, name: str, make: Callable[[], Any] | None = None) -> None:
        """`make` gives an environment that has no name in the registry of Gymnasium."""
        gymnasium = require("gymnasium", "envs", "an environment")
        self.name = name
        self._make = make if make is not None else lambda: _registered(gymnasium, name)
        first = self._make()
        if not isinstance(first.action_space, gymnasium.spaces.Discrete):
            raise InvalidArgumentError(
                f"environment {name!r} has actions of {first.action_space}: only Discrete actions can be searched, "
                "such as those of CartPole-v1; choose some of them in a wrapper and number those"
            )
        self.num_actions = int(first.action_space.n)
        if self.num_actions > MOST_ACTIONS:
            raise InvalidArgumentError(
                f"environment {name!r} has {self.num_actions:,} actions: at most {MOST_ACTIONS:,} can be searched; "
                "choose some of them in a wrapper and number those"
            )
        self.first_action = int(first.action_space.start)
        self.view: View = view_of(first.observation_space, name)
        self._free = [first]

    def start(self, seed: int) -> EnvironmentState:
        """The first state of the episode with this seed."""
        try:
            environment = self._free.pop()
        except IndexError:
            environment = self._make()
        seed %= MOST_SEED
        try:
            told = environment.reset(seed=seed)
            seen, info = told
        except Exception as error:
            raise GameContractError(f"{self.name}.reset(seed={seed}) failed: {_said(error)}") from error
        name = f"{self.name}.reset(seed={seed})"
        return EnvironmentState(Running(self, environment), self.view.read(seen, name), info, name)

    def give_back(self, environment: Any) -> None:
        """Keeps an environment for the next episode."""
        self._free.append(environment)

    def close(self) -> None:
        """Closes those that nobody has."""
        while self._free:
            self._free.pop().close()


class Running:
    """An environment that an episode has, and how many actions it has had."""

    __slots__ = ("actions", "environment", "home")

    def __init__(self, home: Environments, environment: Any) -> None:
        self.home = home
        self.environment: Any = environment
        self.actions = 0

    def name_of(self, action: int) -> str:
        """What messages call a step: the action is the environment's own."""
        return f"{self.home.name}.step({action + self.home.first_action})"

    def step(self, action: int) -> tuple[Any, float, bool, bool, Any]:
        """What the environment answers, checked but for what is seen."""
        try:
            seen, reward, terminated, truncated, info = self.environment.step(action + self.home.first_action)
            reward = float(reward)
        except Exception as error:
            raise GameContractError(f"{self.name_of(action)} failed: {_said(error)}") from error
        refuse_reward(reward, f"{self.name_of(action)} gave")
        self.actions += 1
        return seen, reward, bool(terminated), bool(truncated), info

    def release(self) -> None:
        """Gives the environment back."""
        if self.environment is not None:
            self.home.give_back(self.environment)
            self.environment = None


class EnvironmentState:
    """A state of an environment, with the interface of a state of a game (`pondertree.Game`)."""

    __slots__ = ("_actions", "_legal", "_reward", "_running", "_seen", "is_terminal", "total", "truncated")

    num_players = 1
    to_play = 0
    zero_sum = False

    def __init__(
        self,
        running: Running,
        seen: NDArray[np.float32],
        info: Any,
        name: str,
        *,
        reward: float = 0.0,
        total: float = 0.0,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        """`name` is what messages call the step that led here."""
        self._running = running
        self._actions = running.actions
        self._seen = seen
        self._reward = reward
        self.total = total
        """Rewards of the episode so far."""
        self.truncated = truncated and not terminated
        """Whether it ended only because it was too long: there would have been more rewards."""
        self.is_terminal = terminated or truncated
        self._legal = [] if self.is_terminal else _allowed(info, running.home, name)

    @property
    def num_actions(self) -> int:
        """All actions there are."""
        return self._running.home.num_actions

    def legal_actions(self) -> list[int]:
        """The actions that `info["action_mask"]` allows; all where it says nothing."""
        return self._legal

    def observation(self) -> NDArray[np.float32]:
        """What is seen."""
        return self._seen

    def play(self, action: int) -> EnvironmentState:
        """The state after an action; this one has no future any more."""
        running = self._running
        if running.environment is None or running.actions != self._actions:
            raise UsageError("an environment cannot go back: play from the newest state of its episode")
        if action not in self._legal:
            raise UsageError(f"action {action} is not allowed here: allowed are {self._legal}")
        seen, reward, terminated, truncated, info = running.step(action)
        name = running.name_of(action)
        view = running.home.view.read(seen, name)
        if terminated or truncated:
            running.release()
        return EnvironmentState(
            running,
            view,
            info,
            name,
            reward=reward,
            total=self.total + reward,
            terminated=terminated,
            truncated=truncated,
        )

    def release(self) -> None:
        """Ends the episode here."""
        self._running.release()

    def rewards(self) -> list[float]:
        """What the last action brought."""
        return [self._reward]

    def returns(self) -> list[float]:
        """All rewards of the episode."""
        return [self.total]


def _registered(gymnasium: Any, name: str) -> Any:
    """An environment by its name; the nearest name is told where there is none."""
    try:
        return gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        near = difflib.get_close_matches(name, list(gymnasium.registry), n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near and name not in gymnasium.registry else ""
        raise InvalidArgumentError(f"environment {name!r} cannot be made: {error}{hint}") from None
    except Exception as error:
        raise InvalidArgumentError(f"environment {name!r} cannot be made: {_said(error)}") from error


def _allowed(info: Any, home: Environments, name: str) -> list[int]:
    mask = info.get("action_mask") if isinstance(info, dict) else None
    if mask is None:
        return list(range(home.num_actions))
    said = f"{name}: info['action_mask']"
    try:
        allowed = np.asarray(mask)
    except ValueError as error:
        raise GameContractError(f"{said} is no array: {error}") from None
    if allowed.shape != (home.num_actions,):
        raise GameContractError(f"{said} has shape {allowed.shape}, but there are {home.num_actions} actions")
    if not np.isin(allowed, (0, 1)).all():
        wrong = next(each for each in allowed.tolist() if each not in (0, 1))
        raise GameContractError(f"{said} has {wrong!r}: it must be 1 for what is allowed and 0 for the rest")
    legal: list[int] = np.flatnonzero(allowed).tolist()
    if not legal:
        raise GameContractError(f"{said} allows no action, but the episode is not over")
    return legal


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
