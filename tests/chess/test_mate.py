"""Mate search against positions with mates proven by python-chess, and drawing rules."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.test_interrupt import seconds_until_interrupted
from tests.mates.prover import OutOfNodesError, Prover, possible_checks
from tests.support.chess_games import random_games

import pondertree
from pondertree import _core
from pondertree.chess import ChessGame, MateAnswer, mate_search
from pondertree.errors import GameOverError, InvalidArgumentError, InvalidPositionError
from pondertree.games import Chess, ConnectFour

HERE = Path(__file__).parents[1] / "mates"


def read(name: str, operation: str) -> list[tuple[chess.Board, str]]:
    positions = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            board = chess.Board(None)
            positions.append((board, str(board.set_epd(line)[operation])))
    return positions


#: Positions by the length of their shortest mate.
MATES = {n: [board for board, dm in read("mates.epd", "dm") if int(dm) == n] for n in (2, 3, 4)}
#: Positions without a mate, with the depth to which python-chess has proven that.
QUIET = [(board, int(comment.split()[-1])) for board, comment in read("quiet.epd", "c0")]
ROOK_ENDING = "7k/8/5K2/8/8/8/8/R7 w - - {clock} 90"  # 1. Kf7 Kh7 2. Rh1#


def play_line(board: chess.Board, answer: MateAnswer) -> chess.Board:
    """The board after a line of legal moves, none of which ends in a draw."""
    board = board.copy()
    for move in answer.line:
        assert move in board.legal_moves
        assert not board.is_game_over()
        board.push(move)
    return board


def by_checks(board: chess.Board, depth: int, budget: int) -> tuple[int, chess.Move] | None:
    """The result of the checks-only search, with its move as a python-chess move."""
    state = Chess(board.fen())
    claim = _core.checks_first(state, depth, budget)
    return None if claim is None else (claim[0], board.parse_uci(state.action_to_string(claim[1])))


def test_position_files_have_expected_sizes() -> None:
    for boards in MATES.values():
        assert len(boards) >= 100
        assert min(sum(board.turn is color for board in boards) for color in chess.COLORS) >= 50
        assert sum(len(board.piece_map()) > 8 for board in boards) >= 20
    assert len(QUIET) >= 300
    assert all(proven >= 3 for _, proven in QUIET)
    assert sum(len(board.piece_map()) > 8 for board, _ in QUIET) >= 150
    everything = [board.fen() for boards in MATES.values() for board in boards] + [board.fen() for board, _ in QUIET]
    assert len(set(everything)) == len(everything)


# Oracle: a mate prover on python-chess


@pytest.mark.oracle
def test_oracle_generates_every_check() -> None:
    seen = 0
    for _, board in random_games(20, 3, 80):
        possible = set(possible_checks(board))
        for move in board.legal_moves:
            if board.gives_check(move):
                assert move in possible, (board.fen(), move)
                seen += 1
    assert seen > 300


@pytest.mark.oracle
def test_oracle_confirms_position_files() -> None:
    # A sample: the generator of the files proves all. Existence of the mates is proven below.
    for n, boards in MATES.items():
        for board in boards[::20]:
            before = board.fen()
            assert Prover().distance(board, n - 1) is None, before
            assert board.fen() == before
    for board, _ in QUIET[::40]:
        prover = Prover()
        assert not any(prover.mates(board, n) or prover.mated(board, n) for n in (1, 2, 3)), board.fen()


def test_oracle_restores_board_when_budget_is_exceeded() -> None:
    board = MATES[3][0].copy()
    for nodes in range(1, 60, 7):
        with pytest.raises(OutOfNodesError):
            Prover(nodes).mates(board, 3)
        assert board == MATES[3][0]


# Mates


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_mate_search_finds_exact_mate_length(n: int) -> None:
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
@pytest.mark.parametrize(("n", "step"), [(2, 1), (3, 4), (4, 10)])
def test_oracle_confirms_every_move_of_mate_line(n: int, step: int) -> None:
    checked = 0
    for board in MATES[n][::step]:
        # With many defences, the proof by python-chess is too slow for a test.
        board, prover = board.copy(), Prover(nodes=3_000)
        try:
            for ply, move in enumerate(mate_search(board, n).line):
                if ply % 2 == 0:
                    assert prover.mates_by(board, move, n - ply // 2), board.fen()
                board.push(move)
            checked += 1
        except OutOfNodesError:
            pass
    assert checked >= 0.7 * len(MATES[n][::step])


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_position_after_mating_move_is_mated_in(n: int) -> None:
    for board in MATES[n][::2]:
        board = board.copy()
        board.push(mate_search(board, n).move)
        answer = mate_search(board, n)
        assert (answer.kind, answer.n, len(answer.line)) == ("mated_in", n - 1, 2 * n - 2), board.fen()
        assert play_line(board, answer).is_checkmate()
        # At one move less nothing is found, since the mate is the shortest.
        assert mate_search(board, n - 2).kind == "unknown"


@pytest.mark.oracle
@pytest.mark.parametrize("n", MATES)
def test_mate_search_is_symmetric_in_colours(n: int) -> None:
    for board in MATES[n]:
        mirrored = board.mirror()
        answer = mate_search(mirrored, n)
        assert (answer.kind, answer.n) == ("mate_in", n), board.fen()
        assert play_line(mirrored, answer).is_checkmate()
        assert mate_search(mirrored, n - 1).kind == "unknown", board.fen()


# No mates


@pytest.mark.oracle
def test_mate_search_claims_no_false_mate() -> None:
    for board, proven in QUIET:
        for depth in range(1, 4):
            answer = mate_search(board, depth)
            assert (answer.kind, answer.n, answer.move, answer.action, answer.line) == ("unknown", None, None, None, [])
        assert mate_search(board.mirror(), 3).kind == "unknown", board.fen()
        claim = by_checks(board, 4, 20_000)
        assert claim is None or (claim[0] > proven and Prover().mates_by(board, claim[1], claim[0])), board.fen()


@pytest.mark.oracle
@pytest.mark.slow
def test_mate_in_four_is_claimed_only_if_present() -> None:
    for board, proven in QUIET:
        answer = mate_search(board, 4)
        if answer.kind == "unknown":
            continue
        # Absence of a mate is not known here, so the oracle has to prove the claim.
        assert answer.n == 4 > proven, board.fen()
        if answer.kind == "mate_in":
            assert Prover().mates_by(board, answer.move, 4), board.fen()
        else:
            assert Prover().mated(board, 4), board.fen()


@pytest.mark.oracle
def test_checks_only_search_finds_most_mates() -> None:
    found = dict.fromkeys(MATES, 0)
    for n, boards in MATES.items():
        for place, board in enumerate(boards):
            claim = by_checks(board, 4, 100_000)
            if claim is None:
                continue
            moves, move = claim
            assert moves >= n
            assert board.gives_check(move)
            after = board.copy()
            after.push(move)
            if moves > 1:
                rest = mate_search(after, moves - 1)
                assert (rest.kind, (rest.n or 99) < moves) == ("mated_in", True), board.fen()
            if place % 8 == 0:
                # Checks leave few replies: the oracle is fast.
                assert Prover().mates_by(board, move, moves), board.fen()
            found[n] += 1
    # The checks-only search is limited to kings with few escape squares.
    assert all(found[n] >= 0.08 * len(MATES[n]) for n in MATES), found


@pytest.mark.oracle
def test_checks_only_search_claims_no_false_mate_in_random_games() -> None:
    claims = 0
    for _, board in random_games(60, 5, 120):
        claim = None if board.is_game_over() else by_checks(board, 3, 500)
        if claim is not None:
            claims += 1
            # Without history, as in the claim.
            assert Prover().mates_by(chess.Board(board.fen()), claim[1], claim[0]), board.fen()
    assert claims > 20


# Budgets


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 3), st.integers(0, 99), st.integers(0, 4), st.integers(0, 20_000))
def test_budgeted_search_claims_no_false_mate(kind: int, place: int, depth: int, budget: int) -> None:
    board, n = (QUIET[place][0], None) if kind == 0 else (MATES[kind + 1][place], kind + 1)
    answer = mate_search(board, depth, budget=budget)
    assert answer.nodes <= budget
    if answer.kind != "unknown":
        assert (answer.kind, answer.n) == ("mate_in", n)
        assert play_line(board, answer).is_checkmate()
    claim = _core.checks_first(Chess(board.fen()), depth, budget)
    assert claim is None or (n is not None and n <= claim[0] <= depth)


def test_budget_bounds_nodes() -> None:
    start = time.perf_counter()
    answer = mate_search(Chess(), 60, budget=30_000)
    assert (answer.kind, answer.line, answer.nodes) == ("unknown", [], 30_000)
    assert time.perf_counter() - start < 5


# Draws, and en passant


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("fen", "n", "without"),
    [
        ("2R5/3k4/R7/4Pp2/8/4K2Q/8/8 w - f6 0 1", 1, 2),
        ("8/1Q6/8/1Pp2R2/k7/8/3R1K2/8 w - c6 0 1", 2, None),
        ("8/5R1R/1Q6/6pP/6k1/8/2K5/8 w - g6 0 1", 2, None),
        ("8/8/5k2/3QpP1R/8/5R2/3K4/8 w - e6 0 1", 2, None),
    ],
)
def test_mate_by_en_passant_is_found(fen: str, n: int, without: int | None) -> None:
    for board, expected in ((chess.Board(fen), n), (chess.Board(fen.replace(fen.split()[3], "-")), without)):
        for position in (board, board.mirror()):
            assert Prover().distance(position, 2) == expected
            assert mate_search(position, 2).n == expected


@pytest.mark.oracle
@pytest.mark.parametrize(
    "fen",
    [
        "8/3p4/8/q4pP1/N3K3/kr6/B7/5r2 w - f6 0 1",
        "2r1q3/3k4/3p4/1PpK4/2B5/8/N7/7r w - c6 0 1",
        "8/2k5/p3r3/1B3pPK/4r3/8/8/2N1q3 w - f6 0 1",
        "k7/3q1rr1/5p2/B2Pp3/7K/8/1N6/8 w - e6 0 1",
    ],
)
def test_en_passant_defence_refutes_mate(fen: str) -> None:
    board, without = chess.Board(fen), chess.Board(fen.replace(fen.split()[3], "-"))
    for position in (board, board.mirror()):
        assert not Prover().mated(position, 1)
        assert mate_search(position, 1).kind == "unknown"
    for position in (without, without.mirror()):
        assert mate_search(position, 1).kind == "mated_in"


def test_stalemate_is_not_claimed_as_mate() -> None:
    # A queen on f8 would stalemate; the rook mates.
    answer = mate_search("8/5P1k/5K2/8/8/8/8/8 w - - 0 1", 3)
    assert (answer.kind, answer.n, answer.move) == ("mate_in", 2, "f7f8r")


def test_mate_beyond_fifty_moves_is_not_claimed() -> None:
    for clock in range(149):
        answer = mate_search(ROOK_ENDING.format(clock=clock), 3)
        # The mating move may complete the fifty moves.
        assert answer.n == (2 if clock <= 97 else None), clock
    # A pawn move resets the clock.
    assert mate_search("8/5P1k/5K2/8/8/8/8/8 w - - 99 90", 2).n == 2
    assert mate_search("7k/5K2/8/8/8/8/8/R7 b - - 98 90", 1).kind == "mated_in"
    assert mate_search("7k/5K2/8/8/8/8/8/R7 b - - 99 90", 1).kind == "unknown"


def drawn(board: chess.Board) -> bool:
    return board.is_repetition(3) or board.halfmove_clock >= 100 or board.is_insufficient_material()


def mates_in_two(board: chess.Board) -> bool:
    """The mate prover with the history of the board."""

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
def test_mate_through_third_repetition_is_not_claimed() -> None:
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
            # The first move of the mate would now repeat the position for the third time.
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


def test_insufficient_material_is_not_claimed_as_mate() -> None:
    # A lone bishop mates while a pawn blocks its own king, unless the bishop can be captured.
    for fen in (
        "k7/p1K5/8/8/8/8/8/5B2 w - - 0 1",
        "k7/p1K5/8/8/8/7b/8/5B2 w - - 0 1",
        "8/8/8/8/8/1k6/3n4/K1B5 b - - 0 1",
        "8/8/8/8/8/1kn5/p7/K7 b - - 0 1",
    ):
        assert mate_search(fen, 3).n == Prover().distance(chess.Board(fen), 3), fen


# Interface and invalid arguments


def test_mate_search_accepts_states_fens_boards_and_games() -> None:
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


def test_mate_search_is_deterministic() -> None:
    board = MATES[3][7]
    assert mate_search(board, 4) == mate_search(board, 4)


def test_zero_depth_or_budget_returns_unknown() -> None:
    mate = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
    assert mate_search(mate, 0) == MateAnswer("unknown", None, None, None, [], 0)
    assert mate_search(mate, 1, budget=0) == MateAnswer("unknown", None, None, None, [], 0)
    assert mate_search(mate, 1).move == "e1e8"


@pytest.mark.parametrize("depth", [-1, 65, 10**9, 10**30, 2.5, "3", None, True])
def test_invalid_depth_raises(depth: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="depth"):
        mate_search(Chess(), depth)


@pytest.mark.parametrize("budget", [-1, 1.5, "all", 10**30])
def test_invalid_budget_raises(budget: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="budget"):
        mate_search(Chess(), 2, budget=budget)


@pytest.mark.parametrize("state", [ConnectFour(), None, 7, object(), pondertree])
def test_mate_search_rejects_other_games(state: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="state must be a chess state"):
        mate_search(state, 2)


def test_mate_search_rejects_invalid_and_finished_positions() -> None:
    with pytest.raises(InvalidPositionError):
        mate_search("8/8/8 w - - 0 1", 2)
    for over in ("7k/5Q2/8/8/8/8/8/K7 b - - 0 1", "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1", "k7/8/8/8/8/8/8/K7 w - - 0 1"):
        for position in (over, Chess(over), chess.Board(over)):
            with pytest.raises(GameOverError, match="over"):
                mate_search(position, 2)


def test_interrupt_ends_mate_search() -> None:
    start = time.perf_counter()
    assert seconds_until_interrupted(lambda: mate_search(Chess(), 40), 0.1) < 1.0
    assert time.perf_counter() - start < 10


def test_mate_answer_unpacks_as_score_move_nodes() -> None:
    """The specification's tuple: 1000000 for a mate, -1000000 for being mated, 0 if unknown."""
    mate = "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1"
    mated = "7k/5K2/8/8/8/8/8/R7 b - - 0 1"
    for fen, expected in ((mate, (1_000_000, "e1e8")), (mated, (-1_000_000, "h8h7")), (chess.STARTING_FEN, (0, None))):
        answer = mate_search(fen, 1)
        score, move, nodes = answer
        assert (score, move) == expected
        assert (answer.score, answer.move, answer.nodes) == (score, move, nodes)
    score, move, _ = mate_search(chess.Board(mate), 1)
    assert (score, move) == (1_000_000, chess.Move.from_uci("e1e8"))
