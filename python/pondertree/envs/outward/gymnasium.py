"""One player's side of a game as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from pondertree import validation
from pondertree.envs.outward.hosted_game import (
    LARGEST_NUMBER,
    HostedGame,
    Observe,
    Turn,
    as_illegal_reward,
    as_render_mode,
)
from pondertree.envs.outward.opponent import as_opponent
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.validation import shown

#: Episodes begun for one `reset`, if the game is over before the player's first decision.
MAX_STARTS: Final = 1000


class OpponentEnvironment(gymnasium.Env):
    """A game in which the agent plays one side, and an opponent all others."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        factory: Callable[[], Any],
        opponent: Any = "random",
        *,
        side: int | str = "first",
        observe: Observe | None = None,
        illegal_reward: float | None = -1.0,
        render_mode: str | None = None,
    ) -> None:
        """The arguments are those of `as_gymnasium`."""
        self.game = HostedGame(factory, observe)
        self._opponent = as_opponent(opponent)
        self._side = _as_side(side, self.game.info.num_players)
        self.render_mode = as_render_mode(render_mode)
        self.illegal_reward = as_illegal_reward(illegal_reward)
        self.action_space = spaces.Discrete(self.game.info.num_actions)
        self.observation_space = spaces.Box(-LARGEST_NUMBER, LARGEST_NUMBER, self.game.shape, np.float32)
        self.player = 0
        """The player that the agent is in this episode."""
        self._turn: Turn | None = None
        self._over = True
        self._pending = 0.0

    @property
    def game_state(self) -> Any:
        """The state of the game, which searches take."""
        return self._current().state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode and returns the player's first decision. `options` are ignored."""
        super().reset(seed=seed)
        players = self.game.info.num_players
        self.player = int(self.np_random.integers(players)) if self._side is None else self._side
        for _ in range(MAX_STARTS):
            turn = self.game.start(self.np_random)
            turn, reward = self._until_decision(turn, turn.rewards[self.player])
            if not turn.position.terminal:
                break
        else:
            raise GameContractError(
                f"{self.game.info.name}: player {self.player} had no decision in {MAX_STARTS} episodes"
            )
        # Gymnasium has no reward before the first step: what came before it is added to that of the first.
        self._turn, self._over, self._pending = turn, False, reward
        return self._observation(turn), self._info(turn)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Plays an action, and the opponent's moves up to the player's next decision or the end."""
        turn = self._current()
        if self._over:
            raise UsageError("the episode is over: call reset()")
        chosen = self.game.as_action(action)
        if chosen not in turn.position.legal:
            if self.illegal_reward is None:
                raise self.game.refuse(chosen, turn)
            self._over = True
            reward = self._pending + self.illegal_reward
            return self._observation(turn), reward, True, False, {**self._info(turn), "illegal_action": chosen}
        after = self.game.play(turn, chosen, self.np_random)
        after, reward = self._until_decision(after, after.rewards[self.player])
        reward += self._pending
        # Assigned last: an exception of the opponent leaves the player's decision as it was.
        self._turn, self._over, self._pending = after, after.position.terminal, 0.0
        return self._observation(after), reward, self._over, False, self._info(after)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns whether each action is legal, as sb3-contrib's MaskablePPO asks for it."""
        return self._mask(self._current()).astype(np.bool_)

    def render(self) -> Any:
        """Returns the state as text in the render mode "ansi"."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs the argument render_mode='ansi' of as_gymnasium.")
            return None
        return self.game.text(self._current())

    def _current(self) -> Turn:
        if self._turn is None:
            raise UsageError("the environment has no state yet: call reset() first")
        return self._turn

    def _until_decision(self, turn: Turn, reward: float) -> tuple[Turn, float]:
        """Lets the opponent move until the player decides or the game ends; adds up the player's rewards."""
        while not turn.position.terminal and turn.position.to_play != self.player:
            action = self._opponent(turn, self.np_random)
            turn = self.game.play(turn, action, self.np_random)
            reward += turn.rewards[self.player]
        return turn, reward

    def _observation(self, turn: Turn) -> NDArray[np.float32]:
        return self.game.observation(turn, self.player)

    def _mask(self, turn: Turn) -> NDArray[np.int8]:
        return np.zeros(self.game.info.num_actions, dtype=np.int8) if self._over else self.game.mask(turn)

    def _info(self, turn: Turn) -> dict[str, Any]:
        return {"action_mask": self._mask(turn), "player": self.player}


def _as_side(side: Any, num_players: int) -> int | None:
    """Returns the player of a side; None if it is drawn for each episode."""
    names = {"first": 0, "second": 1, "random": None}
    if isinstance(side, str):
        if side not in names or (side == "second" and num_players < 2):
            raise InvalidArgumentError(
                f"side must be 'first', 'second', 'random' or a player from 0 to {num_players - 1}, not {shown(side)}"
            )
        return names[side]
    return validation.whole_number(side, "side", most=num_players - 1)
