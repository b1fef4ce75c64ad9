"""The compiled games: a class is called for its starting state, `Chess(fen)` for any position.

`connect_four` is the exact solver of Connect 4; `DictState` adapts dicts and a game of functions.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import GameContractError, InvalidArgumentError, PondertreeError
from pondertree.game import COMPILED, CompiledGame, GameInfo, describe
from pondertree.games import connect_four
from pondertree.games.batch_game import BatchState, batch_states
from pondertree.games.compiled import *  # noqa: F403
from pondertree.games.dict_state import DictState

__all__ = ["BY_NAME", "BatchState", "DictState", "SizedGame", "batch_states", "by_name", "connect_four", "find"]
__all__ += ["name_of", "packed_line"]
__all__ += [game.state.__name__ for game in COMPILED.values()]

#: The classes of the compiled games by their names on the command line.
BY_NAME: dict[str, Any] = {game.command: game.state for game in COMPILED.values()}
#: Those names for messages and help texts.
_TEXTS = {game.command + "[:SIZE]" * (game.start == "size"): game for game in COMPILED.values()}
KNOWN = ", ".join(_TEXTS)
#: The names of the games that matches are played in, which are scored by results.
KNOWN_IN_MATCHES = ", ".join(text for text, game in _TEXTS.items() if not game.has_rewards)
_NAMES = {name: game for game in COMPILED.values() for name in (game.command, game.name, *game.aliases)}


@dataclass(frozen=True)
class SizedGame:
    """A compiled game on a board of another than the default size; called for its starting state, as a class is."""

    state: Any
    """The class of its states."""
    size: int

    def __call__(self) -> Any:
        """Returns the starting state."""
        return self.state(self.size)


def by_name(name: str) -> Any:
    """Returns the class of the compiled game called `name`; for a name with a size, such as `hex:7`, a `SizedGame`."""
    found = _compiled(validation.text(name, "name"))
    if found is None:
        raise InvalidArgumentError(f"unknown game {name!r}: the compiled games are {KNOWN}")
    return found


def _compiled(name: str) -> Any:
    first, colon, size = name.lower().partition(":")
    game = _NAMES.get(first)
    if game is None or not colon:
        return None if game is None else game.state
    if game.start != "size":
        raise InvalidArgumentError(f"there is no game {validation.shown(name)}: {game.command} has one size")
    try:
        start = game.state(size)
    except InvalidArgumentError as error:
        example = f"{game.command}:{describe(game.state()).observation_shape[2]}"
        raise InvalidArgumentError(f"there is no game {validation.shown(name)} (as in {example}): {error}") from None
    return game.state if start == game.state() else SizedGame(game.state, int(size))


def known(name: Any) -> Any:
    """Returns the class of a compiled game, or a `SizedGame`; None for any other name."""
    try:
        return by_name(str(name))
    except InvalidArgumentError:
        return None


def started(factory: Any, name: str) -> Any:
    """Returns the starting state of a game; exceptions other than those of this package become `GameContractError`."""
    try:
        return factory()
    except PondertreeError:
        raise
    except Exception as error:
        raise GameContractError(
            f"game {name!r} must give a starting state when called without arguments; "
            f"it raised {type(error).__name__}: {error}"
        ) from error


def find(name: str) -> Any:
    """Returns the factory of a compiled game's starting states, or the object at `module:Class` of a game in Python."""
    module, _, attribute = validation.text(name, "name").partition(":")
    # A module may have the name of a compiled game, but no attribute that of a size.
    is_attribute = attribute.replace(".", "").isidentifier()
    if not attribute or (module.lower() in _NAMES and not (is_attribute and importlib.util.find_spec(module))):
        return by_name(name)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # any exception of importing a user's module
        reason = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise InvalidArgumentError(f"game {name!r} cannot be imported: {reason}") from error
    if not callable(found):
        raise InvalidArgumentError(f"game {name!r} must give a starting state when called")
    return found


def registered(factory: Any) -> CompiledGame | None:
    """Returns the compiled game of a factory, a result of `find`; None for games in Python."""
    kind = factory.state if isinstance(factory, SizedGame) else factory
    return next((game for game in COMPILED.values() if game.state is kind), None)


def name_of(factory: Any) -> str | None:
    """Returns the canonical name of a compiled game, with its size unless that is the default; None for others."""
    game = registered(factory)
    if game is None:
        return None
    return f"{game.command}:{factory.size}" if isinstance(factory, SizedGame) else game.command


def name_of_info(info: GameInfo) -> str:
    """Returns the canonical name of a game from its properties; for games in Python, the name of their class."""
    if not info.compiled:
        return info.name
    game = _NAMES[info.name]
    return game.command if game.start != "size" else str(name_of(by_name(f"{info.name}:{info.observation_shape[2]}")))


def packed_line(
    state: Any, actions: NDArray[np.uint16]
) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
    """Replays `actions` from a compiled state: (bit planes [N, P], scalars [N, S], players to move [N]) before each.

    Raises a `PondertreeError` for an illegal action. Without actions the arrays are empty and give P and S.
    """
    planes, scalars, players = state._line(actions)
    return planes, scalars, players


def player_names(factory: Any, count: int) -> tuple[str, ...]:
    """Returns the names of the players of a game; `factory` is a result of `find`."""
    if count == 1:
        return ("Player",)
    game = registered(factory)
    return tuple(f"Player {number}" for number in range(1, count + 1)) if game is None else tuple(game.players)
