"""The game that is learned: where it starts, what it looks like, how it can be turned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree import games
from pondertree.envs.gymnasium import PREFIX, Environments, EnvironmentState
from pondertree.errors import GameContractError, InvalidArgumentError, PondertreeError
from pondertree.evaluators.symmetry import Symmetry, symmetries_of
from pondertree.game import COMPILED, GameInfo, describe, play
from pondertree.validation import shown

#: How names of environments end.
_VERSION = re.compile(r"-v\d+$")
_ONLY_MUZERO = "rewards are learned by algorithm muzero, in games of one player and environments"


@dataclass(frozen=True, slots=True)
class GameSpec:
    """A game as learning sees it."""

    name: str
    """How a configuration names it: the name of a compiled game, `module:Class`, or `gym:NAME`."""
    factory: Callable[[], Any]
    """Gives a starting state."""
    info: GameInfo
    shape: tuple[int, ...]
    """The shape of an observation."""
    symmetries: tuple[Symmetry, ...]
    """That which changes nothing first."""
    seeded: Callable[[int], Any] | None = None
    """Gives the starting state of an episode by its seed, where there is an environment instead of a game."""
    pixels: bool = False
    """Whether observations are bytes, seen as numbers from 0 to 1."""
    environment: dict[str, Any] | None = None
    """What must be known to play in the environment itself: how it is seen, and its first action. Plain data."""

    def about(self, step: int, games: int) -> dict[str, Any]:
        """What is told in the file of a player, in plain data."""
        told = {"game": self.name, "step": step, "games": games}
        return told if self.environment is None else {**told, "environment": self.environment}

    @property
    def is_environment(self) -> bool:
        """Whether positions cannot be reached again by the rules: what is seen of them has to be kept."""
        return self.seeded is not None

    def start(self, seed: int) -> Any:
        """The starting state of a game, or of the episode with this seed."""
        return self.factory() if self.seeded is None else self.seeded(seed)


def game_spec(name: str, factory: Callable[[], Any] | None = None, *, rewards: bool = False) -> GameSpec:
    """The game of a configuration; `factory` gives the starting states of one that cannot be imported by name, or
    environments of Gymnasium. `rewards`: whether those can be learned (by MuZero)."""
    if factory is None and name.startswith(PREFIX):
        return _environment(Environments(name.removeprefix(PREFIX)), rewards)
    if factory is None:
        factory = _by_name(name)
        # A compiled game has several names, and one that is written down.
        name = games.name_of(factory) or name
    elif not callable(factory):
        raise InvalidArgumentError(f"factory must give a starting state when called, not {shown(factory)}")
    else:
        name = _name_of(factory)
    state = _started(name, factory)
    if hasattr(state, "action_space") and hasattr(state, "step"):
        return _environment(Environments(name, factory), rewards, name)
    info = describe(state)
    if info.num_players > 2 or (info.num_players == 2 and not info.zero_sum):
        raise InvalidArgumentError(
            f"game {name!r} cannot be learned: it must have one player, or two with opposite results"
        )
    if info.has_rewards and not (rewards and info.num_players == 1):
        raise InvalidArgumentError(f"game {name!r} cannot be learned so: {_ONLY_MUZERO}")
    if not hasattr(state, "observation"):
        raise GameContractError(f"{info.name} has no observation(): a network needs one, float32 of a fixed shape")
    try:
        seen = np.asarray(state.observation(), dtype=np.float32)
    except Exception as error:
        raise GameContractError(f"{info.name}.observation() failed: {error}") from error
    shape = seen.shape
    if not shape or 0 in shape:
        raise GameContractError(
            f"{info.name}.observation() has shape {shape}: it must have an axis and a number at least, "
            "such as (features,) or (planes, height, width)"
        )
    if not np.isfinite(seen).all():
        raise GameContractError(
            f"{info.name}.observation() has a number that is not finite: {seen[~np.isfinite(seen)][0]}"
        )
    return GameSpec(name, factory, info, shape, _symmetries(info.name, state, shape))


def play_in(state: Any, action: int) -> Any:
    """The state after an action that is allowed; mistakes of a game written in Python are told in words."""
    if type(state) in COMPILED or isinstance(state, EnvironmentState):
        return state.play(action)
    return play(state, action, type(state).__name__)


def _started(name: str, factory: Callable[[], Any]) -> Any:
    """A starting state, or an environment."""
    try:
        return factory()
    except PondertreeError:
        raise
    except Exception as error:
        raise GameContractError(
            f"game {name!r} must give a starting state when called without arguments; "
            f"it raised {type(error).__name__}: {error}"
        ) from error


def _environment(environments: Environments, rewards: bool, name: str | None = None) -> GameSpec:
    if not rewards:
        raise InvalidArgumentError(f"environment {environments.name!r} cannot be learned so: {_ONLY_MUZERO}")
    view, actions = environments.view, environments.num_actions
    info = GameInfo(environments.name, False, actions, 1, False, True)
    cells = int(np.prod(view.shape[-2:])) if len(view.shape) > 1 else view.shape[0]
    alike = Symmetry(np.arange(cells), np.arange(actions))
    return GameSpec(
        name or PREFIX + environments.name,
        lambda: environments.start(0),
        info,
        view.shape,
        (alike,),
        environments.start,
        view.pixels,
        {"view": view.as_data(), "first_action": environments.first_action},
    )


def _by_name(name: str) -> Callable[[], Any]:
    try:
        found: Callable[[], Any] = games.find(name)
    except InvalidArgumentError as error:
        hint = f"; an environment of Gymnasium is {PREFIX}{name}" if _VERSION.search(name) and ":" not in name else ""
        raise InvalidArgumentError(f"{error}{hint}") from None
    return found


def _name_of(factory: Any) -> str:
    compiled = games.name_of(factory)
    return compiled or f"{factory.__module__}:{getattr(factory, '__qualname__', type(factory).__qualname__)}"


def _symmetries(name: str, state: Any, shape: tuple[int, ...]) -> tuple[Symmetry, ...]:
    cells = int(np.prod(shape[-2:])) if len(shape) > 1 else int(np.prod(shape))
    if type(state) not in COMPILED and not hasattr(state, "symmetries"):
        return (Symmetry(np.arange(cells), np.arange(state.num_actions)),)
    try:
        return tuple(symmetries_of(state))
    except PondertreeError:
        raise
    except Exception as error:
        raise GameContractError(f"{name}.symmetries() failed: {type(error).__name__}: {error}") from error
