"""Games whose rules are functions of arrays of states: many positions are played in one call of NumPy.

`BatchState` is one position of such a game with the methods of `pondertree.Game`, so that everything that takes a state
takes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError, InvalidActionError, InvalidArgumentError, PondertreeError
from pondertree.validation import shown

REQUIRED = ("num_actions", "num_players", "play", "legal_mask", "is_terminal", "to_play", "returns")
#: What the array form of a game cannot express yet.
UNSUPPORTED = ("rewards", "chance_outcomes")


@runtime_checkable
class BatchGame(Protocol):
    """The rules of a game for arrays of states; `states` is [n, ...], of any dtype and shape per state.

    Every method is a pure function in which rows do not influence each other. Optional: `observation(states)`,
    float32 [n, ...], for evaluators; `zero_sum` (default: two players); `action_to_string(action)` and
    `parse_action(text)`. Rewards and chance nodes need the form of `pondertree.Game`.
    """

    @property
    def num_actions(self) -> int:
        """Size of the action space; actions are 0 .. num_actions - 1."""
        ...

    @property
    def num_players(self) -> int:
        """Number of players."""
        ...

    def play(self, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[Any]:
        """The states after a legal action in each, a new array of the same dtype and shape."""
        ...

    def legal_mask(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Which actions are legal, [n, num_actions]; arbitrary where the game is over."""
        ...

    def is_terminal(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Where the game is over, [n]."""
        ...

    def to_play(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """The player to move, [n]; arbitrary where the game is over."""
        ...

    def returns(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """The results of finished games in [-1, 1], [n, num_players]."""
        ...


class BatchRules:
    """The methods of a `BatchGame`, with their results checked."""

    def __init__(self, game: BatchGame) -> None:
        self.game = game
        self.name = type(game).__name__
        self.num_actions, self.num_players = game.num_actions, game.num_players
        self.zero_sum: bool = getattr(game, "zero_sum", self.num_players == 2)

    def play(self, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[Any]:
        """Returns the states after an action in each."""
        after = self._ask("play", self.game.play, states, actions)
        if not isinstance(after, np.ndarray) or after.dtype != states.dtype or after.shape != states.shape:
            what = f"{after.dtype} {after.shape}" if isinstance(after, np.ndarray) else f"a {type(after).__name__}"
            self._refuse("play", f"returned {what}: an array like states, {states.dtype} {states.shape}, is right")
        if after is states or np.may_share_memory(after, states):
            self._refuse("play", "returned memory of its argument: it must return a new array")
        return after

    def legal_mask(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns which actions are legal, [n, num_actions]."""
        return self._column("legal_mask", self.game.legal_mask, states, np.dtype(bool), (self.num_actions,))

    def is_terminal(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns where the game is over, [n]."""
        return self._column("is_terminal", self.game.is_terminal, states, np.dtype(bool), ())

    def to_play(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the player to move, [n]."""
        return self._column("to_play", self.game.to_play, states, np.dtype(np.int64), ())

    def returns(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """Returns the results of finished games, [n, num_players]."""
        given = self._column("returns", self.game.returns, states, np.dtype(np.float64), (self.num_players,))
        if not np.all(np.abs(given) <= 1.0):  # also False for NaN
            self._refuse("returns", f"has {shown(given[~(np.abs(given) <= 1.0)][0])}: results are from -1 to 1")
        if self.zero_sum and np.abs(given.sum(axis=1)).max(initial=0.0) > 1e-9:
            wrong = given[np.abs(given.sum(axis=1)).argmax()].tolist()
            self._refuse(
                "returns", f"has {wrong}: a zero-sum game's sum to 0 (set zero_sum = False if this one is not)"
            )
        return given

    def observation(self, states: NDArray[Any]) -> NDArray[np.float32]:
        """Returns the observations, float32 [n, ...]."""
        function = getattr(self.game, "observation", None)
        if function is None:
            raise GameContractError(
                f"{self.name} has no observation(states): an evaluator of observations needs one "
                "(or give an evaluator with evaluate_states)"
            )
        given = np.array(self._ask("observation", function, states), dtype=np.float32)
        if len(given) != len(states):
            self._refuse("observation", f"has {len(given)} rows for {len(states)} states")
        return given

    def _column(
        self,
        name: str,
        function: Callable[..., Any],
        states: NDArray[Any],
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
    ) -> NDArray[Any]:
        """Returns an array [n, *shape] of a method, converted to `dtype` if that loses nothing."""
        given = self._ask(name, function, states)
        array = given if isinstance(given, np.ndarray) else np.asarray(given)
        right = (len(states), *shape)
        if array.shape != right or not np.can_cast(array.dtype, dtype, "same_kind"):
            self._refuse(name, f"is {array.dtype} {array.shape}: an array {dtype} {right} is right")
        return np.ascontiguousarray(array, dtype=dtype)

    def _ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except PondertreeError:
            raise
        except Exception as error:
            raise GameContractError(f"{self.name}.{name}() raised {type(error).__name__}: {error}") from error

    def _refuse(self, name: str, what: str) -> NoReturn:
        raise GameContractError(f"{self.name}.{name}(states) {what}")


class BatchState:
    """One position of a `BatchGame`, a state with all methods of `pondertree.Game`.

    Searches of such states play the positions of all trees, and of all playouts, in shared calls of the game's methods.
    """

    __slots__ = ("_array", "_rules")

    def __init__(self, game: BatchGame, state: Any) -> None:
        given: Any = game
        if isinstance(given, type):
            raise InvalidArgumentError(f"game is the class {given.__name__}: give an object of it")
        missing = [name for name in REQUIRED if not hasattr(given, name)]
        if missing:
            raise InvalidArgumentError(
                f"{shown(given)} is not a game of arrays: it has no {', '.join(missing)} (see pondertree.BatchGame)"
            )
        for name in UNSUPPORTED:
            if hasattr(game, name):
                raise InvalidArgumentError(
                    f"{type(game).__name__} has {name}(), which games of arrays lack: write it as a pondertree.Game"
                )
        array = np.array(state)
        if array.dtype.hasobject:
            raise InvalidArgumentError(f"state is an array of Python objects ({shown(state)}): it must hold numbers")
        array.setflags(write=False)
        self._rules, self._array = BatchRules(game), array

    @classmethod
    def of_row(cls, rules: BatchRules, array: NDArray[Any]) -> Self:
        """Returns the state of one row, which is copied."""
        state = object.__new__(cls)
        state._rules, state._array = rules, array.copy()
        state._array.setflags(write=False)
        return state

    @property
    def batch_game(self) -> BatchGame:
        """The game."""
        return self._rules.game

    @property
    def rules(self) -> BatchRules:
        """The game with its results checked."""
        return self._rules

    @property
    def array(self) -> NDArray[Any]:
        """The row that stands for this state, read-only."""
        return self._array

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        return self._rules.num_actions

    @property
    def num_players(self) -> int:
        """Number of players."""
        return self._rules.num_players

    @property
    def zero_sum(self) -> bool:
        """Whether results sum to 0."""
        return self._rules.zero_sum

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return bool(self._rules.is_terminal(self._array[None])[0])

    @property
    def to_play(self) -> int:
        """The player to move; arbitrary at an end."""
        player = int(self._rules.to_play(self._array[None])[0])
        # -1 would be a chance node, of which there are none here.
        return player if player >= 0 else self.num_players

    def legal_actions(self) -> list[int]:
        """Returns the legal actions; none at an end."""
        if self.is_terminal:
            return []
        actions: list[int] = np.flatnonzero(self._rules.legal_mask(self._array[None])[0]).tolist()
        return actions

    def play(self, action: int) -> BatchState:
        """Returns the state after a legal action."""
        if action not in self.legal_actions():
            raise InvalidActionError(f"action {shown(action)} is not legal; legal are {shown(self.legal_actions())}")
        after = self._rules.play(self._array[None], np.array([action], dtype=np.int64))
        return BatchState.of_row(self._rules, after[0])

    def returns(self) -> list[float]:
        """Returns the result of a finished game, one number per player."""
        values: list[float] = self._rules.returns(self._array[None])[0].tolist()
        return values

    @property
    def observation(self) -> Callable[[], NDArray[np.float32]]:
        """The method that returns the observation; missing if the game has none."""
        if not hasattr(self._rules.game, "observation"):
            raise AttributeError(f"{self._rules.name} has no observation(states)")
        return lambda: self._rules.observation(self._array[None])[0]

    def action_to_string(self, action: int) -> str:
        """Returns the game's text of an action, or its number."""
        writer = getattr(self._rules.game, "action_to_string", str)
        return str(writer(action))

    def parse_action(self, text: str) -> int:
        """Returns the action of a text."""
        reader = getattr(self._rules.game, "parse_action", None)
        if reader is not None:
            return int(reader(text))
        for action in self.legal_actions():
            if self.action_to_string(action) == text.strip():
                return action
        raise InvalidActionError(f"{shown(text)} is no legal action")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchState):
            return NotImplemented
        return self.batch_game is other.batch_game and self._array.tobytes() == other._array.tobytes()

    def __hash__(self) -> int:
        return hash(self._array.tobytes())

    def __repr__(self) -> str:
        return f"BatchState({self._rules.name}, {np.array2string(self._array, threshold=100)})"

    def __reduce__(self) -> tuple[type[BatchState], tuple[BatchGame, NDArray[Any]]]:
        return BatchState, (self.batch_game, np.array(self._array))


def batch_states(game: BatchGame, states: Any) -> list[BatchState]:
    """Returns the states of an array [n, ...], one for each row."""
    array = np.asarray(states)
    if array.ndim == 0 or math.prod(array.shape[:1]) == 0:
        raise InvalidArgumentError(f"states has the shape {array.shape}: an array [n, ...] with n > 0 is right")
    first = BatchState(game, array[0])
    return [BatchState.of_row(first.rules, row) for row in array]
