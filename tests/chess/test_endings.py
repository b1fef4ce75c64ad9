"""Endgame tables against the rules of python-chess, and their use in searches."""

from __future__ import annotations

import math

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.chess_games import random_games
from tests.support.engine_hybrid import Pair, assert_equal

import pondertree
from pondertree import _core
from pondertree.chess import Pesto
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess

LONGEST = {chess.QUEEN: 10, chess.ROOK: 16, chess.PAWN: 28}
#: Positions one or two captures away from a table.
NEAR_A_TABLE = [
    "8/8/8/8/8/2k5/1p6/K6Q w - - 0 1",
    "8/8/8/8/8/2k5/1p6/3K3R b - - 0 1",
    "8/8/8/2k5/2p5/8/2P5/2K5 w - - 0 1",
    "8/8/8/8/5k2/8/5r2/3K1R2 w - - 0 1",
    "8/8/8/8/8/k1K5/q7/7R b - - 0 1",
]
WON = ["8/8/8/3k4/8/8/8/KQ6 w - - 0 1", "8/8/8/3k4/8/8/8/KR6 w - - 0 1", "4k3/8/4K3/4P3/8/8/8/8 w - - 0 1"]
DRAWN_PAWN = "8/8/8/8/8/4k3/4P3/4K3 w - - 0 1"


@st.composite
def three_pieces(draw: st.DrawFn) -> chess.Board:
    """A random legal position, with the piece of either colour."""
    piece = chess.Piece(draw(st.sampled_from(list(LONGEST))), draw(st.booleans()))
    board = chess.Board(None)
    board.turn = draw(st.booleans())
    squares = draw(st.lists(st.integers(0, 63), min_size=3, max_size=3, unique=True))
    for square, man in zip(squares, (chess.Piece.from_symbol("K"), chess.Piece.from_symbol("k"), piece), strict=True):
        board.set_piece_at(square, man)
    return board


def known(board: chess.Board) -> tuple[int, int]:
    """(result, plies) for the side to move: by the rules in finished games, else by the tables."""
    if board.is_checkmate():
        return -1, 0
    if board.is_stalemate() or board.is_insufficient_material():
        return 0, 0
    found = _core.ending(Chess(board.fen()))
    assert found is not None, board.fen()
    return found


@given(three_pieces())
@settings(max_examples=400, deadline=None)
def test_every_table_entry_is_consistent_with_its_successors(board: chess.Board) -> None:
    """Every distance leads to mate and no draw can be won, which proves the tables by induction."""
    if not board.is_valid() or board.is_game_over():
        return
    replies = []
    for move in list(board.legal_moves):
        board.push(move)
        replies.append(known(board))
        board.pop()
    wins = [plies for value, plies in replies if value == -1]
    if wins:
        expected = (1, min(wins) + 1)
    elif all(value == 1 for value, _ in replies):
        expected = (-1, max(plies for _, plies in replies) + 1)
    else:
        expected = (0, 0)
    assert known(board) == expected, board.fen()
    piece = next(man for man in board.piece_map().values() if man.piece_type != chess.KING)
    assert expected[1] <= 2 * LONGEST[piece.piece_type]


@pytest.mark.parametrize("fen", WON)
def test_table_root_is_proven_without_simulations(fen: str) -> None:
    result = pondertree.Hybrid(num_simulations=200).run(Chess(fen))
    found = _core.ending(Chess(fen))
    assert found is not None
    assert (result.proven, result.simulations, found[0]) == (1, 0, 1)
    assert (result.root.distance, len(result.pv)) == (found[1], found[1])


@pytest.mark.parametrize("fen", WON)
@pytest.mark.parametrize("solve", [True, False])
def test_table_play_reaches_shortest_mate(fen: str, solve: bool) -> None:
    state = Chess(fen)
    found = _core.ending(state)
    assert found is not None
    search = pondertree.Hybrid(num_simulations=20, solve=solve)
    for _ in range(found[1]):
        state = state.play(search.run(state).action)
    assert state.termination == "checkmate"


def test_search_probes_tables_below_root() -> None:
    """The rook captures the pawn and wins: proven with and without mate search."""
    state = Chess("8/6k1/8/8/p6R/2K5/8/8 w - - 0 1")
    for depth in (0, 3):
        result = pondertree.Hybrid(num_simulations=2000, mate_search_depth=depth).run(state)
        assert (result.proven, result.move) == (1, "h4a4")
        assert result.simulations > 0
    without = pondertree.Hybrid(num_simulations=50, mate_search_depth=0, endings=False).run(Chess(WON[1]))
    assert (without.proven, without.simulations) == (None, 50)
    with pytest.raises(InvalidArgumentError, match="endings"):
        pondertree.Hybrid(endings="yes")  # type: ignore[arg-type]


def test_drawn_table_position_has_value_zero_and_is_searched() -> None:
    """The value of a draw rises only by the opponent's mistakes."""
    result = pondertree.Hybrid(num_simulations=300).run(Chess(DRAWN_PAWN))
    assert (result.proven, result.simulations, result.root.nn_value) == (None, 300, 0.0)
    assert 0.0 <= result.value < 0.5
    # The only drawing move is found because all others are proven losses.
    defends = Chess("4k3/8/3KP3/8/8/8/8/8 b - - 0 1")
    held = pondertree.Hybrid(num_simulations=300).run(defends)
    assert _core.ending(defends.play(held.action)) == (0, 0)


@pytest.mark.parametrize(
    "fen", [*NEAR_A_TABLE, DRAWN_PAWN, "8/8/8/3k4/8/8/8/KR6 b - - 0 1", "7k/8/5K2/8/8/8/8/R7 w - - 98 90"]
)
@pytest.mark.parametrize(
    "options", [{}, {"solve": False}, {"in_flight": 4}, {"mate_search_depth": 0}, {"endings": False}]
)
def test_engine_matches_reference_in_table_endings(fen: str, options: dict[str, object]) -> None:
    assert_equal(Chess(fen), 150, **{"seed": 3, "num_simulations": 150, **options})


def test_reference_matches_engine_when_captures_reach_a_table() -> None:
    """Reuses the tree from move to move, then starts a new root."""
    pair = Pair(Chess("8/8/8/8/8/2k5/1p6/K6Q w - - 0 1"), {"num_simulations": 200, "seed": 3})
    for _ in range(6):
        pair.simulate(200)
        action = pair.reference.result(pair.tree).action
        if pair.engines[0].state.play(action).is_terminal:
            break
        pair.advance(action)


# --- Values -----------------------------------------------------------------------------------------------------------


def test_evaluation_uses_tables() -> None:
    pesto = Pesto()
    near, far = Chess("7k/8/5K2/8/8/8/8/R7 w - - 0 1"), Chess("8/8/8/3k4/8/8/8/KR6 w - - 0 1")
    assert pesto.value(near) == pytest.approx(1 - 3 * 0.005)
    assert 0.8 < pesto.value(far) < pesto.value(near)
    assert pesto.value(Chess("7k/5K2/8/8/8/8/8/R7 b - - 0 1")) == pytest.approx(-1 + 2 * 0.005)
    assert pesto.value(Chess(DRAWN_PAWN)) == 0.0
    # Scores depend on the weights alone.
    assert pesto.eval(Chess(DRAWN_PAWN)) != 0


@pytest.mark.parametrize("quiescence", [True, False])
def test_value_outside_tables_is_sigmoid_of_score(quiescence: bool) -> None:
    """Without a bare king the evaluation has no endgame term."""
    pesto = Pesto(quiescence=quiescence)
    seen = 0
    for state, board in random_games(6, seed=5, moves=120):
        if state.is_terminal or 1 in (chess.popcount(board.occupied_co[color]) for color in chess.COLORS):
            continue
        score = pesto.quiescence_search(state)[0] if quiescence else pesto.eval(state)
        assert pesto.value(state) == math.tanh(score / (2 * pesto.scale))
        seen += 1
    assert seen > 300


def test_minor_piece_mates_score_rises_towards_mate() -> None:
    value = Pesto().value
    corner, centre = Chess("k7/8/1K6/8/8/8/8/5BN1 w - - 0 1"), Chess("8/8/8/3k4/8/3K4/8/5BN1 w - - 0 1")
    wrong = Chess("7k/8/6K1/8/8/8/8/5BN1 w - - 0 1")
    assert value(corner) > value(centre) > 0
    assert value(corner) > value(wrong) + 0.3 > 0.3
    # Symmetric in colours, antisymmetric in the side to move.
    assert value(Chess("5bn1/8/8/8/8/1k6/8/K7 b - - 0 1")) == value(corner)


def test_two_bishops_mate_bare_king() -> None:
    """Few simulations suffice, since the evaluation rewards every step."""
    state = Chess("8/8/8/4k3/8/8/8/2B1KB2 w - - 0 1")
    search = pondertree.Hybrid(num_simulations=3000, seed=1)
    for _ in range(100):
        state = state.play(search.run(state).action)
        if state.is_terminal:
            break
    assert state.termination == "checkmate"
