"""The workloads of `ablation.py`, as a worker process (see worker.py) that loads the engine from `ABLATION_LIBRARY`."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from worker import resident_bytes, serve

#: The module, its file and, if it was compiled with several thread pools, the pool.
CORE, LIBRARY, POOL = "pondertree._core", os.environ["ABLATION_LIBRARY"], os.environ.get("ABLATION_POOL")
_spec = importlib.util.spec_from_file_location(CORE, LIBRARY)
assert _spec is not None
assert _spec.loader is not None
sys.modules[CORE] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[CORE])
if POOL:
    sys.modules[CORE]._choose_thread_pool(POOL)

from kernels import KERNELS, PARALLEL, TACTICS, Kernel, PreparedPacked, Work, timed  # noqa: E402
from thread_pool import Latent  # noqa: E402

from pondertree import UCT, AlphaZero, Gumbel, Hybrid, MuZero, evaluators, games  # noqa: E402


def _batch(make: Callable[[int], Any], sims: int, roots: Any, noise: bool, threads: int) -> Work:
    search = make(threads)
    start = {"observation": roots} if isinstance(roots, np.ndarray) else {"states": roots}

    def work() -> int:
        search.forest(**start, seeds=1).simulate(add_noise=noise).visits()
        return len(roots) * sims

    return work


def _trees(preset: Any, evaluator: Any, sims: int, roots: Any, noise: bool = False) -> Callable[[int], Kernel]:
    settings = {"seed": 1, **({} if evaluator is None else evaluator)}
    make = lambda threads: preset(num_simulations=sims, threads=threads, **settings)  # noqa: E731
    return lambda threads: partial(_batch, make, sims, roots, noise, threads)


def _latent(preset: Any, actions: int, sims: int, rows: int, noise: bool = False) -> Callable[[int], Kernel]:
    model = Latent(actions, rows)
    return _trees(preset, {"model": model, "num_players": 1}, sims, np.zeros((rows, 1), np.float32), noise)


def _packed(game: Any, actions: int, sims: int, rows: int, noise: bool = False) -> Callable[[int], Kernel]:
    return _trees(AlphaZero, {"evaluator": PreparedPacked(actions, rows)}, sims, [game()] * rows, noise)


def _hybrid(threads: int) -> Kernel:
    def prepare() -> Work:
        search = Hybrid(num_simulations=5000, in_flight=64, threads=threads, seed=1)
        tree = search.tree(games.Chess(TACTICS), seeds=1).simulate(1)
        return lambda: int(tree.simulate(4000).result().simulations)

    return prepare


#: By name, on any number of threads.
MANY: dict[str, Callable[[int], Kernel]] = {
    "UCT Connect 4, 1024 trees x 200": _trees(UCT, None, 200, [games.ConnectFour()] * 1024),
    "AlphaZero Connect 4, 256 trees x 64": _packed(games.ConnectFour, 7, 64, 256),
    "AlphaZero Connect 4, 1024 trees x 64": _packed(games.ConnectFour, 7, 64, 1024),
    "AlphaZero Connect 4, 1024 trees x 8, noise": _packed(games.ConnectFour, 7, 8, 1024, True),
    "AlphaZero Connect 4, 8192 trees x 16": _packed(games.ConnectFour, 7, 16, 8192),
    "AlphaZero chess, 256 trees x 64": _packed(games.Chess, 4672, 64, 256),
    "AlphaZero chess, 2048 trees x 16": _packed(games.Chess, 4672, 16, 2048),
    "MuZero, 18 actions, 1024 trees x 50, noise": _latent(MuZero, 18, 50, 1024, True),
    "MuZero, 18 actions, 1024 trees x 4": _latent(MuZero, 18, 4, 1024),
    "Gumbel MuZero, 18 actions, 1024 trees x 32": _latent(Gumbel, 18, 32, 1024),
    "MuZero, 4672 actions, 64 trees x 30": _latent(MuZero, 4672, 30, 64),
    "MuZero, 4672 actions, 64 trees x 4, noise": _latent(MuZero, 4672, 4, 64, True),
    "Hybrid chess, 64 leaves in flight": _hybrid,
}


def _single(game: Any, preset: Any, sims: int, **settings: Any) -> Work:
    search = preset(num_simulations=sims, seed=1, **settings)
    return lambda: int(search.run(game(), seeds=1).simulations)


#: One tree far larger than the caches.
LARGE: dict[str, Kernel] = {
    "UCT Connect 4, one tree x 300,000": partial(_single, games.ConnectFour, UCT, 300_000),
    "AlphaZero chess, Uniform, one tree x 60,000": partial(
        _single, games.Chess, AlphaZero, 60_000, evaluator=evaluators.Uniform()
    ),
}


def workloads(threads: int) -> dict[str, tuple[Kernel, int]]:
    """Returns kernels by name, with the number of their threads: 1, 2 or `threads`."""
    single = KERNELS | LARGE | {name: make(1) for name, make in MANY.items()}
    many = {f"{name}, {threads} threads": (make(threads), threads) for name, make in MANY.items()}
    return {name: (each, 1) for name, each in single.items()} | {n: (each, 2) for n, each in PARALLEL.items()} | many


def measure(name: str, threads: int, seconds: float) -> dict[str, float]:
    """Runs a workload once to warm up, then for `seconds` on each of its threads."""
    kernel, width = workloads(threads)[name]
    return timed(kernel, seconds * width) | {"memory": resident_bytes()}


if __name__ == "__main__":
    serve(rates={}, handlers={"measure": measure, "names": lambda threads: list(workloads(threads))})
