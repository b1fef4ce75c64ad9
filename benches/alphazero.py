"""AlphaZero's search with a compiled constant evaluator, a Python evaluator and a network.

The peer is OpenSpiel's Python search. Its C++ search takes no Python evaluator, so the bars against it are scaled by
CPP_OVER_PYTHON, the measured ratio of both with a constant evaluator.
"""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, Worker, compare_pair, ours, peer

NAMES = {"connect_four": "Connect 4", "chess": "chess"}
CPP_OVER_PYTHON = {"connect_four": 1.07e6 / 28e3, "chess": 87e3 / 17e3}
COMPILED_BARS = {"connect_four": 5.0, "chess": 8.0}
PYTHON_BARS = {"connect_four": 30.0, "chess": 20.0}


def rows(plan: Plan) -> list[Row]:
    """Measures speed against the peer, then absolute figures."""
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        other = peer("openspiel", plan)
        if other is not None:
            stack.enter_context(other)
        for game, name in NAMES.items():
            found.append(compiled(plan, mine, other, game, name))
            found.append(in_python(plan, mine, other, game, name))
        found += network(plan, mine)
        found.append(chess_memory(plan, mine))
    return found


def compiled(plan: Plan, mine: Worker, other: Worker | None, game: str, name: str) -> Row:
    """Compares a compiled constant evaluator with OpenSpiel in C++ (scaled)."""
    sims = plan.size(800, 30)
    row = compare_pair(
        plan,
        mine,
        other,
        "puct_compiled",
        {"game": game, "sims": sims},
        bench="alphazero",
        what=f"PUCT, free evaluator compiled, {name}, {sims} simulations",
        unit="sims/s",
        peer_name="OpenSpiel C++, scaled",
        bar=COMPILED_BARS[game],
    )
    if row.peer is None or row.measured is None or row.lowest is None or row.highest is None:
        return row
    scale = CPP_OVER_PYTHON[game]
    return Row(
        **{
            **{field: getattr(row, field) for field in ("bench", "what", "unit", "ours", "peer_name", "bar")},
            "peer": row.peer * scale,
            "measured": row.measured / scale,
            "lowest": row.lowest / scale,
            "highest": row.highest / scale,
        }
    )


def in_python(plan: Plan, mine: Worker, other: Worker | None, game: str, name: str) -> Row:
    """Measures a constant NumPy evaluator on packed states, with 64 games per batch."""
    sims = plan.size(800, 30)
    return compare_pair(
        plan,
        mine,
        other,
        "puct_python",
        {"game": game, "sims": sims, "batch": plan.size(64, 4)},
        other_settings={"game": game, "sims": sims},
        bench="alphazero",
        what=f"PUCT, free evaluator in Python, {name}, {sims} simulations, 64 games",
        unit="sims/s",
        peer_name="OpenSpiel Python",
        bar=PYTHON_BARS[game],
    )


def network(plan: Plan, mine: Worker) -> list[Row]:
    """Measures a 5 x 64 network on ONNX Runtime with one thread."""
    batch = mine.do("tree_share", games=plan.size(32, 4), sims=plan.size(200, 10))
    found = [
        Row(
            bench="alphazero",
            what="Connect 4, 5x64 network, 32 games: the tree's share of the time",
            unit="",
            ours=batch["share"],
            peer=None,
            peer_name="",
            measured=batch["share"],
            bar=0.05,
            at_most=True,
        )
    ]
    for in_flight in (1, 8):
        move = mine.do("one_move", sims=plan.size(100, 10), in_flight=in_flight)
        split = ", ".join(f"{part} {share:.0%}" for part, share in move["split"].items())
        found.append(
            Row(
                bench="alphazero",
                what=f"one Connect 4 move, 100 simulations, 5x64 network, in_flight {in_flight} "
                f"(mean depth {move['depth']:.1f}, deepest {move['deepest']}; {split})",
                unit="ms",
                ours=move["milliseconds"],
                peer=None,
                peer_name="",
                measured=None,
            )
        )
    return found


def chess_memory(plan: Plan, mine: Worker) -> Row:
    """Measures the memory of one chess search, node headers included."""
    size = mine.do("puct_memory", game="chess", sims=plan.size(800, 30))["bytes"] / 1e6
    return Row(
        bench="alphazero",
        what="a chess search of 800 simulations",
        unit="MB",
        ours=size,
        peer=None,
        peer_name="",
        measured=size,
        bar=1.0,
        at_most=True,
    )
