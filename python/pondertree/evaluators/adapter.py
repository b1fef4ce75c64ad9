"""What the adapters of network libraries share. A library is imported when an adapter is made, not with its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import extras
from pondertree.errors import EvaluationError


def require(library: str, extra: str) -> Any:
    """The imported library; if it is not installed, an error that says how to get it."""
    return extras.require(library, extra, "this evaluator")


def two_outputs(answer: Any, who: str) -> tuple[Any, Any]:
    """(policy, values) of a network that answered with a pair."""
    if isinstance(answer, (tuple, list)) and len(answer) == 2:
        return answer[0], answer[1]
    if isinstance(answer, (tuple, list)):
        given = f"a {type(answer).__name__} of {len(answer)}"
    elif isinstance(answer, Mapping):
        given = f"a {type(answer).__name__} with the keys {', '.join(map(repr, answer))}"
    else:
        given = f"a {type(answer).__name__}"
    raise EvaluationError(f"{who} returned {given}: it must return the pair (policy_logits, values)")


def bucket(rows: int) -> int:
    """The power of two that `rows` is padded to, so that a library that compiles for each shape compiles few."""
    return 1 << max(rows - 1, 0).bit_length()


def padded(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """The array with rows of zeros at its end, `rows` in all."""
    if len(array) == rows:
        return array
    return np.concatenate([array, np.zeros((rows - len(array), *array.shape[1:]), dtype=array.dtype)])
