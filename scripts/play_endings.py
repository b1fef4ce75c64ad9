"""Plays endgames against a bare king and counts the wins: `python scripts/play_endings.py --games 20`.

Both sides are `Hybrid` with the same limit. The stronger side moves first in reproducible random positions and has 50
moves to mate. Results depend on the machine unless `--simulations` is given.
"""

from __future__ import annotations

import argparse
import random

import pondertree
from pondertree.games import Chess

ENDINGS = ("Q", "R", "P", "RR", "QQ", "QR", "BB", "BN")
MOVES = 50


def random_position(pieces: str, draw: random.Random) -> Chess:
    """Returns a position with White's king and `pieces` (two bishops on opposite colours) against a bare king."""
    while True:
        squares = draw.sample(range(64), len(pieces) + 2)
        board = ["."] * 64
        for square, piece in zip(squares, f"Kk{pieces}", strict=True):
            board[square] = piece
        rows = ["".join(board[8 * row : 8 * row + 8]) for row in range(8)]
        if "P" in rows[0] or "P" in rows[7]:
            continue
        bishops = [sum(divmod(square, 8)) % 2 for square in squares[2:] if board[square] == "B"]
        if len(bishops) == 2 and bishops[0] == bishops[1]:
            continue
        text = "/".join(rows)
        for run in range(8, 0, -1):
            text = text.replace("." * run, str(run))
        try:
            state = Chess(f"{text} w - - 0 1")
        except pondertree.PondertreeError:
            continue  # Black in check, or adjacent kings
        if not state.is_terminal:
            return state


def moves_to_mate(state: Chess, search: pondertree.Hybrid) -> int | None:
    """Returns the number of moves until mate; None if there is none within 50."""
    for ply in range(2 * MOVES):
        state = state.play(search.run(state).action)
        if state.is_terminal:
            return ply // 2 + 1 if state.returns()[0] == 1.0 else None
    return None


def main() -> None:
    """Plays and prints a line per ending."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=20, help="positions per ending")
    parser.add_argument("--seconds", type=float, default=0.05, help="time limit per move")
    parser.add_argument("--simulations", type=int, default=None, help="simulations per move, instead of a time limit")
    parser.add_argument("--endings", nargs="*", default=ENDINGS, help="White's pieces")
    arguments = parser.parse_args()
    limit = {"time_limit": arguments.seconds} if arguments.simulations is None else {}
    for pieces in arguments.endings:
        draw = random.Random(f"{pieces} against a bare king")
        search = pondertree.Hybrid(num_simulations=arguments.simulations, **limit)
        lengths = [moves_to_mate(random_position(pieces, draw), search) for _ in range(arguments.games)]
        won = sorted(length for length in lengths if length is not None)
        longest = f", the longest in {won[-1]} moves" if won else ""
        print(f"K{pieces}K: {len(won)} of {len(lengths)} won{longest}", flush=True)


if __name__ == "__main__":
    main()
