"""Classic UCT: playouts on their own, the specification's `simulateRandomPlayout`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from pondertree import validation
from pondertree.errors import EvaluationError, GameContractError
from pondertree.evaluators.batch import Batch
from pondertree.evaluators.protocol import evaluate_batch
from pondertree.game import COMPILED, as_contract_error, describe, is_over
from pondertree.games.playout import MAX_PLAYOUT_LENGTH, decisive_policy, own_playout, random_playout
from pondertree.presets.uct import check_playout_policy
from pondertree.random import PLAYOUT, Random, tree_key


def playout(
    state: Any,
    perspective_player: int,
    max_depth: int | None = None,
    policy: str | Callable[[Any], Any] | None = None,
    evaluator: Any = None,
    seed: int | None = None,
) -> float:
    """Returns the result of a random playout from `state` for `perspective_player`: 1 a win, 0 a draw, -1 a loss.

    `policy` biases the moves as in `UCT`. A playout truncated after `max_depth` moves scores 0, or the
    `evaluator`'s value of the last position; if `max_depth` is None or 0, the evaluator values `state` itself.
    In games with rewards, the result is the sum of the player's rewards. Without `max_depth`, a game that is not over
    after 10,000 moves raises `GameContractError`. Without policy and evaluator, a game's own
    `simulateRandomPlayout` is used if it has one.
    """
    info = describe(state)
    player = validation.whole_number(perspective_player, "perspective_player", most=info.num_players - 1)
    depth = None if max_depth is None else validation.whole_number(max_depth, "max_depth", most=(1 << 31) - 1)
    policy = None if policy is None else check_playout_policy(policy, "policy")
    if evaluator is None and policy is None and hasattr(state, "simulateRandomPlayout") and not is_over(state):
        with as_contract_error(info, "in its own simulateRandomPlayout"):
            return own_playout(state, player, depth)
    if evaluator is not None and depth is None:
        depth = 0
    key = tree_key(secrets.randbits(63) if seed is None else validation.whole_number(seed, "seed"), 0, 0)
    if type(state) in COMPILED and not callable(policy):
        result, rewards, last = state._playout(key, policy or "random", depth)
        value = rewards + (result or 0)
        values: list[float] | None = None if result is None else [value, -value][: info.num_players]
    else:
        chosen = decisive_policy if policy == "decisive" else policy if callable(policy) else None
        with as_contract_error(info, "in a playout"):
            values, last = random_playout(
                state,
                Random(key, PLAYOUT),
                MAX_PLAYOUT_LENGTH if depth is None else depth,
                chosen,
            )
        if values is None and depth is None:
            raise GameContractError(
                f"{info.name} is not over after {MAX_PLAYOUT_LENGTH} random moves: truncate the playout by "
                "max_depth=..., which scores 0, or give an evaluator that values its last position"
            )
    if values is not None:
        return float(values[player])
    if evaluator is None:
        return 0.0
    answer = evaluate_batch(evaluator, Batch.of([last])).values
    if answer.ndim == 2:
        return float(answer[0, player])
    if info.num_players > 2:
        raise EvaluationError(f"values must be [1, {info.num_players}] in a game of {info.num_players} players")
    return float(answer[0]) if last.to_play == player or info.num_players == 1 else -float(answer[0])
