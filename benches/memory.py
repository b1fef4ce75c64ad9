"""Memory of a tree: per simulation against OpenSpiel, and per stored edge."""

from __future__ import annotations

from typing import Any

from harness import Plan, Row, Worker, ours, peer

#: Game, its name, simulations, bar. Partly used blocks dominate small trees, which therefore have no bar.
PER_EDGE: tuple[tuple[str, str, int, float | None], ...] = (
    ("chess", "chess", 10_000, 24.0),
    ("chess", "chess", 1_000, None),
    ("connect_four", "Connect 4", 100_000, 28.0),
    ("connect_four", "Connect 4", 1_000, None),
)


def rows(plan: Plan) -> list[Row]:
    """Runs each search in its own process, so that no freed memory is reused."""
    settings = {"game": "connect_four", "sims": plan.size(1_000_000, 500)}
    here = _alone(ours(), settings)
    there = _alone(peer("openspiel", plan), settings)
    mine = here["resident"] / here["simulations"]
    theirs = None if there is None else there["resident"] / there["simulations"]
    what = f"Connect 4, {settings['sims']:,} simulations"
    found = [
        Row(
            bench="memory",
            what=f"growth of the process, {what}",
            unit="B/sim",
            ours=mine,
            peer=theirs,
            peer_name="OpenSpiel",
            measured=None if theirs is None else mine / theirs,
            bar=0.5,
            at_most=True,
        ),
        Row(
            bench="memory",
            what=f"result.memory, {what}",
            unit="B/sim",
            ours=here["reported"] / here["simulations"],
            peer=None,
            peer_name="",
            measured=None,
        ),
    ]
    for game, name, sims, bar in PER_EDGE:
        sims = plan.size(sims, 50)
        answer = _alone(ours(), {"game": game, "sims": sims})
        each = answer["reported"] / answer["edges"]
        found.append(
            Row(
                bench="memory",
                what=f"tree per stored edge, {name}, {sims:,} simulations",
                unit="B/edge",
                ours=each,
                peer=None,
                peer_name="",
                measured=each,
                bar=bar,
                at_most=True,
            )
        )
    return found


def _alone(worker: Worker | None, settings: dict[str, Any]) -> Any:
    if worker is None:
        return None
    with worker:
        return worker.do("memory", **settings)
