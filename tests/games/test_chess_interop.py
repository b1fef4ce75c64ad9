"""python-chess boards in every search: conversion with history, and answers as `chess.Move`."""

from __future__ import annotations

import random
import subprocess
import sys

import chess
import chess.variant
import numpy as np
import pytest
from examples.games.coin_row import CoinRow

import pondertree
from pondertree import UCT, AlphaZero
from pondertree.chess import MCTS, ChessGame
from pondertree.errors import (
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    PondertreeError,
)
from pondertree.evaluators import Uniform
from pondertree.games import Chess, ConnectFour
from pondertree.games.chess_interop import adapt_state, chess_state
from pondertree.optional import install_command
from pondertree.testing.tabular import TabularGame

FOOLS_MATE = ["f2f3", "e7e5", "g2g4", "d8h4"]
SHUFFLE = ["g1f3", "g8f6", "f3g1", "f6g8"]
SEARCHES = [UCT(20, seed=1), AlphaZero(Uniform(), 20, seed=1), MCTS(Uniform(), 20, seed=1)]


def board_after(moves: list[str], fen: str = chess.STARTING_FEN) -> chess.Board:
    board = chess.Board(fen)
    for move in moves:
        board.push_uci(move)
    return board


def snapshot(board: chess.Board) -> tuple[str, str, list[chess.Move], int]:
    return board.fen(), board.root().fen(), list(board.move_stack), board.halfmove_clock


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("moves", [[], ["e2e4"]])
def test_every_search_accepts_a_board(search: pondertree.search.base.Search, moves: list[str]) -> None:
    board = board_after(moves)
    before = snapshot(board)
    move = search.search(board, temperature=0)
    assert type(move) is chess.Move
    assert move in board.legal_moves
    move, policy = search.get_policy(board)
    assert move in board.legal_moves
    assert policy.shape == (4672,)
    assert policy.sum() == pytest.approx(1)
    game = ChessGame(board)
    legal = {game.get_move_index(legal) for legal in board.legal_moves}
    assert set(np.flatnonzero(policy).tolist()) <= legal
    result = search.run(board)
    assert type(result.action) is int
    assert chess.Move.from_uci(result.move) == game.get_move(result.action)
    assert [type(result.action) for result in search.run([board, game, game.state])] == [int] * 3
    tree = search.tree(board).simulate(5)
    assert tree.state == game.state
    assert len(search.forest([board, board]).simulate(5).results()) == 2
    assert snapshot(board) == before


def test_board_and_state_give_the_same_tree() -> None:
    board = board_after(["e2e4", "c7c5"])
    state = Chess()
    for text in ("e4", "c5"):
        state = state.play(state.parse_action(text))
    results = UCT(200, seed=3).run([board, ChessGame(board), state], seeds=7)
    assert all(np.array_equal(result.visits, results[0].visits) for result in results)


def test_other_states_are_not_converted() -> None:
    state = ConnectFour()
    same, answer = adapt_state(state)
    assert same is state
    assert answer(np.int64(3)) == 3
    assert type(UCT(20, seed=1).search(state)) is int
    with pytest.raises(InvalidArgumentError, match="not a game state"):
        UCT(20).run("e2e4")
    with pytest.raises(InvalidArgumentError, match="is a class"):
        UCT(20).run(chess.Board)


def test_board_history_is_converted() -> None:
    """The eight past positions and the repetitions are those of a game played on our own states."""
    numbers = random.Random(5)
    for start in (chess.STARTING_FEN, "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 20", "8/P6k/8/8/8/8/p6K/8 w - - 0 60"):
        for _ in range(10):
            board, state = chess.Board(start), Chess(start)
            for _ in range(60):
                if board.is_game_over():
                    break
                move = numbers.choice(list(board.legal_moves))
                board.push(move)
                state = state.play(state.parse_action(move.uci()))
                converted = chess_state(board)
                assert converted == state
                assert converted.repetitions == state.repetitions
                assert np.array_equal(converted.observation(), state.observation())


class Material:
    """Who has the queen is winning."""

    def evaluate_states(self, states: list[Chess]) -> tuple[None, list[float]]:
        white = [("Q" in state.fen().split()[0]) - ("q" in state.fen().split()[0]) for state in states]
        return None, [0.9 * value * (-1) ** state.to_play for value, state in zip(white, states, strict=True)]


def test_repetition_needs_the_move_stack() -> None:
    # White, a queen down, can step back to a position that has then been there three times.
    moves = ["g8h8", "h1g1", "h8g8", "g1h1", "g8h8", "h1g1", "h8g8"]
    board = board_after(moves, "1q4k1/8/8/8/8/8/7P/7K b - - 0 1")
    back = chess.Move.from_uci("g1h1")
    action = ChessGame(board).get_move_index(back)
    search = MCTS(Material(), 200, seed=1, solve=True)
    with_stack, without = search.run([board, chess.Board(board.fen())])
    assert with_stack.move == "g1h1"
    assert with_stack.root.children[action].proven == 0
    assert with_stack.q[action] == 0
    assert without.root.children[action].proven is None
    assert without.q[action] < -0.5
    assert search.search(board, temperature=0) == search.search(ChessGame(board), temperature=0) == back


def test_partial_move_stack_is_partial_history() -> None:
    board = board_after(SHUFFLE * 2)
    assert chess_state(board).repetitions == 2
    assert chess_state(board.copy(stack=4)).repetitions == 1
    assert chess_state(board.copy(stack=False)).repetitions == 0


def test_claimable_draws_continue_and_automatic_draws_end() -> None:
    search = UCT(10, seed=1)
    threefold = board_after(SHUFFLE * 2)
    assert threefold.can_claim_draw()
    assert search.search(threefold) in threefold.legal_moves
    fifty = chess.Board("8/8/4k3/8/8/3QK3/8/8 w - - 120 90")
    assert search.search(fifty) in fifty.legal_moves
    over = [
        board_after(FOOLS_MATE),
        chess.Board("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"),
        chess.Board("7k/8/6K1/8/8/8/8/8 b - - 0 1"),
        chess.Board("8/8/4k3/8/8/3QK3/8/8 w - - 150 90"),
        board_after(SHUFFLE * 4),
    ]
    for board in over:
        for position in (board, ChessGame(board)):
            for call in (search.search, search.get_policy, search.run, search.tree):
                with pytest.raises(ValueError, match="over") as caught:
                    call(position)
                assert isinstance(caught.value, GameOverError)


def test_board_played_beyond_an_automatic_draw_is_accepted() -> None:
    board = board_after([*SHUFFLE * 4, "e2e4"])
    assert not board.is_game_over()
    assert chess_state(board) == Chess(board.fen())
    still = board_after([*SHUFFLE * 5])
    assert still.is_fivefold_repetition()
    with pytest.raises(GameOverError, match="fivefold"):
        UCT(10).run(still)


def test_null_move_truncates_the_history() -> None:
    board = board_after(SHUFFLE)
    board.push(chess.Move.null())
    board.push_uci("e7e5")
    state = chess_state(board)
    assert state.fen() == board.fen()
    assert UCT(10, seed=1).search(board) in board.legal_moves


def test_edited_board_loses_its_history() -> None:
    board = board_after(["e2e4", "e7e5"])
    board.turn = chess.BLACK
    assert chess_state(board).fen() == board.fen()


def test_promotions_castling_and_en_passant_for_both_sides() -> None:
    cases = [
        ("7k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7a8q", "a7a8r", "a7a8b", "a7a8n"}),
        ("k7/8/8/8/8/8/p7/1R5K b - - 0 1", {"a2a1q", "a2b1q", "a2a1n", "a2b1r"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", {"e1g1", "e1c1"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", {"e8g8", "e8c8"}),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2", {"e5d6"}),
        ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 2", {"e4d3"}),
    ]
    for fen, wanted in cases:
        board = chess.Board(fen)
        state, answer = adapt_state(board)
        said = {answer(action) for action in state.legal_actions()}
        assert said == set(board.legal_moves)
        assert wanted <= {move.uci() for move in said}


def test_variants_are_refused() -> None:
    for board in (
        chess.Board(chess960=True),
        chess.Board.from_chess960_pos(100),
        chess.variant.AtomicBoard(),
        chess.variant.CrazyhouseBoard(),
    ):
        with pytest.raises(PondertreeError, match="standard chess") as caught:
            UCT(10).search(board)
        assert isinstance(caught.value, InvalidPositionError)
    with pytest.raises(InvalidPositionError):
        UCT(10).search(chess.Board(None))


def test_board_subclass_is_accepted() -> None:
    class MyBoard(chess.Board):
        pass

    board = MyBoard()
    assert UCT(10, seed=1).search(board) in board.legal_moves


LOADED = """
import sys
import pondertree
import pondertree.chess
pondertree.chess.perft(pondertree.games.Chess(), 2)
pondertree.chess.ChessNN()
pondertree.UCT(10).search(pondertree.games.Chess())
print([name for name in ("chess", "torch", "keras", "safetensors", "tensorflow", "jax") if name in sys.modules])
"""

LAZY = """
import sys
import pondertree
print("pondertree.chess" in sys.modules, pondertree.chess.__name__, "chess" in sys.modules)
import chess
print(chess.Board().fen() == pondertree.chess.ChessGame().fen())
"""


def test_import_loads_neither_python_chess_nor_torch() -> None:
    assert python(LOADED) == "[]"


def test_chess_package_is_lazy_and_shadows_no_module() -> None:
    assert python(LAZY) == "False pondertree.chess False\nTrue"


def test_missing_python_chess_error_names_the_extra() -> None:
    text = python("""
import sys
sys.modules["chess"] = None
from pondertree.chess import ChessGame
try:
    ChessGame()
except ImportError as error:
    print(type(error).__name__, error)
""")
    assert text == f"MissingExtraError ChessGame needs chess: {install_command('python-chess')}"


def python(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_chess_move_of_a_result_is_its_action_on_the_board(search: pondertree.search.base.Search) -> None:
    for moves in ([], ["e2e4"]):
        board = board_after(moves)
        tree = search.tree(board).simulate(10)
        for result in (search.run(board), *search.run([board, ChessGame(board)]), tree.result(), search.run(Chess())):
            assert type(result.chess_move) is chess.Move
            assert result.chess_move.uci() == result.move
        assert search.run(board).chess_move in board.legal_moves
        assert type(search.run(board).action) is int


def test_chess_move_of_another_game_raises_attribute_error() -> None:
    result = UCT(20, seed=1).run(ConnectFour())
    assert not hasattr(result, "chess_move")
    with pytest.raises(AttributeError, match="results of chess, and this one is of connect_four"):
        result.chess_move  # noqa: B018


def test_chess_move_without_python_chess_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    result = UCT(20, seed=1).run(Chess())
    monkeypatch.setitem(sys.modules, "chess", None)
    with pytest.raises(pondertree.errors.MissingExtraError, match="needs chess"):
        result.chess_move  # noqa: B018


def test_advance_accepts_numbers_moves_and_text() -> None:
    board = chess.Board()
    tree = UCT(seed=1).tree(board).simulate(200)
    for move in (
        chess.Move.from_uci("e2e4"),
        "e7e5",
        "Nf3",
        ChessGame(board_after(["e2e4", "e7e5", "g1f3"])).get_move_index("b8c6"),
    ):
        tree.advance(move)
    assert tree.state == chess_state(board_after(["e2e4", "e7e5", "g1f3", "b8c6"]))
    forest = UCT(seed=1).forest([ConnectFour(), ConnectFour()]).simulate(20)
    forest.advance(1, "4")
    assert forest.state(1) == ConnectFour().play(3)


@pytest.mark.parametrize(
    ("state", "action", "message"),
    [
        (Chess(), "e2e5", "e2e5"),
        (Chess(), chess.Move.from_uci("e2e5"), "e2e5"),
        (ConnectFour(), "8", "8"),
        (ConnectFour(), chess.Move.from_uci("e2e4"), "ConnectFour is not chess"),
        (CoinRow(), "middle", r"parse_action does not read .*legal are \['first', 'last'\]"),
        (TabularGame(1).start(), "first", "no parse_action"),
    ],
)
def test_advance_refuses_invalid_moves(state: object, action: object, message: str) -> None:
    tree = UCT(seed=1).tree(state).simulate(5)
    with pytest.raises((InvalidActionError, InvalidArgumentError), match=message):
        tree.advance(action)  # type: ignore[arg-type]
    assert tree.state == state
