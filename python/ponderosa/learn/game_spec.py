"""The game that is learned: where it starts, what it looks like, how it can be turned."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ponderosa import games
from ponderosa.errors import GameContractError, InvalidArgumentError
from ponderosa.evaluators.symmetry import Symmetry, symmetries_of
from ponderosa.game import COMPILED, GameInfo, describe


@dataclass(frozen=True, slots=True)
class GameSpec:
    """A game as learning sees it."""

    name: str
    """How a configuration names it: the name of a compiled game, or `module:Class`."""
    factory: Callable[[], Any]
    """Gives a starting state."""
    info: GameInfo
    shape: tuple[int, ...]
    """The shape of an observation."""
    symmetries: tuple[Symmetry, ...]
    """That which changes nothing first."""


def game_spec(name: str, factory: Callable[[], Any] | None = None) -> GameSpec:
    """The game of a configuration; `factory` gives the starting states of one that cannot be imported by name."""
    if factory is None:
        factory = _by_name(name)
    elif not callable(factory):
        raise InvalidArgumentError(f"factory must give a starting state when called, not {factory!r}")
    else:
        name = _name_of(factory)
    state = factory()
    info = describe(state)
    if info.has_rewards or info.num_players > 2 or (info.num_players == 2 and not info.zero_sum):
        raise InvalidArgumentError(
            f"game {name!r} cannot be learned: it must have one player, or two with opposite results, and no rewards"
        )
    if not hasattr(state, "observation"):
        raise GameContractError(f"{info.name} has no observation(): a network needs one, float32 of a fixed shape")
    try:
        shape = np.asarray(state.observation(), dtype=np.float32).shape
    except Exception as error:
        raise GameContractError(f"{info.name}.observation() failed: {error}") from error
    return GameSpec(name, factory, info, shape, _symmetries(state, shape))


def _by_name(name: str) -> Callable[[], Any]:
    module, colon, attribute = name.partition(":")
    if not colon:
        found: Callable[[], Any] = games.by_name(name)
        return found
    try:
        found = importlib.import_module(module)  # type: ignore[assignment]
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgumentError(f"game {name!r} cannot be imported: {error}") from None
    if not callable(found):
        raise InvalidArgumentError(f"game {name!r} must give a starting state when called")
    return found


def _name_of(factory: Any) -> str:
    for name, compiled in games.BY_NAME.items():
        if factory is compiled:
            return name
    return f"{factory.__module__}:{getattr(factory, '__qualname__', type(factory).__qualname__)}"


def _symmetries(state: Any, shape: tuple[int, ...]) -> tuple[Symmetry, ...]:
    cells = int(np.prod(shape[-2:])) if len(shape) > 1 else int(np.prod(shape))
    if type(state) not in COMPILED and not hasattr(state, "symmetries"):
        return (Symmetry(np.arange(cells), np.arange(state.num_actions)),)
    return tuple(symmetries_of(state))
