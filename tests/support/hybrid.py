"""Positions, networks and tree helpers of the hybrid reference tests."""

from __future__ import annotations

from pathlib import Path

from pondertree.games import Chess
from pondertree.random import fold
from pondertree.reference.hybrid import MctsNode

MATE_IN_ONE = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"


TACTICS = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


MIDDLEGAME = "r2q1rk1/pp2bppp/2n1bn2/2pp4/8/1PN1PN2/PBPPBPPP/R2Q1RK1 w - - 4 10"


ENDGAME = "6k1/5pp1/7p/8/8/1q6/5PPP/3R2K1 w - - 0 1"


PRIORITIES = ("strict", "tactical", "prior", None)


def forced_mates(moves: int) -> list[str]:
    """Positions with a shortest mate in the given number of moves."""
    rows = (Path(__file__).parents[1] / "mates" / "mates.epd").read_text().splitlines()
    return [row.partition(" dm ")[0] + " 0 1" for row in rows if row.endswith(f" dm {moves};")]


def mirror(fen: str) -> str:
    """Returns the position with colours swapped and the board mirrored."""
    board, turn, castling, en_passant, *clocks = fen.split()
    rights = "".join(sorted(castling.swapcase()))
    passant = en_passant.translate(str.maketrans("36", "63"))
    return " ".join(
        ["/".join(board.split("/")[::-1]).swapcase(), "b" if turn == "w" else "w", rights, passant, *clocks]
    )


class Table:
    """A policy network with random priors and values, keyed by the moves."""

    def __init__(self) -> None:
        self.evaluated: list[str] = []

    def evaluate(self, state: Chess) -> tuple[dict[int, float], float]:
        self.evaluated.append(state.fen())
        legal = state.legal_actions()
        value = fold(0, sum(action * action for action in legal)) % 2**30 / 2**30
        return {action: 1.0 + fold(1, action) % 2**20 for action in legal}, value


def nodes_of(root: MctsNode) -> list[MctsNode]:
    found = [root]
    for node in found:
        found.extend(node.children.values())
    return found
