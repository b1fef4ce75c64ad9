"""Validation of evaluator outputs: ranges, shapes, dtypes, and the row in errors."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.networks import table
from tests.support.search_helpers import PythonGame

import pondertree
from pondertree.errors import EvaluationError
from pondertree.evaluators import Batch, Cached, Function, Packed, Symmetric, evaluate_batch, symmetries_of
from pondertree.evaluators.outputs import MAX_VALUE, check_policy, check_values, flat_policy
from pondertree.game import GameInfo, describe
from pondertree.games import Chess, ConnectFour
from pondertree.testing.tabular import TabularGame

PLAIN = describe(ConnectFour())
REWARDS = GameInfo("points", False, 7, 2, False, True)
BIDDING = GameInfo("bidding", False, 7, 2, True, True)
THREE = GameInfo("three", False, 7, 3, False, False)


# --- Policies of planes -------------------------------------------------------------------------------------------

#: A move, the plane it stands on, and its square as (rank, file) seen from the side that moves.
MOVES = [
    ("", "e2e4", 1, (1, 4)),  # north, two squares
    ("", "a2a3", 0, (1, 0)),
    ("", "g1f3", 56 + 7, (0, 6)),  # the last of the knight's moves: one file left, two ranks up
    ("e2e4", "e7e5", 1, (1, 4)),  # the board is flipped for Black
    ("e2e4", "b8c6", 56, (0, 1)),
]


@pytest.mark.parametrize(("before", "move", "plane", "square"), MOVES)
@pytest.mark.parametrize("head", ["73 x 8 x 8", "8 x 8 x 73", "73 x 64", "64 x 73", "73 x 8 x 8 x 1"])
def test_chess_head_matches_move_numbering(
    before: str, move: str, plane: int, square: tuple[int, int], head: str
) -> None:
    state = Chess()
    for text in before.split():
        state = state.play(state.parse_action(text))
    action = state.parse_action(move)
    rank, file = square
    assert state.observation()[:6, rank, file].any(), "a piece of the mover stands there in the observation"
    planes = np.zeros((2, 73, 8, 8), dtype=np.float32)
    planes[1, plane, rank, file] = 1.0
    given = {
        "73 x 8 x 8": planes,
        "8 x 8 x 73": planes.transpose(0, 2, 3, 1),
        "73 x 64": planes.reshape(2, 73, 64),
        "64 x 73": planes.reshape(2, 73, 64).transpose(0, 2, 1),
        "73 x 8 x 8 x 1": planes[..., None],
    }[head]
    for flat in (flat_policy(given), check_policy(given, (2, 4672))):
        assert flat.shape == (2, 4672)
        assert np.argwhere(flat).tolist() == [[1, action]]


def test_search_with_chess_head() -> None:
    def planes(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((len(observations), 73, 8, 8), dtype=np.float32)
        logits[:, 1, 1, 4] = 50.0
        return logits, np.zeros(len(observations))

    for evaluator in (planes, Cached(planes), Function(planes, policy="logits")):
        result = pondertree.AlphaZero(evaluator, 5, seed=1).run(Chess())
        assert result.move == "e2e4"
        assert result.visits.max() == 5


@pytest.mark.parametrize("shape", [(2, 7, 1), (2, 7, 1, 1), (2, 1, 7), (2, 1, 1, 7)])
def test_axes_of_length_one_are_ignored(shape: tuple[int, ...]) -> None:
    logits = np.arange(14, dtype=np.float32).reshape(2, 7)
    assert np.array_equal(check_policy(logits.reshape(shape), (2, 7)), logits)


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 1, 3, 3), (2, 64, 73, 2), (2, 8, 73, 8), (2, 7, 2), (2, 72, 8, 8)])
def test_other_policy_shapes_raise(shape: tuple[int, ...]) -> None:
    with pytest.raises(EvaluationError, match=r"policy_logits has shape.*num_actions.*\[B, 73, 8, 8\].*flattened"):
        check_policy(np.zeros(shape), (2, math.prod(shape[1:])))


def test_chess_head_in_another_game_raises() -> None:
    with pytest.raises(EvaluationError, match=r"shape \(2, 4672\): it must be \(2, 7\)"):
        check_policy(np.zeros((2, 73, 8, 8)), (2, 7))
    with pytest.raises(EvaluationError, match=r"shape \(2, 3\): it must be \(2, num_actions\)|must be \(5, num"):
        check_policy(np.zeros((2, 3)), (5, None))


# --- Values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [1.01, -1.5, 2.0, 1e300, -1.7e308])
@pytest.mark.parametrize("form", ["[B]", "[B, 1]", "[B, 2]"])
def test_values_out_of_range_raise(wrong: float, form: str) -> None:
    values = np.array([0.0, 1.0, wrong, -1.0])
    given = {"[B]": values, "[B, 1]": values[:, None], "[B, 2]": np.stack([values, -values], axis=1)}[form]
    with pytest.raises(EvaluationError, match=r"values of row 2 are.*without rewards.*from -1 to 1"):
        check_values(given, 4, 2, PLAIN)


def test_values_of_three_players_out_of_range_raise() -> None:
    with pytest.raises(EvaluationError, match=r"values of row 1"):
        check_values([[0, 1, 1], [0, 0, 3]], 2, 3, THREE)
    assert check_values([[0, 1, 1], [0, 0, 0.5]], 2, 3, THREE).shape == (2, 3)


def test_values_slightly_out_of_range_are_clipped() -> None:
    values = np.array([1.0005, -1.0009, 0.5, 1.0])
    assert check_values(values, 4, 2, PLAIN).tolist() == [1.0, -1.0, 0.5, 1.0]
    assert values[0] == 1.0005, "the evaluator's own array stays as it is"
    assert check_values([[1.0005, -1.0005]], 1, 2, PLAIN).tolist() == [[1.0, -1.0]]
    assert check_values(values, 4, 2, REWARDS).tolist() == values.tolist()


def test_values_of_two_players_must_sum_to_zero() -> None:
    with pytest.raises(EvaluationError, match=r"values of row 1 are \[0.5 0.5\].*zero-sum.*cancel"):
        check_values([[0.5, -0.5], [0.5, 0.5]], 2, 2, PLAIN)
    with pytest.raises(EvaluationError, match=r"row 0.*cancel"):
        check_values([[500.0, -400.0]], 1, 2, BIDDING)
    rounded = [[0.5, -0.4995]]
    assert check_values(rounded, 1, 2, PLAIN).tolist() == rounded
    assert check_values([[0.5, 0.5]], 1, 2, REWARDS).tolist() == [[0.5, 0.5]], "not a zero-sum game"
    assert check_values([[5000.0, -4999.0]], 1, 2, BIDDING).shape == (1, 2), "rounding grows with the numbers"


@pytest.mark.parametrize("info", [None, REWARDS, BIDDING])
def test_values_with_rewards_are_bounded(info: GameInfo | None) -> None:
    assert check_values([MAX_VALUE, -MAX_VALUE], 2, 2, info).tolist() == [1e12, -1e12]
    for wrong in (1.7e308, -1e13, np.float64(1e300)):
        with pytest.raises(EvaluationError, match=r"values of row 1 are.*at most 1e\+12"):
            check_values([0.0, wrong], 2, 2, info)
    for wrong in (math.nan, math.inf, -math.inf):
        with pytest.raises(EvaluationError, match=r"values of row 1 are.*finite"):
            check_values([0.0, wrong], 2, 2, info)
    assert check_values(np.zeros((0, 2)), 0, 2, info).shape == (0, 2)


def test_batch_with_game_checks_value_range() -> None:
    def twice(observations: np.ndarray) -> tuple[None, np.ndarray]:
        return None, np.full(len(observations), 1.5)

    for wrong in (twice, Cached(twice), Symmetric(twice, symmetries_of("connect4"))):
        with pytest.raises(EvaluationError, match=r"row 0 are 1\.5"):
            evaluate_batch(wrong, Batch.of([ConnectFour()]))
    unknown = Batch(1, 2, 7, lambda: [ConnectFour()])
    assert evaluate_batch(twice, unknown).values.tolist() == [1.5]

    class Twice:
        def evaluate_states(self, states: Any) -> tuple[None, list[float]]:
            return None, [1.5] * len(states)

    assert evaluate_batch(Twice(), Batch.of([TabularGame(1, players=1, rewards=True).start()])).values.tolist() == [1.5]


# --- The row in errors ---------------------------------------------------------------------------------------------

GOOD = [0.5, 0.25, 0.0]
#: One row of the policy, and what is said of it.
BAD_ROWS: dict[str, tuple[Any, str]] = {
    "too short": ([0.5, 0.25], r"row 2 has shape \(2,\), but other rows have shape \(3,\)"),
    "too long": (np.zeros(4), r"row 2 has shape \(4,\), but other rows have shape \(3,\)"),
    "a number": (0.5, r"row 2 has shape \(\), but"),
    "nothing": (None, "row 2 cannot be read as numbers: None is no number"),
    "None inside": ([0.5, None, 0.0], "row 2 cannot be read as numbers: None is no number"),
    "text": (["0.5", "0", "0"], "row 2 cannot be read as numbers: their dtype is <U"),
    "text inside": ([0.5, "a", 0.0], "row 2 cannot be read as numbers: "),
    "complex": ([0.5, 1j, 0.0], "row 2 cannot be read as numbers: their dtype is complex128"),
    "objects": ([object()] * 3, "row 2 cannot be read as numbers: <object"),
    "ragged inside": ([0.5, [0.0], 0.0], "row 2 cannot be read as numbers: "),
    "too large": ([0.5, 1e39, 0.0], "row 2 has 1e.39: that is too large for float32"),
    "too small": ([0.5, -1e39, 0.0], "row 2 has -1e.39: that is too large for float32"),
    "beyond all": ([0.5, 10**400, 0.0], "row 2 cannot be read as numbers: "),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_invalid_policy_row_is_named(name: str) -> None:
    row, words = BAD_ROWS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EvaluationError, match=f"policy_logits of {words}"):
            check_policy([GOOD, GOOD, row, GOOD], (4, 3))


@pytest.mark.parametrize("name", BAD_ROWS)
def test_wrappers_name_invalid_policy_row(name: str) -> None:
    row, words = BAD_ROWS[name]
    symmetry = [(np.arange(1), np.arange(3))]

    def answer(observations: np.ndarray) -> tuple[Any, Any]:
        return [GOOD, GOOD, row, GOOD], np.zeros(4)

    boards = np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1)
    for evaluator in (Cached(answer), Symmetric(answer, symmetry)):
        with pytest.raises(EvaluationError, match=f"policy_logits of {words}"):
            evaluator.evaluate(boards)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "row 1 cannot be read as numbers: None"),
        ("a", "row 1 cannot be read as numbers: their dtype is <U1"),
        (1j, "row 1 cannot be read as numbers: their dtype is complex128"),
        ([0.5, -0.5], r"row 1 has shape \(2,\), but other rows have shape \(\)"),
        ([], r"row 1 has shape \(0,\)"),
    ],
)
def test_invalid_value_row_is_named(value: Any, words: str) -> None:
    given = [0.0, value, 0.5]
    with pytest.raises(EvaluationError, match=f"values of {words}"):
        check_values(given, 3, 2, PLAIN)
    with pytest.raises(EvaluationError, match=f"values of {words}"):
        Cached(lambda o: (None, given)).evaluate(np.arange(3, dtype=np.float32).reshape(3, 1, 1, 1))


def test_errors_without_a_row() -> None:
    for given, words in (
        (np.zeros((2, 7), dtype=complex), "cannot be read as numbers: their dtype is complex128"),
        (np.full((2, 7), "a"), "cannot be read as numbers: their dtype is <U1"),
        (None, "cannot be read as numbers: None is no number"),
    ):
        with pytest.raises(EvaluationError, match=f"policy_logits {words}"):
            check_policy(given, (2, 7))


def test_packed_form_names_row() -> None:
    """Five legal actions of three rows: the fourth is of row 2."""
    offsets = np.array([0, 2, 2, 5])
    for given in ([0.0, 0.0, 0.0, None, 0.0], np.array([0.0, 0.0, 0.0, 1e39, 0.0])):
        with pytest.raises(EvaluationError, match="policy_logits of row 2"):
            check_policy(given, (5,), offsets)
    with pytest.raises(EvaluationError, match=r"shape \(4,\): it must be \(5,\)"):
        check_policy(np.zeros(4), (5,), offsets)


def test_numbers_of_other_dtypes() -> None:
    given = [[1, True], [Fraction(1, 2), Decimal("0.25")], np.array([2, 3], dtype=np.int8)]
    assert check_policy(given, (3, 2)).tolist() == [[1.0, 1.0], [0.5, 0.25], [2.0, 3.0]]
    large = np.array([[3.4e38, -np.inf]])
    assert check_policy(large, (1, 2)).tolist() == np.float32(large).tolist()
    same = np.zeros((2, 2), dtype=np.float32)
    assert check_policy(same, (2, 2)) is same


# --- Forms ----------------------------------------------------------------------------------------------


class PackedOnly:
    """An evaluator with the packed form alone."""

    def evaluate_packed(self, packed: Packed) -> tuple[np.ndarray, np.ndarray]:
        logits, values = table(packed.unpack(), packed.num_actions)
        return logits[packed.rows(), packed.legal_actions], values


@pytest.mark.parametrize("wrap", [lambda e: e, Cached, lambda e: Symmetric(e, symmetries_of("connect4"))])
def test_packed_form_alone_serves_compiled_games_only(wrap: Any) -> None:
    evaluator = wrap(PackedOnly())
    assert pondertree.AlphaZero(evaluator, 5).run(ConnectFour()).simulations == 5
    words = "only evaluate_packed.*compiled games in searches with priors.*need evaluate"
    for search, state in (
        (pondertree.AlphaZero(evaluator, 5), PythonGame(ConnectFour())),
        (pondertree.UCT(5, evaluator=evaluator), ConnectFour()),
        (pondertree.UCT(5, evaluator=evaluator), PythonGame(ConnectFour())),
    ):
        with pytest.raises(EvaluationError, match=words):
            search.run(state)


@pytest.mark.parametrize("policy", [np.array(["logits", "probabilities"]), np.zeros(3), 3, None, "odds", ["logits"]])
def test_invalid_policy_kind_raises(policy: Any) -> None:
    class Odd:
        def evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return table(observations)

    odd = Odd()
    odd.policy = policy  # type: ignore[attr-defined]
    words = 'policy must be "logits" or "probabilities", not '
    for make in (lambda: pondertree.AlphaZero(odd, 5), lambda: Cached(odd), lambda: Function(table, policy=policy)):
        with pytest.raises(pondertree.InvalidArgumentError, match=words):
            make()


@pytest.mark.parametrize("packed", [False, True])
def test_invalid_probability_is_named_as_such(packed: bool) -> None:
    def broken(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probabilities = np.full((len(observations), 7), 0.5)
        probabilities[0, 2] = np.nan
        return probabilities, np.zeros(len(observations))

    evaluator = Function(broken)
    with pytest.raises(EvaluationError, match=r"row 0: policy has NaN.*probabilities"):
        pondertree.AlphaZero(Cached(evaluator) if packed else evaluator, 5).run(ConnectFour())


@pytest.mark.parametrize("mode", ["cached", "average", "sample"])
def test_wrappers_report_invalid_values(mode: str) -> None:
    def texts(observations: np.ndarray) -> tuple[None, list[str]]:
        return None, ["0.5"] * len(observations)

    evaluator = Cached(texts) if mode == "cached" else Symmetric(texts, symmetries_of("connect4"), mode)
    with pytest.raises(EvaluationError, match="values of row 0 cannot be read as numbers"):
        pondertree.AlphaZero(evaluator, 5).run(ConnectFour())
