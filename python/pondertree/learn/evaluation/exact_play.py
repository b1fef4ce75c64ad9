"""Exact play, where a game has a solver: how often a player's moves keep the value of the game.

The positions of Connect 4 come from a file, since solving those with few stones takes seconds each. They are those of
`connect_four_exact.value_keeping_positions(count, seed=20)`: random games of 6 to 24 plies, in positions where some
legal moves lose value and some keep it. A line has the moves, and the columns that keep the value;
`scripts/connect_four_positions.py` writes the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pondertree import validation
from pondertree._core import PlayoutRandom
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.games import ConnectFour
from pondertree.games.connect_four import solve_many
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.evaluation.arena import BatchPlayer
from pondertree.random import fold

POSITIONS = Path(__file__).parent / "connect_four_positions.txt"


class Exam(Protocol):
    """Positions in which some moves are right and some are wrong."""

    def share(self, player: BatchPlayer) -> float:
        """The share of the positions in which the player's move is right."""
        ...


def exam_of(spec: GameSpec, count: int) -> Exam | None:
    """`count` positions of a game to be examined in, or as many as there are; None where it has none."""
    if spec.factory is not ConnectFour or not POSITIONS.exists():
        return None
    return MovesThatKeep(read_positions(POSITIONS)[:count])


@dataclass(frozen=True, slots=True)
class MovesThatKeep:
    """States, and the actions that keep their value."""

    positions: list[tuple[Any, frozenset[int]]]

    def share(self, player: BatchPlayer) -> float:
        """The share of the positions in which the player's move is right."""
        states = [state for state, _ in self.positions]
        actions = player(states, list(range(len(states))))
        kept = sum(action in keeping for action, (_, keeping) in zip(actions, self.positions, strict=True))
        return kept / len(self.positions)


def read_positions(path: Path) -> list[tuple[ConnectFour, frozenset[int]]]:
    """The positions of a file: moves by column from 1, a colon, the columns that keep the value."""
    positions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        moves, _, keeping = line.partition("#")[0].partition(":")
        if moves.strip():
            state = ConnectFour()
            for column in moves.strip():
                state = state.play(int(column) - 1)
            positions.append((state, frozenset(int(column) - 1 for column in keeping.strip())))
    return positions


__all__ = ["ExactPosition", "share_of_value_keeping_moves", "value_keeping_positions"]

#: So many random games are played for one position before it is given up.
MAX_GAMES = 1000
#: A game of Connect 4 has at most so many stones.
CELLS = 42


@dataclass(frozen=True, slots=True)
class ExactPosition:
    """A position in which some legal moves keep the value of the game and others lose it."""

    state: ConnectFour
    ply: int
    """Stones on the board."""
    value: int
    """1 won or 0 drawn for the player to move. (In a lost position no move can lose value.)"""
    keeping: frozenset[int]
    """The actions that keep this value."""


def value_keeping_positions(
    count: int, seed: int, plies: tuple[int, int] = (6, 24), *, threads: int | None = None, max_memory: int = 256
) -> list[ExactPosition]:
    """`count` different positions in which it matters what is played, the same for the same `seed` on any machine.

    Each position has a ply of its own, drawn evenly from `plies` (both included). Games of evenly drawn legal moves are
    played from the start up to that ply until one is not over by then, is not the position of another place in the
    list, and has both a move that keeps the value and one that loses it (`solve_many` says which). So plies stay evenly
    distributed, while positions of one ply come as often as random games lead to them. A mirror image is different.

    Threads and memory (MiB) are those of `solve_many`. Early positions take longest to solve: seconds at ply 6,
    milliseconds from ply 16 on.
    """
    count = validation.count(count, "count")
    seed = validation.whole_number(seed, "seed")
    first, last = _range(plies)
    chosen: list[ExactPosition | None] = [None] * count
    seen: set[ConnectFour] = set()
    games = [0] * count
    open_places = list(range(count))
    while open_places:
        # One candidate for each place that is still open, all of them solved at once.
        candidates = [_candidate(seed, place, first, last, games, seen) for place in open_places]
        still_open = []
        solutions = solve_many([state for state, _ in candidates], threads=threads, max_memory=max_memory)
        for place, (state, ply), solution in zip(open_places, candidates, solutions, strict=True):
            keeping = frozenset(solution.keeping_actions)
            if len(keeping) == len(solution.action_values):
                still_open.append(place)
            else:
                chosen[place] = ExactPosition(state=state, ply=ply, value=solution.value, keeping=keeping)
        open_places = still_open
    return [position for position in chosen if position is not None]


def share_of_value_keeping_moves(
    choose: Callable[[list[ConnectFour]], Sequence[int]], positions: Sequence[ExactPosition]
) -> float:
    """The share of `positions`, from 0 to 1, in which the action that `choose` gives for the state keeps the value.

    `choose` is called once, with all states, and answers one action for each.
    """
    if not positions:
        raise InvalidArgumentError("positions must hold at least one position: value_keeping_positions makes them")
    actions = list(choose([position.state for position in positions]))
    if len(actions) != len(positions):
        raise EvaluationError(f"choose gave {len(actions)} actions for {len(positions)} states: one for each is right")
    kept = 0
    for row, (action, position) in enumerate(zip(actions, positions, strict=True)):
        number = validation.whole_number(action, f"choose's action for states[{row}]")
        if number not in position.state.legal_actions():
            raise EvaluationError(
                f"choose gave action {number} for states[{row}]: legal are {position.state.legal_actions()}"
            )
        kept += number in position.keeping
    return kept / len(positions)


def _range(plies: tuple[int, int]) -> tuple[int, int]:
    if not validation.is_listed(plies) or len(plies) != 2:
        raise InvalidArgumentError(
            f"plies must be the first and the last ply, such as (6, 24), not {validation.shown(plies)}"
        )
    first = validation.whole_number(plies[0], "plies[0]", most=CELLS - 1)
    return first, validation.whole_number(plies[1], "plies[1]", least=first, most=CELLS - 1)


def _candidate(
    seed: int, place: int, first: int, last: int, games: list[int], seen: set[ConnectFour]
) -> tuple[ConnectFour, int]:
    """The next position for a `place` of the list that is not over and new: (state, its ply)."""
    key = fold(fold(0, seed), place)
    ply = first + PlayoutRandom(key).choose(last - first + 1)
    while games[place] < MAX_GAMES:
        games[place] += 1
        state = _random_game(fold(key, games[place]), ply)
        if state is not None and state not in seen:
            seen.add(state)
            return state, ply
    raise InvalidArgumentError(
        f"plies: {MAX_GAMES} random games led to no further position of ply {ply}: widen plies, or lower count"
    )


def _random_game(key: int, plies: int) -> ConnectFour | None:
    """The state after so many random moves; None if the game is over by then."""
    random = PlayoutRandom(key)
    state = ConnectFour()
    for _ in range(plies):
        if state.is_terminal:
            return None
        legal = state.legal_actions()
        state = state.play(legal[random.choose(len(legal))])
    return None if state.is_terminal else state
