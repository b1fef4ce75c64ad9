"""States of Gymnasium environments as positions to plan in: a search copies the environment, and steps the copies."""

from __future__ import annotations

import secrets
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import LARGEST_REWARD
from pondertree.config import discount_factor
from pondertree.envs.actions import Actions, read_actions
from pondertree.envs.copied_state import SAMPLES, CopiedState, Faults, ProbeCache, RandomSteps, check_given
from pondertree.envs.gymnasium import check_reward, described
from pondertree.envs.methods import Given, layers_of
from pondertree.envs.readers import read_first
from pondertree.envs.recording import recorder_of
from pondertree.envs.snapshots import Snapshots, find_snapshots
from pondertree.envs.spaces import View, view_of
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.games.chance import EqualOutcomes
from pondertree.optional import require
from pondertree.random import Random, fold


class EnvironmentGame:
    """What the states of an environment have in common."""

    is_shared_by_states = True
    """Whether comparisons of states go by identity."""

    def __init__(
        self,
        name: str,
        snapshots: Snapshots,
        actions: Actions,
        view: View | str,
        *,
        discount: float,
        samples: int,
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

    def read(self, answer: Any, action: int) -> tuple[Any, float, bool, bool, Any]:
        """Returns the result of a step, checked except for the observation."""
        try:
            observation, reward, terminated, truncated, mask = answer
            reward = float(reward)
        except Exception as error:
            raise GameContractError(f"{self.call(action)} gave no result of a step: {described(error)}") from error
        if not abs(reward) <= LARGEST_REWARD:
            check_reward(reward, f"{self.call(action)} gave", LARGEST_REWARD)
        return observation, reward, bool(terminated), bool(truncated), mask


class GymnasiumState(CopiedState):
    """A state of an environment without randomness, with the interface of a state of a game (`pondertree.Game`).

    `is_terminal` is set by `terminated` and by `truncated`.
    """

    __slots__ = ("_game", "_legal", "_observation", "_reward", "total", "truncated")

    adapter = "from_gymnasium"
    num_players = 1
    zero_sum = False

    def __init__(
        self, game: EnvironmentGame, token: Any, key: int, legal: list[int], observation: Any, seed: int = 0
    ) -> None:
        """`token` is the snapshot, None at the end of an episode; `key` is that of the random numbers below."""
        self._game = game
        self._token = token
        self._key = key
        self._legal = legal
        self._observation = observation
        self._reward = 0.0
        self._pending = None
        self._env = None
        self.seed = seed
        self.is_terminal = False
        self.to_play = 0
        self.steps = 0
        self.total = 0.0
        """The sum of the rewards of those steps, without discount."""
        self.truncated = False
        """Whether a time limit ended the episode."""

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return int(self._game.actions.count)

    def environment_action(self, action: int) -> Any:
        """Returns what the environment's `step` takes for an action of a search."""
        return self._game.actions.decode(validation.whole_number(action, "action", most=self.num_actions - 1))

    def observation(self) -> NDArray[np.float32]:
        """Returns the observation as a network takes it (`pondertree.envs.spaces`)."""
        view: View | str = self._game.view
        if isinstance(view, str):
            raise InvalidArgumentError(view)
        if self._observation is None:
            raise InvalidArgumentError(
                f"the present observation of {self._game.name} is unknown, since an environment does not keep it: pass "
                "observation=, or use env = pondertree.envs.record(env) before env.reset()"
            )
        return view.read(self._observation, self._game.name)

    def rewards(self) -> list[float]:
        """Returns the reward of the last action, without discount."""
        return [self._reward]

    def returns(self) -> list[float]:
        """Returns the sum of the rewards so far."""
        return [self.total]

    def __repr__(self) -> str:
        end = ", over" if self.is_terminal else ""
        return f"<{type(self).__name__} of {self._game.name} after {self.steps} steps, total {self.total:g}{end}>"

    def _equal_state(self) -> Self:
        new = object.__new__(type(self))
        new._game, new._key, new._legal, new._observation = self._game, self._key, self._legal, self._observation
        new._reward, new._pending = self._reward, self._pending
        new._env, new._token = self._env, self._token
        new.is_terminal, new.steps, new.to_play = self.is_terminal, self.steps, self.to_play
        new.total, new.truncated, new.seed = self.total, self.truncated, self.seed
        return new

    def _stepped(self, action: int, key: int | None) -> Self:
        game, snapshots = self._game, self._game.snapshots
        env = self._take()
        answer = self._perform(env, game.actions.decode(action), key, game.call(action))
        observation, reward, terminated, truncated, mask = game.read(answer, action)
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
        new.seed = self.seed
        if not over:
            if self._token is None:
                new._env = snapshots.live(env)
            else:
                new._token = snapshots.keep(env)
        new.is_terminal = over
        new.to_play = 0
        new.steps = self.steps + 1
        new.total = self.total + reward
        new.truncated = truncated and not terminated
        return new


class RandomGymnasiumState(RandomSteps, GymnasiumState):
    """A state of an environment with random steps: after an action comes a chance node."""

    __slots__ = ()

    def rewards(self) -> list[float]:
        """Returns the reward of the last action, without discount; 0 at a chance node."""
        return [0.0 if self._pending is not None else self._reward]


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
    - `seed`: of the samples of random steps; drawn if it is None (`state.seed`).
    - `random`: whether steps are random; None takes what the probe finds. False makes the numbers that a step draws a
      function of the actions before it.
    - `samples`: number of equally likely outcomes of a random step.
    - `observation`, `info`: what the last `reset` or `step` returned, unless `env` is a `pondertree.envs.record`.
    """
    gymnasium = require("gymnasium", "envs", "an environment")
    if isinstance(env, gymnasium.vector.VectorEnv) or not isinstance(env, gymnasium.Env):
        raise InvalidArgumentError(f"from_gymnasium takes one gymnasium.Env, not {type(env).__name__}")
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    for space in ("action_space", "observation_space"):
        if not hasattr(env, space):
            raise InvalidArgumentError(f"{name} has no {space}")
    check_given(snapshot)
    actions = read_actions(env.action_space, name)
    discount = discount_factor(discount, "discount")
    samples = validation.whole_number(samples, "samples", least=1, most=65_535)
    seed = secrets.randbits(63) if seed is None else validation.whole_number(seed, "seed", least=0, most=(1 << 64) - 1)
    random = validation.optional_flag(random, "random")
    if info is not None and not isinstance(info, dict):
        raise InvalidArgumentError(f"info must be the dict that reset or step returned, not {validation.shown(info)}")
    _refuse_unready(env, name)
    recorder = recorder_of(env)
    if recorder is not None and recorder.episode is not None and observation is None and info is None:
        last = recorder.episode.last
        observation, info = last[0], last[-1]
    mask = info.get("action_mask") if isinstance(info, dict) else None
    first = None if observation is None else (observation, 0.0, False, False, mask)
    access = _Access(actions, name)
    snapshots = _snapshots(env, name, access, snapshot, first, random)
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
    game = EnvironmentGame(name, snapshots, actions, view, discount=discount, samples=samples)
    return kind(game, token, fold(seed, 0), legal, observation, seed)


#: The snapshots of environments that were probed.
_probed: ProbeCache[Snapshots] = ProbeCache(lambda snapshots: snapshots)


def _snapshots(env: Any, name: str, access: _Access, given: Given | None, first: Any, random: bool | None) -> Snapshots:
    """Returns the snapshots of an environment, which is probed once."""
    options = given, random
    if (known := _probed.get(env, options)) is not None:
        return known
    faults = Faults()
    with faults.reported():
        snapshots = find_snapshots(
            env,
            name,
            step=faults.noting(access.step),
            sample_action=faults.noting(access.sample_action),
            given=given,
            reset=access.reset,
            first=first,
            random=random,
        )
    _probed.put(env, options, snapshots, given)
    return snapshots


def _refuse_unready(env: Any, name: str) -> None:
    """Raises for an environment that was not reset or whose episode is over, as far as it or its wrappers know."""
    over = False
    for layer in layers_of(env):
        held = getattr(layer, "__dict__", {})
        limit, steps = held.get("_max_episode_steps"), held.get("_elapsed_steps", 0)
        if held.get("_has_reset") is False or (limit is not None and steps is None):
            raise UsageError(f"{name} has no state yet: call env.reset() first")
        over = over or (isinstance(limit, int) and isinstance(steps, int) and steps >= limit)
        over = over or held.get("steps_beyond_terminated") is not None
    recorder = recorder_of(env)
    if recorder is not None and recorder.episode is not None:
        last = recorder.episode.last
        over = over or (len(last) == 5 and bool(last[2] or last[3]))
    if over:
        raise InvalidArgumentError(f"the episode of {name} is over: reset it first")


class _Access:
    """How a probe steps an environment of Gymnasium."""

    def __init__(self, actions: Actions, name: str) -> None:
        self._actions = actions
        self._name = name

    def step(self, env: Any, action: Any) -> Any:
        """Returns the result of a step with the mask in the place of `info`."""
        answer = env.step(action)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise GameContractError(
                f"{self._name}.step({action}) gave {validation.shown(answer)}: it must return a tuple of 5, "
                "(observation, reward, terminated, truncated, info)"
            )
        observation, reward, terminated, truncated, info = answer
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return observation, reward, terminated, truncated, mask

    def sample_action(self, env: Any, result: Any, random: Random) -> Any:
        """Returns a random action that the mask of the last result allows; None at the end of an episode."""
        if result is not None and (result[2] or result[3]):
            return None
        mask = None if result is None else result[4]
        legal = self._actions.all if mask is None else self._actions.allowed(mask, f"{self._name}.step")
        return self._actions.decode(legal[random.below(len(legal))])

    def reset(self, env: Any, seed: int) -> Any:
        """Returns what `step` does."""
        observation, info = env.reset(seed=seed)
        mask = info.get("action_mask") if isinstance(info, dict) else None
        return observation, 0.0, False, False, mask
