"""Hybrid chess search: cost of its components and scaling to a second thread.

The hybrid chess specification reports 132 to 149 microseconds per mate search and 8 per quiescence search for its own
engine.
"""

from __future__ import annotations

import os
from typing import Any

from harness import Plan, Row, Worker, ours, spread
from roots import CALM

#: The search with some components, and with all.
FORMS: dict[str, dict[str, Any]] = {
    "static PeSTO, no mate search, no categories": {"quiescence": False, "mate_search_depth": 0, "priority": None},
    "with quiescence": {"mate_search_depth": 0, "priority": None},
    "with quiescence and categories": {"mate_search_depth": 0},
    "with quiescence, categories and mate search": {},
}


def rows(plan: Plan) -> list[Row]:
    """Measures rates, call costs and threads."""
    with ours() as worker:
        return [*_rates(plan, worker), *_calls(plan, worker), _threads(plan, worker), *_mates(plan, worker)]


def _rates(plan: Plan, worker: Worker) -> list[Row]:
    sims = plan.size(2_000, 20)
    found = []
    for name, settings in FORMS.items():
        rates = [worker.rate("hybrid", seconds=plan.seconds, sims=sims, **settings) for _ in range(plan.rounds)]
        middle, lowest, highest = spread(rates)
        found.append(
            Row("hybrid", f"chess, {sims:,} simulations, {name}", "sims/s", middle, None, "", middle, lowest, highest)
        )
    return found


def _calls(plan: Plan, worker: Worker) -> list[Row]:
    """Returns microseconds per call without the overhead of the Python call."""
    found = []
    for name in ("mate search", "quiescence", "static evaluation", "categorisation"):
        costs = []
        for _ in range(plan.rounds):
            seconds = {
                what: 1.0 / worker.rate("call", seconds=plan.seconds / 2, what=what) for what in (name, "nothing")
            }
            costs.append(1e6 * (seconds[name] - seconds["nothing"]))
        middle, lowest, highest = spread(costs)
        found.append(Row("hybrid", f"one {name}", "us", middle, None, "", middle, lowest, highest))
    return found


def _threads(plan: Plan, worker: Worker) -> Row:
    """Measures wall time, which requires two idle cores; see roots.py."""
    sizes = {"sims": plan.size(20_000, 200), "in_flight": 64}
    pairs = []
    for number in range(plan.rounds + 2):
        order = (1, 2) if number % 2 == 0 else (2, 1)
        outputs = {threads: worker.do("hybrid_threads", threads=threads, **sizes) for threads in order}
        pairs.append((outputs[1], outputs[2]))
    if any(one["visits"] != two["visits"] for one, two in pairs):
        raise RuntimeError("two threads do not search as one does")
    calm = [one["wall"] / two["wall"] for one, two in pairs if one["cpu"] >= CALM * one["wall"]]
    return Row(
        bench="hybrid",
        what=f"one position, {sizes['sims']:,} simulations, 64 leaves in flight, 2 threads over 1, best pair",
        unit="sims/s",
        ours=max(sizes["sims"] / two["wall"] for _, two in pairs),
        peer=None,
        peer_name="",
        measured=max(calm, default=None),
        lowest=min(calm, default=None),
        highest=max(calm, default=None),
        bar=1.6,
        note=f"{len(calm)} of {len(pairs)} pairs undisturbed, load {os.getloadavg()[0]:.1f}",
    )


def _mates(plan: Plan, worker: Worker) -> list[Row]:
    """Returns the share of the mates of tests/mates (proven by python-chess alone) that are solved."""
    sims = plan.size(2_000, 20)
    found = []
    for moves, bar in ((2, 0.99), (3, 0.95), (4, 0.80)):
        answer = worker.do("mates", moves=moves, sims=sims, most=plan.size(1_000, 3))
        share = answer["found"] / answer["positions"]
        what = f"mates in {moves} answered by {sims:,} simulations, of {answer['positions']}"
        found.append(Row("hybrid", what, "share", share, None, "", share, bar=bar))
    return found
