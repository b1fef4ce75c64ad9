"""The part of the contract that games of arrays alone have: rows are independent, and arguments are not changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.games.batch_game import BatchState


def row_violation(states: Sequence[BatchState], actions: Sequence[int]) -> str | None:
    """Returns what violates the rule "rows" in a played game, given as its states and the actions between them."""
    rules = states[0].rules
    whole = np.stack([state.array for state in states])
    is_over = np.array([state.is_terminal for state in states])
    going, ended = whole[~is_over], whole[is_over]
    readings: list[tuple[str, NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]] = [
        ("is_terminal(states)", whole, rules.is_terminal),
        ("to_play(states)", going, rules.to_play),
        ("legal_mask(states)", going, rules.legal_mask),
        ("returns(states)", ended, rules.returns),
    ]
    if hasattr(rules.game, "observation"):
        readings.append(("observation(states)", going, rules.observation))
    if actions:
        played = np.array(actions, dtype=np.int64)
        text = "play(states, actions)"
        if (found := _difference(text, whole[: len(actions)], rules.play, (played,))) is not None:
            return found
    differences = (_difference(text, given, function) for text, given, function in readings if len(given))
    return next((text for text in differences if text is not None), None)


def _difference(
    text: str, states: NDArray[Any], function: Callable[..., NDArray[Any]], columns: tuple[NDArray[Any], ...] = ()
) -> str | None:
    """Returns how a call for all rows differs from calls for each of them, or that it changed its argument."""
    given = states.copy()
    whole = function(given, *columns)
    if given.tobytes() != states.tobytes():
        return f"{text} changed its argument"
    for row in range(len(states)):
        one = slice(row, row + 1)
        alone = function(states[one].copy(), *(column[one] for column in columns))
        if not np.array_equal(whole[one], alone, equal_nan=whole.dtype.kind == "f"):
            return f"row {row} of {text} for {len(states)} states differs from its result for that state alone"
    return None
