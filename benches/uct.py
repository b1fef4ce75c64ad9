"""UCT with one random playout per simulation, against OpenSpiel's C++ search.

Both searches use UCB1 with the same constant, complete playouts, random tie-breaking, no proofs, and a new tree per
search from the starting position.

Rules are equal, too. OpenSpiel's chess is drawn by threefold repetition, by the 50-move rule, by stalemate and by
insufficient material (bare kings, one knight, bishops of one colour; not two knights); within a search Pondertree
applies the same draws. (Elsewhere threefold repetition and the 50-move rule must be claimed, and the automatic draws
are fivefold repetition and 75 moves.) Othello has passes and ends when neither side can move. The mean playout length
is measured as a check. OpenSpiel draws one outcome of a chance node for each simulation; Pondertree visits them
in proportion to their probabilities. A move of OpenSpiel's backgammon plays both dice.
"""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, compare_pair, ours, peer

NAMES = {
    "connect_four": "Connect 4",
    "tic_tac_toe": "tic-tac-toe",
    "othello": "Othello",
    "chess": "chess",
    "pig": "Pig",
    "backgammon": "backgammon",
}

#: Game, simulations, bar.
CASES: tuple[tuple[str, int, float | None], ...] = (
    ("connect_four", 10_000, 20.0),
    ("tic_tac_toe", 10_000, 3.0),
    ("othello", 2_000, 25.0),
    ("chess", 1_000, 12.0),
    ("pig", 10_000, 10.0),
    ("backgammon", 2_000, 10.0),
    ("connect_four", 1_000, None),
    ("connect_four", 100_000, None),
)

#: Games for the mean playout length.
LENGTHS = {"connect_four": 4_000, "tic_tac_toe": 4_000, "othello": 1_000, "chess": 300}


def rows(plan: Plan) -> list[Row]:
    """Measures speed and playout lengths."""
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
                compare_pair(
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
