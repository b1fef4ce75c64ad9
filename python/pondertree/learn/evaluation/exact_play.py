"""Comparison with exact play in Connect 4: how often a player's moves preserve the game value.

Evaluations use stored positions, since solving early ones takes seconds each: those of
`value_keeping_positions(count, seed=20)`, random games of 6 to 24 plies in which some legal moves lose value. Each line
of the file has the moves and the columns that preserve the value; `scripts/connect_four_positions.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pondertree import validation
from pondertree._core import PlayoutRandom
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.games import ConnectFour
from pondertree.games.connect_four import solve_many
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.evaluation.arena import BatchPlayer
from pondertree.random import fold

POSITIONS = Path(__file__).parent / "connect_four_positions.txt"


@dataclass(frozen=True, slots=True)
class ExactPlayTest:
    """Positions with the actions that preserve their value."""

    positions: list[tuple[Any, frozenset[int]]]

    def share(self, player: BatchPlayer) -> float:
        """Returns the fraction of positions in which the player's move preserves the value."""
        states = [state for state, _ in self.positions]
        actions = player(states, list(range(len(states))))
        correct = sum(action in keeping for action, (_, keeping) in zip(actions, self.positions, strict=True))
        return correct / len(self.positions)


def exact_play_test(spec: GameSpec, count: int) -> ExactPlayTest | None:
    """Returns at most `count` test positions of a game; None where there is no solver."""
    if spec.factory is not ConnectFour or not POSITIONS.exists():
        return None
    return ExactPlayTest(read_positions(POSITIONS)[:count])


def read_positions(path: Path) -> list[tuple[ConnectFour, frozenset[int]]]:
    """Parses lines of moves (columns from 1), a colon, and the columns that preserve the value."""
    positions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        moves, _, keeping = line.partition("#")[0].partition(":")
        if moves.strip():
            state = ConnectFour()
            for column in moves.strip():
                state = state.play(int(column) - 1)
            positions.append((state, frozenset(int(column) - 1 for column in keeping.strip())))
    return positions


#: Random games played for one position before it is given up.
MAX_GAMES = 1000
#: Cells of a Connect 4 board.
CELLS = 42


@dataclass(frozen=True, slots=True)
class ExactPosition:
    """A position in which some legal moves preserve the game value and others lose it."""

    state: ConnectFour
    ply: int
    """Number of discs on the board."""
    value: int
    """1 (win) or 0 (draw) for the player to move; in a lost position no move loses value."""
    keeping: frozenset[int]
    """The actions that preserve the value."""


def value_keeping_positions(
    count: int, seed: int, plies: tuple[int, int] = (6, 24), *, threads: int | None = None, max_memory: int = 256
) -> list[ExactPosition]:
    """Generates `count` different positions in which the choice of move matters; deterministic in `seed`.

    The ply of each position is uniform in `plies` (inclusive). Games of uniformly random legal moves are played up to
    that ply until one is unfinished, is not yet in the list, and has both moves that preserve the value and moves that
    lose it, according to `solve_many`. Plies are therefore uniform, and positions of one ply are weighted by how often
    random games reach them. Mirror images count as different.

    `threads` and `max_memory` (MiB) are those of `solve_many`. A position takes seconds to solve at ply 6,
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
        # One candidate per open place, solved in one batch.
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
    """Returns the fraction of `positions` in which the action of `choose` preserves the value.

    `choose` is called once with all states and returns one action per state.
    """
    if not positions:
        raise InvalidArgumentError("positions must hold at least one position: value_keeping_positions generates them")
    actions = list(choose([position.state for position in positions]))
    if len(actions) != len(positions):
        raise EvaluationError(f"choose returned {len(actions)} actions for {len(positions)} states")
    correct = 0
    for row, (action, position) in enumerate(zip(actions, positions, strict=True)):
        number = validation.whole_number(action, f"choose's action for states[{row}]")
        if number not in position.state.legal_actions():
            raise EvaluationError(
                f"choose returned action {number} for states[{row}]: legal are {position.state.legal_actions()}"
            )
        correct += number in position.keeping
    return correct / len(positions)


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
    """Returns the next new, unfinished candidate for a `place` of the list: (state, ply)."""
    key = fold(fold(0, seed), place)
    ply = first + PlayoutRandom(key).choose(last - first + 1)
    while games[place] < MAX_GAMES:
        games[place] += 1
        state = _random_game(fold(key, games[place]), ply)
        if state is not None and state not in seen:
            seen.add(state)
            return state, ply
    raise InvalidArgumentError(
        f"plies: {MAX_GAMES} random games led to no new position of ply {ply}: widen plies, or lower count"
    )


def _random_game(key: int, plies: int) -> ConnectFour | None:
    """Returns the state after `plies` random moves; None if the game is over by then."""
    random = PlayoutRandom(key)
    state = ConnectFour()
    for _ in range(plies):
        if state.is_terminal:
            return None
        legal = state.legal_actions()
        state = state.play(legal[random.choose(len(legal))])
    return None if state.is_terminal else state
