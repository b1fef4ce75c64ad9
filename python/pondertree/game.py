"""The interface of a game state, and its validated reading for the engine.

A state is a value: `play` returns a new one and changes nothing. Compiled states and states written in Python have the
same methods; no base class is needed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from pondertree._core import GAMES, LARGEST_REWARD
from pondertree.errors import GameContractError, GameOverError, InvalidArgumentError, PondertreeError
from pondertree.validation import number, shown

#: `to_play` at a chance node, whose next state is drawn from `chance_outcomes()`.
CHANCE: Final = -1
#: `CHANCE` in the engine's unsigned bytes.
ENGINE_CHANCE: Final = 255


def perspective(player: int) -> int:
    """Returns the player whose values a node has where `player` is to move: player 0 at chance nodes."""
    return 0 if player == CHANCE else player


@runtime_checkable
class Game(Protocol):
    """The interface of a game state.

    Optional attributes: `observation()` (float32, any fixed shape), `action_to_string(action)`,
    `parse_action(text)`, `rewards()` (one number per player for the move that led here: a game that defines it is
    scored by rewards alone, and its end is worth 0), `zero_sum` (default: two players and no `rewards`), `discount`
    (above 0 and at most 1, the same in all states: that of each move, which a search takes unless it has its own),
    `simulateRandomPlayout(perspective_player, max_depth)` (the UCT specification: the game's own playout),
    `symmetries()` (pairs of permutations of cells and of actions, as in `evaluators.Symmetry`; training uses them),
    `chance_outcomes()` (pairs of an outcome and its probability, where `to_play` is `CHANCE`), `random_playout(seed)`
    (the result of a uniformly random playout for each player, as a function of the state and a 64-bit seed: used
    instead of playing it move by move), `in_place()` (an equal state for one random playout, which may reuse the
    memory of each state for the next).
    """

    @property
    def to_play(self) -> int:
        """The player to move, from 0; `CHANCE` (-1) at a chance node."""
        ...

    @property
    def is_terminal(self) -> bool:
        """Whether the game is over."""
        ...

    @property
    def num_actions(self) -> int:
        """Size of the action space; actions are 0 .. num_actions - 1."""
        ...

    @property
    def num_players(self) -> int:
        """Number of players."""
        ...

    def legal_actions(self) -> Sequence[int]:
        """The legal actions, each once, in a fixed order; at a chance node its outcomes, in any order."""
        ...

    def play(self, action: int) -> Self:
        """The state after a legal action, or after an outcome of chance."""
        ...

    def returns(self) -> Sequence[float]:
        """The result of a finished game, one number per player, in [-1, 1]."""
        ...


class CompiledGame(NamedTuple):
    """A compiled game, as the engine registers it."""

    name: str
    """The name of the game in the engine and in files."""
    state: type[Any]
    title: str
    """The name for people."""
    command: str
    """The name on the command line."""
    aliases: list[str]
    """Further names that the command line accepts."""
    players: list[str]
    """The names of the players: the marks on the printed board, or colours."""
    opening_plies: int
    """Random plies of an opening in a match."""
    start: str | None
    """The argument of the constructor: "size" of the board, "fen"; None in games with one start."""
    board: str
    """The style of pictures, one of `games.board_svg.STYLES`."""
    policy_planes: int
    """Actions per cell, if an action is `cell * policy_planes + plane`; else 0."""
    has_rewards: bool
    """Whether moves have rewards, by which alone the game is scored."""
    max_outcomes: int
    """Upper bound of the outcomes of a chance node; 0 in games without chance."""
    opening_start: str | None
    """The argument of the constructor for openings of matches; None if they begin with the default start."""

    @property
    def has_chance(self) -> bool:
        """Whether the game has chance nodes."""
        return self.max_outcomes > 0


#: The compiled games by the class of their states.
COMPILED = {game.state: game for game in (CompiledGame(**entry) for entry in GAMES)}


@dataclass(frozen=True, slots=True)
class GameInfo:
    """The properties that all states of a game share."""

    name: str
    compiled: bool
    num_actions: int
    num_players: int
    zero_sum: bool
    has_rewards: bool
    observation_shape: tuple[int, int, int] = (0, 0, 0)
    """Planes, height and width of an observation (compiled games)."""
    move_categories: type[IntEnum] | None = None
    """The enumeration of move categories, in searches that assign them (Hybrid)."""
    policy_planes: int = 0
    """Actions per cell of an observation, if an action is `cell * policy_planes + plane` (compiled games); else 0."""
    has_chance: bool = False
    """Whether states may be chance nodes: they have `chance_outcomes()`."""
    batch_game: Any = None
    """The `BatchGame` of states that are rows of an array."""
    is_learned_model: bool = False
    """Whether positions below the root are predictions of a learned model, whose actions may be illegal."""
    discount: float = 1.0
    """Discount of each move, as states declare it."""

    @property
    def is_two_player_zero_sum(self) -> bool:
        """Whether results can be proven: two players, zero-sum, no rewards."""
        return self.num_players == 2 and self.zero_sum and not self.has_rewards


#: The properties of compiled games by class and shape of the observation, which the size of the board determines.
_COMPILED_INFO: dict[tuple[type, tuple[int, int, int]], GameInfo] = {}


REQUIRED = ("legal_actions", "play", "to_play", "is_terminal", "returns", "num_actions", "num_players")
METHODS = ("legal_actions", "play", "returns")
OPTIONAL_METHODS = ("rewards", "chance_outcomes")
#: Hint for errors of `play` with an action that was legal.
MUTATION_HINT = "does play() mutate the state? pondertree.testing.check_game tests it"


def describe(state: Any) -> GameInfo:
    """Returns the game that `state` belongs to; the error for any other object names missing attributes."""
    game = COMPILED.get(type(state))
    if game is not None:
        key = (game.state, state._observation_shape)
        if key not in _COMPILED_INFO:
            info = GameInfo(game.name, True, state.num_actions, state.num_players, state.zero_sum, game.has_rewards)
            _COMPILED_INFO[key] = replace(
                info,
                observation_shape=key[1],
                policy_planes=game.policy_planes,
                has_chance=game.has_chance,
            )
        return _COMPILED_INFO[key]
    if isinstance(state, type):
        raise InvalidArgumentError(f"{state.__name__} is a class, not a game state: call it to get a starting state")
    missing = [name for name in REQUIRED if not _has(state, name)]
    if missing:
        raise InvalidArgumentError(
            f"{type(state).__name__!r} object is not a game state: it has no {', '.join(missing)}. "
            f"A state has {', '.join(REQUIRED)} (see pondertree.Game)"
        )
    batch_game = getattr(type(state), "batch_game", None) and state.batch_game
    name = type(batch_game or state).__name__
    has_rewards = _has(state, "rewards")
    for method in (*METHODS, *(name for name in OPTIONAL_METHODS if _has(state, name))):
        if isinstance(getattr(type(state), method, None), (property, cached_property)):
            raise GameContractError(f"{name}.{method} is a property: make it a method")
        if not callable(getattr(state, method)):
            raise GameContractError(f"{name}.{method} is {shown(getattr(state, method))}: make it a method")
    players = _whole(state, "num_players", 1, 255)
    try:
        zero_sum = getattr(state, "zero_sum", players == 2 and not has_rewards)
    except Exception as error:
        raise GameContractError(f"{name}.zero_sum raised {type(error).__name__}: {error}") from error
    if not isinstance(zero_sum, bool):
        raise GameContractError(f"{name}.zero_sum is {shown(zero_sum)}: it must be True or False")
    has_chance = _has(state, "chance_outcomes")
    actions = _whole(state, "num_actions", 1, 65535)
    discount = _discount(state, name)
    return GameInfo(
        name,
        False,
        actions,
        players,
        zero_sum,
        has_rewards,
        has_chance=has_chance,
        batch_game=batch_game,
        discount=discount,
    )


def _discount(state: Any, name: str) -> float:
    """Returns the discount that a state declares; 1 without one."""
    given = state.discount if _has(state, "discount") else 1.0
    with suppress(InvalidArgumentError):
        if (result := number(given, "discount", most=1.0)) > 0.0:
            return result
    raise GameContractError(f"{name}.discount is {shown(given)}: it must be a number above 0 and at most 1")


def check_player(to_play: int, num_players: int, name: str) -> None:
    """Raises `GameContractError` if the player to move is out of range."""
    if not 0 <= to_play < num_players:
        raise GameContractError(f"{name}.to_play is {shown(to_play)}: it must be from 0 to {num_players - 1}")


def check_actions(legal: Sequence[int], num_actions: int, name: str) -> None:
    """Raises `GameContractError` if a legal action is out of range."""
    if legal and not (min(legal) >= 0 and max(legal) < num_actions):
        wrong = next(action for action in legal if not 0 <= action < num_actions)
        raise GameContractError(
            f"{name}.legal_actions() has {shown(wrong)}: actions must be from 0 to num_actions - 1 = {num_actions - 1}"
        )


def player_index(given: Any, info: GameInfo) -> int:
    """Returns `to_play` as an int."""
    if callable(given):
        raise GameContractError(f"{info.name}.to_play is a method: make it a property or an attribute")
    try:
        return operator.index(given)
    except TypeError as error:
        raise GameContractError(
            f"{info.name}.to_play is {shown(given)}: it must be an int from 0 to {info.num_players - 1}"
        ) from error


def action_list(given: Any, info: GameInfo) -> list[int]:
    """Returns `legal_actions()` as a list of ints."""
    if type(given) is not list and not is_sequence(given):
        raise GameContractError(
            f"{info.name}.legal_actions() is a {type(given).__name__}: it must be a list, or another sequence"
        )
    try:
        return [operator.index(action) for action in given]
    except TypeError as error:
        wrong = next((action for action in given if not hasattr(action, "__index__")), given)
        raise GameContractError(
            f"{info.name}.legal_actions() has {shown(wrong)}: "
            f"actions must be ints from 0 to num_actions - 1 = {info.num_actions - 1}"
        ) from error


def is_sequence(given: Any) -> bool:
    """Whether an object is a sequence other than text."""
    if isinstance(given, (list, tuple, range, np.ndarray)):
        return not isinstance(given, np.ndarray) or given.ndim > 0
    return hasattr(given, "__len__") and hasattr(given, "__getitem__") and not is_misread(given)


def is_misread(given: Any) -> bool:
    """Whether an object is iterable, but not a sequence of numbers: a mapping, a set, text."""
    return isinstance(given, (str, bytes, bytearray, Mapping, Set))


def play(state: Any, action: int, name: str) -> Any:
    """Returns `state.play(action)`; exceptions of the game become `GameContractError`."""
    try:
        after = state.play(action)
    except GameContractError:
        raise
    except Exception as error:
        raise play_error(action, name, error) from error
    check_played(after, action, name)
    return after


def play_error(action: int, name: str, error: Exception) -> GameContractError:
    """Returns the error for `play` of a legal action that raised `error`."""
    return GameContractError(
        f"{name}.play({action}) raised {type(error).__name__} although the action is in legal_actions(): {error} "
        f"({MUTATION_HINT})"
    )


def check_played(after: Any, action: int, name: str) -> None:
    """Raises `GameContractError` unless `after`, the result of `play(action)`, is a state."""
    if not _has(after, "is_terminal"):
        raise GameContractError(f"{name}.play({action}) returned {shown(after)}: it must return the new state")


def refuse_finished(state: Any, what: str = "this state") -> None:
    """Raises `GameOverError`, a ValueError as in every specification, if the game is over."""
    if is_over(state):
        raise game_is_over(what)


def game_is_over(what: str) -> GameOverError:
    """Returns the error for a search of a finished game."""
    return GameOverError(f"the game is over in {what}: there is nothing to search")


def is_over(state: Any) -> bool:
    """Returns `state.is_terminal`; exceptions of the game become `GameContractError`."""
    name = type(state).__name__
    try:
        terminal = state.is_terminal
    except Exception as error:
        raise GameContractError(f"{name}.is_terminal raised {type(error).__name__}: {error}") from error
    if callable(terminal):
        raise GameContractError(f"{name}.is_terminal is a method: make it a property")
    try:
        return bool(terminal)
    except MemoryError:
        raise
    except Exception as error:
        raise GameContractError(f"{name}.is_terminal is {shown(terminal)}: it must be True or False") from error


@contextmanager
def as_contract_error(info: GameInfo, doing: str) -> Iterator[None]:
    """Converts exceptions of a game into `GameContractError`."""
    try:
        yield
    except PondertreeError:
        raise
    except Exception as error:
        raise GameContractError(f"{info.name} raised {type(error).__name__} {doing}: {error}") from error


def move_text(state: Any, action: int) -> str:
    """Returns the text of an action in the game's notation; its number if the game has none.

    Outcomes of chance need none.
    """
    writer = getattr(state, "action_to_string", None)
    if writer is None:
        return str(action)
    try:
        return str(writer(action))
    except Exception as error:
        if getattr(state, "to_play", None) == CHANCE:
            return str(action)
        raise GameContractError(
            f"{type(state).__name__}.action_to_string({action}) raised {type(error).__name__}: {error}"
        ) from error


def state_text(state: Any) -> str:
    """Returns a state as text: `str(state)`, or the name of its class and the error if that raises."""
    try:
        return str(state)
    except Exception as error:
        name = type(state).__name__
        return f"<{name}: {name}.__str__ raised {type(error).__name__}: {error}>"


#: Separator of moves with several words.
MOVE_SEPARATOR = ";"


def split_moves(text: str) -> list[str]:
    """Returns the moves of a line, separated by semicolons if it has any, else by spaces."""
    if MOVE_SEPARATOR not in text:
        return text.split()
    return [move.strip() for move in text.split(MOVE_SEPARATOR) if move.strip()]


def join_moves(moves: Sequence[str]) -> str:
    """Joins moves to a line: separated by semicolons if a move has several words."""
    between = f"{MOVE_SEPARATOR} " if any(len(move.split()) > 1 for move in moves) else " "
    return between.join(moves)


def _has(state: Any, name: str) -> bool:
    # The class is searched first: a property that raises is not a missing one.
    return hasattr(type(state), name) or name in getattr(state, "__dict__", {})


def _whole(state: Any, name: str, least: int, most: int) -> int:
    try:
        number = operator.index(getattr(state, name))
    except Exception as error:
        raise GameContractError(f"{type(state).__name__}.{name} must be an int ({error})") from error
    if not least <= number <= most:
        raise GameContractError(f"{type(state).__name__}.{name} is {shown(number)}: it must be from {least} to {most}")
    return number


def check_returns(given: Any, info: GameInfo) -> list[float]:
    """Returns the returns of a finished game, checked: in [-1, 1], and with sum 0 in a zero-sum game."""
    values = list(player_numbers(given, info, "returns()"))
    if not all(-1.0 <= value <= 1.0 for value in values):
        raise GameContractError(
            f"{info.name}.returns() is {values}: results are finite and from -1 to 1 "
            "(larger scores are given by rewards())"
        )
    if info.zero_sum and abs(sum(values)) > 1e-9:
        raise GameContractError(
            f"{info.name}.returns() is {values}, which sums to {sum(values)}: a zero-sum game's sum to 0 "
            "(set zero_sum = False if this one is not)"
        )
    return values


def check_rewards(given: Any, info: GameInfo) -> tuple[float, ...]:
    """Returns the rewards of a move, checked: finite and small enough for sums over a search."""
    rewards = player_numbers(given, info, "rewards()")
    if not all(abs(reward) <= LARGEST_REWARD for reward in rewards):  # also False for NaN
        raise GameContractError(
            f"{info.name}.rewards() is {list(rewards)}: "
            f"rewards are finite numbers of at most {LARGEST_REWARD:.0e} in size (scale them down)"
        )
    return rewards


def player_numbers(given: Any, info: GameInfo, what: str) -> tuple[float, ...]:
    """Returns a list of one number per player as floats."""
    if type(given) is not list and type(given) is not tuple and is_misread(given):
        raise GameContractError(f"{info.name}.{what} must be a list of numbers, not a {type(given).__name__}")
    try:
        values = tuple(float(number) for number in given)
    except MemoryError:
        raise
    except Exception as error:
        raise GameContractError(
            f"{info.name}.{what} is {shown(given)}: it must be one number for each of the {info.num_players} players"
        ) from error
    if len(values) != info.num_players:
        raise GameContractError(
            f"{info.name}.{what} has {len(values)} numbers: it must have one for each of the {info.num_players} players"
        )
    return values
