"""UCT with one random playout a simulation, against the C++ search of OpenSpiel.

The same search on both sides: UCB1 with the same weight, from the start, whole playouts, ties broken at random, nothing
proven, a new tree for each search.

The same games too. OpenSpiel's chess is drawn at the third repetition, after 100 half-moves without capture or pawn
move, by stalemate, and where neither side has the pieces for a mate (bare kings, one knight, bishops of one colour; two
knights play on). Inside a search, that is what ends a game of chess here as well. (Outside of one, the first two are
draws that may be claimed, and a game ends by itself at the fifth repetition and after 150 half-moves.) Othello has
passes on both sides and ends when nobody can move. That the playouts are of one kind shows in their mean length, which
is measured too.
"""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, duel, ours, peer

NAMES = {"connect_four": "Connect 4", "tic_tac_toe": "tic-tac-toe", "othello": "Othello", "chess": "chess"}

#: Game, simulations, bar.
CASES: tuple[tuple[str, int, float | None], ...] = (
    ("connect_four", 10_000, 20.0),
    ("tic_tac_toe", 10_000, 3.0),
    ("othello", 2_000, 25.0),
    ("chess", 1_000, 12.0),
    ("connect_four", 1_000, None),
    ("connect_four", 100_000, None),
)

#: Games whose mean length is taken.
LENGTHS = {"connect_four": 4_000, "tic_tac_toe": 4_000, "othello": 1_000, "chess": 300}


def rows(plan: Plan) -> list[Row]:
    """Speed, then lengths."""
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        other = peer("openspiel", plan)
        if other is not None:
            stack.enter_context(other)
        for game, sims, bar in CASES:
            settings = {"game": game, "sims": plan.size(sims, 50)}
            what = f"UCT, {NAMES[game]}, {settings['sims']:,} simulations"
            found.append(
                duel(
                    plan,
                    mine,
                    other,
                    "uct",
                    settings,
                    bench="uct",
                    what=what,
                    unit="sims/s",
                    peer_name="OpenSpiel",
                    bar=bar,
                )
            )
        for game, games in LENGTHS.items():
            settings = {"game": game, "games": plan.size(games, 5)}
            here = mine.do("playout_length", **settings)["mean"]
            there = None if other is None else other.do("playout_length", **settings)["mean"]
            found.append(
                Row(
                    bench="uct",
                    what=f"mean length of a random game, {NAMES[game]}",
                    unit="moves",
                    ours=here,
                    peer=there,
                    peer_name="OpenSpiel",
                    measured=None if there is None else here / there,
                )
            )
    return found
