"""Chess observations compared with a slow implementation on python-chess."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.chess_games import STARTS, play, random_games, same_position_count

from pondertree._core import perft
from pondertree.errors import InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.games import Chess

pytestmark = pytest.mark.oracle

# --- Ends ---------------------------------------------------------------------------------------------------------


SHUFFLE = "g1f3 g8f6 f3g1 f6g8 "


# --- What a network sees ------------------------------------------------------------------------------------------


def slow_observation(boards: list[chess.Board]) -> NDArray[np.float32]:
    """The 119 planes, square by square, from the boards of the whole game."""
    planes = np.zeros((119, 8, 8), dtype=np.float32)
    now = boards[-1]
    us = now.turn
    for age, board in enumerate(reversed(boards[-8:])):
        for square, piece in board.piece_map().items():
            row = chess.square_rank(square) if us == chess.WHITE else 7 - chess.square_rank(square)
            side = 0 if piece.color == us else 6
            planes[14 * age + side + piece.piece_type - 1, row, chess.square_file(square)] = 1.0
        before = same_position_count(board)
        planes[14 * age + 12] = float(before >= 1)
        planes[14 * age + 13] = float(before >= 2)
    planes[112] = float(us == chess.WHITE)
    planes[113] = np.float32(now.fullmove_number) / np.float32(100)
    planes[114] = float(now.has_kingside_castling_rights(us))
    planes[115] = float(now.has_queenside_castling_rights(us))
    planes[116] = float(now.has_kingside_castling_rights(not us))
    planes[117] = float(now.has_queenside_castling_rights(not us))
    planes[118] = np.float32(now.halfmove_clock) / np.float32(100)
    return planes


def check_observations(fen: str, moves: Iterator[str]) -> None:
    state, board = Chess(fen), chess.Board(fen)
    boards = [board.copy()]
    while True:
        seen = state.observation()
        assert seen.dtype == np.float32
        assert np.array_equal(seen, slow_observation(boards)), (fen, board.move_stack)
        text = next(moves, None)
        if text is None:
            return
        state = play(state, text)
        board.push_uci(text)
        boards.append(board.copy())


@pytest.mark.parametrize("fen", STARTS)
def test_observation_of_random_games(fen: str) -> None:
    for _, board in random_games(1, 6, 40, [fen]):
        last = board
    check_observations(fen, (move.uci() for move in last.move_stack))


def test_observation_of_repetitions() -> None:
    check_observations(chess.STARTING_FEN, iter((SHUFFLE * 3 + "e2e4 e7e5 g1f3 g8f6 f3g1 f6g8").split()))


def test_observation_is_a_writable_copy() -> None:
    state = Chess()
    state.observation()[:] = 7
    assert state.observation().max() == 1.0


@pytest.mark.parametrize("depth", [-1, 256, 2**31, 2**32, 10**30, -(10**30)])
def test_perft_refuses_depth_out_of_range(depth: int) -> None:
    with pytest.raises(InvalidArgumentError, match="depth must be from 0 to 255"):
        perft(Chess(), depth)


def test_text_with_lone_surrogates_is_refused_like_other_text() -> None:
    with pytest.raises(InvalidPositionError, match="FEN"):
        Chess("\ud800")
    with pytest.raises(InvalidActionError, match="not a move"):
        Chess().parse_action("\udfff")
