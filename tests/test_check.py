"""Checks of arguments: a bad entry of a list is named by its row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pondertree import check
from pondertree.errors import InvalidArgumentError


@pytest.mark.parametrize("wrong", [math.nan, -1.0, "hot", math.inf, True])
@pytest.mark.parametrize("make", [list, tuple, lambda values: np.array(values, dtype=object)])
def test_a_bad_temperature_is_named_by_its_row(wrong: Any, make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^temperature\[1\] must be"):
        check.per_row(make([1.0, wrong, None]), 3, "temperature", check.optional_temperature)


def test_one_for_all_has_no_row() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^temperature must be"):
        check.per_row(math.nan, 3, "temperature", check.optional_temperature)
    with pytest.raises(InvalidArgumentError, match=r"^temperature\[0\] must be"):
        check.per_row([math.nan], 1, "temperature", check.optional_temperature)


def test_good_ones() -> None:
    assert check.per_row([1, None, 0.5], 3, "temperature", check.optional_temperature) == [1.0, None, 0.5]
    assert check.per_row(None, 2, "temperature", check.optional_temperature) == [None, None]
    assert check.per_row(3, 2, "n", check.whole_number) == [3, 3]
    assert check.per_row([3, 4], 2, "n") == [3, 4]
    with pytest.raises(InvalidArgumentError, match="n has 1 entries for 2"):
        check.per_row([3], 2, "n")
