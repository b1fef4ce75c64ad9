"""`mcts_search` and `Hybrid` on python-chess boards."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from tests.support.hybrid import MATE_IN_ONE, MIDDLEGAME, TACTICS, mirror
from tests.support.policy_networks import FakeNetwork, pseudo_random
from tests.support.search_helpers import fingerprint

import pondertree
from pondertree.chess import PestoPolicy, mcts_search
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess

STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
CHECKMATE = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"


def test_mcts_search_returns_move_under_each_limit() -> None:
    state = Chess(MATE_IN_ONE)
    assert mcts_search(state, iterations=1) == state.parse_action("h5f7")
    assert mcts_search(state, PestoPolicy(), 0, 200, seed=1) == state.parse_action("h5f7")
    assert mcts_search(Chess(), iterations=10) in Chess().legal_actions()
    for limit in (0.02, timedelta(milliseconds=20)):
        assert mcts_search(Chess(), time_limit=limit) in Chess().legal_actions()
    for fen in (STALEMATE, CHECKMATE):
        assert mcts_search(Chess(fen), iterations=10) is None
    settings = {"policy_network": FakeNetwork(pseudo_random), "num_simulations": 60, "mate_search_depth": 2, "seed": 9}
    expected = pondertree.Hybrid(**settings, priority="strict")
    found = mcts_search(Chess(TACTICS), FakeNetwork(pseudo_random), 2, iterations=60, seed=9)
    assert found == expected.run(Chess(TACTICS)).action


def test_mcts_search_needs_a_limit() -> None:
    for state in (Chess(), Chess(STALEMATE)):
        with pytest.raises(ValueError, match="needs a limit"):
            mcts_search(state)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"iterations": -5}, "iterations must be at least 1"),
        ({"iterations": 2.5}, "iterations must be a whole number"),
        ({"time_limit": 0.0}, "time_limit must be above 0"),
        ({"time_limit": timedelta(seconds=-1)}, "time_limit must be above 0"),
        ({"time_limit": math.nan}, "time_limit must be a finite number"),
        ({"iterations": 5, "mate_search_depth": -1}, "mate_search_depth must be at least 0"),
        ({"iterations": 5, "policy_network": object()}, "policy_network is object"),
        ({"iterations": 5, "priority": "loose"}, "priority must be"),
    ],
)
def test_mcts_search_rejects_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    for state in (Chess(), Chess(STALEMATE)):
        with pytest.raises(InvalidArgumentError, match=text):
            mcts_search(state, **arguments)


def test_python_chess_boards_return_chess_moves() -> None:
    chess = pytest.importorskip("chess")
    from pondertree.chess import ChessGame

    for fen, moves in ((MATE_IN_ONE, {"h5f7"}), (mirror(MATE_IN_ONE), {"h4f2"})):
        board = chess.Board(fen)
        for position in (board, ChessGame(board)):
            assert mcts_search(position, iterations=5) in map(chess.Move.from_uci, moves)
            assert pondertree.Hybrid().search(position) in map(chess.Move.from_uci, moves)
        assert board.fen() == chess.Board(fen).fen()
        assert board.move_stack == []
    assert mcts_search(chess.Board(STALEMATE), iterations=5) is None
    board = chess.Board(MIDDLEGAME)
    search = pondertree.Hybrid(num_simulations=100, seed=1)
    assert fingerprint(search.run(board, seeds=1)) == fingerprint(search.run(Chess(MIDDLEGAME), seeds=1))
    tree = search.tree(board).simulate(50)
    move = chess.Move.from_uci(tree.result().move)
    tree.advance(move)
    board.push(move)
    assert tree.state.fen() == Chess(board.fen()).fen()
    assert tree.simulate(50).result().action in tree.state.legal_actions()


def test_board_history_counts_for_repetition() -> None:
    """White is a queen down; with the history, moving back draws by repetition."""
    chess = pytest.importorskip("chess")
    board = chess.Board("6k1/5pp1/7p/8/8/8/1q3PPP/4R1K1 w - - 0 1")
    for move in ["e1e8", "g8h7", "e8e1", "h7g8", "e1e8", "g8h7", "e8e1", "h7g8"]:
        board.push_uci(move)
    again = Chess(board.fen()).parse_action("e1e8")
    with_history = pondertree.Hybrid(num_simulations=300, seed=1).run(board)
    without = pondertree.Hybrid(num_simulations=300, seed=1).run(chess.Board(board.fen()))
    assert with_history.root.children[again].terminal_or_mate_value == 0.0
    assert without.root.children[again].terminal_or_mate_value is None
