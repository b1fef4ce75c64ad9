"""States of PettingZoo environments: a search copies the environment, and steps the copies."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import LARGEST_REWARD
from pondertree.envs.copied_state import CopiedState, RandomSteps
from pondertree.envs.gymnasium import check_reward
from pondertree.envs.pettingzoo_agents import OVER, AgentTable, Reading
from pondertree.errors import GameContractError, InvalidArgumentError


class ZooState(CopiedState):
    """A state of an environment whose only rewards are results at the end, as a position of a game.

    It has the interface of a state of a game (`pondertree.Game`).
    """

    __slots__ = ("_game", "_reading", "totals")

    adapter = "from_pettingzoo"

    _game: AgentTable
    _reading: Reading
    totals: tuple[float, ...]
    """What each agent got for those actions, without discount."""

    @classmethod
    def first(cls, table: AgentTable, env: Any, reading: Reading, key: int, seed: int) -> Self:
        """Returns the state of a copied environment, which is not used any further."""
        new = cls._of(table, reading._replace(rewards=table.nothing), key, seed)
        new._token = None if new.is_terminal else table.snapshots.keep(env)
        return new

    @classmethod
    def _of(cls, table: AgentTable, reading: Reading, key: int, seed: int) -> Self:
        new = object.__new__(cls)
        new._game = table
        new._reading = reading
        new._key = key
        new._token = new._env = new._pending = None
        new.seed = seed
        new.is_terminal = reading.player == OVER
        new.to_play = 0 if new.is_terminal else reading.player
        new.steps = 0
        new.totals = table.nothing
        return new

    @property
    def num_players(self) -> int:
        """The number of `possible_agents`."""
        return len(self._game.agents)

    @property
    def num_actions(self) -> int:
        """Size of the largest action space."""
        return self._game.num_actions

    @property
    def zero_sum(self) -> bool:
        """Whether the results of two agents cancel."""
        return self._game.results_only and len(self._game.agents) == 2

    @property
    def _legal(self) -> list[int]:  # type: ignore[override]
        return self._reading.legal

    def environment_action(self, action: int) -> Any:
        """Returns what the environment's `step` takes for an action of the agent to act."""
        actions = self._game.actions[max(self._reading.player, 0)]
        return actions.decode(validation.whole_number(action, "action", most=actions.count - 1))

    @property
    def agent(self) -> Any:
        """The agent to act; None at the end."""
        return None if self.is_terminal else self._game.agents[self._reading.player]

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the episode of an agent by the last action."""
        return self._reading.truncated

    def observation(self) -> NDArray[np.float32]:
        """Returns the observation of the agent to act as a network takes it; zeros at the end."""
        table, player = self._game, self._reading.player
        view = table.views[max(player, 0)]
        if isinstance(view, str):
            raise InvalidArgumentError(view)
        if player == OVER:
            return np.zeros(view.shape, dtype=np.float32)
        return view.read(self._reading.observation, f"{table.name}.observe({table.agents[player]!r})")

    def returns(self) -> list[float]:
        """Returns what each agent got since the state of `from_pettingzoo`, without discount."""
        return list(self.totals)

    def __repr__(self) -> str:
        agent = "over" if self.is_terminal else f"{self.agent} to act"
        return f"<{type(self).__name__} of {self._game.name} after {self.steps} steps, {agent}>"

    def _equal_state(self) -> Self:
        new = object.__new__(type(self))
        new._game, new._reading, new._token, new._env = self._game, self._reading, self._token, self._env
        new._key, new._pending = self._key, self._pending
        new.seed = self.seed
        new.is_terminal, new.to_play, new.steps, new.totals = self.is_terminal, self.to_play, self.steps, self.totals
        return new

    def _stepped(self, action: int, key: int | None) -> Self:
        table, snapshots = self._game, self._game.snapshots
        env = self._take()
        reading: Reading = self._perform(env, action, key, table.call(self._reading.player, action))
        is_rewarded = any(reading.rewards)
        if is_rewarded:
            self._check_rewards(reading, action)
        new = self._of(table, reading, self._key if key is None else key, self.seed)
        new.steps = self.steps + 1
        new.totals = tuple(map(float.__add__, self.totals, reading.rewards)) if is_rewarded else self.totals
        if not new.is_terminal:
            if self._token is None:
                new._env = snapshots.live(env)
            else:
                new._token = snapshots.keep(env)
        return new

    def _check_rewards(self, reading: Reading, action: int) -> None:
        """Raises `GameContractError` for rewards that a search does not take."""
        table = self._game
        source = table.call(self._reading.player, action)
        for reward in reading.rewards:
            check_reward(reward, f"{source} gave", LARGEST_REWARD)
        if table.results_only and not (reading.player == OVER and all(-1.0 <= each <= 1.0 for each in reading.rewards)):
            when = "at the end" if reading.player == OVER else "before the end"
            raise GameContractError(
                f"{source} gave the rewards {reading.rewards} {when}, which are no results from -1 to 1: "
                "from_pettingzoo(..., results_only=False) counts them as rewards"
            )


class ZooRewardState(ZooState):
    """A state of an environment whose agents get rewards on the way."""

    __slots__ = ()

    def rewards(self) -> list[float]:
        """Returns what each agent got for the last action, without discount."""
        return list(self._game.nothing if self._pending is not None else self._reading.rewards)


class RandomZooState(RandomSteps, ZooState):
    """A state of an environment whose steps are random: after an action comes a chance node."""

    __slots__ = ()


class RandomZooRewardState(RandomZooState, ZooRewardState):
    """A state of an environment with random steps and rewards."""

    __slots__ = ()


def state_class(results_only: bool, is_random: bool) -> type[ZooState]:
    """Returns the class of the states of an environment: a method such as `rewards` changes how a game is searched."""
    if is_random:
        return RandomZooState if results_only else RandomZooRewardState
    return ZooState if results_only else ZooRewardState
