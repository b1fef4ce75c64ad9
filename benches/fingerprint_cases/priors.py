"""Cases of `AlphaZero` and `Gumbel` with evaluators."""

from __future__ import annotations

from functools import partial

from exact import mix

from fingerprint_cases.case import Cases, Options, named, run
from fingerprint_cases.positions import (
    COMPILED,
    LATE,
    PYTHON,
    board,
    first_actions,
    position,
    sims,
    table,
    with_evaluator,
)
from pondertree import AlphaZero, Gumbel

ALPHAZERO_OPTIONS: tuple[tuple[str, Options], ...] = (
    ("uniform", {}),
    ("uniform", {"c_puct": 2.5, "solve": False, "in_flight": 16}),
    ("rollout", {}),
    ("rollout", {"in_flight": 4, "threads": 2}),
    ("table", {}),
    ("table", {"solve": False}),
    ("table", {"in_flight": 4}),
    ("table", {"in_flight": 16, "threads": 4}),
    ("table", {"fpu": ("parent", 0.25)}),
    ("table", {"fpu": -1.0, "parent_visits": "edges"}),
    ("table", {"max_nodes": 50, "in_flight": 4}),
    ("table", {"early_stop": True}),
    ("ties", {}),
    ("ties", {"in_flight": 16, "parent_visits": "edges", "solve": False}),
    ("probabilities", {}),
    ("states", {"in_flight": 4}),
    ("packed", {}),
    ("packed", {"in_flight": 16}),
    ("function", {}),
    ("cached", {"in_flight": 4}),
    ("symmetric", {}),
    ("symmetric sample", {}),
)


def alphazero_cases() -> Cases:
    """Compiled and Python games with every form of evaluator, noise and limits."""
    for game in COMPILED:
        for place, (kind, options) in enumerate(ALPHAZERO_OPTIONS):
            search = partial(with_evaluator, AlphaZero, kind, game, num_simulations=sims(game, 600), seed=5, **options)
            yield (
                named(f"AlphaZero {game} {kind}", options),
                run(search, partial(position, game, 3 * place % LATE[game] if game != "chess" else place)),
            )
        search = partial(with_evaluator, AlphaZero, "table", game, num_simulations=sims(game, 200), seed=6)
        for options in ({}, {"forced_playouts": 2.0}, {"dirichlet_alpha": ("total", 10.0), "dirichlet_epsilon": 0.5}):
            noisy = run(partial(search, **options), partial(position, game, 1), add_noise=True, temperature=1.0)
            yield named(f"AlphaZero {game} noise", options), noisy
        forced = partial(with_evaluator, AlphaZero, "ties", game, num_simulations=150, seed=6, forced_playouts=3.0)
        yield f"AlphaZero {game} ties forced_playouts", run(forced, partial(position, game, 1))
        some = first_actions(game, 4, 2)
        yield f"AlphaZero {game} root_actions", run(search, partial(position, game, 4), root_actions=some)
    for kind, options in (("pesto", {}), ("pesto", {"in_flight": 4, "fpu": ("parent", 0.1)})):
        search = partial(with_evaluator, AlphaZero, kind, "chess", num_simulations=80, seed=5, **options)
        yield named("AlphaZero chess pesto", options), run(search, partial(board, "tactics"))
    yield (
        "AlphaZero.connect_four",
        run(lambda: AlphaZero.connect_four(table("connect_four"), 200, seed=1), partial(position, "connect_four", 0)),
    )
    for game in PYTHON:
        for kind, options in (
            ("uniform", {}),
            ("rollout", {"in_flight": 4}),
            ("table", {"in_flight": 16, "threads": 2}),
            ("ties", {"solve": False, "fpu": ("parent", 0.2)}),
        ):
            if game == "python_tic_tac_toe" and kind in ("table", "ties"):
                continue
            search = partial(with_evaluator, AlphaZero, kind, game, num_simulations=120, seed=7, **options)
            yield named(f"AlphaZero {game} {kind}", options), run(search, partial(position, game, 0))


GUMBEL_OPTIONS: tuple[Options, ...] = (
    {},
    {"in_flight": 4},
    {"gumbel_scale": 0.0},
    {"max_num_considered_actions": 4, "use_mixed_value": False},
    {"rescale_values": False, "value_scale": 0.5, "maxvisit_init": 20},
    {"solve": False, "in_flight": 16, "threads": 2},
)


def gumbel_cases() -> Cases:
    """Compiled and Python games with evaluators."""
    for game in COMPILED:
        for place, options in enumerate(GUMBEL_OPTIONS):
            kind = ("table", "packed", "uniform", "table", "rollout", "ties")[place]
            search = partial(with_evaluator, Gumbel, kind, game, num_simulations=32 + 30 * place, seed=8, **options)
            yield named(f"Gumbel {game} {kind}", options), run(search, partial(position, game, place))
        few = partial(with_evaluator, Gumbel, "table", game, num_simulations=3, seed=8)
        yield f"Gumbel {game} 3 simulations", run(few, partial(position, game, 2), add_noise=False)
    for game in ("one_player", "two_players", "two_players_irregular", "rewards_1", "rewards_2"):
        search = partial(with_evaluator, Gumbel, "table", game, num_simulations=50, seed=8)
        yield f"Gumbel {game} table", run(search, partial(position, game, 0))
    given = [mix(action) % 65 / 16 - 2.0 for action in range(7)]
    search = partial(with_evaluator, Gumbel, "table", "connect_four", num_simulations=40, gumbel=given, seed=1)
    yield "Gumbel connect_four gumbel", run(search, partial(position, "connect_four", 1))
