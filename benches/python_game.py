"""UCT on a game written in Python, against searches written in Python. The game dominates the time."""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, compare_pair, ours, peer


def rows(plan: Plan) -> list[Row]:
    """Measures both; without a bar."""
    sims = plan.size(2_000, 30)
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        other = peer("python", plan)
        if other is not None:
            stack.enter_context(other)
        for package in ("mcts", "mctspy"):
            found.append(
                compare_pair(
                    plan,
                    mine,
                    other,
                    "python_uct",
                    {"sims": sims},
                    other_settings={"package": package, "sims": sims},
                    bench="python_game",
                    what=f"UCT, tic-tac-toe in Python, {sims:,} simulations",
                    unit="sims/s",
                    peer_name=package,
                )
            )
    return found
