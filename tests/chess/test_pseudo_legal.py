"""Pseudo-legal moves and captures, with python-chess as the oracle."""

from __future__ import annotations

import random
from typing import Any

import chess
import pytest

from pondertree.chess import ChessGame, gen_pseudo_legal_moves, is_capture
from pondertree.errors import InvalidActionError, InvalidArgumentError
from pondertree.games import Chess, TicTacToe

PERFT = [
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
]
PINNED_EN_PASSANT = "8/8/8/K1Pp3r/8/8/8/7k w - d6 0 1"


def sorted_moves(moves: Any) -> list[str]:
    return sorted(move.uci() for move in moves)


def decoded(action: int, board: chess.Board) -> str:
    """Converts a move index by the design's definition; the engine only converts legal ones."""
    origin, plane = divmod(action, 73)
    lines = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
    jumps = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
    promotion: int | None = None
    if plane < 56:
        files, ranks = (part * (plane % 7 + 1) for part in lines[plane // 7])
    elif plane < 64:
        files, ranks = jumps[plane - 56]
    else:
        files, ranks = (plane - 64) % 3 - 1, 1
        promotion = (chess.KNIGHT, chess.BISHOP, chess.ROOK)[(plane - 64) // 3]
    target = origin + files + 8 * ranks
    if not board.turn:
        origin, target = origin ^ 56, target ^ 56
    if promotion is None and board.piece_type_at(origin) == chess.PAWN and target // 8 in (0, 7):
        promotion = chess.QUEEN
    return chess.Move(origin, target, promotion).uci()


def check_position(board: chess.Board) -> None:
    oracle = list(board.pseudo_legal_moves)
    generated = gen_pseudo_legal_moves(board)
    assert len(generated) == len(set(generated))
    assert sorted_moves(generated) == sorted_moves(oracle), board.fen(en_passant="fen")
    state = Chess(board.fen())
    actions = gen_pseudo_legal_moves(state)
    assert len(actions) == len(set(actions))
    assert set(actions) >= set(state.legal_actions())
    # A state has an en passant square only if the capture is legal, like a FEN of python-chess.
    expected = sorted_moves(chess.Board(board.fen()).pseudo_legal_moves)
    assert sorted(decoded(action, board) for action in actions) == expected


def test_pseudo_legal_moves_match_python_chess_on_random_games() -> None:
    numbers = random.Random(20)
    positions = castled = en_passant = promoted = left_in_check = 0
    for game in range(60):
        board = chess.Board(PERFT[game % len(PERFT)] if game % 2 else chess.STARTING_FEN)
        for _ in range(60):
            check_position(board)
            positions += 1
            pseudo = list(board.pseudo_legal_moves)
            castled += any(map(board.is_castling, pseudo))
            en_passant += any(map(board.is_en_passant, pseudo))
            promoted += any(move.promotion for move in pseudo)
            left_in_check += any(not board.is_legal(move) for move in pseudo)
            legal = list(board.legal_moves)
            if not legal:
                break
            board.push(numbers.choice(legal))
    assert positions > 2000
    assert min(castled, en_passant, promoted, left_in_check) > 20


@pytest.mark.parametrize("fen", [*PERFT, PINNED_EN_PASSANT])
def test_pseudo_legal_moves_match_python_chess_in_known_positions(fen: str) -> None:
    board = chess.Board(fen)
    check_position(board)
    check_position(board.mirror())
    assert gen_pseudo_legal_moves(ChessGame(board)) == gen_pseudo_legal_moves(board)


def test_en_passant_exposing_king_is_pseudo_legal_on_board() -> None:
    board = chess.Board(PINNED_EN_PASSANT)
    move = chess.Move.from_uci("c5d6")
    assert move in gen_pseudo_legal_moves(board)
    assert move not in board.legal_moves
    assert is_capture(board, move)


def test_castling_through_attack_is_not_pseudo_legal() -> None:
    free, attacked = Chess("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"), Chess("4k3/8/8/8/8/5r2/8/R3K2R w KQ - 0 1")
    assert {free.parse_action("e1g1"), free.parse_action("e1c1")} <= set(gen_pseudo_legal_moves(free))
    names = [decoded(action, chess.Board(attacked.fen())) for action in gen_pseudo_legal_moves(attacked)]
    assert "e1c1" in names
    assert "e1g1" not in names


def test_is_capture_matches_python_chess() -> None:
    for fen in PERFT:
        for board in (chess.Board(fen), chess.Board(fen).mirror()):
            state = Chess(board.fen())
            for move, action in zip(gen_pseudo_legal_moves(board), gen_pseudo_legal_moves(state), strict=True):
                assert is_capture(board, move) == is_capture(state, action) == board.is_capture(move)
                if action in state.legal_actions():
                    assert state.is_capture(action) == is_capture(state, action)


def test_invalid_arguments_raise_naming_argument() -> None:
    for wrong in (TicTacToe(), None, "e4", 3):
        with pytest.raises(InvalidArgumentError, match="state"):
            gen_pseudo_legal_moves(wrong)
        with pytest.raises(InvalidArgumentError, match="state"):
            is_capture(wrong, 5)
    state = Chess()
    blocked = chess.Move.from_uci("a1a5")
    assert not is_capture(state, "e2e4")
    for position, move in ((state, 4671), (state, blocked), (chess.Board(), blocked), (state, "a1a5"), (state, "no")):
        with pytest.raises(InvalidActionError, match="pseudo-legal"):
            is_capture(position, move)
    for wrong in (-1, 4672, None):
        with pytest.raises(InvalidArgumentError, match="action"):
            is_capture(state, wrong)
