"""Cases of `UCT`."""

from __future__ import annotations

from functools import partial
from typing import Any

from fingerprint_cases.case import Cases, Options, named, run
from fingerprint_cases.positions import (
    COMPILED,
    LATE,
    PYTHON,
    board,
    first_actions,
    position,
    sims,
    with_evaluator,
)
from pondertree import UCT

UCT_OPTIONS: tuple[Options, ...] = (
    {},
    {"solve": False},
    {"c_param": 0.4},
    {"in_flight": 4},
    {"in_flight": 16, "threads": 4},
    {"in_flight": 4, "threads": 2, "solve": False},
    {"max_depth": 6},
    {"playout_policy": "decisive"},
    {"minimax_depth": 3, "num_simulations": 12, "solve": False},
    {"forced_depth": 4},
    {"forced_depth": 2, "minimax_depth": 2, "in_flight": 4},
    {"max_nodes": 100},
    {"early_stop": True},
)
#: Positions in which the minimax guard overrules few visits at this depth but not at depth - 1.
GUARDED = (
    ("tic_tac_toe", 4, 1),
    ("tic_tac_toe", 5, 3),
    ("connect_four", 9, 2),
    ("connect_four", 19, 4),
    ("connect_four", 23, 1),
    ("connect_four", 26, 3),
    ("connect_four", 39, 5),
    ("python_tic_tac_toe", 5, 3),
    ("python_tic_tac_toe", 10, 1),
)
UCT_EVALUATORS: tuple[tuple[str, Options], ...] = (
    ("table", {}),
    ("table", {"max_depth": 3}),
    ("table", {"in_flight": 16, "threads": 2}),
    ("states", {"in_flight": 4}),
    ("uniform", {}),
    ("rollout", {"max_depth": 4}),
)


def uct_cases() -> Cases:
    """Compiled and Python games, evaluators, playout policies, guards."""
    for game in COMPILED:
        for plies in (0, LATE[game]):
            root = partial(board, "mate_in_2") if game == "chess" and plies else partial(position, game, plies)
            for options in UCT_OPTIONS:
                search = partial(UCT, **{"num_simulations": sims(game, 1200), "seed": plies + 1, **options})
                yield named(f"UCT {game} {plies}", options), run(search, root)
        for kind, options in UCT_EVALUATORS:
            search = partial(with_evaluator, UCT, kind, game, num_simulations=sims(game, 400), seed=3, **options)
            yield named(f"UCT {game} {kind}", options), run(search, partial(position, game, 3))
        search = partial(UCT, sims(game, 120), seed=9)
        some = partial(first_actions, game, 4, 3)
        yield f"UCT {game} root_actions", run(search, partial(position, game, 4), root_actions=some())
        yield f"UCT {game} temperature", run(search, partial(position, game, 2), temperature=0.7, seeds=5)
    for game, plies, depth in GUARDED:
        guarded = partial(UCT, 4, seed=plies, minimax_depth=depth, solve=False)
        yield f"UCT {game} {plies} minimax guard", run(guarded, partial(position, game, plies))
    for game in PYTHON:
        root = partial(position, game, 1)
        for options in (UCT_OPTIONS[place] for place in (0, 1, 4, 6, 11)):
            yield named(f"UCT {game}", options), run(partial(UCT, 150, seed=2, **options), root)
        if game != "python_tic_tac_toe":
            search = partial(with_evaluator, UCT, "table", game, num_simulations=100, seed=3, in_flight=4)
            yield f"UCT {game} table", run(search, root)
    for game in ("python_tic_tac_toe", "two_players", "two_players_irregular"):
        for options in (UCT_OPTIONS[place] for place in (7, 8, 9, 10)):
            search = partial(UCT, **{"num_simulations": 200, "seed": 4, **options})
            yield named(f"UCT {game}", options), run(search, partial(position, game, 2))
    weights = partial(UCT, 100, seed=4, playout_policy=_weights)
    yield "UCT two_players playout weights", run(weights, partial(position, "two_players", 0))
    yield "UCT connect_four playout weights", run(weights, partial(position, "connect_four", 4))


def _weights(state: Any) -> list[float]:
    """A playout policy: even actions are three times as likely."""
    return [1.0 if action % 2 else 3.0 for action in state.legal_actions()]
