"""Games that were played to learn from: what is kept of each, and the columns that many make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import InvalidArgumentError, PondertreeError
from pondertree.games import packed_line
from pondertree.learn.config.game_spec import GameSpec


class Example(NamedTuple):
    """A position to learn from."""

    state: Any
    actions: NDArray[np.uint16]
    """The legal actions."""
    policy: NDArray[np.float32] | None
    """What the policy should be, over these actions; None where the search was a short one."""
    result: float
    """The result of the game for the player to move."""
    value: float
    """The value the search found, for the player to move."""
    version: int
    """Steps of learning that the network had behind it when the move was searched."""


@dataclass(frozen=True, slots=True)
class GameRecord:
    """A finished game. Arrays of moves have one entry for each searched move, after the opening."""

    number: int
    """Games are numbered as they are begun."""
    opening: NDArray[np.uint16]
    """The random moves it began with, which are not learned."""
    moves: NDArray[np.uint16]
    """The moves that were searched and played."""
    values: NDArray[np.float32]
    """The value at the root of each search, for the player to move."""
    versions: NDArray[np.int64]
    """Steps of learning behind the network of each search."""
    full: NDArray[np.bool_]
    """Whether the search of a move was a full one, so that its policy is learned."""
    counts: NDArray[np.uint16]
    """Legal actions of each position."""
    actions: NDArray[np.uint16]
    """The legal actions of all positions, one after another."""
    policy: NDArray[np.float32]
    """The policy over them."""
    returns: NDArray[np.float32]
    """The result, one number per player."""
    cut: bool = False
    """Ended because it was too long: as a draw, or, in an environment, with more rewards to come."""
    resigned: bool = False
    """Ended because a player gave up."""
    rewards: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """What each move brought the player who made it; none in games that have results alone."""
    seen: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """Packed observations of all positions, of an environment; those of a game follow from its moves."""

    def examples(self, factory: Callable[[], Any]) -> Iterator[Example]:
        """The positions, with what is to be learned of them."""
        state = factory()
        for move in self.opening.tolist():
            state = state.play(move)
        ends = np.cumsum(self.counts, dtype=np.int64)
        for place, move in enumerate(self.moves.tolist()):
            part = slice(int(ends[place]) - int(self.counts[place]), int(ends[place]))
            policy = self.policy[part] if self.full[place] else None
            result = float(self.returns[state.to_play])
            yield Example(
                state, self.actions[part], policy, result, float(self.values[place]), int(self.versions[place])
            )
            state = state.play(move)


#: The columns with one entry for each game, and those with a list for each.
PLAIN = {"number": np.int64, "cut": np.bool_, "resigned": np.bool_}
LISTS = {
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
}
#: Columns that files made before there were environments lack.
LATER = ("rewards", "seen")

Columns = dict[str, NDArray[Any]]


def to_columns(games: Sequence[GameRecord]) -> Columns:
    """Games as columns; a list is two of them, its entries and, under `NAME_ends`, where each game's end."""
    columns: Columns = {
        name: np.array([getattr(game, name) for game in games], dtype=kind) for name, kind in PLAIN.items()
    }
    for name, kind in LISTS.items():
        parts: list[NDArray[Any]] = [np.asarray(getattr(game, name), dtype=kind) for game in games]
        columns[name] = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
        columns[f"{name}_ends"] = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return columns


def from_columns(columns: Columns) -> list[GameRecord]:
    """The games of columns; what does not fit together is refused."""
    try:
        _check_columns(columns)
        games = [_game(columns, row) for row in range(len(columns["number"]))]
    except (KeyError, TypeError) as error:
        raise InvalidArgumentError(f"these are no columns of games: {error!r}") from None
    for game in games:
        if game.number < 0:
            raise InvalidArgumentError(f"the number of a game must be at least 0, not {game.number}")
        lengths = {len(game.moves), len(game.values), len(game.versions), len(game.full), len(game.counts)}
        places = int(game.counts.sum(dtype=np.int64))
        if len(lengths) > 1 or places != len(game.actions) or places != len(game.policy):
            raise InvalidArgumentError(f"game {game.number}: its lists do not fit together")
        if len(game.rewards) not in (0, len(game.moves)):
            raise InvalidArgumentError(f"game {game.number}: it has {len(game.rewards)} rewards")
        if not all(np.isfinite(part).all() for part in (game.values, game.policy, game.returns, game.rewards)):
            raise InvalidArgumentError(f"game {game.number}: a number in it is not finite")
    return games


def check_games(games: Sequence[GameRecord], spec: GameSpec, *, finished: bool = True) -> None:
    """Refuses games, read from a file, that cannot have been played in a game; those under way have no returns."""
    info, cells = spec.info, int(np.prod(spec.shape)) * (1 if spec.pixels else 4)
    for game in games:
        moves = len(game.moves)
        if not (
            len(game.returns) == (info.num_players if finished else 0)
            and len(game.rewards) == (moves if info.has_rewards else 0)
            and len(game.seen) == (moves * cells if spec.is_environment else 0)
        ):
            raise InvalidArgumentError(f"game {game.number} is none of {spec.name}: its lists have other lengths")
        played = np.concatenate([game.opening, game.moves])
        for actions in (played, game.actions):
            if (actions >= info.num_actions).any():
                raise InvalidArgumentError(f"game {game.number}: actions of {spec.name} are below {info.num_actions}")
        if (game.policy < 0.0).any() or (game.counts == 0).any():
            raise InvalidArgumentError(f"game {game.number}: each position must have a policy over its legal actions")
        if info.compiled:
            try:
                packed_line(spec.factory(), played)
            except PondertreeError as error:
                raise InvalidArgumentError(f"game {game.number}: {error}") from None


def _check_columns(columns: Columns) -> None:
    """Refuses columns of other types than those that `to_columns` gives, and lists that overlap."""
    rows = len(columns["number"])
    for name, kind in {**PLAIN, **LISTS}.items():
        if name in LATER and name not in columns:
            continue
        column = columns[name]
        if column.dtype != kind or column.ndim != 1 or (name in PLAIN and len(column) != rows):
            raise InvalidArgumentError(f"column {name!r} must be a list of {np.dtype(kind)}")
        if name in PLAIN:
            continue
        ends = columns[f"{name}_ends"]
        if ends.dtype != np.int64 or ends.shape != (rows,):
            raise InvalidArgumentError(f"column {name + '_ends'!r} must be {rows} int64")
        if (np.diff(np.clip(ends, -1, len(column) + 1), prepend=0, append=len(column)) < 0).any() or (
            len(column) != (ends[-1] if rows else 0)
        ):
            raise InvalidArgumentError(f"column {name!r}: its lists must follow each other, and be all that there is")


def _game(columns: Columns, row: int) -> GameRecord:
    fields: dict[str, Any] = {}
    for name in LISTS:
        if name in LATER and name not in columns:
            continue
        ends = columns[f"{name}_ends"]
        first = 0 if row == 0 else int(ends[row - 1])
        fields[name] = columns[name][first : int(ends[row])]
    plain = {name: columns[name][row].item() for name in PLAIN}
    return GameRecord(**fields, **plain)
