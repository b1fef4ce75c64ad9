"""States of Gymnasium environments as positions to plan in: a search copies the environment, and steps the copies."""

from __future__ import annotations

import contextlib
import secrets
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.config import discount_factor
from pondertree.envs.actions import Actions, read_actions
from pondertree.envs.generators import RandomDrawError
from pondertree.envs.gymnasium import check_reward, described
from pondertree.envs.readers import read_first
from pondertree.envs.recording import recorder_of
from pondertree.envs.snapshots import Given, Snapshots, find_snapshots
from pondertree.envs.spaces import View, view_of
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.game import CHANCE
from pondertree.games.chance import EqualOutcomes
from pondertree.optional import require
from pondertree.random import Random, fold

#: Samples of the random numbers of a step, each an outcome of its chance node.
SAMPLES = 128


class EnvironmentGame:
    """What the states of an environment have in common."""

    is_shared_by_states = True
    """Whether comparisons of states go by identity."""

    def __init__(
        self, name: str, snapshots: Snapshots, actions: Actions, view: View | str, discount: float, samples: int
    ) -> None:
        """`view` is the error of `observation()` for a space that networks do not take."""
        self.name = name
        self.snapshots = snapshots
        self.actions = actions
        self.view = view
        self.discount = discount
        self.outcomes = EqualOutcomes.of(samples)
        self.numbers = self.outcomes.checked.actions

    def call(self, action: int) -> str:
        """Returns the name of a step in messages."""
        return f"{self.name}.step({self.actions.decode(action)})"

    def step(self, env: Any, action: int, key: int | None) -> tuple[Any, float, bool, bool, Any]:
        """Performs an action in a copy; returns the result, checked except for the observation."""
        try:
            answer = self.snapshots.perform(env, self.actions.decode(action), key)
        except RandomDrawError as error:
            raise GameContractError(
                f"{self.call(action)} drew a random number, although no step of the probe did: "
                "from_gymnasium(..., random=True) makes every step random"
            ) from error
        except Exception as error:
            raise GameContractError(f"{self.call(action)} failed: {described(error)}") from error
        try:
            observation, reward, terminated, truncated, mask = answer
            reward = float(reward)
        except Exception as error:
            raise GameContractError(f"{self.call(action)} gave no result of a step: {described(error)}") from error
        if not abs(reward) <= 1e30:
            check_reward(reward, f"{self.call(action)} gave")
        return observation, reward, bool(terminated), bool(truncated), mask

    def restore(self, token: Any) -> Any:
        """Returns a copy of the environment in a state."""
        try:
            return self.snapshots.restore(token)
        except Exception as error:
            raise GameContractError(f"{self.name} could not be copied: {described(error)}") from error


class GymnasiumState:
    """A state of an environment without randomness, with the interface of a state of a game (`pondertree.Game`).

    `is_terminal` is set by `terminated` and by `truncated`.
    """

    __slots__ = (
        "_env", "_game", "_key", "_legal", "_observation", "_pending", "_reward", "_serial", "_token",
        "is_terminal", "steps", "to_play", "total", "truncated",
    )  # fmt: skip

    num_players = 1
    zero_sum = False

    def __init__(self, game: EnvironmentGame, token: Any, key: int, legal: list[int], observation: Any) -> None:
        """`token` is the snapshot, None at the end of an episode; `key` is that of the random numbers below."""
        self._game = game
        self._token = token
        self._key = key
        self._legal = legal
        self._observation = observation
        self._reward = 0.0
        self._pending: int | None = None
        self._env: Any = None
        self._serial = 0
        self.is_terminal = False
        self.to_play = 0
        self.steps = 0
        """Steps since the state of `from_gymnasium`."""
        self.total = 0.0
        """The sum of the rewards of those steps, without discount."""
        self.truncated = False
        """Whether a time limit ended the episode."""

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return self._game.actions.count

    @property
    def discount(self) -> float:
        """Discount of each move, which searches take."""
        return self._game.discount

    @property
    def snapshot_method(self) -> str:
        """How the environment is copied: "given", "ale", "mujoco", "copy" or "replay"."""
        return self._game.snapshots.method

    @property
    def snapshot_cost(self) -> float:
        """Seconds per copy, as measured by the probe."""
        return self._game.snapshots.cost

    @property
    def is_random(self) -> bool:
        """Whether steps of the environment are random, so that a chance node follows every action."""
        return False

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask allows; all without a mask."""
        return self._legal

    def observation(self) -> NDArray[np.float32]:
        """Returns the observation as a network takes it (`pondertree.envs.spaces`)."""
        view = self._game.view
        if isinstance(view, str):
            raise InvalidArgumentError(view)
        if self._observation is None:
            raise InvalidArgumentError(
                f"the present observation of {self._game.name} is unknown, since an environment does not keep it: pass "
                "observation=, or use env = pondertree.envs.record(env) before env.reset()"
            )
        return view.read(self._observation, self._game.name)

    def play(self, action: int) -> GymnasiumState:
        """Returns the state after an action."""
        self._check(action)
        return self._step(action, fold(self._key, action) if self._game.snapshots.is_random else None)

    def in_place(self) -> GymnasiumState:
        """Returns this state for one line of play: `play` steps one environment, and only the newest state plays on.

        It saves the copies of a playout.
        """
        return self if self.is_terminal else self._copied(self._game.restore(self._token))

    def rewards(self) -> list[float]:
        """Returns the reward of the last action, without discount."""
        return [self._reward]

    def returns(self) -> list[float]:
        """Returns the sum of the rewards so far."""
        return [self.total]

    def __repr__(self) -> str:
        end = ", over" if self.is_terminal else ""
        return f"<{type(self).__name__} of {self._game.name} after {self.steps} steps, total {self.total:g}{end}>"

    def _check(self, action: int) -> None:
        if action not in self._legal:
            raise InvalidActionError(
                f"action {action} is not allowed here: allowed are {validation.shown(self._legal)}"
            )

    def _copied(self, env: Any) -> GymnasiumState:
        """Returns this state with an environment of its own, which `play` steps."""
        new = object.__new__(type(self))
        new._game, new._key, new._legal, new._observation = self._game, self._key, self._legal, self._observation
        new._reward, new._pending = self._reward, self._pending
        new.is_terminal, new.steps, new.to_play = self.is_terminal, self.steps, self.to_play
        new.total, new.truncated = self.total, self.truncated
        new._env, new._token, new._serial = env, None, self._game.snapshots.serial
        return new

    def _step(self, action: int, key: int | None) -> GymnasiumState:
        game, token = self._game, self._token
        snapshots = game.snapshots
        if token is None:
            env, self._env = self._env, None
            if env is None or self._serial != snapshots.serial:
                raise UsageError("a state of in_place() plays once, and before any other state of its environment")
        else:
            env = game.restore(token)
        observation, reward, terminated, truncated, mask = game.step(env, action, key)
        over = terminated or truncated
        new = object.__new__(type(self))
        new._game = game
        new._key = self._key if key is None else key
        new._legal = [] if over else game.actions.all if mask is None else game.actions.allowed(mask, game.call(action))
        if snapshots.is_exclusive and isinstance(observation, np.ndarray):
            observation = observation.copy()  # the next step of the same environment may overwrite it
        new._observation = observation
        new._reward = reward
        new._pending = None
        new._env = new._token = None
        new._serial = self._serial
        if not over:
            if token is None:
                new._env = env
            else:
                new._token = snapshots.keep(env)
        new.is_terminal = over
        new.to_play = 0
        new.steps = self.steps + 1
        new.total = self.total + reward
        new.truncated = truncated and not terminated
        return new


class RandomGymnasiumState(GymnasiumState):
    """A state of an environment whose steps are random: after an action comes a chance node.

    Its outcomes are equally likely samples of the random numbers of the step. They are functions of the seed and the
    outcomes so far, and independent of the numbers that the environment itself will draw. All actions of a state have
    the same samples (common random numbers), so that they are compared under equal luck.
    """

    __slots__ = ()

    @property
    def is_random(self) -> bool:
        """Whether steps of the environment are random, so that a chance node follows every action."""
        return True

    def chance_outcomes(self) -> EqualOutcomes:
        """Returns the samples of a chance node with their probabilities."""
        return self._game.outcomes

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask allows; at a chance node its samples."""
        return self._legal if self._pending is None else self._game.numbers

    def play(self, action: int) -> GymnasiumState:
        """Returns the chance node after an action, or the state after a sample."""
        if self._pending is not None:
            if not 0 <= action < len(self._game.numbers):
                raise InvalidActionError(f"outcome {action} is not from 0 to {len(self._game.numbers) - 1}")
            return self._step(self._pending, fold(self._key, action))
        self._check(action)
        new = self._copied(self._env)
        new._token, new._serial, new._pending, new.to_play, new._reward = self._token, self._serial, action, CHANCE, 0.0
        return new


def from_gymnasium(
    env: Any,
    *,
    snapshot: Given | None = None,
    discount: float = 1.0,
    seed: int | None = None,
    random: bool | None = None,
    samples: int = SAMPLES,
    observation: Any = None,
    info: Any = None,
) -> GymnasiumState:
    """Returns the state that an environment is in now, wrappers included, as a position of a game of one player.

    The environment itself is never stepped or reseeded; how it is copied is probed (`state.snapshot_method`).

    - `snapshot`: `(save(env) -> token, restore(env, token))`, for an environment that cannot be copied otherwise.
    - `discount`: that of each move in searches from here, unless they have their own: g = reward + discount * g.
    - `seed`: of the samples of random steps; drawn if it is None.
    - `random`: whether steps are random; None takes what the probe finds. False makes the numbers that a step draws a
      function of the actions before it.
    - `samples`: number of equally likely outcomes of a random step.
    - `observation`, `info`: what the last `reset` or `step` returned, unless `env` is a `pondertree.envs.record`.
    """
    gymnasium = require("gymnasium", "envs", "an environment")
    if isinstance(env, gymnasium.vector.VectorEnv) or not isinstance(env, gymnasium.Env):
        raise InvalidArgumentError(f"from_gymnasium takes one gymnasium.Env, not {type(env).__name__}")
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    actions = read_actions(env.action_space, name)
    discount = discount_factor(discount, "discount")
    samples = validation.whole_number(samples, "samples", least=1, most=65_535)
    key = secrets.randbits(63) if seed is None else validation.whole_number(seed, "seed", least=0, most=(1 << 64) - 1)
    recorder = recorder_of(env)
    if recorder is not None and recorder.episode is not None and observation is None and info is None:
        last = recorder.episode.last
        observation, info = last[0], last[-1]
        if len(last) == 5 and (last[2] or last[3]):
            raise InvalidArgumentError(f"the episode of {name} is over: reset it first")
    mask = info.get("action_mask") if isinstance(info, dict) else None
    first = None if observation is None else (observation, 0.0, False, False, mask)
    access = _Access(actions, name)
    snapshots = _snapshots(env, name, access, snapshot, first, bool(random))
    token = snapshots.save(env)
    if first is None or info is None:
        seen, found_mask = read_first(snapshots, token, access, name, needs_mask=info is None)
        observation = seen if observation is None else observation
        mask = found_mask if info is None else mask
    legal = actions.all if mask is None else actions.allowed(mask, name)
    view: View | str
    try:
        view = view_of(env.observation_space, name)
    except InvalidArgumentError as error:
        view = str(error)
    kind = RandomGymnasiumState if snapshots.is_random and random is not False else GymnasiumState
    game = EnvironmentGame(name, snapshots, actions, view, discount, samples)
    return kind(game, token, fold(key, 0), legal, observation)


#: The snapshots of environments that were probed, and the options of the probe.
_probed: weakref.WeakKeyDictionary[Any, tuple[Any, Snapshots]] = weakref.WeakKeyDictionary()


def _snapshots(env: Any, name: str, access: _Access, given: Given | None, first: Any, random: bool) -> Snapshots:
    """Returns the snapshots of an environment, which is probed once; a replay belongs to one episode."""
    with contextlib.suppress(KeyError, TypeError):  # environments without a hash are probed each time
        options, snapshots = _probed[env]
        if options == (given, random):
            return snapshots
    snapshots = find_snapshots(
        env,
        name,
        step=access.step,
        sample_action=access.sample_action,
        given=given,
        reset=access.reset,
        first=first,
        random=random,
    )
    if snapshots.method != "replay":
        with contextlib.suppress(TypeError):
            _probed[env] = (given, random), snapshots
    return snapshots


class _Access:
    """How a probe steps an environment of Gymnasium."""

    def __init__(self, actions: Actions, name: str) -> None:
        self._actions = actions
        self._name = name

    def step(self, env: Any, action: Any) -> Any:
        """Returns the result of a step with the mask in the place of `info`."""
        observation, reward, terminated, truncated, info = env.step(action)
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return observation, reward, terminated, truncated, mask

    def sample_action(self, env: Any, result: Any, random: Random) -> Any:
        """Returns a random action that the mask of the last result allows; None at the end of an episode."""
        if result is not None and (result[2] or result[3]):
            return None
        mask = None if result is None else result[4]
        legal = self._actions.all if mask is None else self._actions.allowed(mask, self._name)
        return self._actions.decode(legal[random.below(len(legal))])

    def reset(self, env: Any, seed: int) -> Any:
        """Returns what `step` does."""
        observation, info = env.reset(seed=seed)
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return observation, 0.0, False, False, mask
