"""Random playouts of many positions of a `BatchGame` at once, equal to those of single positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import GameContractError
from pondertree.games.batch_game import BatchRules
from pondertree.random import GOLDEN, PLAYOUT, fold_array, mix_array


def batch_playouts(
    rules: BatchRules,
    states: NDArray[Any],
    keys: NDArray[np.uint64],
    longest: int,
    check_time: Callable[[], None],
    discount: float = 1.0,
) -> tuple[NDArray[np.float64], int]:
    """Returns (the results of a playout from each state, [n, num_players]; the number of those that did not end).

    No state is terminal. `keys` are those of the simulations; every state draws from a stream of its own. A playout is
    truncated after `longest` moves, with the result 0. `check_time` is called after each move.
    """
    values = np.zeros((len(states), rules.num_players))
    streams = fold_array(keys, [PLAYOUT])
    left = np.arange(len(states))
    weight = 1.0
    for _ in range(longest):
        actions = random_actions(rules, states, streams)
        states = rules.play(states, actions)
        weight *= discount
        over = rules.is_terminal(states)
        if over.any():
            values[left[over]] = weight * rules.returns(states[over])
            goes_on = ~over
            left, states, streams = left[goes_on], states[goes_on], streams[goes_on]
            if not len(left):
                break
        check_time()
    return values, len(left)


def random_actions(rules: BatchRules, states: NDArray[Any], streams: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Returns a random legal action for each state, and advances the streams in place."""
    running = np.cumsum(rules.legal_mask(states), axis=1, dtype=np.int64)
    counts = running[:, -1]
    if not counts.all():
        raise GameContractError(
            f"{rules.name}.legal_mask(states) has a row without actions although the game is not over"
        )
    # A single action draws nothing.
    streams[counts > 1] += np.uint64(GOLDEN)
    chosen = ((mix_array(streams) >> np.uint64(32)) * counts.astype(np.uint64)) >> np.uint64(32)
    chosen[counts == 1] = 0
    # The place of the chosen one: the first whose running count is above it.
    actions: NDArray[np.int64] = np.argmax(running > chosen.astype(np.int64)[:, None], axis=1)
    return actions
