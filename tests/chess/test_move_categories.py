"""Move categories against the rules implemented on python-chess."""

from __future__ import annotations

from typing import Any

import chess
import numpy as np
import pytest
from tests.chess.test_see import exchange
from tests.support.chess_games import random_games

from pondertree.chess import MoveCategory, categorize, mate_search
from pondertree.errors import InvalidActionError, InvalidArgumentError
from pondertree.games import Chess, ConnectFour
from pondertree.random import PLAYOUT, Random


def plain(board: chess.Board, move: chess.Move, killers: list[str], scores: dict[str, float], threshold: int) -> str:
    """The rules, first match first (hybrid chess, 4.1)."""
    board.push(move)
    mates, checks = board.is_checkmate(), board.is_check()
    board.pop()
    if mates:
        return "ForcedMate"
    if move.promotion == chess.QUEEN:
        return "PromotionToQueen"
    if board.is_capture(move):
        won = exchange(board, move)
        if abs(won) <= threshold:
            return "EqualCapture"
        return "WinningCapture" if won > threshold else "LosingCapture"
    for name, killer in zip(("KillerMove1", "KillerMove2"), killers, strict=False):
        if move.uci() == killer:
            return name
    if checks:
        return "Check"
    quiet = [m.uci() for m in board.legal_moves if not board.is_capture(m) and m.promotion != chess.QUEEN]
    highest = max((scores.get(text, 0.0) for text in quiet), default=0.0)
    score = scores.get(move.uci(), 0.0)
    return "HistoryHeuristic" if score > 0 and 2 * score >= highest else "OtherQuiet"


@pytest.mark.oracle
def test_categories_match_python_rules_on_random_games() -> None:
    seen: dict[str, int] = {}
    random = Random(9, PLAYOUT)
    for number, (state, board) in enumerate(random_games(120, 31, 100)):
        legal = state.legal_actions()
        if number % 6 or not legal:
            continue
        killers = [legal[random.choose(len(legal))] for _ in range(random.below(3))]
        history = {action: float(random.below(9)) - 4.0 for action in legal if random.below(2)}
        threshold = [0, 0, 50, 300][random.below(4)]
        found = categorize(state, killers, history, threshold)
        assert list(found) == legal
        texts = {action: state.action_to_string(action) for action in legal}
        for action, category in found.items():
            expected = plain(
                board,
                chess.Move.from_uci(texts[action]),
                [texts[killer] for killer in killers],
                {texts[other]: score for other, score in history.items()},
                threshold,
            )
            assert category.name == expected, f"{texts[action]} {state!r}"
            seen[expected] = seen.get(expected, 0) + 1
    assert set(seen) == set(MoveCategory.__members__)
    assert min(seen.values()) > 20


def test_category_names_and_order_match_specification() -> None:
    names = (
        "ForcedMate PromotionToQueen WinningCapture KillerMove1 KillerMove2 "
        "EqualCapture Check HistoryHeuristic OtherQuiet LosingCapture"
    )
    assert [category.name for category in MoveCategory] == names.split()
    assert [int(category) for category in MoveCategory] == list(range(10))


def category_of(fen: str, move: str, **hints: Any) -> str:
    state = Chess(fen)
    hints = {name: [state.parse_action(m) for m in v] if name == "killers" else v for name, v in hints.items()}
    return categorize(state, **hints)[state.parse_action(move)].name


@pytest.mark.parametrize(
    ("fen", "move", "expected"),
    [
        ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8", "ForcedMate"),
        ("3r2k1/2P2ppp/8/8/8/8/8/4K3 w - - 0 1", "c7d8q", "ForcedMate"),  # before promotion and capture
        ("3r2k1/2P3pp/8/8/8/8/8/4K3 w - - 0 1", "c7d8q", "PromotionToQueen"),  # also a check and a capture
        ("3r2k1/2P3pp/8/8/8/8/8/4K3 w - - 0 1", "c7c8q", "PromotionToQueen"),
        ("3r2k1/2P3pp/8/8/8/8/8/4K3 w - - 0 1", "c7d8n", "WinningCapture"),
        ("3r2k1/2P3pp/8/8/8/8/8/4K3 w - - 0 1", "c7c8n", "OtherQuiet"),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2", "e5d6", "WinningCapture"),
        ("4k3/2p5/8/3pP3/8/8/8/4K3 w - d6 0 2", "e5d6", "EqualCapture"),
        ("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1", "e2e5", "LosingCapture"),  # also a check
        ("4k3/8/8/8/8/8/3R4/4K3 w - - 0 1", "d2e2", "Check"),
        ("4k3/8/8/8/8/8/3R4/4K3 w - - 0 1", "d2d3", "OtherQuiet"),
        ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", "Check"),  # castling
    ],
)
def test_categories_match_worked_examples(fen: str, move: str, expected: str) -> None:
    assert category_of(fen, move) == expected


def test_killer_moves_are_categorized_in_order() -> None:
    fen = "4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1"
    assert category_of(fen, "e2e3", killers=["e2e3", "e2e4"]) == "KillerMove1"
    assert category_of(fen, "e2e4", killers=["e2e3", "e2e4"]) == "KillerMove2"
    assert category_of(fen, "e2e3", killers=["e2e3", "e2e3"]) == "KillerMove1"
    assert category_of(fen, "e2e5", killers=["e2e5"]) == "LosingCapture"
    # A killer move that gives check is a killer.
    assert category_of("4k3/8/8/8/8/8/3R4/4K3 w - - 0 1", "d2e2", killers=["d2e2"]) == "KillerMove1"
    state = Chess(fen)
    assert categorize(state, [0, 4671]) == categorize(state) == categorize(state, [None, None])


def test_known_mate_is_forced_mate_category() -> None:
    state = Chess()
    action = state.parse_action("e2e4")
    found = categorize(state, mate=action)
    assert found[action] is MoveCategory.ForcedMate
    assert sum(category is MoveCategory.ForcedMate for category in found.values()) == 1
    with pytest.raises(InvalidActionError, match="mate is 0"):
        categorize(state, mate=0)


def test_history_accepts_mapping_and_array() -> None:
    state = Chess()
    a, b, c = (state.parse_action(text) for text in ("e2e4", "d2d4", "a2a3"))
    scores = {a: 10.0, b: 5.0, c: 4.9, 4671: 100.0}
    array = np.zeros(4672)
    array[list(scores)] = list(scores.values())
    found = categorize(state, history=scores)
    assert found == categorize(state, history=array)
    high = {action for action, category in found.items() if category is MoveCategory.HistoryHeuristic}
    assert high == {a, b}
    assert MoveCategory.HistoryHeuristic not in categorize(state, history={a: -1.0, b: 0.0}).values()


def test_boards_return_chess_moves() -> None:
    board = chess.Board("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1")
    killer, illegal = chess.Move.from_uci("e2e3"), chess.Move.from_uci("a1a2")
    found = categorize(board, [killer, illegal], {chess.Move.from_uci("e2e4"): 1.0})
    assert set(found) == set(board.legal_moves)
    assert found[killer] is MoveCategory.KillerMove1
    assert found[chess.Move.from_uci("e2e4")] is MoveCategory.HistoryHeuristic


def test_finished_game_has_no_categories() -> None:
    assert categorize(Chess("7k/5Q2/8/8/8/8/8/K7 b - - 0 1")) == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"see_threshold": -1}, "see_threshold must be at least 0"),
        ({"see_threshold": 1.5}, "see_threshold must be a whole number"),
        ({"see_threshold": 10**9}, "see_threshold must be at most"),
        ({"killers": [1, 2, 3]}, "killers has 3"),
        ({"killers": 7}, "killers must be a list"),
        ({"killers": [4672]}, r"killers\[0\] must be at most"),
        ({"killers": [1, "e4"]}, r"killers\[1\] must be a whole number"),
        ({"history": [1.0, 2.0]}, r"history has the shape \(2,\)"),
        ({"history": "best"}, "history must be"),
        ({"history": {"e2e4": 1.0}}, "history's key must be a whole number"),
        ({"history": np.full(4672, np.nan)}, r"history\[\d+\] must be a finite number"),
        ({"history": dict.fromkeys(range(4672), float("inf"))}, r"history\[\d+\] must be a finite number"),
        ({"mate": 1.5}, "mate must be a whole number"),
    ],
)
def test_categorize_rejects_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        categorize(Chess(), **arguments)


def test_categorize_rejects_other_games() -> None:
    with pytest.raises(InvalidArgumentError, match="state is of the class ConnectFour"):
        categorize(ConnectFour())


def test_mate_accepts_mate_search_answer() -> None:
    state = Chess("r1b1kb1r/pppp1ppp/5q2/4n3/3KP3/2N3PN/PPP4P/R1BQ1B1R b kq - 0 1")
    answer = mate_search(state, 3)
    assert categorize(state, mate=answer) == categorize(state, mate=answer.action)
    assert categorize(state, mate=answer)[answer.action] == MoveCategory.ForcedMate
    assert categorize(state, mate=mate_search(state, 1)) == categorize(state)
