"""Cases of `Hybrid`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from exact import TablePolicyNetwork

from fingerprint_cases.case import Cases, Options, named, run
from fingerprint_cases.positions import (
    FENS,
    board,
    position,
    with_evaluator,
)
from pondertree import Hybrid, chess

HYBRID_OPTIONS: tuple[Options, ...] = (
    {},
    {"priority": "strict"},
    {"priority": "tactical"},
    {"priority": None},
    {"priority": "strict", "in_flight": 4, "see_threshold": 100},
    {"in_flight": 16, "threads": 2, "mate_search_depth": 2},
    {"quiescence": False, "move_scores": None, "endings": False},
    {"mate_search_depth": 0, "solve": False, "fpu": 0.0, "exploration_constant": 2.5},
)


def hybrid_cases() -> Cases:
    """Positions and mates by the ways to use move categories."""
    for options in HYBRID_OPTIONS:
        search = partial(Hybrid, num_simulations=150, seed=12, **options)
        for name in FENS:
            # The root's mate search answers the others whatever the options are.
            if "mate" not in name or options in HYBRID_OPTIONS[:2] or "solve" in options:
                yield named(f"Hybrid {name}", options), run(search, partial(board, name))
        for plies in (15, 30, 45):
            yield named(f"Hybrid {plies}", options), run(search, partial(position, "chess", plies))
    for priority in ("strict", "tactical", "prior", None):
        options = {"num_simulations": 40, "priority": priority, "seed": 13}
        outside = partial(with_evaluator, Hybrid, "table", "chess", in_flight=4, **options)
        yield f"Hybrid evaluator {priority}", run(outside, partial(board, "tactics"))
        network = partial(_hybrid_network, options)
        yield f"Hybrid policy_network {priority}", run(network, partial(board, "middlegame"), temperature=1.0)
    classical = partial(_hybrid_network, {"num_simulations": 60, "seed": 13}, chess.PestoPolicy)
    yield "Hybrid PestoPolicy", run(classical, partial(board, "tactics"))
    weights = partial(Hybrid, num_simulations=60, seed=13, category_weights=[1.0 + place for place in range(10)])
    yield "Hybrid category_weights", run(weights, partial(board, "tactics"))


def _hybrid_network(options: Options, network: Callable[[], Any] = TablePolicyNetwork) -> Any:
    return Hybrid(policy_network=network(), **options)
