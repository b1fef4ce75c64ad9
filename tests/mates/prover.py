"""A mate prover based on python-chess alone: slow, short, and independent of the engine that it verifies.

Full-width search makes both results exact. Positions have no history and a halfmove clock of zero, and depths are
small, so repetition and the 50-move rule do not matter: a shortest mate never repeats a position. Insufficient material
needs no test, since it cannot mate.
"""

from __future__ import annotations

from collections.abc import Iterator

import chess


class OutOfNodesError(Exception):
    """Raised at the node limit; the board is restored."""


class Prover:
    """Proves mates for and against the side to move, with a transposition table. `nodes` bounds the positions searched
    for a mate in one, which dominate the work."""

    def __init__(self, nodes: int = 1 << 62) -> None:
        self.left = nodes
        self.known: dict[tuple[object, int], bool] = {}
        # Killer moves: the last moves that proved a result, by side and moves left.
        self.best: dict[tuple[bool, int], chess.Move] = {}
        self.saviours: dict[tuple[bool, int], chess.Move] = {}

    def distance(self, board: chess.Board, most: int) -> int | None:
        """Returns the length of the shortest mate within `most` moves; None if there is none."""
        return next((n for n in range(1, most + 1) if self.mates(board, n)), None)

    def mates(self, board: chess.Board, n: int) -> bool:
        """Returns whether the side to move can force mate within n moves."""
        if n <= 1:
            return n == 1 and self.mating_move(board) is not None
        key = (board._transposition_key(), n)
        if key not in self.known:
            # Iterative deepening: the shorter mate is cheap to search and common.
            self.known[key] = self.mates(board, n - 1) or any(
                self.mates_by(board, move, n) for move in self.attacks(board, n)
            )
        return self.known[key]

    def mates_by(self, board: chess.Board, move: chess.Move, n: int) -> bool:
        """Returns whether `move` forces mate within n moves."""
        board.push(move)
        try:
            mated = self.mated(board, n - 1)
        finally:
            board.pop()
        if mated:
            self.best[board.turn, n] = move
        return mated

    def mated(self, board: chess.Board, n: int) -> bool:
        """Returns whether the other side forces mate within n of its moves; with n = 0, whether it is mate."""
        if n == 0:
            return board.is_checkmate()
        has_reply = False
        for move in self.replies(board, n):
            has_reply = True
            board.push(move)
            try:
                escapes = not self.mates(board, n)
            finally:
                board.pop()
            if escapes:
                self.saviours[board.turn, n] = move
                return False
        return has_reply or board.is_check()

    def attacks(self, board: chess.Board, n: int) -> Iterator[chess.Move]:
        """Returns all legal moves: the killer first, then checks, then the others."""
        checks = [move for move in possible_checks(board) if board.is_legal(move) and board.gives_check(move)]
        moves = checks + [move for move in board.legal_moves if move not in checks]
        last = self.best.get((board.turn, n))
        if last in moves:
            yield last
        yield from (move for move in moves if move != last)

    def replies(self, board: chess.Board, n: int) -> Iterator[chess.Move]:
        """Returns all legal moves, the killer first."""
        saviour = self.saviours.get((board.turn, n))
        if saviour is not None and board.is_legal(saviour):
            yield saviour
        yield from (move for move in board.legal_moves if move != saviour)

    def mating_move(self, board: chess.Board) -> chess.Move | None:
        """Returns a move that mates at once, if any."""
        self.left -= 1
        if self.left < 0:
            raise OutOfNodesError
        for move in possible_checks(board):
            if board.is_legal(move):
                board.push(move)
                mate = board.is_checkmate()
                board.pop()
                if mate:
                    return move
        return None


def possible_checks(board: chess.Board) -> Iterator[chess.Move]:
    """Yields pseudo-legal moves, skipping most that cannot give check, for speed."""
    king = board.king(not board.turn)
    assert king is not None
    diagonal = chess.BB_DIAG_ATTACKS[king][chess.BB_DIAG_MASKS[king] & board.occupied]
    straight = (
        chess.BB_RANK_ATTACKS[king][chess.BB_RANK_MASKS[king] & board.occupied]
        | chess.BB_FILE_ATTACKS[king][chess.BB_FILE_MASKS[king] & board.occupied]
    )
    squares_of_checks = {
        chess.PAWN: chess.BB_PAWN_ATTACKS[not board.turn][king],
        chess.KNIGHT: chess.BB_KNIGHT_ATTACKS[king],
        chess.BISHOP: diagonal,
        chess.ROOK: straight,
        chess.QUEEN: diagonal | straight,
        chess.KING: 0,
    }
    for move in board.generate_pseudo_legal_moves():
        piece = board.piece_type_at(move.from_square)
        assert piece is not None
        if (
            chess.BB_SQUARES[move.to_square] & squares_of_checks[piece]
            # Pieces on the king's lines may give a discovered check.
            or chess.BB_SQUARES[move.from_square] & (diagonal | straight)
            or move.promotion
            or board.is_en_passant(move)
            or board.is_castling(move)
        ):
            yield move
