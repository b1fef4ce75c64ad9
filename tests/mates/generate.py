"""Writes mates.epd and quiet.epd to this folder: positions with their shortest mates, and positions without a mate, all
proven by prover.py, independently of the engine.

    python -m tests.mates.generate stockfish

Positions come from games between weak players, who see only mates in one, and from random endings. A judge, a UCI
engine, finds candidates and confirms every proof: a contradiction raises. Quiet positions in which it finds a longer
mate, in four or five, are dropped. The same judge reproduces the same files, in about ten minutes.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import chess
import chess.engine
from tests.mates.prover import OutOfNodesError, Prover

HERE = Path(__file__).parent
SEED = 1
#: The number of mates per length and side: (with more than eight pieces, with fewer).
MATES = {2: (28, 26), 3: (28, 26), 4: (12, 40)}
QUIET = 312
#: Pieces of endings: of the attacker, of the defender.
ENDINGS = ["Q", "R", "RR", "QR", "BB", "Q/p", "Q/r", "R/n", "RB/n", "QN/q", "RR/p", "PP/p", "QP/rp", "RBP/rpp"]
#: The prover's node limit: mates beyond it are not stored, and quiet positions are proven as deep as it allows, at
#: least three moves.
NODES_MATE = 3_000
NODES_QUIET = 4_000
#: The judge's node limits: for candidates, and for confirmation.
NODES_GLANCE = 20_000
NODES_JUDGE = 500_000

HEADER = """\
# {what}
# Made by tests/mates/generate.py (seed {seed}), from games of careless players and endings set up at random, without
# history and with a clock at zero. Proven by tests/mates/prover.py, which tries every move of both sides; {judge},
# asked for a second opinion on each, looked at {nodes:,} positions and agreed.
"""


def game(numbers: random.Random, odds: bool) -> list[chess.Board]:
    """Yields the positions of a game between weak players; with `odds`, one of them starts with less material."""
    board, prover = chess.Board(), Prover()
    if odds:
        files = [3, numbers.choice([1, 2, 5, 6]), *numbers.choice([[], [0], [7]])]
        rank = numbers.choice([0, 7])
        pawns = [square ^ (0 if rank == 0 else 56) for square in numbers.sample([11, 12, 13, 14, 15], 3)]
        for square in [chess.square(file, rank) for file in files] + pawns:
            board.remove_piece_at(square)
        board.castling_rights = board.clean_castling_rights()
    positions = []
    while not board.is_game_over(claim_draw=True) and board.ply() < 80:
        positions.append(bare(board))
        board.push(prover.mating_move(board) or careless_move(board, numbers, prover))
    return positions


def careless_move(board: chess.Board, numbers: random.Random, prover: Prover) -> chess.Move:
    """Returns a weak player's move: biased to captures and checks, mostly avoiding a mate in one."""
    moves = list(board.legal_moves)
    likes = [1 + 4 * board.is_capture(m) + 4 * board.gives_check(m) + 8 * (m.promotion == chess.QUEEN) for m in moves]
    for move in numbers.choices(moves, likes, k=8):
        if not loses_at_once(board, move, prover):
            return move
    return move


def loses_at_once(board: chess.Board, move: chess.Move, prover: Prover) -> bool:
    board.push(move)
    loses = prover.mating_move(board) is not None
    board.pop()
    return loses


def bare(board: chess.Board) -> chess.Board:
    """Returns the position without its history."""
    copy = board.copy(stack=False)
    copy.halfmove_clock, copy.fullmove_number = 0, 1
    return copy


def ending(numbers: random.Random) -> chess.Board:
    """Returns a random ending, with random attacker and side to move."""
    while True:
        ours, _, theirs = numbers.choice(ENDINGS).partition("/")
        attacker = numbers.choice(chess.COLORS)
        pieces = [(symbol, attacker) for symbol in "K" + ours] + [(symbol, not attacker) for symbol in "k" + theirs]
        board = chess.Board(None)
        for (symbol, color), square in zip(pieces, numbers.sample(range(64), len(pieces)), strict=True):
            board.set_piece_at(square, chess.Piece(chess.PIECE_SYMBOLS.index(symbol.lower()), color))
        board.turn = attacker
        if board.is_valid() and not board.is_game_over():
            return board


def near(numbers: random.Random, known: chess.Board) -> chess.Board:
    """Returns the position with one piece moved, since neighbours of mates are often mates."""
    board = known.copy()
    square = numbers.choice(list(board.piece_map()))
    piece = board.remove_piece_at(square)
    board.set_piece_at(numbers.choice(list(chess.SquareSet(~board.occupied))), piece)
    board.castling_rights = board.clean_castling_rights()
    board.ep_square = None
    return board if board.is_valid() and not board.is_game_over() else near(numbers, known)


class Judge:
    """A UCI engine; its output never counts as a proof."""

    def __init__(self, path: str) -> None:
        self.engine = chess.engine.SimpleEngine.popen_uci(path)
        self.name = self.engine.id["name"]

    def mate(self, board: chess.Board, nodes: int) -> tuple[int | None, chess.Move]:
        """Returns the engine's mate distance in moves (negative if mated; None if unknown) and its move."""
        # A new game for each position, so that the hash table does not carry over.
        info = self.engine.analyse(board, chess.engine.Limit(nodes=nodes), game=object())
        return info["score"].relative.mate(), info["pv"][0]


def shortest(board: chess.Board, judge: Judge) -> int | None:
    """Returns the length of the shortest mate, if the judge finds it and the prover confirms it within its limit."""
    n, move = judge.mate(board, NODES_GLANCE)
    if n is None or not 1 <= n <= max(MATES):
        return None
    prover = Prover(NODES_MATE)
    try:
        return prover.distance(board, n - 1) or (n if prover.mates_by(board, move, n) else None)
    except OutOfNodesError:
        return None


def mates(numbers: random.Random, judge: Judge, known: list[chess.Board]) -> Iterator[tuple[chess.Board, int]]:
    """Yields mates with their lengths: from the ends of games, from endings, and from neighbours of `known`."""
    while True:
        positions = game(numbers, odds=True)
        while Prover().mating_move(positions[-1]) is None:  # no winner
            positions = game(numbers, odds=True)
        for board in positions[::-2]:  # positions of the winner
            n = shortest(board, judge)
            if n is None:
                break
            yield board, n
        others = [ending(numbers) for _ in range(12)]
        others += [near(numbers, board) for board in numbers.sample(known, min(3, len(known)))]
        yield from ((board, n) for board in others if (n := shortest(board, judge)))


def epd(board: chess.Board, **operations: str | int) -> str:
    return board.epd(en_passant="legal", **operations)


def find_mates(judge: Judge) -> list[str]:
    wanted = {(n, color, few): counts[few] for n, counts in MATES.items() for color in chess.COLORS for few in (0, 1)}
    found: dict[str, int] = {}
    longest: list[chess.Board] = []  # the rarest
    for board, n in mates(random.Random(SEED), judge, longest):
        few = int(chess.popcount(board.occupied) <= 8)
        if not wanted.get((n, board.turn, few)):
            board = board.mirror()
        line = epd(board, dm=n)
        if not wanted.get((n, board.turn, few)) or line in found:
            continue
        seen, _ = judge.mate(board, NODES_JUDGE)
        assert seen == n, f"the judge mates in {seen}, we in {n}: {board.fen()}"
        found[line] = n
        wanted[n, board.turn, few] -= 1
        if n == max(MATES):
            longest.append(board)
        print(f"{len(found)} found, {sum(wanted.values())} to go: {line}", flush=True)
        if not any(wanted.values()):
            break
    return sorted(found, key=lambda line: (found[line], line))


def find_quiet(judge: Judge) -> list[str]:
    """Yields positions from games, from the last moves before mates, and from endings."""
    numbers = random.Random(SEED)
    found: dict[str, int] = {}
    while len(found) < QUIET:
        positions = game(numbers, odds=numbers.random() < 0.5)
        if len(positions) < 12:
            continue
        for board in (numbers.choice(positions[6:]), positions[-numbers.randrange(3, 8)], ending(numbers)):
            proven = proven_quiet(board)
            if proven < 3:
                continue
            seen, _ = judge.mate(board, NODES_JUDGE)
            assert seen is None or abs(seen) > proven, f"the judge sees mate in {seen}: {board.fen()}"
            if seen is None or abs(seen) > 5:
                found[epd(board, c0=f"no mate within {proven}")] = proven
                print(f"{len(found)} of {QUIET}: within {proven}, {board.fen()}", flush=True)
    print("quiet, by proven depth:", Counter(found.values()))
    return sorted(found)


def proven_quiet(board: chess.Board) -> int:
    """Returns the number of moves, at most four, within which neither side mates; 0 if one does."""
    proven, prover = 0, Prover(NODES_QUIET)
    try:
        for n in range(1, 5):
            if prover.mates(board, n) or prover.mated(board, n):
                return 0
            proven = n
    except OutOfNodesError:
        pass
    return proven


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judge", help="a UCI engine")
    judge = Judge(parser.parse_args().judge)
    for name, what, find in (
        ("mates.epd", "dm: in how many moves the side to move mates, and not sooner.", find_mates),
        ("quiet.epd", "c0: within how many moves neither side mates.", find_quiet),
    ):
        header = HEADER.format(what=what, seed=SEED, judge=judge.name, nodes=NODES_JUDGE)
        (HERE / name).write_text(header + "\n".join(find(judge)) + "\n", encoding="utf-8")
    judge.engine.quit()


if __name__ == "__main__":
    main()
