"""A game as environments of other libraries play it: chance nodes are drawn, every property is checked."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError
from pondertree.game import CHANCE, as_contract_error, check_returns, describe, play, state_text
from pondertree.games.chance import check_chance_ends
from pondertree.games.position import Position, read_position
from pondertree.validation import shown

Observe = Callable[[Any, int], Any]
"""A function `(state, player) -> array` that returns what a player observes."""

#: Bounds of the observation space: any finite number. Checkers of environments warn of infinite bounds.
LARGEST_NUMBER: Final = float(np.finfo(np.float32).max)


class Turn(NamedTuple):
    """A state at a decision or an end, and what led there."""

    state: Any
    position: Position
    rewards: tuple[float, ...]
    """What each player got for the last action, the outcomes of chance after it, and the end."""


class HostedGame:
    """The rules of a game and its first observation; the same for all episodes of an environment."""

    def __init__(self, factory: Callable[[], Any], observe: Observe | None) -> None:
        if not isinstance(factory, type) and hasattr(factory, "legal_actions"):
            raise InvalidArgumentError(
                f"factory must return a starting state, such as {type(factory).__name__}: this is a state itself "
                "(give lambda: state)"
            )
        validation.function(factory, "factory")
        if observe is not None:
            validation.function(observe, "observe")
        self._factory = factory
        self._observe = observe
        self.info = describe(self._new_state())
        first = self.start(np.random.default_rng(0))
        if observe is None and not callable(getattr(first.state, "observation", None)):
            raise InvalidArgumentError(
                f"{self.info.name} has no observation(), which agents of environments learn from: add it, or give "
                "observe=, a function (state, player) -> array"
            )
        player = 0 if first.position.terminal else first.position.to_play
        self.shape: tuple[int, ...] = self._read_observation(first, player).shape

    def start(self, generator: np.random.Generator) -> Turn:
        """Returns the first decision of an episode."""
        state = self._new_state()
        info = describe(state)
        if info != self.info:
            raise GameContractError(f"factory() returned a state of {info}: the first one was of {self.info}")
        return self._decision(state, [0.0] * info.num_players, generator, is_start=True)

    def play(self, turn: Turn, action: int, generator: np.random.Generator) -> Turn:
        """Returns the decision or end after a legal action and the outcomes of chance that follow."""
        state = play(turn.state, action, self.info.name)
        return self._decision(state, [0.0] * self.info.num_players, generator)

    def observation(self, turn: Turn, player: int) -> NDArray[np.float32]:
        """Returns a new array of what a player observes."""
        array = self._read_observation(turn, player)
        if array.shape != self.shape:
            raise GameContractError(f"{self._source} has the shape {array.shape}: the first one had {self.shape}")
        return array

    def mask(self, turn: Turn) -> NDArray[np.int8]:
        """Returns 1 for each legal action and 0 for the others."""
        mask = np.zeros(self.info.num_actions, dtype=np.int8)
        mask[turn.position.legal] = 1
        return mask

    def as_action(self, given: Any) -> int:
        """Returns an action of the action space as an int; `InvalidActionError` for anything else."""
        try:
            action = operator.index(given.item() if isinstance(given, np.ndarray) and given.size == 1 else given)
        except TypeError:
            action = -1
        if not 0 <= action < self.info.num_actions:
            raise InvalidActionError(
                f"{self.info.name}: {shown(given)} is no action: actions are ints from 0 to {self.info.num_actions - 1}"
            )
        return action

    def refuse(self, action: int, turn: Turn) -> InvalidActionError:
        """Returns the error for an illegal action."""
        return InvalidActionError(
            f"{self.info.name}: action {action} is not legal here; legal are {shown(turn.position.legal)} "
            "(1 in action_mask)"
        )

    @staticmethod
    def text(turn: Turn) -> str:
        """Returns the state as text."""
        return state_text(turn.state)

    def _new_state(self) -> Any:
        try:
            return self._factory()
        except Exception as error:
            raise GameContractError(f"factory() raised {type(error).__name__}: {error}") from error

    def _decision(
        self, state: Any, rewards: list[float], generator: np.random.Generator, *, is_start: bool = False
    ) -> Turn:
        """Draws outcomes of chance up to a decision or an end, and adds what the players get on the way."""
        info = self.info
        in_a_row = 0
        position = read_position(state, info)
        if not is_start:
            _add(rewards, position.rewards)
        while not position.terminal and position.to_play == CHANCE:
            in_a_row += 1
            check_chance_ends(state, in_a_row)
            drawn = bisect_right(list(accumulate(position.probabilities)), generator.random())
            # Probabilities may sum to slightly less than 1.
            state = play(state, position.legal[min(drawn, len(position.legal) - 1)], info.name)
            position = read_position(state, info)
            _add(rewards, position.rewards)
        if position.terminal:
            if not info.has_rewards:
                _add(rewards, check_returns(position.returns, info))
        elif not position.legal:
            raise GameContractError(f"{info.name}.legal_actions() is empty although the game is not over")
        return Turn(state, position, tuple(rewards))

    @property
    def _source(self) -> str:
        return f"{self.info.name}.observation()" if self._observe is None else "observe(state, player)"

    def _read_observation(self, turn: Turn, player: int) -> NDArray[np.float32]:
        if self._observe is None:
            with as_contract_error(self.info, "in observation()"):
                given = turn.state.observation()
        else:
            try:
                given = self._observe(turn.state, player)
            except Exception as error:
                raise InvalidArgumentError(f"{self._source} raised {type(error).__name__}: {error}") from error
        try:
            array = np.array(given, dtype=np.float32)  # a copy: callers may write to it
        except (TypeError, ValueError) as error:
            raise GameContractError(f"{self._source} is no array of numbers: {error}") from None
        if not np.isfinite(array).all():
            raise GameContractError(f"{self._source} has a number that is not finite")
        return array


def as_illegal_reward(given: float | None) -> float | None:
    """Returns the reward of an illegal action, checked; None if they raise."""
    return None if given is None else validation.number(given, "illegal_reward")


def as_render_mode(given: str | None) -> str | None:
    """Returns None or "ansi", the only render mode."""
    return None if given is None else str(validation.one_of(given, "render_mode", ["ansi"], "None or 'ansi'"))


def _add(totals: list[float], numbers: list[float] | tuple[float, ...]) -> None:
    for player, number in enumerate(numbers):
        totals[player] += number
