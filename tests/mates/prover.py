"""A mate prover on python-chess alone: slow, short, and independent of the engine it judges.

Positions come without history and with a clock at zero, and depths are small, so neither repetition nor the 50-move
rule matters here: the shortest mate never comes back to a position. Insufficient material needs no test of its own,
since nothing mates with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import chess


class OutOfNodesError(Exception):
    """The proof takes too long."""


class Prover:
    """Answers whether the side to move mates within n moves, or is mated; remembers what it found out."""

    def __init__(self, nodes: int = 1 << 62) -> None:
        self.left = nodes
        self.known: dict[tuple[object, int], bool] = {}
        self.killers: dict[int, chess.Move] = {}

    def mates(self, board: chess.Board, n: int) -> bool:
        """Whether the side to move mates within n moves, whatever the other side plays."""
        if n == 0:
            return False
        if n == 1:
            return self.mating_move(board) is not None
        key = (board._transposition_key(), n)
        if key not in self.known:
            self.known[key] = self.mating_move(board) is not None or any(
                self.after(board, move, n - 1) for move in self.attacks(board)
            )
        return self.known[key]

    def mated(self, board: chess.Board, n: int) -> bool:
        """Whether the side to move is mated within n moves of the other side, whatever it plays."""
        if n == 0:
            return board.is_checkmate()
        replies = list(board.legal_moves)
        if not replies:
            return board.is_check()
        killer = self.killers.get(n)
        if killer in replies:
            replies.remove(killer)
            replies.insert(0, killer)
        for move in replies:
            board.push(move)
            escapes = not self.mates(board, n)
            board.pop()
            if escapes:
                self.killers[n] = move
                return False
        return True

    def after(self, board: chess.Board, move: chess.Move, n: int) -> bool:
        """Whether the other side is mated within n moves after `move`."""
        board.push(move)
        try:
            return self.mated(board, n)
        finally:
            board.pop()

    def mating_move(self, board: chess.Board) -> chess.Move | None:
        """A move that mates at once."""
        self.left -= 1
        if self.left < 0:
            raise OutOfNodesError
        for move in board.legal_moves:
            if board.gives_check(move):
                board.push(move)
                mate = not any(board.generate_legal_moves())
                board.pop()
                if mate:
                    return move
        return None

    def attacks(self, board: chess.Board) -> Iterator[chess.Move]:
        """All legal moves, checks first."""
        quiet = []
        for move in board.legal_moves:
            if board.gives_check(move):
                yield move
            else:
                quiet.append(move)
        yield from quiet

    def distance(self, board: chess.Board, most: int) -> int | None:
        """The shortest mate of the side to move within `most` moves; None if there is none."""
        return next((n for n in range(1, most + 1) if self.mates(board, n)), None)

    def forced_by_checks(self, board: chess.Board, n: int) -> bool:
        """Whether checks alone mate within n moves: quick to see that there is a mate, never that there is none."""
        if self.mating_move(board) is not None:
            return True
        if n == 1:
            return False
        for move in list(board.legal_moves):
            if not board.gives_check(move):
                continue
            board.push(move)
            works = True
            for reply in list(board.legal_moves):
                board.push(reply)
                works = self.forced_by_checks(board, n - 1)
                board.pop()
                if not works:
                    break
            board.pop()
            if works:
                return True
        return False
