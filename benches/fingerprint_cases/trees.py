"""Cases of large trees, of tree reuse, of forests, and of traces."""

from __future__ import annotations

from functools import partial

from fingerprint_cases.case import Cases, forest, named, reused, run, traced
from fingerprint_cases.models import MODELS, muzero_model, observation
from fingerprint_cases.positions import (
    COMPILED,
    PYTHON,
    board,
    first_actions,
    position,
    rows_of,
    sims,
    with_evaluator,
)
from pondertree import UCT, AlphaZero, Gumbel, Hybrid


def large_cases() -> Cases:
    """Trees that outgrow the first allocations."""
    for game, full in (("tic_tac_toe", 20_000), ("connect_four", 20_000), ("othello", 5_000), ("chess", 2_000)):
        yield f"large UCT {game}", run(partial(UCT, full, seed=25), partial(position, game, 0))
        for kind, options in (("uniform", {}), ("packed", {"in_flight": 16})):
            search = partial(with_evaluator, AlphaZero, kind, game, num_simulations=full // 4, seed=25, **options)
            yield named(f"large AlphaZero {game} {kind}", options), run(search, partial(position, game, 0))
    for actions, full in ((6, 5_000), (300, 1_000)):
        muzero = partial(muzero_model, {"num_actions": actions, "rewards": 0.5}, {"num_simulations": full})
        yield f"large MuZero {actions}", run(muzero, observation)
    for name in ("middlegame", "tactics"):
        yield f"large Hybrid {name}", run(partial(Hybrid, num_simulations=1_000, seed=25), partial(board, name))
    yield "large kept UCT", reused(partial(UCT, 5_000, seed=25), partial(position, "connect_four", 0), 6)
    yield (
        "large kept Hybrid",
        reused(partial(Hybrid, num_simulations=400, seed=25), partial(board, "pawns"), 6),
    )


def reuse_cases() -> Cases:
    """Trees that are advanced move by move."""
    for game in (*COMPILED, *PYTHON):
        for options in ({}, {"in_flight": 4, "solve": False}):
            search = partial(UCT, sims(game, 120), seed=14, **options)
            yield named(f"kept UCT {game}", options), reused(search, partial(position, game, 0), 5)
        if game != "python_tic_tac_toe":
            search = partial(with_evaluator, AlphaZero, "table", game, num_simulations=sims(game, 100), seed=15)
            yield f"kept AlphaZero {game}", reused(search, partial(position, game, 1), 5, add_noise=True)
    for game in COMPILED:
        small = partial(UCT, sims(game, 120), seed=14, max_nodes=50)
        yield f"kept UCT {game} max_nodes", reused(small, partial(position, game, 0), 4)
        search = partial(with_evaluator, AlphaZero, "uniform", game, num_simulations=sims(game, 150), seed=15)
        yield f"kept AlphaZero {game} uniform", reused(search, partial(position, game, 1), 6)
        gumbel = partial(with_evaluator, Gumbel, "table", game, num_simulations=30, seed=16)
        yield f"kept Gumbel {game}", reused(gumbel, partial(position, game, 1), 4)
    for priority in ("strict", "prior"):
        for name in ("tactics", "mate_in_2", "pawn_ending"):
            hybrid = partial(Hybrid, num_simulations=50, priority=priority, seed=17)
            yield f"kept Hybrid {name} {priority}", reused(hybrid, partial(board, name), 4)
    for place, (model, options) in enumerate(MODELS):
        if model["num_actions"] < 1000:
            yield (
                named(f"kept MuZero {place}", options),
                reused(partial(muzero_model, model, options), observation, 4),
            )


def forest_cases() -> Cases:
    """Forests by number of threads, with simulations and seeds per tree."""
    for game in COMPILED:
        rows = partial(rows_of, game, 7)
        for threads in (1, 2, 4):
            search = partial(UCT, sims(game, 80), seed=18, threads=threads)
            yield f"forest UCT {game} threads={threads}", forest(search, rows)
            search = partial(with_evaluator, AlphaZero, "uniform", game, num_simulations=40, seed=19, threads=threads)
            yield f"forest AlphaZero {game} uniform threads={threads}", forest(search, rows)
            options = {"num_simulations": 32, "seed": 19, "threads": threads, "in_flight": 4}
            search = partial(with_evaluator, AlphaZero, "packed", game, **options)
            noise = [row % 2 == 0 for row in range(7)]
            yield f"forest AlphaZero {game} packed threads={threads}", forest(search, rows, add_noise=noise)
        counts = [10 + 13 * row for row in range(7)]
        search = partial(with_evaluator, AlphaZero, "table", game, num_simulations=counts, seed=20)
        yield f"forest AlphaZero {game} counts", forest(search, rows, seeds=[1, 2, 3, 3, 5, 8, 13])
        search = partial(with_evaluator, Gumbel, "table", game, num_simulations=20, seed=20)
        yield f"forest Gumbel {game}", forest(search, rows, temperature=[0.0, 1.0, 0.5, 0.0, 2.0, 1.0, 0.0])
    for game in PYTHON:
        search = partial(UCT, 40, seed=21, threads=2, in_flight=4)
        yield f"forest UCT {game}", forest(search, partial(rows_of, game, 4), n=[30, 20, 10, 40])
    some = [first_actions("connect_four", row, 1 + row) for row in range(7)]
    search = partial(with_evaluator, AlphaZero, "table", "connect_four", num_simulations=40, seed=20)
    yield "forest AlphaZero root_actions", forest(search, partial(rows_of, "connect_four", 7), root_actions=some)
    search = partial(Hybrid, num_simulations=30, seed=22, threads=2)
    yield "forest Hybrid", forest(search, lambda: [board(name) for name in ("middlegame", "tactics", "pawns")])


def trace_cases() -> Cases:
    """Every term of every descent."""
    for game in COMPILED:
        yield f"trace UCT {game}", traced(partial(UCT, 60, seed=23, trace=True), partial(position, game, 2))
        for preset in (AlphaZero, Gumbel):
            search = partial(with_evaluator, preset, "table", game, num_simulations=40, seed=23, trace=True)
            yield f"trace {preset.__name__} {game}", traced(search, partial(position, game, 2))
    for priority in ("strict", "tactical", "prior", None):
        hybrid = partial(Hybrid, num_simulations=40, priority=priority, seed=23, trace=True)
        yield f"trace Hybrid {priority}", traced(hybrid, partial(board, "tactics"))
    for place, (model, options) in enumerate(MODELS):
        if model["num_actions"] < 100 and "early_stop" not in options:
            muzero = partial(muzero_model, model, {**options, "num_simulations": 30, "trace": True})
            roots = {"observation": [observation()["observation"]]}
            yield named(f"trace MuZero {place}", options), traced(muzero, roots.copy)
    three = partial(position, "three_players", 0)
    yield "trace UCT three_players", traced(partial(UCT, 60, seed=23, trace=True), three)
