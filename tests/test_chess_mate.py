"""Mate search against positions whose mates were proven on python-chess alone; and what is a draw instead."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mates.prover import OutOfNodesError, Prover
from tests.test_interrupt import seconds_until_interrupted

import ponderosa
from ponderosa import _core
from ponderosa.chess import ChessGame, MateAnswer, mate_search
from ponderosa.errors import GameOverError, InvalidArgumentError, InvalidPositionError
from ponderosa.games import Chess, ConnectFour

HERE = Path(__file__).parent / "mates"


def read(name: str, operation: str) -> list[tuple[chess.Board, str]]:
    positions = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        board = chess.Board(None)
        positions.append((board, str(board.set_epd(line)[operation])))
    return positions


#: Positions with their shortest mates, by length.
MATES = {n: [board for board, dm in read("mates.epd", "dm") if int(dm) == n] for n in (2, 3, 4)}
#: Positions without a mate within four moves, with the depth to which that is proven on python-chess.
QUIET = [(board, int(comment.split()[-1])) for board, comment in read("quiet.epd", "c0")]
ROOK_ENDING = "7k/8/5K2/8/8/8/8/R7 w - - {clock} 90"  # 1. Kf7 Kh7 2. Rh1#


def play_line(board: chess.Board, answer: MateAnswer) -> chess.Board:
    """The board at the end of the line, every move of which is legal and none of which draws."""
    board = board.copy()
    for move in answer.line:
        assert move in board.legal_moves
        assert not board.is_game_over()
        board.push(move)
    return board


def test_there_are_enough_positions() -> None:
    for boards in MATES.values():
        assert len(boards) >= 100
        assert min(sum(board.turn is color for board in boards) for color in chess.COLORS) >= 30
        assert sum(len(board.piece_map()) > 12 for board in boards) >= 20
    assert len(QUIET) >= 300
    assert all(proven >= 2 for _, proven in QUIET)


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_all_mates_are_found_with_their_exact_length(n: int) -> None:
    for board in MATES[n]:
        # A deeper search finds the same mate, a shallower one none.
        for depth in (n, n + 1):
            answer = mate_search(board, depth)
            assert (answer.kind, answer.n, len(answer.line)) == ("mate_in", n, 2 * n - 1), board.fen()
            assert answer.move == answer.line[0]
            assert answer.nodes > 0
            assert play_line(board, answer).is_checkmate(), board.fen()
        assert mate_search(board, n - 1).kind == "unknown", board.fen()


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_every_defence_of_a_claimed_line_is_mated_in_time(n: int) -> None:
    checked = 0
    for board in MATES[n]:
        # Where the defender has many moves, proving it again on python-chess takes too long for a test.
        board, prover = board.copy(), Prover(nodes=1_500)
        try:
            for ply, move in enumerate(mate_search(board, n).line):
                board.push(move)
                if ply % 2 == 0:
                    assert prover.mated(board, n - 1 - ply // 2), board.fen()
            checked += 1
        except OutOfNodesError:
            pass
    assert checked >= 0.8 * len(MATES[n])


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_after_the_mating_move_the_other_side_is_mated(n: int) -> None:
    for board in MATES[n][::2]:
        board = board.copy()
        board.push(mate_search(board, n).move)
        answer = mate_search(board, n)
        assert (answer.kind, answer.n, len(answer.line)) == ("mated_in", n - 1, 2 * n - 2), board.fen()
        assert play_line(board, answer).is_checkmate()
        # One move less does not do, since the mate was the shortest.
        assert mate_search(board, n - 2).kind == "unknown"


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_black_mates_like_white(n: int) -> None:
    for board in MATES[n][::2]:
        answer, mirrored = mate_search(board, n), mate_search(board.mirror(), n)
        assert (mirrored.kind, mirrored.n) == (answer.kind, answer.n), board.fen()
        # Actions are seen from the mover: a mirrored position has the same ones, if not always the same choice.
        assert play_line(board.mirror(), mirrored).is_checkmate()


@pytest.mark.oracle
def test_no_mate_is_claimed_where_none_is() -> None:
    for board, _ in QUIET:
        answer = mate_search(board, 3)
        assert (answer.kind, answer.n, answer.move, answer.action, answer.line) == ("unknown", None, None, None, [])
        assert _core.checks_first(Chess(board.fen()), 4, 20_000) is None, board.fen()


@pytest.mark.oracle
@pytest.mark.slow
def test_no_mate_in_four_is_claimed_where_none_is() -> None:
    for board, _ in QUIET:
        assert mate_search(board, 4).kind == "unknown", board.fen()


@pytest.mark.oracle
def test_checks_alone_find_true_mates_and_most_of_them() -> None:
    found = dict.fromkeys(MATES, 0)
    for n, boards in MATES.items():
        for board in boards:
            state = Chess(board.fen())
            claim = _core.checks_first(state, 4, 100_000)
            if claim is None:
                continue
            moves, action = claim
            assert moves >= n
            assert state.gives_check(action)
            rest = mate_search(state.play(action), moves)
            assert rest.kind == "mated_in"
            assert rest.n is not None
            assert rest.n <= moves - 1
            found[n] += 1
    assert all(found[n] >= 0.2 * len(MATES[n]) for n in MATES), found


def test_checks_alone_agree_with_all_moves_on_random_games() -> None:
    numbers = random.Random(5)
    claims = 0
    for _ in range(60):
        board = chess.Board()
        while not board.is_game_over() and board.ply() < 100:
            moves = list(board.legal_moves)
            likes = [1 + 3 * board.is_capture(move) + 3 * board.gives_check(move) for move in moves]
            board.push(numbers.choices(moves, likes)[0])
            if board.is_game_over():
                break
            state = Chess(board.fen())
            claim = _core.checks_first(state, 3, 2_000)
            if claim is not None:
                claims += 1
                answer = mate_search(state, claim[0])
                assert answer.kind == "mate_in"
                assert answer.n is not None
                assert answer.n <= claim[0]
    assert claims > 20


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 3), st.integers(0, 99), st.integers(0, 4), st.integers(0, 20_000))
def test_a_budget_never_makes_a_claim_false(kind: int, place: int, depth: int, budget: int) -> None:
    board, n = (QUIET[place][0], None) if kind == 0 else (MATES[kind + 1][place], kind + 1)
    answer = mate_search(board, depth, budget=budget)
    assert answer.nodes <= budget
    if answer.kind != "unknown":
        assert (answer.kind, answer.n) == ("mate_in", n)
        assert play_line(board, answer).is_checkmate()
    claim = _core.checks_first(Chess(board.fen()), depth, budget)
    assert claim is None or (n is not None and n <= claim[0] <= depth)


# Draws


def test_stalemate_is_no_mate() -> None:
    # A queen on f8 would stalemate; the rook mates.
    answer = mate_search("8/5P1k/5K2/8/8/8/8/8 w - - 0 1", 3)
    assert (answer.kind, answer.n, answer.move) == ("mate_in", 2, "f7f8r")


def test_a_mate_that_comes_too_late_is_not_claimed() -> None:
    for clock in range(149):
        answer = mate_search(ROOK_ENDING.format(clock=clock), 3)
        # The mate itself may be the move that fills the fifty.
        assert answer.n == (2 if clock <= 97 else None), clock
    # A pawn move on the way starts the count anew.
    assert mate_search("8/5P1k/5K2/8/8/8/8/8 w - - 99 90", 2).n == 2
    assert mate_search("7k/5K2/8/8/8/8/8/R7 b - - 98 90", 1).kind == "mated_in"
    assert mate_search("7k/5K2/8/8/8/8/8/R7 b - - 99 90", 1).kind == "unknown"


def drawn(board: chess.Board) -> bool:
    return board.is_repetition(3) or board.halfmove_clock >= 100 or board.is_insufficient_material()


def mates_in_two(board: chess.Board) -> bool:
    """The same question asked plainly, with the history of the board."""

    def after(move: chess.Move) -> chess.Board:
        copy = board.copy()
        copy.push(move)
        return copy

    def loses(copy: chess.Board) -> bool:
        for reply in copy.legal_moves:
            copy.push(reply)
            escapes = drawn(copy) or Prover().mating_move(copy) is None
            copy.pop()
            if escapes:
                return False
        return not drawn(copy) and (any(copy.legal_moves) or copy.is_check())

    return Prover().mating_move(board) is not None or any(loses(after(move)) for move in board.legal_moves)


@pytest.mark.oracle
def test_a_mate_through_a_third_repetition_is_not_claimed() -> None:
    mattered = 0
    for start in MATES[2]:
        if start.pawns or len(start.piece_map()) > 6:
            continue
        board = start.copy()
        there = mate_search(board, 2).line[:2]
        cycle = there + [chess.Move(move.to_square, move.from_square) for move in there]
        for move in cycle * 2:
            if move not in board.legal_moves or board.is_capture(move):
                break
            board.push(move)
        else:
            # The first move of the mate that was found would now bring about its position for the third time.
            answer = mate_search(board, 2)
            assert (answer.kind == "mate_in") == mates_in_two(board), board.fen()
            assert answer.move != there[0]
            assert mate_search(ChessGame(board), 2) == answer
            assert mate_search(ChessGame(board).state, 2).kind == answer.kind
            assert mate_search(board.fen(), 2).n == 2, "without the history it is what it was"
            mattered += answer.kind == "unknown"
            longer = mate_search(board, 3)
            end = board.copy()
            for move in longer.line:
                end.push(move)
                assert not end.is_repetition(3)
    assert mattered >= 3


def test_insufficient_material_is_no_mate() -> None:
    # A lone bishop mates as long as a pawn stands in its own king's way, and not where the bishop can be taken.
    for fen in (
        "k7/p1K5/8/8/8/8/8/5B2 w - - 0 1",
        "k7/p1K5/8/8/8/7b/8/5B2 w - - 0 1",
        "8/8/8/8/8/1k6/3n4/K1B5 b - - 0 1",
        "8/8/8/8/8/1kn5/p7/K7 b - - 0 1",
    ):
        assert mate_search(fen, 3).n == Prover().distance(chess.Board(fen), 3), fen


# Doors and refusals


def test_every_form_of_a_position_is_taken_and_answered_in_its_terms() -> None:
    fen = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"
    for position in (fen, Chess(fen)):
        answer = mate_search(position, 2)
        assert answer.line == ["a1a6", "b7a6", "b6b7"]
        assert (answer.move, answer.action) == ("a1a6", Chess(fen).parse_action("a1a6"))
    board = chess.Board(fen)
    for game in (board, ChessGame(fen)):
        answer = mate_search(game, 2)
        assert answer.line == [chess.Move.from_uci(text) for text in ("a1a6", "b7a6", "b6b7")]
        assert (answer.move, answer.action) == (answer.line[0], Chess(fen).parse_action("a1a6"))
    assert board == chess.Board(fen)
    with pytest.raises(AttributeError):
        answer.n = 3  # type: ignore[misc]


def test_the_same_question_has_the_same_answer() -> None:
    board = MATES[3][7]
    assert mate_search(board, 4) == mate_search(board, 4)


def test_depth_zero_and_no_budget_know_nothing() -> None:
    mate = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
    assert mate_search(mate, 0) == MateAnswer("unknown", None, None, None, [], 0)
    assert mate_search(mate, 1, budget=0) == MateAnswer("unknown", None, None, None, [], 0)
    assert mate_search(mate, 1).move == "e1e8"


@pytest.mark.parametrize("depth", [-1, 65, 10**9, 10**30, 2.5, "3", None, True])
def test_a_wrong_depth_is_refused(depth: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="depth"):
        mate_search(Chess(), depth)


@pytest.mark.parametrize("budget", [-1, 1.5, "all", 10**30])
def test_a_wrong_budget_is_refused(budget: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="budget"):
        mate_search(Chess(), 2, budget=budget)


@pytest.mark.parametrize("state", [ConnectFour(), None, 7, object(), ponderosa])
def test_what_is_not_chess_is_refused(state: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="chess state"):
        mate_search(state, 2)


def test_a_broken_position_and_a_finished_game_are_refused() -> None:
    with pytest.raises(InvalidPositionError):
        mate_search("8/8/8 w - - 0 1", 2)
    for over in ("7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1", "k7/8/8/8/8/8/8/K7 w - - 0 1"):
        for position in (over, Chess(over), chess.Board(over)):
            with pytest.raises(GameOverError, match="over"):
                mate_search(position, 2)


def test_ctrl_c_ends_a_search_at_once() -> None:
    start = time.perf_counter()
    assert seconds_until_interrupted(lambda: mate_search(Chess(), 40), 0.1) < 1.0
    assert time.perf_counter() - start < 10
