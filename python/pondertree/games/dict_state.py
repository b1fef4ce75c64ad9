"""States that are plain dicts with a separate game of functions, the form of the UCT specification."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Self

from pondertree import validation
from pondertree.errors import InvalidArgumentError

#: Required attributes of a game: functions of a state, and two numbers.
FUNCTIONS = ("legal_actions", "play", "to_play", "is_terminal", "returns")
NUMBERS = ("num_players", "num_actions")
#: Optional attributes of a game: functions of a state.
OPTIONAL = (
    "observation",
    "action_to_string",
    "parse_action",
    "rewards",
    "symmetries",
    "simulateRandomPlayout",
    "chance_outcomes",
)


class DictState(dict[Any, Any]):
    """A dict with the interface of a state, whose rules are the functions of `game`.

    `game` is an object (or a module) with functions of a state: `legal_actions(state)`, `play(state, action)`, which
    returns a new dict, `to_play(state)`, `is_terminal(state)`, `returns(state)`; and the numbers `num_players` and
    `num_actions`. It may have `simulateRandomPlayout(state, perspective_player, max_depth)`, `observation(state)`,
    `action_to_string(state, action)`, `parse_action(state, text)`, `rewards(state)`, `symmetries(state)`,
    `chance_outcomes(state)` and `zero_sum`; each corresponds to the attribute of a state with that name.
    """

    def __init__(self, state: Mapping[Any, Any], game: Any) -> None:
        if not isinstance(state, Mapping):
            raise InvalidArgumentError(f"state must be a dict, not {validation.shown(state)}")
        missing = [name for name in FUNCTIONS if not callable(getattr(game, name, None))]
        missing += [name for name in NUMBERS if not hasattr(game, name)]
        if missing:
            raise InvalidArgumentError(
                f"game is a {type(game).__name__} without {', '.join(missing)}: it must have functions of a state, "
                f"{', '.join(FUNCTIONS)}, and the numbers {' and '.join(NUMBERS)}"
            )
        super().__init__(state)
        self.game = game

    @property
    def num_players(self) -> int:
        """Number of players."""
        players: int = self.game.num_players
        return players

    @property
    def num_actions(self) -> int:
        """Size of the action space."""
        actions: int = self.game.num_actions
        return actions

    @property
    def to_play(self) -> int:
        """The player to move."""
        player: int = self.game.to_play(self)
        return player

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return bool(self.game.is_terminal(self))

    def legal_actions(self) -> Sequence[int]:
        """Returns the legal actions."""
        actions: Sequence[int] = self.game.legal_actions(self)
        return actions

    def play(self, action: int) -> Self:
        """Returns the state after an action."""
        after = self.game.play(self, action)
        if after is self or not isinstance(after, dict):
            kind = "the dict it was given" if after is self else f"a {type(after).__name__}"
            raise TypeError(f"{type(self.game).__name__}.play returned {kind}: it must return a new dict")
        state = type(self).__new__(type(self))
        state.update(after)
        state.game = self.game
        return state

    def returns(self) -> Sequence[float]:
        """Returns the result, one number per player."""
        results: Sequence[float] = self.game.returns(self)
        return results

    def __getattr__(self, name: str) -> Any:
        # Optional attributes exist if the game has them. (During a copy there is no game yet.)
        game: Any = self.__dict__.get("game")
        if name in OPTIONAL and hasattr(game, name):
            return partial(getattr(game, name), self)
        if name == "zero_sum" and hasattr(game, name):
            return game.zero_sum
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns a copy of the dict that shares the game, which is immutable."""
        state = type(self).__new__(type(self))
        memo[id(self)] = state
        state.update(copy.deepcopy(dict(self), memo))
        state.game = self.game
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the arguments for pickle; a game that is a module is stored by name."""
        module = isinstance(self.game, ModuleType)
        return _restored, (type(self), dict(self), self.game.__name__ if module else self.game, module)

    def __repr__(self) -> str:
        return f"DictState({dict(self)!r})"


def _restored(kind: type[DictState], entries: dict[Any, Any], game: Any, is_module: bool) -> DictState:
    return kind(entries, importlib.import_module(game) if is_module else game)
