"""Writes the Connect 4 positions of evaluations: `python scripts/connect_four_positions.py 500`.

They are those of `value_keeping_positions(COUNT, seed=20)`, written to connect_four_positions.txt next to
exact_play.py. About half a second of CPU time each, most of it for positions with few discs.
"""

from __future__ import annotations

import sys
from functools import cache

from pondertree.games import ConnectFour
from pondertree.learn.evaluation.exact_play import POSITIONS, value_keeping_positions

SEED = 20


def moves_to(state: ConnectFour) -> str:
    """Returns a sequence of columns from 1 that leads to a position, not necessarily the one played."""
    planes = state.observation()
    first = planes[state.to_play]  # plane 0 has the stones of the player to move
    columns = [
        [0 if first[row, column] else 1 for row in range(5, -1, -1) if planes[0, row, column] or planes[1, row, column]]
        for column in range(7)
    ]
    stones = sum(map(len, columns))

    @cache
    def rest(heights: tuple[int, ...]) -> str | None:
        ply = sum(heights)
        if ply == stones:
            return ""
        for column, stack in enumerate(columns):
            height = heights[column]
            if height < len(stack) and stack[height] == ply % 2:
                found = rest((*heights[:column], height + 1, *heights[column + 1 :]))
                if found is not None:
                    return f"{column + 1}{found}"
        return None

    moves = rest((0,) * 7)
    assert moves is not None, "a position has an order of moves"
    again = ConnectFour()
    for column in moves:
        again = again.play(int(column) - 1)
    assert again == state
    return moves


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    lines = ["# Moves by column from 1, a colon, the columns that keep the value. See exact.py."]
    for position in value_keeping_positions(count, SEED):
        lines.append(f"{moves_to(position.state)}:{''.join(str(action + 1) for action in sorted(position.keeping))}")
    POSITIONS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
