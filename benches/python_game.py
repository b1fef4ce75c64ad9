"""UCT on games written in Python, against searches written in Python, and games of arrays against the scalar form.

The game takes most of the time. All use the same class, whose methods have the names of each peer as well, and play one
random game per simulation.
"""

from __future__ import annotations

from contextlib import ExitStack

from harness import Plan, Row, compare_pair, ours, peer

GAMES = {"tic_tac_toe": "tic-tac-toe", "four_in_a_row": "four in a row, 7x7"}
#: Peers: their environment, the package within it, their name in the table, and the bar.
PEERS = (
    ("python", "mcts", "mcts", 2.0),
    ("python", "mctspy", "mctspy", 5.0),
    ("openspiel", "open_spiel", "OpenSpiel in Python", 3.0),
)


def rows(plan: Plan) -> list[Row]:
    """Measures each game against each peer."""
    sims = plan.size(2_000, 30)
    found = []
    with ExitStack() as stack:
        mine = stack.enter_context(ours())
        others = {name: peer(name, plan) for name in dict.fromkeys(environment for environment, *_ in PEERS)}
        for other in others.values():
            if other is not None:
                stack.enter_context(other)
        for game, title in GAMES.items():
            for environment, package, name, bar in PEERS:
                found.append(
                    compare_pair(
                        plan,
                        mine,
                        others[environment],
                        "python_uct",
                        {"game": game, "sims": sims},
                        other_settings={"game": game, "package": package, "sims": sims},
                        bench="python_game",
                        what=f"UCT, {title} in Python, {sims:,} simulations",
                        unit="sims/s",
                        peer_name=name,
                        bar=bar,
                    )
                )
        for trees in (64, 1024):
            found.append(
                compare_pair(
                    plan,
                    mine,
                    mine,
                    "arrays_uct",
                    {"trees": plan.size(trees, 2), "sims": plan.size(50, 5)},
                    other_settings={"trees": 0, "sims": plan.size(300, 5)},
                    bench="python_game",
                    what=f"UCT, Connect 4 as a game of arrays, {trees} trees",
                    unit="sims/s",
                    peer_name="the scalar form in NumPy",
                    bar=20.0 if trees == 1024 and plan.full else None,
                )
            )
    return found
