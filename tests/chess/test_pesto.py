"""The classical evaluation: scores against a Python implementation, colour symmetry, files, use as evaluator."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
from tests.support.chess_games import random_games

import pondertree
from pondertree.chess import Pesto, PestoEval, PestoPolicy, PolicyNetwork
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour

NAMES = {
    chess.PAWN: "pawn",
    chess.KNIGHT: "knight",
    chess.BISHOP: "bishop",
    chess.ROOK: "rook",
    chess.QUEEN: "queen",
    chess.KING: "king",
}
HANGING = "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"


def plain_side(board: chess.Board, pesto: Pesto, color: chess.Color, half: int) -> int:
    """One side's score, square by square."""
    own, enemy = board.pieces(chess.PAWN, color), board.pieces(chess.PAWN, not color)
    total = 0
    for square, piece in board.piece_map().items():
        if piece.color != color:
            continue
        name = NAMES[piece.piece_type]
        seen = square if color else chess.square_mirror(square)
        total += getattr(pesto, f"{name}_squares")[half][chess.square_mirror(seen)]
        if name != "king":
            total += getattr(pesto, f"{name}_value")[half]
        file, rank = chess.square_file(seen), chess.square_rank(seen)

        def front_pawns(pawns: chess.SquareSet, width: int, file: int = file, rank: int = rank) -> bool:
            turned = pawns if color else pawns.mirror()
            return any(abs(chess.square_file(s) - file) <= width and chess.square_rank(s) > rank for s in turned)

        if name == "pawn":
            doubled = front_pawns(own, 0)
            total += pesto.doubled_pawn_bonus[half] * doubled
            total += pesto.isolated_pawn_bonus[half] * all(abs(chess.square_file(s) - file) != 1 for s in own)
            if not doubled and not front_pawns(enemy, 1):
                total += pesto.passed_pawn_bonus[half][rank] + plain_passed(board, pesto, color, square, half)
            if any(board.piece_type_at(s) == chess.PAWN for s in board.attackers(color, square)):
                total += pesto.guarded_pawn_bonus[half][rank]
        if name in ("knight", "bishop") and 3 <= rank <= 5:
            guarded_by_pawn = any(board.piece_type_at(s) == chess.PAWN for s in board.attackers(color, square))
            turned = enemy if color else enemy.mirror()
            chased = any(abs(chess.square_file(s) - file) == 1 and chess.square_rank(s) > rank for s in turned)
            total += pesto.outpost_bonus[half] * (guarded_by_pawn and not chased)
        if name == "rook" and all(chess.square_file(s) != file for s in own):
            closed = any(chess.square_file(s) == file for s in enemy)
            total += (pesto.rook_half_open_file_bonus if closed else pesto.rook_open_file_bonus)[half]
        if name in ("knight", "bishop", "rook", "queen"):
            guarded = chess.SquareSet()
            for pawn in enemy:
                guarded |= board.attacks(pawn)
            free = [s for s in board.attacks(square) if board.color_at(s) != color and s not in guarded]
            total += getattr(pesto, f"{name}_mobility_bonus")[half] * len(free)
    total += pesto.two_bishops_bonus[half] * (len(board.pieces(chess.BISHOP, color)) >= 2)
    return total + plain_threats(board, pesto, color, half) + plain_king(board, pesto, color, half)


def plain_passed(board: chess.Board, pesto: Pesto, color: chess.Color, square: int, half: int) -> int:
    """Terms of a passed pawn other than its rank."""
    stop = square + (8 if color else -8)
    own, other = board.king(color), board.king(not color)
    assert own is not None
    assert other is not None
    nearer = chess.square_distance(other, stop) - chess.square_distance(own, stop)
    stopped = board.color_at(stop) is (not color)
    return pesto.passed_king_bonus[half] * nearer + pesto.passed_stopped_bonus[half] * stopped


def plain_threats(board: chess.Board, pesto: Pesto, color: chess.Color, half: int) -> int:
    """Threats: pieces attacked by cheaper ones, and hanging pieces."""
    total = 0
    for square, piece in board.piece_map().items():
        if piece.color == color or piece.piece_type == chess.KING:
            continue
        by = {board.piece_type_at(s) for s in board.attackers(color, square)}
        if piece.piece_type != chess.PAWN and chess.PAWN in by:
            total += pesto.pawn_threat_bonus[half]
        if piece.piece_type in (chess.ROOK, chess.QUEEN) and by & {chess.KNIGHT, chess.BISHOP}:
            total += pesto.minor_threat_bonus[half]
        if piece.piece_type == chess.QUEEN and chess.ROOK in by:
            total += pesto.rook_threat_bonus[half]
        if by and not board.is_attacked_by(not color, square):
            total += pesto.hanging_threat_bonus[half]
    return total


def plain_king(board: chess.Board, pesto: Pesto, color: chess.Color, half: int) -> int:
    """King safety: pawn shield, open files, attacks on the king zone."""
    king = board.king(color)
    assert king is not None
    file, rank = chess.square_file(king), chess.square_rank(king)
    pawns = board.pieces(chess.PAWN, color)
    forward = 1 if color else -1
    near = [s for s in pawns if abs(chess.square_file(s) - file) <= 1]
    shield = sum((chess.square_rank(s) - rank) * forward in (1, 2) for s in near)
    files = {other for other in (file - 1, file, file + 1) if 0 <= other <= 7}
    empty = len(files - {chess.square_file(s) for s in near})
    counts = {chess.KNIGHT: 2, chess.BISHOP: 2, chess.ROOK: 2, chess.QUEEN: 3}
    danger = 0
    for square, piece in board.piece_map().items():
        if piece.color != color and piece.piece_type in counts:
            around = [s for s in board.attacks(square) if chess.square_distance(s, king) <= 1]
            danger += counts[piece.piece_type] * len(around)
    total = pesto.king_shield_bonus[half] * shield + pesto.king_open_file_bonus[half] * empty
    return total + pesto.king_danger_bonus[half][min(danger // 2, 15)]


def plain_eval(board: chess.Board, pesto: Pesto) -> tuple[int, int]:
    phase = 0
    for piece, weight, _ in zip(NAMES, pesto.phase_weights, range(5), strict=False):
        phase += weight * sum(len(board.pieces(piece, color)) for color in chess.COLORS)
    full = int(np.dot(pesto.phase_weights, [16, 4, 4, 4, 2]))
    phase = min(phase, full)
    halves = []
    for half in (0, 1):
        mine, other = (plain_side(board, pesto, color, half) for color in (board.turn, not board.turn))
        halves.append(mine - other + pesto.tempo_bonus[half])
    return math.trunc((halves[0] * phase + halves[1] * (full - phase)) / full), phase


OTHER = Pesto(
    tempo_bonus=(12, -7),
    two_bishops_bonus=(-30, 51),
    phase_weights=(1, 3, 2, 5, 9),
    passed_pawn_bonus=(tuple(range(8)), tuple(range(0, -80, -10))),
    rook_value=(500, -100),
    guarded_pawn_bonus=(tuple(range(8)), tuple(range(0, 40, 5))),
    passed_king_bonus=(7, -11),
    passed_stopped_bonus=(-13, 17),
    outpost_bonus=(31, -5),
    pawn_threat_bonus=(37, 41),
    minor_threat_bonus=(-43, 47),
    rook_threat_bonus=(53, 59),
    hanging_threat_bonus=(61, -67),
    king_shield_bonus=(71, 73),
    king_open_file_bonus=(-79, 83),
    king_danger_bonus=(tuple(range(0, -160, -10)), tuple(range(16))),
)


@pytest.mark.oracle
@pytest.mark.parametrize("pesto", [Pesto(), OTHER, Pesto.published()], ids=["default", "other", "published"])
def test_scores_match_python_implementation(pesto: Pesto) -> None:
    seen = 0
    for number, (state, board) in enumerate(random_games(60, 41, 100)):
        if number % 5 == 0:
            assert pesto.eval_plus_game_phase(state) == plain_eval(board, pesto), state
            seen += 1
    assert seen > 500


@pytest.mark.oracle
def test_scores_are_symmetric_in_colours() -> None:
    pesto, without_tempo = Pesto(), Pesto(tempo_bonus=(0, 0))
    for number, (state, board) in enumerate(random_games(60, 42, 100)):
        if number % 3 == 0:
            mirror = Chess(board.mirror().fen())
            assert pesto.eval_plus_game_phase(state) == pesto.eval_plus_game_phase(mirror)
            assert pesto.quiescence_search(state) == pesto.quiescence_search(mirror)
            board.turn = not board.turn
            if board.is_valid():
                assert without_tempo.eval(board) == -without_tempo.eval(state)
            board.turn = not board.turn


def test_start_and_endgame_have_expected_phase() -> None:
    pesto = Pesto(tempo_bonus=(0, 0))
    assert pesto.eval_plus_game_phase(Chess()) == (0, 24)
    assert Pesto().eval(Chess()) == Pesto().tempo_bonus[0]
    assert pesto.eval_plus_game_phase(Chess("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"))[1] == 0
    assert pesto.eval(Chess("4k3/8/8/8/8/8/8/QQQQK3 w - - 0 1")) > 3000
    assert PestoEval is Pesto
    assert pesto.eval(chess.Board()) == 0


def test_published_weights_match_pesto() -> None:
    """`Pesto.published` is independent of the defaults."""
    published = Pesto.published(quiescence=False)
    assert published.pawn_value == (82, 94)
    assert published.king_squares[0][:4] == (-65, 23, 16, -15)
    assert not published.quiescence
    assert published.king_danger_bonus == ((0,) * 16, (0,) * 16)
    assert published.eval(Chess()) == 0
    assert published != Pesto(quiescence=False)
    assert copy.copy(published) == pickle.loads(pickle.dumps(published)) == published


def test_every_weight_changes_scores() -> None:
    bishops = Chess("4k3/8/8/8/8/8/8/2B1KB2 w - - 0 1")
    plain, richer = Pesto(two_bishops_bonus=(0, 0)), Pesto(two_bishops_bonus=(0, 240))
    # Two bishops have a phase of 2 of 24.
    assert richer.eval(bishops) - plain.eval(bishops) == pytest.approx(220, abs=1)


def test_quiescence_captures_hanging_piece() -> None:
    pesto = Pesto()
    static, (quiet, nodes) = pesto.eval(Chess(HANGING)), pesto.quiescence_search(Chess(HANGING))
    assert static < -700 < 50 < quiet
    assert nodes > 1
    assert pesto.quiescence_search(Chess(HANGING), max_depth=0) == (static, 1)
    assert pesto.quiescence_search(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1"))[0] == -1_000_000
    with pytest.raises(InvalidArgumentError, match="max_depth must be at least 0"):
        pesto.quiescence_search(Chess(), -1)


def test_values_are_sigmoid_of_scores() -> None:
    pesto, static = Pesto(), Pesto(quiescence=False)
    state = Chess(HANGING)
    assert static.value(state) == pytest.approx(2 / (1 + math.exp(-static.eval(state) / static.scale)) - 1)
    assert pesto.value(state) == pytest.approx(math.tanh(pesto.quiescence_search(state)[0] / (2 * pesto.scale)))
    assert math.tanh(100 / (2 * Pesto.published().scale)) == pytest.approx(math.tanh(0.326), abs=1e-3)
    states = [Chess(), state, state.play(state.legal_actions()[0])]
    assert pesto.values(states).tolist() == [pesto.value(each) for each in states]
    assert static.eval_many(states).tolist() == [static.eval(each) for each in states]
    assert pesto.eval_many([]).shape == (0,)


# --- as a value and as a file -------------------------------------------------------------------------------------


def test_pesto_compares_copies_and_pickles() -> None:
    assert Pesto() == Pesto()
    assert hash(Pesto()) == hash(Pesto())
    assert Pesto() != Pesto(scale=100)
    assert repr(Pesto()) == "Pesto()"
    assert repr(Pesto(rook_value=[500, 510.0])) == "Pesto(rook_value=(500, 510))"
    assert pickle.loads(pickle.dumps(OTHER)) == OTHER == copy.deepcopy(OTHER) == replace(OTHER)
    assert replace(OTHER, scale=1.0).eval(Chess()) == OTHER.eval(Chess())
    with pytest.raises(AttributeError):
        Pesto().scale = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("pesto", [Pesto(), OTHER, Pesto.published()], ids=["default", "other", "published"])
def test_files_round_trip(pesto: Pesto, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    pesto.to_file(path)
    assert Pesto.from_file(path) == pesto
    assert Pesto.from_file(str(path), quiescence=False) == replace(pesto, quiescence=False)
    assert len(path.read_text(encoding="utf-8").splitlines()) > 100


def broken(change: Any) -> Any:
    def apply(content: dict[str, Any]) -> None:
        change(content, content["weights"])

    return apply


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c, w: w.pop("rook_value"), "weights has no rook_value"),
        (lambda c, w: w.update(pawns=[1, 2]), "weights has 'pawns', which is unknown"),
        (lambda c, w: w.update(rook_value=[1, float("nan")]), r"rook_value\[1\] must be a whole number, not nan"),
        (lambda c, w: w.update(rook_value=[1, float("inf")]), r"rook_value\[1\]"),
        (lambda c, w: w.update(rook_value=[1, None]), r"rook_value\[1\]"),
        (lambda c, w: w.update(rook_value=[1, True]), r"rook_value\[1\]"),
        (lambda c, w: w.update(rook_value=[1, 1.5]), r"rook_value\[1\]"),
        (lambda c, w: w.update(rook_value=[1, 10**30]), r"rook_value\[1\] must be at most 20000"),
        (lambda c, w: w.update(rook_value=[1]), "rook_value must be 2 numbers: it has 1"),
        (lambda c, w: w.update(rook_value=7), "rook_value must be 2 numbers, not 7"),
        (lambda c, w: w.update(rook_value={"0": 1, "1": 2}), "rook_value must be 2 numbers"),
        (lambda c, w: w["king_squares"].pop(), "king_squares must be 2 lists"),
        (lambda c, w: w["king_squares"][1].pop(), r"king_squares\[1\] must be 64 numbers: it has 63"),
        (lambda c, w: w.update(phase_weights=[0] * 5), "phase_weights"),
        (lambda c, w: w.update(phase_weights=[1, 1, 1, 1, -1]), "phase_weights"),
        (lambda c, w: c.update(scale=0), "scale must be above 0"),
        (lambda c, w: c.update(scale=float("nan")), "scale must be a finite number"),
        (lambda c, w: c.pop("scale"), "the file has no scale"),
        (lambda c, w: c.update(version=2), "version must be 1"),
        (lambda c, w: c.update(format="other"), "format must be"),
        (lambda c, w: c.update(weights=[]), "weights must be an object"),
        (lambda c, w: c.update(more=1), "'more', which is unknown"),
    ],
)
def test_invalid_files_raise_naming_field(change: Any, text: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    Pesto().to_file(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    broken(change)(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=text):
        Pesto.from_file(path)


@pytest.mark.parametrize("text", ["", "[1, 2", "[]", "\x00", "[" * 100_000, '{"format": 1, "format": 1}'])
def test_unreadable_files_raise(text: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=r"weights\.json"):
        Pesto.from_file(path)
    with pytest.raises(FileNotFoundError):
        Pesto.from_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rook_value": (1, float("nan"))}, r"rook_value\[1\]"),
        ({"rook_value": "ab"}, "rook_value must be 2 numbers"),
        ({"knight_squares": np.zeros((2, 63))}, r"knight_squares\[0\] must be 64 numbers"),
        ({"scale": float("inf")}, "scale"),
        ({"scale": -1}, "scale"),
        ({"quiescence": 1}, "quiescence"),
    ],
)
def test_invalid_weights_raise(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        Pesto(**arguments)


def test_numpy_arrays_are_accepted_as_weights() -> None:
    table = np.arange(128).reshape(2, 64)
    assert Pesto(knight_squares=table).knight_squares[1][0] == 64  # type: ignore[arg-type]


def test_pesto_rejects_other_games() -> None:
    with pytest.raises(InvalidArgumentError, match="state is of the class ConnectFour"):
        Pesto().eval(ConnectFour())
    with pytest.raises(InvalidArgumentError, match=r"states\[1\] is of the class ConnectFour"):
        Pesto().values([Chess(), ConnectFour()])  # type: ignore[list-item]
    with pytest.raises(InvalidArgumentError, match="Pesto values positions of chess alone"):
        pondertree.UCT(evaluator=Pesto(), num_simulations=5).run(ConnectFour())


# --- in a search, and as a policy ---------------------------------------------------------------------------------


SEARCHES = [
    lambda pesto: pondertree.UCT(60, evaluator=pesto, seed=1),
    lambda pesto: pondertree.AlphaZero(pesto, 60, seed=1),
    # All moves are considered: a subset might omit the best one.
    lambda pesto: pondertree.Gumbel(pesto, 60, max_num_considered_actions=64, gumbel_scale=0.0, seed=1),
]


@pytest.mark.parametrize("make", SEARCHES)
def test_every_search_accepts_pesto(make: Any) -> None:
    search = make(Pesto())
    for fen, best in ((HANGING, "e4d5"), ("4k3/8/8/4p3/3Q4/8/8/4K3 b - - 0 1", "e5d4")):
        result = search.run(Chess(fen))
        assert result.move == best
        assert -1.0 <= result.value <= 1.0


def test_pesto_policy_matches_specification() -> None:
    policy = PestoPolicy()
    assert isinstance(policy, PolicyNetwork)
    state = Chess(HANGING)
    priors, value = policy.evaluate(state)
    assert list(priors) == state.legal_actions()
    assert set(priors.values()) == {1 / len(priors)}
    pesto = Pesto()
    assert value == pytest.approx(1 / (1 + math.exp(-pesto.eval(state) / pesto.scale)))
    assert 0.0 <= value < 0.1 < 0.5 < PestoPolicy(quiescence=True).evaluate(state)[1] <= 1.0
    assert PestoPolicy(Pesto(tempo_bonus=(0, 0))).evaluate(Chess())[1] == 0.5
    board = chess.Board(HANGING)
    priors, same = policy.evaluate(board)
    assert (set(priors), same) == (set(board.legal_moves), value)
    custom = PestoPolicy(Pesto(scale=1e9))
    assert custom.evaluate(state)[1] == pytest.approx(0.5, abs=1e-5)


def test_pesto_policy_of_finished_game_is_result() -> None:
    policy = PestoPolicy()
    assert policy.evaluate(Chess("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1")) == ({}, 0.0)
    assert policy.evaluate(Chess("7k/5Q2/8/8/8/8/8/K7 b - - 0 1")) == ({}, 0.5)
    with pytest.raises(InvalidArgumentError, match="pesto must be a Pesto"):
        PestoPolicy("pesto")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="state is of the class"):
        policy.evaluate(ConnectFour())
