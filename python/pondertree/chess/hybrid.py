"""The hybrid specification's entry point, `mcts_search`."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from pondertree import check
from pondertree.chess.position import open_position
from pondertree.errors import InvalidArgumentError, UnknownOptionError
from pondertree.options import unknown_option
from pondertree.presets.hybrid import Hybrid


def mcts_search(
    root_state: Any,
    policy_network: Any = None,
    mate_search_depth: int = 3,
    iterations: int | None = None,
    time_limit: float | timedelta | None = None,
    *,
    priority: str | None = "strict",
    **settings: Any,
) -> Any:
    """The move to play: an action, or a `chess.Move` for a board or a `ChessGame`; None where there is no legal move.

    At least one limit must be given: `iterations` (simulations) or `time_limit` (seconds, or a `timedelta`); what is
    reached first ends the search. `policy_network` has the specification's form, or is an evaluator, as `ChessNN` is.

    `priority` is the specification's "strict" here, and in `pondertree.reference.hybrid`; that of `Hybrid` is "prior".
    Further settings are those of `Hybrid`.
    """
    known = ["iterations", *(each.name for each in fields(Hybrid) if each.name != "num_simulations")]
    for name in settings:
        if name not in known:
            raise UnknownOptionError(unknown_option(mcts_search, name, known))
    if iterations is None and time_limit is None:
        raise InvalidArgumentError("mcts_search needs a limit: give iterations, time_limit, or both")
    iterations = None if iterations is None else check.count(iterations, "iterations")
    state, answer = open_position(root_state, "root_state")
    search = Hybrid(
        policy_network=policy_network,
        num_simulations=iterations,
        mate_search_depth=mate_search_depth,
        time_limit=time_limit,
        priority=priority,
        **settings,
    )
    if state.is_terminal or not state.legal_actions():
        return None
    return answer(search.run(state).action)
