"""`ChessGame`: moves, undo, move indices, endings."""

from __future__ import annotations

import copy
import random
from typing import Any

import chess
import numpy as np
import pytest

from pondertree.chess import ChessGame, perft
from pondertree.errors import (
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    PondertreeError,
    UsageError,
)
from pondertree.games import Chess

PROMOTION = "4k3/P6P/8/8/8/8/p6p/4K3 w - - 0 1"


def test_moves_change_turn_and_legal_moves() -> None:
    game = ChessGame()
    assert (game.turn, game.to_play) == (chess.WHITE, 0)
    assert len(game.legal_moves) == 20
    game.make_move(chess.Move.from_uci("e2e4"))
    assert (game.turn, game.to_play) == (chess.BLACK, 1)
    game.make_move("e7e5")
    game.make_move("Nf3")
    assert game.board.move_stack == [chess.Move.from_uci(move) for move in ("e2e4", "e7e5", "g1f3")]
    assert repr(game) == f"ChessGame({game.fen()!r})"
    assert game.undo_move() == chess.Move.from_uci("g1f3")
    assert game.fen() == "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"


def test_game_starts_from_fen_board_or_game() -> None:
    board = chess.Board()
    board.push_san("d4")
    game = ChessGame(board)
    game.make_move("d5")
    assert len(board.move_stack) == 1
    assert len(game.board.move_stack) == 2
    assert ChessGame(game) == game
    assert ChessGame(PROMOTION).fen() == PROMOTION
    with pytest.raises(InvalidPositionError):
        ChessGame("nonsense")
    with pytest.raises(InvalidPositionError):
        ChessGame(chess.Board(chess960=True))
    wrong: Any = 7
    with pytest.raises(InvalidArgumentError, match="7"):
        ChessGame(wrong)


@pytest.mark.parametrize("move", ["e2e5", "Nf6", "", "0000", chess.Move.from_uci("e7e5"), chess.Move.null(), 5, None])
def test_make_move_rejects_illegal_moves(move: Any) -> None:
    game = ChessGame()
    with pytest.raises(InvalidActionError):
        game.make_move(move)
    with pytest.raises(InvalidActionError):
        game.get_move_index(move)
    assert game == ChessGame()


def test_undo_move_without_moves_raises() -> None:
    with pytest.raises(UsageError, match="no move"):
        ChessGame().undo_move()


def test_move_index_round_trips() -> None:
    numbers = random.Random(3)
    for start in (chess.STARTING_FEN, PROMOTION, "r3k2r/8/8/2pP4/8/8/8/R3K2R w KQkq c6 0 1"):
        game = ChessGame(start)
        for _ in range(60):
            moves = game.legal_moves
            if not moves:
                break
            indices = [game.get_move_index(move) for move in moves]
            assert len(set(indices)) == len(indices)
            assert all(0 <= index < 4672 for index in indices)
            assert set(indices) == set(game.state.legal_actions())
            assert [game.get_move(index) for index in indices] == moves
            assert [game.get_move_index(game.board.san(move)) for move in moves] == indices
            game.make_move(numbers.choice(moves))


@pytest.mark.parametrize("index", [0, 4671, 4672, -1, 99999, "e2e4"])
def test_get_move_rejects_illegal_index(index: Any) -> None:
    with pytest.raises(ValueError, match=r"action|index") as caught:
        ChessGame().get_move(index)
    assert isinstance(caught.value, PondertreeError)


def test_clone_is_independent() -> None:
    game = ChessGame()
    game.make_move("e4")
    for other in (game.clone(), copy.copy(game), copy.deepcopy(game)):
        assert other == game
        other.make_move("e5")
        assert other != game
        assert len(game.board.move_stack) == 1
    assert game != game.fen()


@pytest.mark.parametrize(
    ("fen", "result"),
    [
        ("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3", -1),
        ("6kR/6Q1/6K1/8/8/8/8/8 b - - 0 1", 1),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", 0),
        ("7k/8/6K1/8/8/8/8/8 b - - 0 1", 0),
        ("8/8/4k3/8/8/3QK3/8/8 w - - 150 90", 0),
        ("8/8/4k3/8/8/3QK3/8/8 w - - 149 90", None),
        (chess.STARTING_FEN, None),
    ],
)
def test_results_match_game_endings(fen: str, result: int | None) -> None:
    game = ChessGame(fen)
    assert game.result() == result
    assert game.is_over() == (result is not None) == game.state.is_terminal
    if result is not None:
        assert game.state.returns()[0] == result
        assert game.legal_moves == []
        with pytest.raises(GameOverError):
            game.make_move("e6e5")


def test_observation_matches_compiled_state() -> None:
    game, state = ChessGame(), Chess()
    for text in ("e4", "c5", "Nf3", "d6", "d4", "cxd4", "Nxd4", "Nf6", "Nc3"):
        game.make_move(text)
        state = state.play(state.parse_action(text))
    assert game.state == state
    assert game.observation().shape == (119, 8, 8)
    assert game.observation().dtype == np.float32
    assert np.array_equal(game.observation(), state.observation())
    assert np.array_equal(game.get_input(), game.observation())


def test_perft_counts_known_positions() -> None:
    assert perft(ChessGame().state, 3) == 8902
