"""Features times weights equal the score, for any weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tuning import drawn_by, random_fens

from pondertree.chess import Pesto
from pondertree.chess.weights import DEFAULTS, nested
from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess, ConnectFour
from pondertree.tune import material_only
from pondertree.tune.features import FIELDS, NUM_TERMS, features_of, no_castling, pesto_of, weights_of
from pondertree.tune.positions import Positions, collect


def random_pesto(seed: int, phases: list[int]) -> Pesto:
    numbers = np.random.default_rng(seed)
    fields = {name: nested(name, numbers.integers(-900, 900, len(DEFAULTS[name])).tolist()) for name in FIELDS}
    return Pesto(**fields, phase_weights=phases)


def test_term_names_match_pesto_fields() -> None:
    assert sum(FIELDS.values()) == NUM_TERMS == 440
    _, terms, _, _ = Pesto().compiled.features([Chess(fen) for fen in random_fens(300)])
    assert terms.min() >= 0
    assert terms.max() < NUM_TERMS


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    phases=st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any),
    first=st.integers(0, 280),
)
def test_terms_times_weights_equal_score(seed: int, phases: list[int], first: int) -> None:
    """Exact in integers; the engine rounds the taper towards 0."""
    pesto = random_pesto(seed, phases)
    states = [Chess(fen) for fen in random_fens(300)[first : first + 20]]
    starts, terms, counts, phase = pesto.compiled.features(states)
    weights = weights_of(pesto).astype(np.int64)
    full = pesto.compiled.full_phase
    for row, state in enumerate(states):
        here = slice(starts[row], starts[row + 1])
        middlegame, endgame = (int((counts[here] * half[terms[here]]).sum()) for half in weights)
        tapered = middlegame * int(phase[row]) + endgame * (full - int(phase[row]))
        rounded = abs(tapered) // full * (1 if tapered >= 0 else -1)
        assert (rounded, phase[row]) == pesto.eval_plus_game_phase(state)


def test_scores_match_engine_up_to_rounding() -> None:
    positions = drawn_by(Pesto(), 300)
    scores = features_of(positions, Pesto()).scores(weights_of(Pesto()))
    assert np.abs(scores - Pesto().eval_many(positions.states())).max() < 1.0
    assert len(features_of(collect([]), Pesto()).scores(weights_of(Pesto()))) == 0


def test_results_are_converted_to_side_to_move() -> None:
    fens = ["4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1"]
    features = features_of(collect([(fens, 1.0)]), Pesto())
    assert features.targets.tolist() == [1.0, 0.0]
    assert features.games == 1
    assert features.taper.tolist() == [0.0, 0.0]


def test_weights_round_trip() -> None:
    pesto = random_pesto(3, [0, 1, 1, 2, 4])
    assert pesto_of(weights_of(pesto), pesto.scale, Pesto()) == pesto
    assert pesto_of(weights_of(pesto) + 0.4, pesto.scale, Pesto()) == pesto
    assert pesto_of(np.full((2, NUM_TERMS), 1e9), 100.0, Pesto()).rook_value == (20_000, 20_000)


def test_symmetric_squares_share_weights() -> None:
    fens = ["4k3/8/8/8/8/2N5/4P1r1/4K3 b - - 0 1", "4k3/8/8/8/8/2N5/4P3/4K2R w K - 0 1"]
    turned = "3k4/8/8/8/8/5N2/1r1P4/3K4 b - - 0 1"
    positions = collect([(fens, 1.0)])
    assert no_castling(positions).tolist() == [True, False]
    doubled = features_of(positions, Pesto()).with_flipped(no_castling(positions))
    scores = doubled.scores(weights_of(Pesto()))
    assert len(doubled) == 3
    assert np.trunc(scores[1]) == Pesto().eval(Chess(turned))
    assert np.trunc(scores[[0, 2]]).tolist() == [Pesto().eval(Chess(fen)) for fen in fens]
    assert doubled.targets.tolist() == [0.0, 0.0, 1.0]


def test_groups_select_weights() -> None:
    pesto = material_only()
    assert pesto.queen_value == (900, 900)
    assert pesto.eval(Chess("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1")) == 100


def test_invalid_positions_raise() -> None:
    with pytest.raises(InvalidArgumentError, match="position 1: "):
        Positions(np.array([b"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", b"x"]), np.ones(2), np.arange(2)).states()
    with pytest.raises(InvalidArgumentError, match=r"states\[0\]"):
        Pesto().compiled.features([ConnectFour()])
