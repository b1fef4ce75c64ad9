"""Move scores: features against a Python implementation, colour symmetry, files, invalid arguments."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
from tests.support.chess_games import random_games

import pondertree
from pondertree._core import MoveWeights
from pondertree.chess import MoveCategory, MoveScores, categorize
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess

#: Offset and size of each feature group, in the engine's order.
SIZES = {
    "exchange": 6 * 6 * 4 * 4,
    "to": 2 * 6 * 64,
    "from": 2 * 6 * 64,
    "check": 6 * 4,
    "promotion": 6,
    "castling": 2,
    "near king": 6 * 8,
    "attack": 6 * 6 * 2,
    "guard": 6,
    "passed": 8,
    "evasion": 6 * 2,
    "recapture": 6,
    "outcome": 4 * 6,
}
STARTS = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
NUM_FEATURES = sum(SIZES.values())
#: Pieces that are cheaper than a piece.
CHEAPER = {
    chess.KNIGHT: [chess.PAWN],
    chess.BISHOP: [chess.PAWN],
    chess.ROOK: [chess.PAWN, chess.KNIGHT, chess.BISHOP],
    chess.QUEEN: [chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK],
}
OUTCOMES = {MoveCategory.WinningCapture: 1, MoveCategory.EqualCapture: 2, MoveCategory.LosingCapture: 3}


def risk(board: chess.Board, piece: int, square: int, guards: int) -> int:
    """Safety class of `piece` on a square with a given number of own defenders."""
    attackers = [board.piece_type_at(s) for s in board.attackers(not board.turn, square)]
    if not attackers:
        return 0
    if any(attacker in CHEAPER.get(piece, []) for attacker in attackers):
        return 3
    return 1 if guards > 0 else 2


def is_at_risk(board: chess.Board, piece: int, square: int) -> bool:
    """Whether a piece of the side to move can be captured profitably."""
    return risk(board, piece, square, len(board.attackers(board.turn, square))) >= 2


def reached(board: chess.Board, piece: int, square: int) -> chess.SquareSet:
    """The pieces that a piece of the side to move would attack from a square."""
    other = board.copy(stack=False)
    occupied = board.occupied
    other.set_piece_at(square, chess.Piece(piece, board.turn))
    assert other.occupied == occupied | chess.BB_SQUARES[square]
    return other.attacks(square)


def plain(board: chess.Board, move: chess.Move, category: MoveCategory) -> dict[int, float]:
    """The features of a move, computed on python-chess."""
    if board.is_castling(move):
        return {STARTS["castling"] + board.is_queenside_castling(move): 1.0}
    found: dict[int, float] = {}

    def add(kind: str, place: int, share: float = 1.0) -> None:
        assert 0 <= place < SIZES[kind]
        found[STARTS[kind] + place] = found.get(STARTS[kind] + place, 0.0) + share

    own, piece = board.turn, board.piece_type_at(move.from_square)
    assert piece is not None
    place = piece - 1
    victim = 1 if board.is_en_passant(move) else board.piece_type_at(move.to_square) or 0
    straight = piece == chess.PAWN and chess.square_file(move.from_square) == chess.square_file(move.to_square)
    guards = len(board.attackers(own, move.to_square)) - (0 if straight else 1)
    to_risk = risk(board, piece, move.to_square, guards)
    from_risk = risk(board, piece, move.from_square, len(board.attackers(own, move.from_square)))
    add("exchange", ((place * 6 + victim) * 4 + from_risk) * 4 + to_risk)

    counts = {chess.KNIGHT: 1, chess.BISHOP: 1, chess.ROOK: 2, chess.QUEEN: 4}
    material = sum(counts.get(one.piece_type, 0) for one in board.piece_map().values())
    middlegame = min(material, 24) / 24
    for kind, square in (("to", move.to_square), ("from", move.from_square)):
        seen = square if own else chess.square_mirror(square)
        add(kind, place * 64 + seen, middlegame)
        add(kind, (6 + place) * 64 + seen, 1 - middlegame)
    king = board.king(not own)
    assert king is not None
    add("near king", place * 8 + chess.square_distance(move.to_square, king))
    if category == MoveCategory.ForcedMate:
        add("outcome", 0)
    elif category in OUTCOMES:
        add("outcome", OUTCOMES[category] * 6 + victim)
    if board.gives_check(move):
        add("check", place * 4 + to_risk)
    if move.promotion:
        add("promotion", move.promotion - 1)
    if board.is_check():
        add("evasion", place * 2 + (victim > 0))
    if board.move_stack:
        last = board.peek()
        before = board.copy()
        before.pop()
        if before.is_capture(last) and not before.is_en_passant(last) and last.to_square == move.to_square:
            add("recapture", place)
    rank = chess.square_rank(move.to_square if own else chess.square_mirror(move.to_square))
    if piece == chess.PAWN:
        file = chess.square_file(move.to_square)
        enemies = board.pieces(chess.PAWN, not own)
        stopped = any(
            abs(chess.square_file(s) - file) <= 1 and chess.square_rank(s if own else chess.square_mirror(s)) > rank
            for s in enemies
        )
        if not stopped:
            add("passed", rank)
    new = reached(board, move.promotion or piece, move.to_square) - board.attacks(move.from_square)
    for target in new:
        attacked = board.piece_at(target)
        if attacked is None:
            continue
        if attacked.color != own:
            guarded = board.is_attacked_by(not own, target)
            add("attack", (place * 6 + attacked.piece_type - 1) * 2 + guarded)
        elif attacked.piece_type != chess.KING and is_at_risk(board, attacked.piece_type, target):
            add("guard", attacked.piece_type - 1)
    return found


@pytest.mark.oracle
def test_features_match_python_implementation() -> None:
    seen: set[int] = set()
    moves = 0
    for number, (state, board) in enumerate(random_games(60, 43, 140)):
        if number % 7 or state.is_terminal:
            continue
        categories = categorize(state)
        for action, category, features in MoveWeights.features(state, 0):
            assert category == categories[action]
            ours: dict[int, float] = {}
            for feature, share in features:
                ours[feature] = ours.get(feature, 0.0) + share
            move = board.parse_uci(state.action_to_string(action))
            assert ours == pytest.approx(plain(board, move, categories[action]), abs=1e-6), (board.fen(), move)
            seen |= ours.keys()
            moves += 1
    assert moves > 5000
    # Every feature group has occurred.
    for kind, start in STARTS.items():
        assert any(start <= feature < start + SIZES[kind] for feature in seen), kind


def test_factors_match_sums_of_weights() -> None:
    numbers = [place * 7919 % 3001 - 1500 for place in range(NUM_FEATURES)]
    scores = MoveScores(numbers)
    for state in (Chess(), Chess("r3k2r/pPp2ppp/8/3pP3/3n4/8/PP3PPP/R3K2R w KQkq d6 0 1")):
        factors = scores.factors(state)
        assert list(factors) == state.legal_actions()
        for action, _, features in MoveWeights.features(state, 0):
            score = sum(share * numbers[feature] / 1000 for feature, share in features)
            assert factors[action] == pytest.approx(math.exp(score), rel=1e-5)


def test_scores_are_symmetric_in_colours() -> None:
    for number, (state, board) in enumerate(random_games(20, 44, 100)):
        if number % 5 or state.is_terminal:
            continue
        # Without history, since a mirrored board has none.
        here, there = (Chess(one.fen()) for one in (board, board.mirror()))
        factors = MoveScores().factors(there)
        for action, factor in MoveScores().factors(here).items():
            move = chess.Move.from_uci(here.action_to_string(action))
            turned = chess.Move(
                chess.square_mirror(move.from_square), chess.square_mirror(move.to_square), move.promotion
            )
            assert factors[there.parse_action(turned.uci())] == pytest.approx(factor)


def test_learned_weights_have_plausible_signs() -> None:
    """Capturing a hanging queen scores above a pawn push; moving the own queen into a pawn's attack below."""
    state = Chess("4k3/pp3ppp/8/3q4/4P3/8/PP3PPP/4K1Q1 w - - 0 1")
    factors = {state.action_to_string(action): factor for action, factor in MoveScores().factors(state).items()}
    assert factors["e4d5"] > 5 * factors["h2h3"]
    careless = Chess("4k3/5ppp/1p6/8/8/8/PP3PPP/3QK3 w - - 0 1")
    factors = {careless.action_to_string(action): factor for action, factor in MoveScores().factors(careless).items()}
    assert factors["d1d4"] > 3 * factors["d1d7"]  # the king recaptures


def test_priors_are_proportional_to_factors() -> None:
    state = Chess("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 0 1")
    numbers = [0] * NUM_FEATURES
    numbers[STARTS["castling"]] = 3000
    plain_root, shaped_root = (
        pondertree.Hybrid(num_simulations=1, move_scores=scores, seed=1).run(state).root
        for scores in (None, MoveScores(numbers))
    )
    castling, other = state.parse_action("e1g1"), state.parse_action("a2a3")
    before = plain_root.children[castling].prior / plain_root.children[other].prior
    after = shaped_root.children[castling].prior / shaped_root.children[other].prior
    assert after / before == pytest.approx(math.exp(3), rel=1e-5)


def test_factors_accept_python_chess_boards() -> None:
    factors = MoveScores().factors(chess.Board())
    assert set(factors) == set(chess.Board().legal_moves)


def test_files_and_copies_round_trip(tmp_path: Path) -> None:
    scores = MoveScores([place % 5 for place in range(NUM_FEATURES)])
    scores.to_file(tmp_path / "scores.json")
    again = MoveScores.from_file(tmp_path / "scores.json")
    assert again == scores != MoveScores()
    assert hash(again) == hash(scores)
    assert pickle.loads(pickle.dumps(scores)) == scores
    assert pickle.loads(pickle.dumps(MoveScores())) == MoveScores()
    assert repr(MoveScores()) == "MoveScores()"
    assert str(NUM_FEATURES) in repr(scores)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1, 2], f"move_scores has 2 weights: it must have {NUM_FEATURES}"),
        ([99_999] * NUM_FEATURES, "must be from -20000 to 20000, not 99999"),
        (["x"], "weights must be a list of whole numbers"),
        (3, "weights must be a list of whole numbers"),
    ],
)
def test_invalid_weights_raise(weights: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        MoveScores(weights)


def test_invalid_files_raise(tmp_path: Path) -> None:
    for text, says in (
        ("rubbish", "is not a file of move scores"),
        ("[]", 'its "format" must be'),
        (json.dumps({"format": "pondertree move scores"}), f"has 0 weights: it must have {NUM_FEATURES}"),
    ):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(InvalidArgumentError, match=says):
            MoveScores.from_file(tmp_path / "wrong.json")
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        MoveScores.from_file(tmp_path / "nothing.json")


def test_hybrid_rejects_invalid_move_scores() -> None:
    with pytest.raises(InvalidArgumentError, match='must be a MoveScores, "learned", "auto" or None, not 3'):
        pondertree.Hybrid(move_scores=3)  # type: ignore[arg-type]


def test_auto_move_scores_depend_on_evaluator() -> None:
    """ "auto" uses learned scores with Pesto, whose priors are uniform, and none with a policy network."""

    class Even:
        def evaluate(self, state: Any) -> tuple[dict[int, float], float]:
            return dict.fromkeys(state.legal_actions(), 1.0), 0.5

    def priors(**options: Any) -> list[float]:
        root = pondertree.Hybrid(num_simulations=1, seed=1, **options).run(Chess()).root
        return [root.children[action].prior for action in Chess().legal_actions()]

    assert priors() == priors(move_scores="learned") == priors(move_scores=MoveScores())
    assert priors() != priors(move_scores=None)
    assert priors(policy_network=Even()) == priors(policy_network=Even(), move_scores=None)
    assert priors(policy_network=Even()) != priors(policy_network=Even(), move_scores="learned")
