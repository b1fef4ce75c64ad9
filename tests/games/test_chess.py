"""Chess rules compared with python-chess, and published perft counts."""

from __future__ import annotations

import chess
import pytest
from tests.support.chess_games import MAX_MOVES, PERFT, STARTS, play, random_games, same_position_count

from pondertree._core import perft
from pondertree.errors import GameOverError, InvalidActionError
from pondertree.games import Chess
from pondertree.random import PLAYOUT, Random

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("fen", "counts"), PERFT)
def test_perft_matches_published_counts(fen: str, counts: list[int]) -> None:
    state = Chess(fen)
    assert perft(state, 0) == 1
    assert [perft(state, depth) for depth in range(1, 6)] == counts


def test_rules_match_python_chess() -> None:
    """Moves, FEN, ends and results along random games."""
    positions = ends = 0
    for state, board in random_games(300, 1, 100):
        positions += 1
        assert state.fen() == board.fen()
        assert state.to_play == (0 if board.turn else 1)
        over = board.is_game_over(claim_draw=False)
        assert state.is_terminal == over, state
        assert (state.termination is not None) == over
        if over:
            ends += 1
            assert state.legal_actions() == []
            outcome = board.outcome(claim_draw=False)
            assert outcome is not None
            assert state.termination == outcome.termination.name.lower()
            white = {True: 1.0, False: -1.0, None: 0.0}[outcome.winner]
            assert state.returns() == [white, -white]
            continue
        texts = {state.action_to_string(action) for action in state.legal_actions()}
        assert texts == {move.uci() for move in board.legal_moves}, state
        assert state.returns() == [0.0, 0.0]
    assert positions > 20_000
    assert ends > 50


def test_moves_match_python_chess() -> None:
    """SAN both ways, captures, checks, and the numbers of moves: on every eighth position, as python-chess is slow."""
    seen = sum(check_moves(Chess(fen), chess.Board(fen)) for fen in STARTS)
    for number, (state, board) in enumerate(random_games(200, 2, 100)):
        if number % 8 == 0:
            seen += check_moves(state, board)
    assert seen > 30_000


def check_moves(state: Chess, board: chess.Board) -> int:
    legal = state.legal_actions()
    assert len(set(legal)) == len(legal)
    for action in legal:
        assert 0 <= action < 4672
        move = chess.Move.from_uci(state.action_to_string(action))
        san = state.san(action)
        assert san == board.san(move)
        assert state.parse_action(san) == action
        assert state.parse_action(move.uci()) == action
        assert state.is_capture(action) == board.is_capture(move)
        assert state.gives_check(action) == board.gives_check(move)
        assert action == move_index(move, board.turn)
    return len(legal)


def move_index(move: chess.Move, white: bool) -> int:
    """The number of a move as AlphaZero has it, from its squares alone (DESIGN 6.12)."""
    start, end = (move.from_square, move.to_square) if white else (move.from_square ^ 56, move.to_square ^ 56)
    right = chess.square_file(end) - chess.square_file(start)
    up = chess.square_rank(end) - chess.square_rank(start)
    if move.promotion in (chess.KNIGHT, chess.BISHOP, chess.ROOK):
        plane = 64 + 3 * [chess.KNIGHT, chess.BISHOP, chess.ROOK].index(move.promotion) + right + 1
    elif abs(right * up) == 2:
        plane = 56 + [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)].index((right, up))
    else:
        distance = max(abs(right), abs(up))
        compass = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
        plane = 7 * compass.index((right // distance, up // distance)) + distance - 1
    return start * 73 + plane


@pytest.mark.parametrize("fen", STARTS)
def test_action_numbers_are_a_bijection(fen: str) -> None:
    """Every number is legal or refused, and the legal ones are the legal moves."""
    state, board = Chess(fen), chess.Board(fen)
    playable = []
    for action in range(state.num_actions):
        try:
            state.play(action)
        except InvalidActionError:
            continue
        playable.append(action)
    assert sorted(playable) == sorted(state.legal_actions())
    assert sorted(playable) == sorted(move_index(move, board.turn) for move in board.legal_moves)


def test_position_with_218_moves_lists_them_all() -> None:
    state = Chess(MAX_MOVES)
    assert len(state.legal_actions()) == 218
    assert len({state.action_to_string(action) for action in state.legal_actions()}) == 218
    assert len({state.san(action) for action in state.legal_actions()}) == 218


# --- Ends ---------------------------------------------------------------------------------------------------------


SHUFFLE = "g1f3 g8f6 f3g1 f6g8 "


def test_threefold_repetition_continues_and_fivefold_ends() -> None:
    state, board = Chess(), chess.Board()
    for round_ in range(1, 5):
        for text in SHUFFLE.split():
            assert not state.is_terminal
            state = play(state, text)
            board.push_uci(text)
            assert state.repetitions == same_position_count(board)
            assert state.is_terminal == board.is_fivefold_repetition()
        assert state.repetitions == round_
    assert state.is_terminal
    assert state.termination == "fivefold_repetition"
    assert state.returns() == [0.0, 0.0]
    assert state.legal_actions() == []


def test_repetitions_match_python_chess() -> None:
    """Random games of few pieces, which repeat themselves: castling rights and en passant tell positions apart."""
    starts = [
        "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
        "4k1n1/8/8/8/3p4/8/4P3/4K1N1 w - - 0 1",
        "3k2n1/8/8/8/3p4/8/4P3/3RK1N1 w - - 0 1",
        "7k/8/8/8/p7/8/1P6/K7 w - - 0 1",
        "k7/8/8/8/8/8/8/6RK w - - 0 1",
        "K1k5/P7/8/8/8/8/8/R7 w - - 0 1",
    ]
    counts = [0] * 5
    for number in range(90):
        fen, random = starts[number % len(starts)], Random(number, PLAYOUT)
        state, board = Chess(fen), chess.Board(fen)
        for _ in range(60):
            known = same_position_count(board)
            counts[known] += 1
            assert state.repetitions == known, (state, board.move_stack)
            assert state.is_terminal == board.is_game_over(claim_draw=False)
            if state.is_terminal:
                break
            # Two of three moves take the last one back, where that is possible.
            legal = [state.action_to_string(action) for action in state.legal_actions()]
            last = board.move_stack[-2].uci() if len(board.move_stack) > 1 else ""
            back = last[2:4] + last[:2]
            text = back if back in legal and random.below(3) else legal[random.choose(len(legal))]
            state = play(state, text)
            board.push_uci(text)
    assert min(counts) > 10, counts


@pytest.mark.parametrize(
    ("fen", "moves", "termination", "returns"),
    [
        ("k7/8/8/8/8/8/8/6RK w - - 98 80", "g1g2", None, 0),  # 50 moves: a draw only if claimed
        ("k7/8/8/8/8/8/8/6RK w - - 99 80", "g1g2", None, 0),
        ("k7/8/8/8/8/8/8/6RK w - - 148 100", "g1g2", None, 0),
        ("k7/8/8/8/8/8/8/6RK w - - 149 100", "g1g2", "seventyfive_moves", 0),
        ("k7/8/8/8/8/8/8/6RK w - - 150 100", "", "seventyfive_moves", 0),
        ("k7/8/8/8/8/8/6p1/6RK w - - 149 100", "g1g2", None, 0),
        ("k7/8/8/8/8/8/P7/6RK w - - 149 100", "a2a3", None, 0),
        ("7k/8/6K1/8/8/8/8/R7 w - - 149 100", "a1a8", "checkmate", 1),
        ("k7/2Q5/8/1K6/8/8/8/8 w - - 149 100", "b5b6", "stalemate", 0),
        ("k7/8/8/8/8/8/7r/6RK w - - 0 1", "h1h2", None, 0),
        ("k7/8/8/8/8/8/7r/7K w - - 0 1", "h1h2", "insufficient_material", 0),
        ("k7/8/8/8/8/8/7r/5N1K w - - 0 1", "f1h2", "insufficient_material", 0),
        ("k7/8/8/8/8/8/7r/4B2K w - - 0 1", "h1h2", "insufficient_material", 0),
        ("k1b5/8/8/8/8/8/7r/4B2K w - - 0 1", "h1h2", None, 0),  # bishops on two colours can still mate
        ("k4b2/8/8/8/8/8/7r/4B2K w - - 0 1", "h1h2", "insufficient_material", 0),
        ("k7/8/8/8/8/8/7r/4NN1K w - - 0 1", "h1h2", None, 0),
        ("7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "", "stalemate", 0),
        ("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1", "", "checkmate", 1),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "f3 e5 g4 Qh4", "checkmate", -1),
    ],
)
def test_ends_of_chess_have_their_results(fen: str, moves: str, termination: str | None, returns: int) -> None:
    state = play(Chess(fen), moves)
    assert state.termination == termination
    assert state.is_terminal == (termination is not None)
    assert state.returns() == [returns, -returns]
    board = chess.Board(fen)
    for text in moves.split():
        board.push_san(text) if text in ("f3", "e5", "g4", "Qh4") else board.push_uci(text)
    outcome = board.outcome(claim_draw=False)
    assert termination == (None if outcome is None else outcome.termination.name.lower())


def test_chess_errors_are_typed() -> None:
    state = Chess()
    for action in (-1, 0, 4672, 10**9, -(10**9)):
        for method in (state.play, state.san, state.is_capture, state.gives_check, state.action_to_string):
            with pytest.raises(InvalidActionError, match="not legal"):
                method(action)
    for text in ("", "e2e5", "e9", "Zf3", "O-O", "e2e4q", "\U0001f600"):
        with pytest.raises(InvalidActionError):
            state.parse_action(text)
    over = play(state, "f3 e5 g4 Qh4")
    with pytest.raises(GameOverError):
        over.play(12 * 73)
    with pytest.raises(InvalidActionError, match="over"):
        over.parse_action("e4")
    with pytest.raises(TypeError):
        Chess(3)  # type: ignore[arg-type]


def test_chess_states_are_equal_with_equal_hashes() -> None:
    """The same position with the same clocks is the same state, however it came about."""
    one, other = play(Chess(), "e4 e5 Nf3 Nc6"), play(Chess(), "Nf3 Nc6 e4 e5")
    assert one.fen().split()[:4] == other.fen().split()[:4]
    assert one != other  # the halfmove clocks differ
    by_fen = Chess(one.fen())
    assert one == by_fen
    assert hash(one) == hash(by_fen)
    assert one != Chess()
    assert one != one.fen()
    assert play(Chess(), SHUFFLE) != Chess()
