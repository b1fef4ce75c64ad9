"""Static exchange evaluation against a full search of captures on one square by python-chess."""

from __future__ import annotations

from typing import Any

import chess
import pytest
from tests.support.chess_games import random_games

from pondertree.chess import see
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour

VALUES = {chess.PAWN: 100, chess.KNIGHT: 320, chess.BISHOP: 330, chess.ROOK: 500, chess.QUEEN: 900, chess.KING: 0}


def gain(board: chess.Board, move: chess.Move) -> int:
    """Material gained by a move: the captured piece and the promotion."""
    taken = chess.PAWN if board.is_en_passant(move) else board.piece_type_at(move.to_square)
    won = VALUES[taken] if taken is not None and board.is_capture(move) else 0
    return won + (VALUES[move.promotion] - VALUES[chess.PAWN] if move.promotion else 0)


def exchange(board: chess.Board, move: chess.Move) -> int:
    """The move, then the best of all captures on its square and of stopping."""
    won = gain(board, move)
    if board.is_castling(move):
        return won
    board.push(move)
    square = chess.BB_SQUARES[move.to_square]
    # An en passant capture leaves its target square empty before.
    replies = [m for m in board.generate_legal_captures(to_mask=square) if not board.is_en_passant(m)]
    best = max((exchange(board, reply) for reply in replies), default=0)
    board.pop()
    return won - max(0, best)


def check_all(state: Chess, board: chess.Board, captures_only: bool) -> int:
    seen = 0
    for action in state.legal_actions():
        move = chess.Move.from_uci(state.action_to_string(action))
        if captures_only and not (board.is_capture(move) or move.promotion):
            continue
        assert see(state, action) == exchange(board, move), f"{move} {state!r}"
        seen += 1
    return seen


@pytest.mark.oracle
def test_see_matches_oracle_for_captures_of_random_games() -> None:
    seen = 0
    for number, (state, board) in enumerate(random_games(170, 21, 100)):
        if number % 4 == 0:
            seen += check_all(state, board, captures_only=True)
    assert seen > 5_000


@pytest.mark.oracle
def test_see_matches_oracle_for_quiet_moves_of_random_games() -> None:
    seen = 0
    for number, (state, board) in enumerate(random_games(60, 22, 60)):
        if number % 16 == 0:
            seen += check_all(state, board, captures_only=False)
    assert seen > 2_000


@pytest.mark.parametrize(
    ("fen", "move", "expected"),
    [
        ("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", 100),  # the pawn is undefended
        ("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "d3e5", -220),  # x-rays on both sides
        ("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1", "e2e5", -400),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2", "e5d6", 100),  # en passant
        ("4k3/2p5/8/3pP3/8/8/8/4K3 w - d6 0 2", "e5d6", 0),
        ("3rk3/2P5/8/8/8/8/8/4K3 w - - 0 1", "c7d8q", 400),  # the king recaptures: 500 + 800 - 900
        ("4k3/2P5/8/8/8/8/8/4K3 w - - 0 1", "c7c8q", 800),
        ("4k3/2P5/1b6/8/8/8/8/4K3 w - - 0 1", "c7c8n", 220),
        ("4k3/8/4r3/3p4/4B3/8/4R3/4K3 w - - 0 1", "e4d5", 100),
        ("4k3/8/8/3p4/4B3/8/8/3rK3 w - - 0 1", "e1d1", 500),
        (
            "3qk3/8/8/8/8/8/3r4/3RK3 w - - 0 1",
            "d1d2",
            500,
        ),  # the king protects the rook: recapturing would lose the queen
        ("4k3/8/5n2/3p4/8/8/3R4/4K2B w - - 0 1", "d2d5", -80),  # rook for pawn and knight
        ("4k3/8/8/8/8/8/3p4/4K3 w - - 0 1", "e1e2", 0),
        ("4k3/8/8/3p4/8/8/8/R3K2R w KQ - 0 1", "e1g1", 0),
        ("4k3/8/8/2p1p3/8/8/3Q4/4K3 w - - 0 1", "d2d4", -900),  # a quiet move into a capture
    ],
)
def test_see_matches_worked_examples(fen: str, move: str, expected: int) -> None:
    state, board = Chess(fen), chess.Board(fen)
    oracle = exchange(board, chess.Move.from_uci(move))
    assert see(state, state.parse_action(move)) == oracle
    assert oracle == expected


def test_see_accepts_boards_moves_and_values() -> None:
    board = chess.Board("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1")
    move = chess.Move.from_uci("e2e5")
    assert see(board, move) == -400
    assert see(board, move, values=(1, 3, 3, 5, 9)) == -4
    with pytest.raises(InvalidActionError, match="action"):
        see(board, chess.Move.from_uci("e2e8"))


@pytest.mark.parametrize(
    ("state", "action", "values", "error", "text"),
    [
        (ConnectFour(), 0, None, InvalidArgumentError, "state is of the class ConnectFour"),
        (None, 0, None, InvalidArgumentError, "state is of the class NoneType"),
        (Chess(), 4671, None, InvalidActionError, "action is 4671"),
        (Chess(), 5000, None, InvalidArgumentError, "action must be at most 4671"),
        (Chess(), -1, None, InvalidArgumentError, "action must be at least 0"),
        (Chess(), 1.5, None, InvalidArgumentError, "action must be a whole number"),
        (Chess("7k/5Q2/8/8/8/8/8/K7 b - - 0 1"), 0, None, GameOverError, "over"),
        (Chess(), 0, (1, 2, 3, 4), InvalidArgumentError, "values has 4"),
        (Chess(), 0, (1, 2, 3, 4, -5), InvalidArgumentError, r"values\[4\]"),
        (Chess(), 0, (1, 2, 3, 4, float("nan")), InvalidArgumentError, r"values\[4\]"),
    ],
)
def test_see_rejects_invalid_arguments(state: Any, action: Any, values: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        see(state, action, values) if values is not None else see(state, action)
