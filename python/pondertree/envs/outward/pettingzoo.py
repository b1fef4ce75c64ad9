"""Games as AEC environments of PettingZoo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import AECEnv

from pondertree.envs.outward.hosted_game import (
    LARGEST_NUMBER,
    HostedGame,
    Observe,
    Turn,
    as_illegal_reward,
    as_render_mode,
)
from pondertree.errors import UsageError


class GameEnvironment(AECEnv):
    """A game whose players are the agents `player_0`, `player_1`, ..., which all end together."""

    agent_selection: str
    terminations: dict[str, bool]
    truncations: dict[str, bool]
    rewards: dict[str, float]
    _cumulative_rewards: dict[str, float]

    def __init__(
        self,
        factory: Callable[[], Any],
        *,
        observe: Observe | None = None,
        illegal_reward: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The arguments are those of `as_pettingzoo`."""
        super().__init__()
        self.game = HostedGame(factory, observe)
        info = self.game.info
        self.metadata = {"name": f"pondertree_{info.name}", "render_modes": ["ansi"], "is_parallelizable": False}
        self.results_only = not info.has_rewards
        """Whether agents get rewards at the end alone, from -1 to 1."""
        self.render_mode = as_render_mode(render_mode)
        self.illegal_reward = as_illegal_reward(illegal_reward)
        self.possible_agents = [f"player_{player}" for player in range(info.num_players)]
        # One space per agent: their generators are seeded apart.
        self.action_spaces = {agent: spaces.Discrete(info.num_actions) for agent in self.possible_agents}
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(-LARGEST_NUMBER, LARGEST_NUMBER, self.game.shape, np.float32),
                    "action_mask": spaces.Box(0, 1, (info.num_actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.np_random: np.random.Generator | None = None
        self._turn: Turn | None = None
        self._pending: tuple[float, ...] = ()
        self._clear([])

    @property
    def game_state(self) -> Any:
        """The state of the game, which searches take."""
        return self._current().state

    def observation_space(self, agent: str) -> Any:
        """Returns the observation space of an agent, always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Returns the action space of an agent, always the same object."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts an episode; without a seed the generator continues. `options` are ignored."""
        if seed is not None or self.np_random is None:
            self.np_random, _ = seeding.np_random(seed)
        self._turn = self.game.start(self.np_random)
        # PettingZoo has no rewards before the first step: those of chance before it come with that step.
        self._pending = self._turn.rewards
        self._clear(self.possible_agents)
        self._select(self._turn)
        if self._turn.position.terminal:  # no step will come that could give them
            self.rewards = dict(zip(self.possible_agents, self._pending, strict=True))
            self._accumulate_rewards()

    def step(self, action: Any) -> None:
        """Plays an action of the selected agent; None removes an agent whose episode is over."""
        turn = self._current()
        if not self.agents:
            raise UsageError("the episode is over for all agents: call reset()")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        chosen = self.game.as_action(action)
        if chosen in turn.position.legal:
            assert self.np_random is not None  # reset() created it
            turn = self.game.play(turn, chosen, self.np_random)
            rewards = [given + more for given, more in zip(turn.rewards, self._pending, strict=True)]
            over = turn.position.terminal
            self._pending = (0.0,) * len(rewards)
            self._turn = turn
        elif self.illegal_reward is None:
            raise self.game.refuse(chosen, turn)
        else:
            rewards = [self.illegal_reward if each == agent else 0.0 for each in self.possible_agents]
            over = True
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.possible_agents, rewards, strict=True))
        self._accumulate_rewards()
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[0]
        else:
            self._select(turn)

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """Returns the observation and the action mask of an agent."""
        turn = self._current()
        moves = agent == self.agent_selection and not self.terminations.get(agent, True)
        mask = self.game.mask(turn) if moves else np.zeros(self.game.info.num_actions, dtype=np.int8)
        return {"observation": self.game.observation(turn, self.possible_agents.index(agent)), "action_mask": mask}

    def render(self) -> str | None:
        """Returns the state as text in the render mode "ansi"."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs the argument render_mode='ansi' of as_pettingzoo.")
            return None
        return self.game.text(self._current())

    def close(self) -> None:
        """Releases nothing."""

    def _current(self) -> Turn:
        if self._turn is None:
            raise UsageError("the environment has no state yet: call reset() first")
        return self._turn

    def _clear(self, agents: list[str]) -> None:
        self.agents = agents[:]
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        self._skip_agent_selection = None

    def _select(self, turn: Turn) -> None:
        """Selects the agent to move; at an end that chance brought before any decision, all are done."""
        if turn.position.terminal:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.possible_agents[0 if turn.position.terminal else turn.position.to_play]
