"""Chess perft: leaves per second, with bulk counting at the last ply."""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, compare_pair, ours, peer

#: Name, FEN, depth, depth of the quick run. Kiwipete is the standard test position of move generators.
POSITIONS = (
    ("the start", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 6, 3),
    ("Kiwipete", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5, 3),
)
BAR = 120e6


def rows(plan: Plan) -> list[Row]:
    """Measures perft; the bar is on the absolute rate."""
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        other = peer("chess", plan)
        if other is not None:
            stack.enter_context(other)
        for name, fen, full, tiny in POSITIONS:
            depth = plan.size(full, tiny)
            what = f"perft {depth} from {name}"
            row = compare_pair(
                plan,
                mine,
                other,
                "perft",
                {"fen": fen, "depth": depth},
                bench="perft",
                what=f"{what}, against a peer",
                unit="leaves/s",
                peer_name="chessmg",
            )
            found.append(
                Row(
                    bench="perft",
                    what=what,
                    unit="leaves/s",
                    ours=row.ours,
                    peer=None,
                    peer_name="",
                    measured=row.ours,
                    bar=BAR,
                )
            )
            found.append(row)
    return found
