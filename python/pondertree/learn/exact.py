"""Exact play, where a game has a solver: how often a player's moves keep the value of the game.

The positions of Connect 4 come from a file, since solving those with few stones takes seconds each. They are those of
`connect_four_exact.value_keeping_positions(count, seed=20)`: random games of 6 to 24 plies, in positions where some
legal moves lose value and some keep it. A line has the moves, and the columns that keep the value;
`scripts/connect_four_positions.py` writes the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pondertree.games import ConnectFour
from pondertree.learn.arena import BatchPlayer
from pondertree.learn.game_spec import GameSpec

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
