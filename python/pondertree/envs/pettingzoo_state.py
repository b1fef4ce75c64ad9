"""States of PettingZoo environments: a search copies the environment, and steps the copies."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pondertree.envs.generators import RandomDrawError
from pondertree.envs.gymnasium import check_reward, described
from pondertree.envs.pettingzoo_agents import OVER, AgentTable, Reading
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, UsageError
from pondertree.game import CHANCE
from pondertree.games.chance import EqualOutcomes
from pondertree.random import fold
from pondertree.validation import shown

#: Samples of the random numbers of a step, each an outcome of its chance node.
SAMPLES: Final = 16


class ZooState:
    """A state of an environment whose only rewards are results at the end, as a position of a game.

    It has the interface of a state of a game (`pondertree.Game`).
    """

    __slots__ = (
        "_env", "_key", "_pending", "_reading", "_serial", "_table", "_token",
        "is_terminal", "steps", "to_play", "totals",
    )  # fmt: skip

    _table: AgentTable
    _reading: Reading
    _token: Any
    _env: Any
    _serial: int
    _key: int
    _pending: int | None
    is_terminal: bool
    """Whether the episodes of all agents are over."""
    to_play: int
    """The index of the agent to act in `possible_agents`; `CHANCE` where random numbers are drawn."""
    steps: int
    """Actions since the state of `from_pettingzoo`."""
    totals: tuple[float, ...]
    """What each agent got for those actions, without discount."""

    @classmethod
    def first(cls, table: AgentTable, env: Any, reading: Reading, key: int) -> Self:
        """Returns the state of a copied environment, which is not used any further."""
        new = cls._of(table, reading._replace(rewards=table.nothing), key)
        new._token = None if new.is_terminal else table.snapshots.keep(env)
        return new

    @classmethod
    def _of(cls, table: AgentTable, reading: Reading, key: int) -> Self:
        new = object.__new__(cls)
        new._table = table
        new._reading = reading
        new._key = key
        new._token = new._env = new._pending = None
        new._serial = 0
        new.is_terminal = reading.player == OVER
        new.to_play = 0 if new.is_terminal else reading.player
        new.steps = 0
        new.totals = table.nothing
        return new

    @property
    def num_players(self) -> int:
        """The number of `possible_agents`."""
        return len(self._table.agents)

    @property
    def num_actions(self) -> int:
        """Size of the largest action space."""
        return self._table.num_actions

    @property
    def zero_sum(self) -> bool:
        """Whether the results of two agents cancel."""
        return self._table.results_only and len(self._table.agents) == 2

    @property
    def discount(self) -> float:
        """Discount of each action, which searches take."""
        return self._table.discount

    @property
    def agent(self) -> Any:
        """The agent to act; None at the end."""
        return None if self.is_terminal else self._table.agents[self._reading.player]

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the episode of an agent by the last action."""
        return self._reading.truncated

    @property
    def snapshot_method(self) -> str:
        """How the environment is copied: "given", "copy" or "replay"."""
        return self._table.snapshots.method

    @property
    def snapshot_cost(self) -> float:
        """Seconds per copy, as measured by the probe."""
        return self._table.snapshots.cost

    @property
    def is_random(self) -> bool:
        """Whether a chance node follows every action, since steps of the environment are random."""
        return False

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask of the agent to act allows; all without a mask."""
        return self._reading.legal

    def observation(self) -> NDArray[np.float32]:
        """Returns the observation of the agent to act as a network takes it; zeros at the end."""
        table, player = self._table, self._reading.player
        view = table.views[max(player, 0)]
        if isinstance(view, str):
            raise InvalidArgumentError(view)
        if player == OVER:
            return np.zeros(view.shape, dtype=np.float32)
        return view.read(self._reading.observation, f"{table.name}.observe({table.agents[player]!r})")

    def play(self, action: int) -> Self:
        """Returns the state after an action."""
        self._check(action)
        # With random=False the numbers of a step are fixed, but not those that the environment itself will draw.
        key = fold(self._key, action) if self._table.snapshots.is_random else None
        return self._step(action, key)

    def in_place(self) -> Self:
        """Returns this state for one line of play: `play` steps one environment, and only the newest state plays on.

        It saves the copies of a playout.
        """
        return self if self.is_terminal else self._copied(self._restored())

    def returns(self) -> list[float]:
        """Returns what each agent got since the state of `from_pettingzoo`, without discount."""
        return list(self.totals)

    def __repr__(self) -> str:
        agent = "over" if self.is_terminal else f"{self.agent} to act"
        return f"<{type(self).__name__} of {self._table.name} after {self.steps} steps, {agent}>"

    def _check(self, action: int) -> None:
        if action not in self._reading.legal:
            raise InvalidActionError(
                f"{self._table.name}: action {action} is not allowed here: allowed are {shown(self._reading.legal)}"
            )

    def _restored(self) -> Any:
        try:
            return self._table.snapshots.restore(self._token)
        except Exception as error:
            raise GameContractError(f"{self._table.name} could not be copied: {described(error)}") from error

    def _copied(self, env: Any) -> Self:
        """Returns this state with an environment of its own, which `play` steps."""
        new = self._twin()
        new._env, new._token, new._serial = env, None, self._table.snapshots.serial
        return new

    def _twin(self) -> Self:
        new = object.__new__(type(self))
        new._table, new._reading, new._token, new._env = self._table, self._reading, self._token, self._env
        new._key, new._pending, new._serial = self._key, self._pending, self._serial
        new.is_terminal, new.to_play, new.steps, new.totals = self.is_terminal, self.to_play, self.steps, self.totals
        return new

    def _step(self, action: int, key: int | None) -> Self:
        table = self._table
        snapshots = table.snapshots
        if self._token is not None:
            env = self._restored()
        else:
            env, self._env = self._env, None
            if env is None or self._serial != snapshots.serial:
                raise UsageError("a state of in_place() plays once, and before any other state of its environment")
        reading = self._perform(env, action, key)
        is_rewarded = any(reading.rewards)
        if is_rewarded:
            self._check_rewards(reading, action)
        new = self._of(table, reading, self._key if key is None else key)
        new.steps = self.steps + 1
        new.totals = tuple(map(float.__add__, self.totals, reading.rewards)) if is_rewarded else self.totals
        if not new.is_terminal:
            if self._token is None:
                new._env, new._serial = env, self._serial
            else:
                new._token = snapshots.keep(env)
        return new

    def _perform(self, env: Any, action: int, key: int | None) -> Reading:
        table, player = self._table, self._reading.player
        try:
            reading: Reading = table.snapshots.perform(env, action, key)
        except RandomDrawError as error:
            raise GameContractError(
                f"{table.call(player, action)} drew a random number, although no step of the probe did: "
                "from_pettingzoo(..., random=True) makes every step random"
            ) from error
        except GameContractError as error:
            raise GameContractError(f"{table.call(player, action)}: {error}") from error
        except Exception as error:
            raise GameContractError(f"{table.call(player, action)} failed: {described(error)}") from error
        return reading

    def _check_rewards(self, reading: Reading, action: int) -> None:
        """Raises `GameContractError` for rewards that a search does not take."""
        table = self._table
        source = table.call(self._reading.player, action)
        for reward in reading.rewards:
            check_reward(reward, f"{source} gave")
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
        return list(self._table.nothing if self._pending is not None else self._reading.rewards)


class RandomZooState(ZooState):
    """A state of an environment whose steps are random: after an action comes a chance node.

    Its outcomes are equally likely samples of the random numbers of the step. They are functions of the seed and the
    outcomes so far, and independent of the numbers that the environment itself will draw. All actions of a state have
    the same samples (common random numbers), so that they are compared under equal luck.
    """

    __slots__ = ()

    @property
    def is_random(self) -> bool:
        """Whether a chance node follows every action."""
        return True

    def chance_outcomes(self) -> EqualOutcomes:
        """Returns the samples of a chance node with their probabilities."""
        return self._table.outcomes

    def legal_actions(self) -> list[int]:
        """Returns the actions that the mask allows; at a chance node its samples."""
        return self._reading.legal if self._pending is None else self._table.numbers

    def play(self, action: int) -> Self:
        """Returns the chance node after an action, or the state after a sample."""
        if self._pending is None:
            self._check(action)
            new = self._twin()
            self._env = None
            new._pending, new.to_play = action, CHANCE
            return new
        if action not in self._table.numbers:
            raise InvalidActionError(f"outcome {action} is not one of {self._table.numbers}")
        return self._step(self._pending, fold(self._key, action))


class RandomZooRewardState(RandomZooState, ZooRewardState):
    """A state of an environment with random steps and rewards."""

    __slots__ = ()


def state_class(results_only: bool, is_random: bool) -> type[ZooState]:
    """Returns the class of the states of an environment: a method such as `rewards` changes how a game is searched."""
    if is_random:
        return RandomZooState if results_only else RandomZooRewardState
    return ZooState if results_only else ZooRewardState
