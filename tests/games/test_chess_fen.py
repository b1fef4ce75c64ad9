"""FEN: validation of text, and positions mutated at random."""

from __future__ import annotations

import chess
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.chess_games import random_games

from pondertree.errors import InvalidActionError, InvalidPositionError
from pondertree.games import Chess

pytestmark = pytest.mark.oracle

# --- FEN ----------------------------------------------------------------------------------------------------------


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
    # No pawn can capture there: the square is dropped, as in python-chess.
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
