"""The engine's thread pool against rayon and plain threads: small jobs, a forest with a Python evaluator, latent trees.

It requires an engine compiled with the alternative pools:

    cargo build --release -p pondertree-bindings --features rayon
    cp target/release/lib_core.so python/pondertree/_core.abi3.so
    python benches/thread_pool.py

Pools alternate in one process, in random order within each round, so that other load affects all equally. Printed are
each pool's 15th percentile over the rounds (close to an idle machine), its median, and the median ratio to the built-in
pool within a round. `docs/decisions/001-thread-pool.md` has a record and the decision.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pondertree
from pondertree import _core
from pondertree.games import ConnectFour

POOLS = ("own", "rayon scope", "rayon broadcast", "std scope")
#: Measurements of a pool in one round by name, in microseconds.
Round = dict[str, float]

#: (Tasks of a small job, nanoseconds each): jobs of 0, 10, 50 and 200 us on one thread.
SMALL = ((8, 0), (8, 1250), (8, 6250), (8, 25_000))
#: Microseconds between small jobs.
GAPS = (0, 100, 1000, 10_000)

LATENT_TREES, LATENT_ACTIONS, LATENT_SIMULATIONS = 1024, 18, 50


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Returns microseconds of wall time and of CPU time of all threads."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - wall), 1e6 * (time.process_time() - cpu)


def small_jobs(threads: int, pieces: int, nanoseconds: int, gap: int) -> Round:
    """Measures the median and 99th percentile of a job's wall time, and its CPU time including the gap before it."""
    jobs = min(max(int(150_000 / (gap + pieces * nanoseconds / 1000 + 10)), 20), 1000)
    walls: list[int] = []
    run: Any = _core._time_jobs  # type: ignore[attr-defined]
    _, cpu = timed(lambda: walls.extend(run(threads, pieces, nanoseconds, gap, jobs)))
    p50, p99 = np.percentile(walls, [50, 99]) / 1000
    return {"p50": float(p50), "p99": float(p99), "cpu": cpu / jobs}


def forest(threads: int) -> Round:
    """Measures 256 trees of Connect 4 with 64 simulations each and a trivial Python evaluator."""

    def evaluate(observations: Any) -> tuple[None, Any]:
        return None, np.tanh(observations.sum(axis=(1, 2, 3)) - 20.0)

    search = pondertree.AlphaZero(evaluate, 64, threads=threads, seed=1)
    wall, cpu = timed(lambda: search.forest([ConnectFour()] * 256).simulate().actions())
    return {"wall": wall, "cpu": cpu}


class Latent:
    """A learned model by table lookup, which leaves only the engine's work."""

    def __init__(self, actions: int = LATENT_ACTIONS, rows: int = 4096) -> None:
        numbers = np.random.default_rng(0)
        self.outputs = numbers.normal(size=(rows, 2 + actions)).astype(np.float32)
        self.outputs[:, 1] = np.tanh(self.outputs[:, 1])

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """Returns any hidden state."""
        rows = self.outputs[: len(observations)]
        return observations, rows[:, 2:], rows[:, 1]

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, Any, Any, Any]:
        """Returns the next hidden state."""
        rows = self.outputs[: len(hidden)]
        return hidden, rows[:, 0], rows[:, 2:], rows[:, 1]


def latent(threads: int, model: Latent) -> Round:
    """Measures 1,024 trees in a model in two alternating groups, as with an accelerator, until results are read.

    The calling thread sleeps 100 us per batch in place of a network, which would take 120 us or more.
    """
    search = pondertree.MuZero(model=model, num_simulations=LATENT_SIMULATIONS, threads=threads, seed=1)
    seen = np.zeros((LATENT_TREES, 1), dtype=np.float32)
    spent: Round = {}
    trees: list[Any] = []

    def plant() -> None:
        trees.append(search.forest(observation=seen))

    def grow() -> None:
        core = trees[0]._core
        core.allow([LATENT_SIMULATIONS] * LATENT_TREES)
        sizes = core.form_groups(LATENT_TREES // 2)
        requests = [np.empty((size, 3), dtype=np.int64) for size in sizes]
        pending = [core.exchange_latent(group, None, requests[group]) for group in range(len(sizes))]
        while any(rows for rows, _ in pending):
            for group, (rows, _) in enumerate(pending):
                time.sleep(1e-4)
                pending[group] = core.exchange_latent(group, model.outputs[:rows], requests[group])

    spent["plant"], cpu_plant = timed(plant)
    spent["grow"], cpu_grow = timed(grow)
    spent["answer"], cpu_answer = timed(lambda: trees[0].actions())
    spent["drop"], cpu_drop = timed(trees.clear)
    spent["wall"] = spent["plant"] + spent["grow"] + spent["answer"] + spent["drop"]
    spent["cpu"] = cpu_plant + cpu_grow + cpu_answer + cpu_drop
    return spent


def compare(name: str, measure: Callable[[], Round], rounds: int) -> None:
    """Measures every pool in every round and prints a line per pool."""
    found: dict[str, list[Round]] = {pool: [] for pool in POOLS}
    order = random.Random(0)
    for number in range(rounds + 1):
        for pool in order.sample(POOLS, len(POOLS)):
            _core._choose_thread_pool(pool)  # type: ignore[attr-defined]
            spent = measure()
            if number:  # warm-up
                found[pool].append(spent)
    _core._choose_thread_pool("own")  # type: ignore[attr-defined]
    for pool in POOLS:
        cells = []
        for key in found[pool][0]:
            middle = statistics.median(spent[key] for spent in found[pool])
            pairs = zip(found[pool], found["own"], strict=True)
            ratio = statistics.median(other[key] / max(own[key], 1e-3) for other, own in pairs)
            low = np.percentile([spent[key] for spent in found[pool]], 15)
            cells.append(f"{key} {low:9.1f} {middle:9.1f} ({ratio:.2f})")
        print(f"{name:34} {pool:16} {'  '.join(cells)}", flush=True)


def main() -> None:
    """Runs all measurements, or those whose names contain a given text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    if not hasattr(_core, "_choose_thread_pool"):
        sys.exit("the engine was compiled without the feature rayon: see the top of this file")
    model = Latent()
    cases: dict[str, Callable[[], Round]] = {
        "forest, 256 x Connect 4": lambda: forest(given.threads),
        "latent, 1024 trees": lambda: latent(given.threads, model),
    }
    for pieces, nanoseconds in SMALL:
        for gap in GAPS:
            name = f"small, {pieces * nanoseconds // 1000} us, gap {gap} us"
            cases[name] = lambda p=pieces, n=nanoseconds, g=gap: small_jobs(given.threads, p, n, g)  # type: ignore[misc]
    print("microseconds: 15th percentile and median of the rounds; in parentheses the median ratio to ours in a round")
    for name, measure in cases.items():
        if not given.words or any(word in name for word in given.words):
            compare(name, measure, given.rounds)


if __name__ == "__main__":
    main()
