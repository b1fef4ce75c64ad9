"""Writes mates.epd and quiet.epd beside this file: positions with their shortest mates, proven without the engine.

    python -m tests.mates.generate [--judge PATH_OF_A_UCI_ENGINE]

Positions come from games of careless players who do not see more than mate in one, and from endings set up at random.
In mates.epd `dm` is the length of the shortest mate. In quiet.epd `c0` says within how many moves there is proven to be
none; a judge, if one is given, also finds no mate within four there, and every mate of the other file. The stored files
were made with Stockfish 15.1 as the judge. It takes about half an hour; mates that are stored already are kept.
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
#: How many positions of each kind: mates by length, half of them from games; quiet ones.
MATES = {2: 130, 3: 120, 4: 104}
QUIET = 320
KINDS = ("game", "ending")
#: The pieces of endings, the attacker's before the defender's.
ENDINGS = [
    "Q",
    "R",
    "RR",
    "QR",
    "BB",
    "Q/p",
    "Q/r",
    "R/n",
    "RB/n",
    "QN/q",
    "RP/r",
    "PP/p",
    "NB/p",
    "QP/rp",
    "RN/bp",
    "RBP/rpp",
]


def game(numbers: random.Random, odds: bool) -> Iterator[chess.Board]:
    """The positions of a game between players who mate in one, like captures and checks, and see nothing else; with
    `odds`, one of them has lost its queen, a piece and most of the pawns before its king."""
    board, prover = chess.Board(), Prover()
    if odds:
        files = [3, numbers.choice([1, 2, 5, 6])]
        rank = numbers.choice([0, 7])
        pawns = [square ^ (0 if rank == 0 else 56) for square in numbers.sample([11, 12, 13, 14, 15], 3)]
        for square in [chess.square(file, rank) for file in files] + pawns:
            board.remove_piece_at(square)
    while not board.is_game_over(claim_draw=True) and board.ply() < 80:
        mate = prover.mating_move(board)
        moves = list(board.legal_moves)
        likes = [
            1 + 4 * board.is_capture(m) + 4 * board.gives_check(m) + 8 * (m.promotion == chess.QUEEN) for m in moves
        ]
        board.push(mate or numbers.choices(moves, likes)[0])
        yield board


def ending(numbers: random.Random) -> chess.Board | None:
    """An ending set up at random, either side attacking; None if it cannot be."""
    ours, _, theirs = numbers.choice(ENDINGS).partition("/")
    attacker = numbers.choice(chess.COLORS)
    board = chess.Board(None)
    pieces = [
        ("K", attacker),
        ("K", not attacker),
        *((p, attacker) for p in ours),
        *((p, not attacker) for p in theirs),
    ]
    for (symbol, color), square in zip(pieces, numbers.sample(range(64), len(pieces)), strict=True):
        board.set_piece_at(square, chess.Piece(chess.PIECE_SYMBOLS.index(symbol.lower()), color))
    board.turn = attacker
    return board if board.is_valid() and not board.is_game_over() else None


def bare(board: chess.Board) -> chess.Board:
    """The position without its history."""
    copy = board.copy(stack=False)
    copy.halfmove_clock, copy.fullmove_number = 0, 1
    return copy


def epd(board: chess.Board, **operations: str | int) -> str:
    """The position in one line; en passant only where it is legal."""
    return board.epd(en_passant="legal", **operations)


def candidates(numbers: random.Random) -> Iterator[tuple[str, chess.Board]]:
    """Positions of games and endings in turn."""
    while True:
        for board in game(numbers, odds=True):
            if board.ply() > 8 and numbers.random() < 0.5 and not board.is_game_over():
                yield "game", bare(board)
        for _ in range(20):
            position = ending(numbers)
            if position is not None:
                yield "ending", position


class Judge:
    """A second opinion by a UCI engine, or none."""

    def __init__(self, path: str | None) -> None:
        self.engine = chess.engine.SimpleEngine.popen_uci(path) if path else None

    def mate(self, board: chess.Board, nodes: int) -> int | None:
        """In how many moves the engine mates (negative: is mated), as far as it sees."""
        if self.engine is None:
            return None
        info = self.engine.analyse(board, chess.engine.Limit(nodes=nodes))
        score = info["score"].relative
        return score.mate()

    def close(self) -> None:
        if self.engine is not None:
            self.engine.quit()


def guess(board: chess.Board, judge: Judge, nodes: int) -> int | None:
    """In how many moves there seems to be a mate: what the judge sees, or, without one, what checks lead to."""
    if judge.engine is not None:
        return judge.mate(board, nodes)
    try:
        return next((n for n in (2, 3, 4) if Prover(nodes=300).forced_by_checks(board, n)), None)
    except OutOfNodesError:
        return None


def find_mates(judge: Judge, path: Path) -> None:
    """Adds mates to the file until there are enough of each length, half of them from games."""
    found = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
    numbers = random.Random(len(found))
    wanted = {(kind, n): count // 2 for n, count in MATES.items() for kind in KINDS}
    for line in found:
        wanted[
            "game" if chess.popcount(chess.Board(line.split(" dm")[0] + " 0 1").occupied) > 8 else "ending",
            int(line[-2]),
        ] -= 1
    for kind, board in candidates(numbers):
        if all(count <= 0 for count in wanted.values()):
            break
        hard = kind == "ending" and wanted[kind, 2] <= 0
        likely = guess(board, judge, 40_000 if hard else 6_000) if board.is_valid() else None
        if likely is None or wanted.get((kind, likely), 0) <= 0:
            continue
        try:
            n = Prover(nodes=20_000 if hard else 3_000).distance(board, likely)
        except OutOfNodesError:
            continue
        if n is None or wanted.get((kind, n), 0) <= 0:
            continue
        seen = judge.mate(board, 50_000)
        assert seen is None or seen >= n, f"the judge mates in {seen}, we in {n}: {board.fen()}"
        line = epd(board, dm=n)
        if line not in found:
            found.add(line)
            wanted[kind, n] -= 1
            print(wanted, line, flush=True)
            lines = sorted(found, key=lambda line: (line.rsplit("dm ", 1)[1], line))
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def find_quiet(numbers: random.Random, judge: Judge) -> list[str]:
    """Positions without a mate: from games anywhere, tactical ones shortly before the end, and endings."""
    found: set[str] = set()
    counts: Counter[int] = Counter()
    while len(found) < QUIET:
        positions = [bare(board) for board in game(numbers, odds=numbers.random() < 0.5)]
        if len(positions) < 10:
            continue
        places = [numbers.randrange(8, len(positions)), len(positions) - numbers.choice([4, 5, 6, 7, 8])]
        boards = [positions[place] for place in places if 0 <= place < len(positions)]
        boards += [board for board in [ending(numbers)] if board is not None]
        for board in boards:
            if board.is_game_over():
                continue
            seen = judge.mate(board, 60_000)
            if seen is not None and abs(seen) <= 5:
                continue
            proven, prover = 0, Prover(nodes=2_000)
            try:
                for n in range(1, 5):
                    if prover.mates(board, n) or prover.mated(board, n):
                        proven = -1
                        break
                    proven = n
            except OutOfNodesError:
                pass
            if proven >= 2:
                counts[proven] += 1
                found.add(epd(board, c0=f"no mate within {proven}"))
    print("quiet, by proven depth:", dict(counts))
    return sorted(found)[:QUIET]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", help="a UCI engine for a second opinion")
    judge = Judge(parser.parse_args().judge)
    find_mates(judge, HERE / "mates.epd")
    (HERE / "quiet.epd").write_text("\n".join(find_quiet(random.Random(2), judge)) + "\n", encoding="utf-8")
    judge.close()


if __name__ == "__main__":
    main()
