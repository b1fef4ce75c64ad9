"""Categorical values: the paper's transform, its inverse, and the two atoms of a number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pondertree.errors import InvalidArgumentError
from pondertree.models import Support, min_max

NUMBERS = st.floats(-1e4, 1e4)


def log(probabilities: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def paper(x: float, epsilon: float = 0.001) -> float:
    """Appendix F, literally."""
    return math.copysign(1, x) * (math.sqrt(abs(x) + 1) - 1) + epsilon * x


def paper_inverse(y: float, epsilon: float = 0.001) -> float:
    """Appendix F, literally."""
    root = math.sqrt(1 + 4 * epsilon * (abs(y) + 1 + epsilon))
    return math.copysign(1, y) * (((root - 1) / (2 * epsilon)) ** 2 - 1)


@given(NUMBERS)
def test_transform_and_inverse_match_paper(x: float) -> None:
    support = Support()
    assert support.transform(x) == pytest.approx(paper(x), rel=1e-9, abs=1e-12)
    assert support.inverse(paper(x)) == pytest.approx(paper_inverse(paper(x)), rel=1e-9, abs=1e-9)


@given(NUMBERS, st.sampled_from([0.0, 0.001, 0.01]), st.sampled_from(["float32", "float64"]))
def test_inverse_inverts_transform(x: float, epsilon: float, dtype: str) -> None:
    support = Support(epsilon=epsilon)
    written = np.array([x], dtype=dtype)
    back = support.inverse(support.transform(written))
    assert back.dtype == written.dtype
    assert back == pytest.approx(written, rel=1e-5 if dtype == "float32" else 1e-12, abs=1e-30)


@given(st.lists(NUMBERS, min_size=2, max_size=20, unique=True))
def test_transform_and_inverse_are_monotone_and_odd(numbers: list[float]) -> None:
    support, x = Support(), np.sort(np.array(numbers))
    for function in (support.transform, support.inverse):
        assert (np.diff(function(x)) >= 0).all()
        assert (np.diff(function(x))[np.diff(x) > 1e-9] > 0).all()
        assert (function(-x) == -function(x)).all()
    assert support.transform(0.0) == support.inverse(0.0) == 0.0


@given(NUMBERS, st.sampled_from(["float32", "float64"]))
def test_to_scalar_inverts_to_categorical(x: float, dtype: str) -> None:
    support = Support()
    written = np.array([x, -x], dtype=dtype)
    read = support.to_scalar(log(support.to_categorical(written)))
    assert read.dtype == written.dtype
    assert read == pytest.approx(written, rel=1e-4, abs=1e-30)


@given(st.floats(-1e9, 1e9), st.integers(1, 40))
def test_probability_is_split_between_two_adjacent_atoms(x: float, size: int) -> None:
    support = Support(size)
    shares = support.to_categorical(x)
    assert shares.shape == (support.num_atoms,) == (2 * size + 1,)
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert (shares >= 0).all()
    places = np.flatnonzero(shares)
    assert len(places) <= 2
    assert places[-1] - places[0] <= 1
    assert shares @ np.arange(-size, size + 1) == pytest.approx(np.clip(paper(x), -size, size), rel=1e-9, abs=1e-9)


def test_numbers_beyond_support_are_clipped() -> None:
    support = Support(5)
    for x, place in ((1e9, 10), (-1e9, 0), (support.largest, 10)):
        assert support.to_categorical(x)[place] == pytest.approx(1.0)
    assert support.to_scalar(log(support.to_categorical(1e9))) == pytest.approx(support.largest)
    assert support.transform(support.largest) == pytest.approx(5)
    assert round(Support().largest) == 58706


def test_to_categorical_matches_hand_computed_values() -> None:
    """h(3) = 1 + 0.003: a share of 0.003 for atom 2, the rest for atom 1."""
    assert Support(2).to_categorical([3.0, -3.0, 0.0]) == pytest.approx(
        np.array([[0, 0, 0, 0.997, 0.003], [0.003, 0.997, 0, 0, 0], [0, 0, 1, 0, 0]])
    )
    assert Support(1, 0.0).to_scalar([[0.0, 0.0, 0.0], [0.0, 0.0, 1e3]]) == pytest.approx([0.0, 3.0])


def test_shapes_are_preserved_or_refused() -> None:
    support = Support(3)
    assert support.to_categorical(np.zeros((4, 2))).shape == (4, 2, 7)
    assert support.to_scalar(np.zeros((4, 2, 7))).shape == (4, 2)
    with pytest.raises(InvalidArgumentError, match="logits has shape \\(4, 6\\): the last axis must be 7"):
        support.to_scalar(np.zeros((4, 6)))
    with pytest.raises(InvalidArgumentError, match="size"):
        Support(0)
    with pytest.raises(InvalidArgumentError, match="epsilon"):
        Support(3, -0.1)


# --- the scale of hidden states -----------------------------------------------------------------------------------


def test_min_max_scales_each_row() -> None:
    hidden = np.random.default_rng(0).normal(size=(3, 4, 2, 2)) * np.array([1, 100, 1e-3])[:, None, None, None]
    scaled = min_max(hidden)
    assert scaled.min(axis=(1, 2, 3)).tolist() == [0, 0, 0]
    assert scaled.max(axis=(1, 2, 3)) == pytest.approx([1, 1, 1])
    assert (np.argsort(scaled[1], axis=None) == np.argsort(hidden[1], axis=None)).all()
    channels = min_max(hidden, axes=(2, 3))
    assert channels.min(axis=(2, 3)).max() == 0
    assert channels.max(axis=(2, 3)) == pytest.approx(np.ones((3, 4)))


def test_min_max_of_constant_row_is_finite() -> None:
    assert min_max(np.full((2, 3), 7.0)).tolist() == [[0, 0, 0]] * 2
    assert min_max([[1.0, 2.0, 3.0]]).tolist() == [[0, 0.5, 1]]
    assert min_max(np.ones((2, 3), np.float32)).dtype == np.float32
