"""Random games on boards of python-chess for tests of our chess."""

from __future__ import annotations

from collections.abc import Iterator

import chess

from pondertree.games import Chess
from pondertree.random import PLAYOUT, Random, fold

# https://www.chessprogramming.org/Perft_Results
PERFT = [
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", [20, 400, 8902, 197281, 4865609]),
    ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", [48, 2039, 97862, 4085603, 193690690]),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812, 43238, 674624]),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9467, 422333, 15833292]),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1486, 62379, 2103487, 89941194]),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", [46, 2079, 89890, 3894594, 164075551]),
]


MAX_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"


# Starts with promotions, castling, en passant and bare kings within few moves.
STARTS = [
    *(fen for fen, _ in PERFT),
    MAX_MOVES,
    "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
    "4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 w - - 0 1",
    "8/8/4k3/8/8/3NKN2/8/8 b - - 96 120",
    "8/1b6/4k3/8/8/2B1K3/6n1/8 w - - 140 120",
    "7k/7p/8/8/8/8/P7/K7 w - - 60 80",
    "rnbqkbnr/pppp1ppp/8/8/4pP2/8/PPPPP1PP/RNBQKBNR b KQkq f3 0 3",
    "3k4/8/8/8/1b5b/8/3P1P2/4K3 w - - 0 1",
    "7k/8/2N1N3/1N3N2/8/1N3N2/2N1N3/K7 w - - 0 1",  # SAN must name the whole square
    "1k6/8/8/8/4Q2Q/K7/8/7Q w - - 0 1",
]


def random_games(
    count: int, seed: int, moves: int, starts: list[str] | None = None
) -> Iterator[tuple[Chess, chess.Board]]:
    """Yields positions of random games as states and boards."""
    for number in range(count):
        random = Random(fold(seed, number), PLAYOUT)
        fens = STARTS if starts is None else starts
        fen = fens[number % len(fens)]
        state, board = Chess(fen), chess.Board(fen)
        for _ in range(moves):
            yield state, board
            legal = state.legal_actions()
            if not legal:
                break
            action = legal[random.choose(len(legal))]
            board.push_uci(state.action_to_string(action))
            state = state.play(action)
        else:
            yield state, board


def same_position_count(board: chess.Board) -> int:
    """Returns how often the position occurred before on the board, counted slowly."""
    here = board.copy()
    key, count = here._transposition_key(), 0
    while here.move_stack:
        here.pop()
        count += here._transposition_key() == key
    return count


def play(state: Chess, moves: str) -> Chess:
    for text in moves.split():
        state = state.play(state.parse_action(text))
    return state
