"""The agents of a PettingZoo environment: their spaces, and how they are stepped and read."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from pondertree.envs.actions import Actions, read_actions
from pondertree.envs.snapshots import Snapshots
from pondertree.envs.spaces import View, view_of
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.games.chance import EqualOutcomes
from pondertree.random import Random
from pondertree.validation import shown

#: The player of a reading when the episodes of all agents are over.
OVER: Final = -1
#: The action where the selected agent's episode is over, so that it owes None.
NOTHING: Final = -1


class Reading(NamedTuple):
    """What an environment shows before a decision or at the end."""

    player: int
    """The index of the agent to act in `possible_agents`, or `OVER`."""
    legal: list[int]
    rewards: tuple[float, ...]
    """What each agent got since the decision before."""
    observation: Any
    truncated: bool
    """Whether a limit ended the episode of an agent since then."""


class AgentTable:
    """The agents of an environment, their spaces, and how they are stepped and read."""

    #: Tools, which are no part of a state.
    is_shared_by_states = True
    snapshots: Snapshots

    def __init__(self, env: Any, name: str, *, discount: float, samples: int, results_only: bool) -> None:
        self.name = name
        self.agents = tuple(env.possible_agents)
        self.discount = discount
        self.results_only = results_only
        self.outcomes = EqualOutcomes.of(samples)
        self.numbers = list(range(samples))
        self.nothing = (0.0,) * len(self.agents)
        self.is_probed = True
        """Whether the way of copying is being probed, which repeats actions where they may be illegal."""
        self._index = {agent: index for index, agent in enumerate(self.agents)}
        self.actions: list[Actions] = [
            read_actions(env.action_space(agent), f"{name} ({agent})") for agent in self.agents
        ]
        self.num_actions = max(each.count for each in self.actions)
        self.views = [_view_of(env.observation_space(agent), name) for agent in self.agents]
        self._wrappers = _plain_wrappers(env)

    def call(self, player: int, action: int) -> str:
        """Returns the name of a step in messages, with the environment's own action."""
        return f"{self.name}.step({self.actions[player].decode(action)}) of {self.agents[player]}"

    def owes_none(self, env: Any) -> bool:
        """Whether the selected agent's episode is over, so that it waits for `step(None)`."""
        held = self._holder(env)
        return bool(held.agents) and _is_done(held)

    def step(self, env: Any, action: int) -> Reading:
        """Performs an action (`NOTHING` if only None actions are owed), and the None actions after it."""
        held = self._holder(env)
        if not held.agents:
            raise UsageError(f"{self.name}: the episode is over")
        totals = [0.0] * len(self.agents)
        truncated = False
        if action != NOTHING:
            player = self._player(held)
            if self.is_probed and action not in self.read(env).legal:
                raise InvalidActionError(f"action {action} is not allowed")
            env.step(self.actions[player].decode(action))
            self._add_rewards(held, totals)
        for _ in range(len(self.agents) + 1):
            if not held.agents or not _is_done(held):
                return self.read(env, tuple(totals), truncated)
            truncated = truncated or bool(held.truncations[held.agent_selection])
            env.step(None)
            self._add_rewards(held, totals)
        raise GameContractError(f"{self.name}.step(None) does not remove an agent whose episode is over")

    def read(self, env: Any, rewards: tuple[float, ...] | None = None, truncated: bool = False) -> Reading:
        """Reads an environment whose selected agent is to act, or in which all are done."""
        held = self._holder(env)
        rewards = self.nothing if rewards is None else rewards
        if not held.agents:
            return Reading(OVER, [], rewards, None, truncated)
        player = self._player(held)
        agent = self.agents[player]
        observation = env.observe(agent)
        mask = None
        if isinstance(observation, dict):
            mask = observation.get("action_mask")
            observation = observation.get("observation")
        if mask is None:
            info = held.infos.get(agent)
            mask = info.get("action_mask") if isinstance(info, dict) else None
        legal = self.actions[player].all if mask is None else self._allowed(mask, player)
        return Reading(player, legal, rewards, observation, truncated)

    def reset(self, env: Any, seed: int) -> Reading:
        """Resets a copy of the environment, which the probe does."""
        env.reset(seed=seed)
        return self.read(env)

    def sample_action(self, env: Any, reading: Reading | None, random: Random) -> int | None:
        """Returns a random legal action; None at the end of an episode."""
        if reading is None:
            held = self._holder(env)
            if not held.agents:
                return None
            if _is_done(held):
                return NOTHING
            reading = self.read(env)
        return None if reading.player == OVER else reading.legal[random.below(len(reading.legal))]

    def _holder(self, env: Any) -> Any:
        """Returns the object that has the attributes `agents`, `rewards` and so on.

        PettingZoo's own wrappers only pass them on, which takes a microsecond per wrapper and attribute.
        """
        for _ in range(self._wrappers):
            env = env.env
        return env

    def _player(self, held: Any) -> int:
        agent = held.agent_selection
        try:
            return self._index[agent]
        except KeyError:
            raise GameContractError(
                f"{self.name} selected the agent {agent!r}, which is not in possible_agents: {shown(list(self.agents))}"
            ) from None

    def _add_rewards(self, held: Any, totals: list[float]) -> None:
        for agent, reward in held.rewards.items():
            if reward:  # also NaN
                totals[self._index[agent]] += float(reward)

    def _allowed(self, mask: Any, player: int) -> list[int]:
        """Returns the actions that a mask allows."""
        source = f"{self.name}: the action_mask of {self.agents[player]}"
        count = self.actions[player].count
        try:
            flags = np.asarray(mask)
        except ValueError as error:
            raise GameContractError(f"{source} is no array: {error}") from None
        if flags.shape != (count,):
            raise GameContractError(f"{source} has shape {flags.shape}, but there are {count} actions")
        legal: list[int] = flags.nonzero()[0].tolist()
        # Masks are bytes, as a rule.
        ones = flags.tobytes().count(1) if flags.dtype.itemsize == 1 else np.count_nonzero(flags == 1)
        if ones != len(legal):
            wrong = next(each for each in flags.tolist() if each not in (0, 1))
            raise GameContractError(f"{source} has {wrong!r}: it must be 1 for what is allowed and 0 for the rest")
        if not legal:
            raise GameContractError(f"{source} allows no action, but its episode is not over")
        return legal


def _is_done(held: Any) -> bool:
    """Whether the episode of the selected agent is over."""
    agent = held.agent_selection
    return bool(held.terminations[agent] or held.truncations[agent])


def _plain_wrappers(env: Any) -> int:
    """Returns the number of wrappers, if all are PettingZoo's own; else 0."""
    count = 0
    while (inner := getattr(env, "__dict__", {}).get("env")) is not None:
        if not type(env).__module__.startswith("pettingzoo.utils.wrappers"):
            return 0
        env = inner
        count += 1
    return count


def _view_of(space: Any, name: str) -> View | str:
    """Returns the view of the observations of a space; without one, the message for searches that need it."""
    held = getattr(space, "spaces", None)
    if isinstance(held, dict):
        if "observation" not in held:
            return f"{name} has observations of {space}, without the entry 'observation' that networks take"
        space = held["observation"]
    try:
        return view_of(space, name)
    except InvalidArgumentError as error:
        return str(error)
