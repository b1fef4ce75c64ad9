"""Chess against python-chess, and against published counts of moves."""

from __future__ import annotations

from collections.abc import Iterator

import chess
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pondertree._core import perft
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError, InvalidPositionError
from pondertree.games import Chess
from pondertree.random import PLAYOUT, Random, fold

pytestmark = pytest.mark.oracle

# https://www.chessprogramming.org/Perft_Results
PERFT = [
    ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", [20, 400, 8902, 197281, 4865609]),
    ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", [48, 2039, 97862, 4085603, 193690690]),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812, 43238, 674624]),
    ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9467, 422333, 15833292]),
    ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1486, 62379, 2103487, 89941194]),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", [46, 2079, 89890, 3894594, 164075551]),
]
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
# Starts that lead soon to what is rare from the first move: promotions, castling, en passant, bare kings.
STARTS = [
    *(fen for fen, _ in PERFT),
    MOST_MOVES,
    "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
    "4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 w - - 0 1",
    "8/8/4k3/8/8/3NKN2/8/8 b - - 96 120",
    "8/1b6/4k3/8/8/2B1K3/6n1/8 w - - 140 120",
    "7k/7p/8/8/8/8/P7/K7 w - - 60 80",
    "rnbqkbnr/pppp1ppp/8/8/4pP2/8/PPPPP1PP/RNBQKBNR b KQkq f3 0 3",
    "3k4/8/8/8/1b5b/8/3P1P2/4K3 w - - 0 1",
    "7k/8/2N1N3/1N3N2/8/1N3N2/2N1N3/K7 w - - 0 1",  # SAN must name the whole square
    "1k6/8/8/8/4Q2Q/K7/8/7Q w - - 0 1",
]


def random_games(
    count: int, seed: int, moves: int, starts: list[str] | None = None
) -> Iterator[tuple[Chess, chess.Board]]:
    """Positions of random games, as both libraries see them."""
    for number in range(count):
        random = Random(fold(seed, number), PLAYOUT)
        fens = STARTS if starts is None else starts
        fen = fens[number % len(fens)]
        state, board = Chess(fen), chess.Board(fen)
        for _ in range(moves):
            yield state, board
            legal = state.legal_actions()
            if not legal:
                break
            action = legal[random.choose(len(legal))]
            board.push_uci(state.action_to_string(action))
            state = state.play(action)
        else:
            yield state, board


def same_position_count(board: chess.Board) -> int:
    """How often the position stood on the board before, counted slowly."""
    here = board.copy()
    key, count = here._transposition_key(), 0
    while here.move_stack:
        here.pop()
        count += here._transposition_key() == key
    return count


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
    state = Chess(MOST_MOVES)
    assert len(state.legal_actions()) == 218
    assert len({state.action_to_string(action) for action in state.legal_actions()}) == 218
    assert len({state.san(action) for action in state.legal_actions()}) == 218


# Ends ----------------------------------------------------------------------------------------------------------------


def play(state: Chess, moves: str) -> Chess:
    for text in moves.split():
        state = state.play(state.parse_action(text))
    return state


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


# FEN -----------------------------------------------------------------------------------------------------------------

BROKEN = [
    "",
    " ",
    "hello",
    "w",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 extra",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1",  # seven ranks
    "rnbqkbnr/pppppppp/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",  # nine
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR/ w KQkq - 0 1",
    "rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/7/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/44/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",  # digits in a row
    "rnbqkbnr/pppppppp/0/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/80/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPX/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPP♙/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQ1BNR w kq - 0 1",  # no white king
    "rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1",
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "rnbqkknr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",  # two black kings
    "4k3/8/8/8/8/8/8/P3K3 w - - 0 1",  # pawns on the last ranks
    "p3k3/8/8/8/8/8/8/4K3 w - - 0 1",
    "4k3/8/8/8/8/8/8/4K2p w - - 0 1",
    "4k3/PPPPPPPP/P7/8/8/8/8/4K3 w - - 0 1",  # nine pawns
    "4k3/8/8/8/8/QQQQQQQQ/QQQQQQQQ/4K3 w - - 0 1",  # seventeen pieces
    "8/8/8/8/8/8/4k3/4K3 w - - 0 1",  # kings side by side
    "4k3/8/8/8/8/8/8/4RK2 w - - 0 1",  # Black in check, White to move
    "4k3/8/8/8/8/5n2/8/4K3 b - - 0 1",
    "4k3/8/8/8/8/3n1n2/4r3/4K3 w - - 0 1",  # three checks
    "4k3/8/8/8/r3K2r/8/8/8 w - - 0 1",  # two checks on one line
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR W KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR - KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkx - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KK - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w HAha - 0 1",  # Chess960
    "4k3/8/8/8/8/8/8/4K3 w K - 0 1",  # no rook
    "4k3/8/8/8/8/8/8/R4K2 w Q - 0 1",  # the king has moved
    "r3k3/8/8/8/8/8/8/4K2R w Kk - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e9 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e3 0 1",  # the wrong rank
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e6 0 1",  # no pawn there
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPPPPPP/RNBQKBNR b KQkq e3 0 1",  # a pawn where it came from
    "rnbqkbnr/pppppppp/8/8/4P3/4N3/PPPP1PPP/RNBQKB1R b KQkq e3 0 1",  # something on the square behind
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq xx 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - -1 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - x 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 0",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 -1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 x",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0.5 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - +1 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 99999999999999999999 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - ١ 1",  # a digit, but not of ASCII
]


@pytest.mark.parametrize("fen", BROKEN)
def test_invalid_fens_are_refused(fen: str) -> None:
    with pytest.raises(InvalidPositionError, match="FEN"):
        Chess(fen)


def test_fen_without_clocks_and_with_idle_en_passant() -> None:
    assert Chess("4k3/8/8/8/8/8/8/4K2R w K -").fen() == "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
    # Nobody can capture: the square is forgotten, as in python-chess.
    fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
    assert Chess(fen).fen() == chess.Board(fen).fen() == fen.replace("e3", "-")


def test_valid_positions_are_accepted() -> None:
    """Every position that comes about by legal moves, in each way of writing the en passant square."""
    for number, (state, board) in enumerate(random_games(100, 4, 100)):
        if number % 3 == 0:
            assert board.is_valid()
            for en_passant in ("legal", "fen", "xfen"):
                assert Chess(board.fen(en_passant=en_passant)).fen() == state.fen()


VALID = [board.fen(en_passant="fen") for _, board in random_games(30, 5, 60)][::7]


@st.composite
def mutated_fens(draw: st.DrawFn) -> str:
    """A valid FEN with a few characters changed, or two fields of different ones."""
    text = draw(st.sampled_from(VALID))
    if draw(st.booleans()):
        fields, others = text.split(), draw(st.sampled_from(VALID)).split()
        place = draw(st.integers(0, 5))
        text = " ".join([*fields[:place], others[place], *fields[place + 1 :]])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        new = draw(st.sampled_from("pnbrqkPNBRQK12345678/ wb-KQkqabcdefgh0 é\n\0"))
        text = text[:place] + new + text[place + draw(st.integers(0, 1)) :]
    return text


@given(mutated_fens())
@example("4k3/8/8/8/r3K2r/8/8/8 w - - 0 1")
@example("8/8/8/8/8/8/8/8 w - - 0 1")
@example("8/8/8/3k4/3pP3/8/8/3RK3 b - e3 0 1")
def test_accepted_fens_are_valid_positions(fen: str) -> None:
    try:
        state = Chess(fen)
    except InvalidPositionError:
        return
    board = chess.Board(" ".join(fen.split()))
    assert board.is_valid(), board.status()
    assert state.fen() == board.fen()
    texts = {state.action_to_string(action) for action in state.legal_actions()}
    if not state.is_terminal:
        assert texts == {move.uci() for move in board.legal_moves}


@given(st.text(alphabet="pnbrqkPNBRQK12345678/ wb-KQkqabcdefgh0+#=xO\n\0\x7fé♙\U0001f600", max_size=90))
def test_arbitrary_text_raises_typed_errors(text: str) -> None:
    """No text crashes the reader of positions or of moves."""
    with pytest.raises(InvalidPositionError):
        Chess(text)
    with pytest.raises(InvalidActionError):
        Chess("k7/8/8/8/8/8/8/K6R w - - 0 1").parse_action("?" + text)


@given(mutated_fens())
def test_valid_changed_positions_are_accepted(fen: str) -> None:
    """What python-chess takes for valid is accepted, where it is written in six fields."""
    if len(fen.split()) != 6:
        return
    try:
        board = chess.Board(fen)
    except ValueError:
        return
    clocks = fen.split()[4:]
    # python-chess forgives in writing: letters of castling rights that nobody has, their order, clocks such as +1.
    if not board.is_valid() or not all(clock.isdecimal() and clock.isascii() for clock in clocks) or clocks[1] == "0":
        return
    assert Chess(board.fen()).fen() == board.fen()


# What a network sees -------------------------------------------------------------------------------------------------


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
