"""Records of self-play games, and their columnar form for files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.game import CHANCE, ENGINE_CHANCE
from pondertree.games import packed_line
from pondertree.learn.config import GameSpec, next_state

#: Numbers, and actions or their counts, of many moves.
Floats = NDArray[np.float32]
Actions = NDArray[np.uint16]


class Example(NamedTuple):
    """A training example."""

    state: Any
    actions: Actions
    """Legal actions."""
    policy: Floats | None
    """Policy target over these actions; None after a fast search."""
    result: float
    """Result of the game for the player to move."""
    value: float
    """Root value of the search, for the player to move."""
    version: int
    """Optimiser step of the network that searched."""


@dataclass(frozen=True, slots=True)
class GameRecord:
    """A game. Arrays of moves have one entry per searched move, after the opening."""

    number: int
    """Sequence number by start."""
    opening: Actions
    """Random moves before the searched ones; not training examples."""
    moves: Actions
    """The searched moves."""
    values: Floats
    """Root value of each search, for the player to move."""
    versions: NDArray[np.int64]
    """Optimiser step of the network of each search."""
    full: NDArray[np.bool_]
    """Whether each search was full, so that its policy is a target."""
    counts: Actions
    """Number of legal actions of each position."""
    actions: Actions
    """Legal actions of all positions, concatenated."""
    policy: Floats
    """Policy targets over them."""
    returns: Floats
    """Result, one number per player."""
    cut: bool = False
    """Truncated by `max_moves`: scored as a draw; in an environment with further rewards to come."""
    resigned: bool = False
    """Ended by resignation."""
    rewards: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """Reward of each move for its player, plus `returns.discount` times those of the outcomes of chance after it; empty
    in games with results alone."""
    seen: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """Packed observations of an environment's positions; games are replayed from their moves."""
    outcomes: Actions = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """Outcomes of all chance nodes from the start on."""
    drawn: Actions = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """Number of outcomes before each move, those of the opening included, and after the last one; empty in games
    without chance."""

    def line(self) -> tuple[Actions, NDArray[np.bool_]]:
        """Returns all actions and outcomes from the start, and which are outcomes."""
        moves = np.concatenate([self.opening, self.moves])
        if not len(self.drawn):
            return moves, np.zeros(len(moves), dtype=np.bool_)
        places = np.repeat(np.arange(len(self.drawn)), self.drawn)
        chance = np.insert(np.zeros(len(moves), dtype=np.bool_), places, True)
        return np.insert(moves, places, self.outcomes), chance

    def examples(self, factory: Callable[[], Any]) -> Iterator[Example]:
        """Yields the training examples; in a game with rewards `result` is the return of the whole game."""
        state = factory()
        line, chance = self.line()
        ends = np.cumsum(self.counts, dtype=np.int64)
        place = -len(self.opening)
        for move, is_outcome in zip(line.tolist(), chance.tolist(), strict=True):
            if is_outcome or place < 0:
                state = state.play(move)
                place += not is_outcome
                continue
            part = slice(int(ends[place]) - int(self.counts[place]), int(ends[place]))
            policy = self.policy[part] if self.full[place] else None
            result = float(self.returns[state.to_play])
            yield Example(
                state, self.actions[part], policy, result, float(self.values[place]), int(self.versions[place])
            )
            state = state.play(move)
            place += 1


#: Columns with one value per game, and with one list per game.
SCALAR_COLUMNS = {"number": np.int64, "cut": np.bool_, "resigned": np.bool_}
LIST_COLUMNS = {
    "opening": np.uint16,
    "moves": np.uint16,
    "values": np.float32,
    "versions": np.int64,
    "full": np.bool_,
    "counts": np.uint16,
    "actions": np.uint16,
    "policy": np.float32,
    "returns": np.float32,
    "rewards": np.float32,
    "seen": np.uint8,
    "outcomes": np.uint16,
    "drawn": np.uint16,
}
#: Columns missing from files written before environments, or chance, were supported.
OPTIONAL_COLUMNS = ("rewards", "seen", "outcomes", "drawn")

Columns = dict[str, NDArray[Any]]


def to_columns(games: Sequence[GameRecord]) -> Columns:
    """Converts games to columns; a list is its concatenated entries and, as `NAME_ends`, the end of each game's."""
    columns: Columns = {
        name: np.array([getattr(game, name) for game in games], dtype=kind) for name, kind in SCALAR_COLUMNS.items()
    }
    for name, kind in LIST_COLUMNS.items():
        parts: list[NDArray[Any]] = [np.asarray(getattr(game, name), dtype=kind) for game in games]
        columns[name] = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
        columns[f"{name}_ends"] = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return columns


def from_columns(columns: Columns) -> list[GameRecord]:
    """Converts columns to games; raises `InvalidArgumentError` if they are inconsistent."""
    try:
        _check_columns(columns)
        games = [_game(columns, row) for row in range(len(columns["number"]))]
    except (KeyError, TypeError) as error:
        raise InvalidArgumentError(f"not the columns of games: {error!r}") from None
    for game in games:
        if game.number < 0:
            raise InvalidArgumentError(f"the number of a game must be at least 0, not {game.number}")
        lengths = {len(game.moves), len(game.values), len(game.versions), len(game.full), len(game.counts)}
        places = int(game.counts.sum(dtype=np.int64))
        if len(lengths) > 1 or places != len(game.actions) or places != len(game.policy):
            raise InvalidArgumentError(f"game {game.number}: its lists have inconsistent lengths")
        if len(game.rewards) not in (0, len(game.moves)):
            raise InvalidArgumentError(f"game {game.number}: it has {len(game.rewards)} rewards")
        plies = len(game.opening) + len(game.moves)
        if len(game.drawn) not in (0, plies + 1) or int(game.drawn.sum(dtype=np.int64)) != len(game.outcomes):
            raise InvalidArgumentError(f"game {game.number}: its {len(game.outcomes)} outcomes of chance are misplaced")
        if not all(np.isfinite(part).all() for part in (game.values, game.policy, game.returns, game.rewards)):
            raise InvalidArgumentError(f"game {game.number}: it has a number that is not finite")
    return games


def check_games(games: Sequence[GameRecord], spec: GameSpec, *, finished: bool = True) -> None:
    """Raises `InvalidArgumentError` for records that cannot be games of `spec`; unfinished ones have no returns."""
    info, cells = spec.info, int(np.prod(spec.shape)) * (1 if spec.pixels else 4)
    for game in games:
        moves = len(game.moves)
        if not (
            len(game.returns) == (info.num_players if finished else 0)
            and len(game.rewards) == (moves if info.has_rewards else 0)
            and len(game.seen) == (moves * cells if spec.is_environment else 0)
            and len(game.drawn) == (len(game.opening) + moves + 1 if info.has_chance else 0)
        ):
            raise InvalidArgumentError(f"game {game.number} is not one of {spec.name}: its lists have other lengths")
        for actions in (game.opening, game.moves, game.actions):
            if (actions >= info.num_actions).any():
                raise InvalidArgumentError(f"game {game.number}: actions of {spec.name} are below {info.num_actions}")
        if (game.policy < 0.0).any() or (game.counts == 0).any():
            raise InvalidArgumentError(f"game {game.number}: each position must have a policy over its legal actions")
        if info.compiled or info.has_chance:
            try:
                check_line(*game.line(), spec)
            except PondertreeError as error:
                raise InvalidArgumentError(f"game {game.number}: {error}") from None


def check_line(line: Actions, chance: NDArray[np.bool_], spec: GameSpec) -> None:
    """Raises a `PondertreeError` for an illegal action, or an outcome where there is no chance node or none of it."""
    if spec.info.compiled:
        _, _, players = packed_line(spec.factory(), line)
        check_chance(players == ENGINE_CHANCE, chance)
        return
    state = spec.factory()
    found = np.zeros(len(line), dtype=np.bool_)
    for place, action in enumerate(line.tolist()):
        if state.is_terminal or action not in state.legal_actions():
            raise InvalidArgumentError(f"{action} is not legal after {place} actions and outcomes")
        found[place] = state.to_play == CHANCE
        state = next_state(state, action)
    check_chance(found, chance)


def check_chance(found: NDArray[np.bool_], recorded: NDArray[np.bool_]) -> None:
    """Raises `InvalidArgumentError` unless the chance nodes of a replayed game are those of its record."""
    if not np.array_equal(found, recorded):
        place = int(np.argmax(found != recorded))
        what = "an outcome is recorded where a player moves" if recorded[place] else "an outcome of chance is missing"
        raise InvalidArgumentError(f"{what}, after {place} actions and outcomes")


def _check_columns(columns: Columns) -> None:
    """Refuses columns of other dtypes than those of `to_columns`, and overlapping lists."""
    rows = len(columns["number"])
    for name, kind in {**SCALAR_COLUMNS, **LIST_COLUMNS}.items():
        if name in OPTIONAL_COLUMNS and name not in columns:
            continue
        column = columns[name]
        if column.dtype != kind or column.ndim != 1 or (name in SCALAR_COLUMNS and len(column) != rows):
            raise InvalidArgumentError(f"column {name!r} must be a list of {np.dtype(kind)}")
        if name in SCALAR_COLUMNS:
            continue
        ends = columns[f"{name}_ends"]
        if ends.dtype != np.int64 or ends.shape != (rows,):
            raise InvalidArgumentError(f"column {name + '_ends'!r} must be {rows} int64")
        if (np.diff(np.clip(ends, -1, len(column) + 1), prepend=0, append=len(column)) < 0).any() or (
            len(column) != (ends[-1] if rows else 0)
        ):
            raise InvalidArgumentError(f"column {name!r}: its lists must be contiguous and cover the column")


def _game(columns: Columns, row: int) -> GameRecord:
    fields: dict[str, Any] = {}
    for name in LIST_COLUMNS:
        if name in OPTIONAL_COLUMNS and name not in columns:
            continue
        ends = columns[f"{name}_ends"]
        first = 0 if row == 0 else int(ends[row - 1])
        fields[name] = columns[name][first : int(ends[row])]
    plain = {name: columns[name][row].item() for name in SCALAR_COLUMNS}
    return GameRecord(**fields, **plain)
