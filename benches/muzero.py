"""MuZero and Gumbel search in a learned model: batches of 64 trees, hidden states of 64 numbers.

The model produces unbalanced trees (see uneven.py). The peers are LightZero, with compiled trees and a Python loop, and
mctx, compiled including the model, here for the CPU. Timings include reading visits and values, or actions and
policies. Parameters are equal: against LightZero one player, no noise, values normalised by the bounds of the tree;
against mctx two players, noise at the root, values normalised by the bounds of the node.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from harness import Plan, Row, Worker, compare_pair, ours, peer, spread

NAMES = {"muzero": "MuZero", "gumbel": "Gumbel"}
#: By the number of actions.
TREE_BARS = {7: 3.0, 64: 8.0}
LOOP_BARS = {7: 4.0, 64: 8.0}
MCTX_BARS = {"muzero": 15.0, "gumbel": 5.0}
GROWTH_BAR = 1.5
MEMORY_BAR = 500.0
MIB = 2**20


def rows(plan: Plan) -> list[Row]:
    """Measures speed, scaling and memory."""
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        lightzero, mctx = (peer(name, plan) for name in ("lightzero", "mctx"))
        for worker in (lightzero, mctx):
            if worker is not None:
                stack.enter_context(worker)
        for actions in TREE_BARS:
            sizes = {"actions": actions, "sims": plan.size(50, 5), "batch": plan.size(64, 3)}
            found += against_lightzero(plan, mine, lightzero, sizes)
            found += against_mctx(plan, mine, mctx, sizes)
        found += growth(plan, mine, mctx)
    return found + memory(plan)


def against_lightzero(plan: Plan, mine: Worker, other: Worker | None, sizes: dict[str, int]) -> list[Row]:
    """Compares the compiled part of both, then the complete loop."""
    actions = sizes["actions"]
    common: dict[str, Any] = {"bench": "muzero", "unit": "sims/s", "peer_name": "LightZero"}
    bars = {"muzero": TREE_BARS[actions], "gumbel": None}
    found = [
        compare_pair(
            plan,
            mine,
            other,
            "latent_tree",
            {"algorithm": algorithm, **sizes},
            what=f"{NAMES[algorithm]}, trees alone, answers prepared, {_sizes(sizes)}",
            bar=bar,
            **common,
        )
        for algorithm, bar in bars.items()
    ]
    what = f"MuZero, whole loop, answers prepared, {_sizes(sizes)}"
    return [*found, compare_pair(plan, mine, other, "latent_loop", sizes, what=what, bar=LOOP_BARS[actions], **common)]


def against_mctx(plan: Plan, mine: Worker, other: Worker | None, sizes: dict[str, int]) -> list[Row]:
    """Compares complete searches with the same model, then ours with precomputed model outputs."""
    found = []
    for algorithm, bar in MCTX_BARS.items():
        given = {"algorithm": algorithm, **sizes}
        for model, said, judged in (("sines", "model in NumPy", bar), ("recited", "answers prepared", None)):
            found.append(
                compare_pair(
                    plan,
                    mine,
                    other,
                    "latent_search",
                    {**given, "model": model},
                    other_settings=given,
                    bench="muzero",
                    what=f"{NAMES[algorithm]}, whole search, {said}, {_sizes(sizes)}",
                    unit="sims/s",
                    peer_name="mctx",
                    bar=judged,
                )
            )
    return found


def growth(plan: Plan, mine: Worker, other: Worker | None) -> list[Row]:
    """Measures the cost per simulation of a long search relative to a short one."""
    short, long = plan.size(50, 5), plan.size(800, 20)
    found = []
    for job, algorithm, what, bar in (
        ("latent_tree", "muzero", "MuZero, trees alone", GROWTH_BAR),
        ("latent_search", "muzero", "MuZero, whole search", GROWTH_BAR),
        ("latent_search", "gumbel", "Gumbel, whole search", None),
    ):
        sizes = {"algorithm": algorithm, "actions": 7, "batch": plan.size(64, 3)}
        middle, lowest, highest = spread(_growth(plan, plan.rounds, mine, job, sizes, short, long))
        # A long search of mctx takes seconds: one suffices.
        there = None if other is None or job == "latent_tree" else _growth(plan, 1, other, job, sizes, short, long)
        found.append(
            Row(
                bench="muzero",
                what=f"{what}: cost of a simulation, {long} simulations over {short}, 7 actions",
                unit="",
                ours=middle,
                peer=None if there is None else statistics.median(there),
                peer_name="mctx",
                measured=middle,
                lowest=lowest,
                highest=highest,
                bar=bar,
                at_most=True,
            )
        )
    return found


def _growth(
    plan: Plan, rounds: int, worker: Worker, job: str, sizes: dict[str, Any], short: int, long: int
) -> list[float]:
    found = []
    for number in range(rounds):
        order = (short, long) if number % 2 == 0 else (long, short)
        rates = {sims: worker.rate(job, seconds=plan.seconds, sims=sims, **sizes) for sims in order}
        found.append(rates[short] / rates[long])
    return found


def memory(plan: Plan) -> list[Row]:
    """Measures a large action space, each side in its own process."""
    sizes = {"actions": plan.size(4672, 50), "sims": plan.size(200, 5), "batch": plan.size(64, 3)}
    with ours() as worker:
        here = worker.do("latent_memory", **sizes)
    there = None
    other = peer("mctx", plan)
    if other is not None:
        with other:
            there = other.do("latent_memory", **sizes)["peak"] / MIB
    held = (here["trees"] + here["hidden"]) / MIB
    return [
        Row(
            bench="muzero",
            what=f"MuZero, {what}, {_sizes(sizes)}",
            unit="MiB",
            ours=ours_mib,
            peer=peer_mib,
            peer_name="mctx",
            measured=ours_mib,
            bar=MEMORY_BAR,
            at_most=True,
            note="" if peer_mib is None else "the peer's by its compiler's count",
        )
        for what, ours_mib, peer_mib in (
            ("trees and hidden states, capacity counted", held, there),
            ("growth of the process at its peak", here["peak"] / MIB, None),
        )
    ]


def _sizes(sizes: dict[str, int]) -> str:
    return f"{sizes['actions']} actions, {sizes['sims']} simulations, batch {sizes['batch']}"
