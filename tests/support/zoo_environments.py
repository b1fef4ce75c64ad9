"""AEC environments of PettingZoo for tests: agents that end at different times, dice, and mistakes of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle, seeding
from pettingzoo import AECEnv


class TestEnvironment(AECEnv, EzPickle):
    """What the environments have in common. `copy.deepcopy` gives a fresh one, as of most of PettingZoo."""

    __test__ = False
    metadata = {"name": "test_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012
    num_choices = 3

    def __init__(self, players: int = 2) -> None:
        EzPickle.__init__(self, players)
        super().__init__()
        self.possible_agents = [f"agent_{index}" for index in range(players)]
        self.render_mode = None
        self._actions = {agent: spaces.Discrete(self.num_choices) for agent in self.possible_agents}
        self._observations = {agent: spaces.Box(0, 1, (4,), np.float32) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        return self._observations[agent]

    def action_space(self, agent: str) -> Any:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.np_random, _ = seeding.np_random(seed)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._skip_agent_selection = None
        self.start()

    def start(self) -> None:
        """Sets the state of a new episode."""

    def move(self, agent: str, action: int) -> None:
        """Performs an action: sets rewards, terminations and truncations."""
        raise NotImplementedError

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        agent = self.agent_selection
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.move(agent, action)
        self._accumulate_rewards()
        self.agent_selection = self.following(agent)
        self._deads_step_first()

    def following(self, agent: str) -> str:
        """Returns the next agent that is not done, in turn."""
        order = self.possible_agents
        place = order.index(agent)
        turn = [order[(place + offset) % len(order)] for offset in range(1, len(order) + 1)]
        alive = [each for each in turn if each in self.agents and not self.terminations[each]]
        return next((each for each in alive if not self.truncations[each]), agent)

    def observe(self, agent: str) -> Any:
        return np.zeros(4, dtype=np.float32)

    def close(self) -> None:
        pass


class Survivors(TestEnvironment):
    """Actions cost energy and earn rewards, partly for others; who has none left is out. Masks are in the infos."""

    metadata = {"name": "survivors_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, players: int = 3, energy: int = 5, limit: int = 12) -> None:
        super().__init__(players)
        EzPickle.__init__(self, players, energy, limit)
        self.full, self.limit = energy, limit

    def start(self) -> None:
        self.energy = {agent: self.full + index for index, agent in enumerate(self.agents)}
        self.moves = 0
        self._masks()

    def move(self, agent: str, action: int) -> None:
        assert self.infos[agent]["action_mask"][action], "illegal"
        self.moves += 1
        self.energy[agent] -= action + 1
        for index, each in enumerate(self.agents):
            self.rewards[each] = float(action) if each == agent else 0.25 * index - 0.5 * action
        if self.energy[agent] <= 0:
            self.terminations[agent] = True
        if self.moves == self.limit:
            self.truncations = dict.fromkeys(self.agents, True)
        self._masks()

    def _masks(self) -> None:
        for agent in self.agents:
            choices = [index < max(self.energy[agent], 1) for index in range(self.num_choices)]
            self.infos[agent]["action_mask"] = np.array(choices, dtype=np.int8)

    def observe(self, agent: str) -> Any:
        return np.array([self.energy[agent] / 9, self.moves / 20, 0, 1], dtype=np.float32)


class Locked(Survivors):
    """Survivors that count in a generator, which has no copy."""

    def start(self) -> None:
        super().start()
        self.counter = (number for number in range(1, 1000))

    def move(self, agent: str, action: int) -> None:
        super().move(agent, action)
        self.rewards[agent] += 0.125 * next(self.counter)


class Dice(TestEnvironment):
    """Two agents: action 0 earns 1; action 1 earns 2.9 on a five or six of a die, else nothing (0.97 on average)."""

    metadata = {"name": "dice_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012
    num_choices = 2

    def start(self) -> None:
        self.moves = 0

    def move(self, agent: str, action: int) -> None:
        self.moves += 1
        self.rewards[agent] = 1.0 if action == 0 else 2.9 * float(self.np_random.random() > 2 / 3)
        if self.moves == 6:
            self.terminations = dict.fromkeys(self.agents, True)

    def observe(self, agent: str) -> Any:
        return np.array([self.moves / 6, 0, 0, 1], dtype=np.float32)


class Faulty(Survivors):
    """Survivors with a mistake in the step after `healthy` moves."""

    metadata = {"name": "faulty_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012
    fault: str | None = None
    healthy = 2

    def move(self, agent: str, action: int) -> None:
        super().move(agent, action)
        if self.moves <= type(self).healthy:
            return
        match type(self).fault:
            case "raises":
                raise RuntimeError("the emulator crashed")
            case "nan":
                self.rewards[agent] = float("nan")
            case "infinite":
                self.rewards[agent] = float("inf")
            case "mask shape":
                for each in self.agents:
                    self.infos[each]["action_mask"] = np.ones(7, dtype=np.int8)
            case "mask values":
                for each in self.agents:
                    self.infos[each]["action_mask"] = np.array([1, 2, 0])
            case "mask empty":
                for each in self.agents:
                    self.infos[each]["action_mask"] = np.zeros(3, dtype=np.int8)

    def step(self, action: Any) -> None:
        if type(self).fault == "immortal" and action is None:
            return
        super().step(action)
        if type(self).fault == "stranger" and self.moves > type(self).healthy:
            self.agent_selection = "nobody"
            self.terminations["nobody"] = self.truncations["nobody"] = False


class Continuous(TestEnvironment):
    """Actions are real numbers."""

    metadata = {"name": "continuous_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def action_space(self, agent: str) -> Any:
        return spaces.Box(-1, 1, (2,), np.float32)
