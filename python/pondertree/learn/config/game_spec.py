"""The trained game or environment: starting states, observation shape, symmetries, and checks that it is learnable."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import games
from pondertree.envs.gymnasium import PREFIX, Environments, EnvironmentState
from pondertree.errors import GameContractError, InvalidArgumentError, PondertreeError
from pondertree.evaluators.symmetry import Symmetry, symmetries_of
from pondertree.game import COMPILED, GameInfo, as_contract_error, describe, play
from pondertree.games.chance import check_chance_ends, draw_outcome, is_chance
from pondertree.random import OUTCOME, Random
from pondertree.validation import shown

#: The version suffix of Gymnasium names.
_VERSION = re.compile(r"-v\d+$")
#: Starts that are drawn before a game counts as over before its first decision.
MAX_STARTS = 1000
_ONLY_MUZERO = "environments need algorithm muzero"


@dataclass(frozen=True, slots=True)
class GameSpec:
    """The properties of a game that training depends on."""

    name: str
    """The name in the configuration: a compiled game, `module:Class`, or `gym:NAME`."""
    factory: Callable[[], Any]
    """Returns a starting state."""
    info: GameInfo
    shape: tuple[int, ...]
    """Shape of an observation."""
    symmetries: tuple[Symmetry, ...]
    """The identity first."""
    seeded: Callable[[int], Any] | None = None
    """Returns the starting state of an episode by its seed; environments only."""
    pixels: bool = False
    """Whether observations are bytes, scaled to [0, 1] for the network."""
    environment: dict[str, Any] | None = None
    """JSON-compatible metadata for playing in the environment itself: observation view and first action."""

    def metadata(self, step: int, games: int) -> dict[str, Any]:
        """Returns the metadata of a player file."""
        metadata = {"game": self.name, "step": step, "games": games}
        return metadata if self.environment is None else {**metadata, "environment": self.environment}

    @property
    def is_environment(self) -> bool:
        """Whether observations must be recorded, since positions cannot be replayed from actions."""
        return self.seeded is not None

    def start(self, seed: int) -> Any:
        """Returns the starting state of a game, or of the episode with this seed."""
        return self.factory() if self.seeded is None else self.seeded(seed)


def game_spec(name: str, factory: Callable[[], Any] | None = None, *, model: bool | None = False) -> GameSpec:
    """Returns the spec of a configured game; raises a `PondertreeError` if it cannot be trained.

    `factory` gives the starting states, or Gymnasium environments, of a game that cannot be imported by name. `model`
    is whether the algorithm plans in a learned model (MuZero; None: undecided): then environments can be trained, but
    no games with chance nodes.
    """
    if factory is None and name.startswith(PREFIX):
        return _environment(Environments(name.removeprefix(PREFIX)), model)
    if factory is None:
        factory = _by_name(name)
        # Compiled games have aliases and one canonical name.
        name = games.name_of(factory) or name
        factory = start_of_training(factory)
    elif not callable(factory):
        raise InvalidArgumentError(f"factory must return a starting state when called, not {shown(factory)}")
    else:
        name = _name_of(factory)
    state = games.started(factory, name)
    if hasattr(state, "action_space") and hasattr(state, "step"):
        return _environment(Environments(name, factory), model, name)
    info = describe(state)
    if info.num_players > 2 or (info.num_players == 2 and not info.zero_sum):
        raise InvalidArgumentError(
            f"game {name!r} cannot be trained: it must have one player, or two with opposite results"
        )
    if info.has_rewards and info.num_players != 1:
        raise InvalidArgumentError(f"game {name!r} cannot be trained: rewards can be learned in games of one player")
    if info.has_chance and model:
        raise InvalidArgumentError(
            f"game {name!r} cannot be trained so: learned models have no chance nodes; "
            "use algorithm gumbel or alphazero"
        )
    if not hasattr(state, "observation"):
        raise GameContractError(f"{info.name} has no observation(): a network needs one, float32 of a fixed shape")
    state = _first_decision(factory, info)
    shape = read_observation(state, info.name).shape
    if not shape or 0 in shape:
        raise GameContractError(
            f"{info.name}.observation() has shape {shape}: it must have at least one axis and one element, "
            "such as (features,) or (planes, height, width)"
        )
    return GameSpec(name, factory, info, shape, _symmetries(info.name, state, shape))


def start_of_training(factory: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a factory of the start of a compiled game from which openings begin: before the first chance node."""
    game = games.registered(factory)
    if game is None or game.opening_start is None:
        return factory
    state: Callable[..., Any] = game.state
    return functools.partial(state, game.opening_start)


def _first_decision(factory: Callable[[], Any], info: GameInfo) -> Any:
    """Returns a state of the first decision, after outcomes of chance: no others need observations and symmetries."""
    random = Random(0, OUTCOME)
    for _ in range(MAX_STARTS):
        state = factory()
        with as_contract_error(info, "while drawing an outcome"):
            in_a_row = 0
            while is_chance(state):
                in_a_row += 1
                check_chance_ends(state, in_a_row)
                state = next_state(state, draw_outcome(state, random))
            if not state.is_terminal:
                return state
    raise over_by_chance(info)


def over_by_chance(info: GameInfo) -> GameContractError:
    """Returns the error for a game that chance always ends before the first decision."""
    return GameContractError(f"{info.name} ends by chance before the first decision, in all of {MAX_STARTS} starts")


def read_observation(state: Any, name: str) -> NDArray[np.float32]:
    """Returns the observation of a state of the game `name`; raises `GameContractError` unless it is finite numbers."""
    try:
        seen = np.asarray(state.observation(), dtype=np.float32)
    except Exception as error:
        raise GameContractError(f"{name}.observation() failed: {type(error).__name__}: {error}") from error
    wrong = seen[~np.isfinite(seen)]
    if wrong.size:
        raise GameContractError(f"{name}.observation() has a number that is not finite: {wrong[0]}")
    return seen


def next_state(state: Any, action: int) -> Any:
    """Returns the state after a legal action; errors of a Python game become a `GameContractError`."""
    if type(state) in COMPILED or isinstance(state, EnvironmentState):
        return state.play(action)
    return play(state, action, type(state).__name__)


def _environment(environments: Environments, model: bool | None, name: str | None = None) -> GameSpec:
    if model is False:
        raise InvalidArgumentError(f"environment {environments.name!r} cannot be trained so: {_ONLY_MUZERO}")
    view, actions = environments.view, environments.num_actions
    info = GameInfo(environments.name, False, actions, 1, False, True)
    cells = int(np.prod(view.shape[-2:])) if len(view.shape) > 1 else view.shape[0]
    identity = Symmetry(np.arange(cells), np.arange(actions))
    return GameSpec(
        name or PREFIX + environments.name,
        lambda: environments.start(0),
        info,
        view.shape,
        (identity,),
        environments.start,
        view.pixels,
        {"view": view.as_data(), "first_action": environments.actions.first},
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
