"""The kernels of `instructions.py` and `compare.py`; run as a script, a worker process (see worker.py).

Only public names are used, so that the same kernels run with other versions of the package. Networks are replaced by
prepared arrays, so that nearly all of the work is the engine's and the Python layer's.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tic_tac_toe
from uneven import HIDDEN, RecordedModel
from worker import serve

import pondertree
from pondertree import UCT, AlphaZero, Gumbel, Hybrid, MuZero, evaluators, games

#: One unit of work; returns its simulations, or moves.
Work = Callable[[], int]
#: Creates a unit of work; the setup is neither counted nor timed.
Kernel = Callable[[], Work]

TACTICS = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


class Prepared:
    """An evaluator that returns slices of precomputed arrays, independent of its input."""

    def __init__(self, num_actions: int, rows: int = 64) -> None:
        self._logits = np.linspace(-2.0, 2.0, rows * num_actions, dtype=np.float32).reshape(rows, num_actions)
        self._values = np.linspace(-0.5, 0.5, rows)

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        """(logits [B, num_actions], values [B])."""
        return self._logits[: len(observations)], self._values[: len(observations)]


class PreparedPacked(Prepared):
    """The same in the packed form."""

    def evaluate_packed(self, packed: Any) -> tuple[Any, Any]:
        """(logits of the legal actions [L], values [B])."""
        return self._logits.reshape(-1)[: len(packed.legal_actions)], self._values[: len(packed)]


def _run(search: Any, roots: Any, sims: int) -> Work:
    if not isinstance(roots, list):
        return lambda: int(search.run(roots, seeds=1).simulations)

    def work() -> int:
        search.forest(roots, seeds=1).simulate().visits()
        return len(roots) * sims

    return work


def _uct(start: Callable[[], Any], sims: int, rows: int = 0, threads: int = 1) -> Work:
    return _run(UCT(sims, seed=1, threads=threads), [start()] * rows if rows else start(), sims)


def _calls(sims: int, calls: int) -> Work:
    search = UCT(sims, seed=1)
    start = games.ConnectFour()

    def work() -> int:
        for _ in range(calls):
            result = search.run(start, seeds=1)
            _ = result.action, result.value, result.policy
        return calls

    return work


def _puct(
    start: Callable[[], Any], evaluator: Callable[[], Any], sims: int, rows: int, preset: Any = AlphaZero
) -> Work:
    return _run(preset(evaluator(), num_simulations=sims, seed=1), [start()] * rows if rows else start(), sims)


def _latent(preset: Any, actions: int, sims: int, rows: int) -> Work:
    search = preset(model=RecordedModel(rows, actions, sims), num_simulations=sims, num_players=1, seed=1)
    observations = list(np.zeros((rows, HIDDEN), np.float32))

    def work() -> int:
        search.forest(observation=observations, seeds=1).simulate().visits()
        return rows * sims

    return work


def _hybrid(sims: int) -> Work:
    # The root is searched for mates at full width before: that is no part of the kernel.
    tree = Hybrid(num_simulations=sims, seed=1).tree(games.Chess(TACTICS), seeds=1).simulate(1)
    return lambda: int(tree.simulate(sims).result().simulations)


def _most_visited(node: Any, moves: int) -> list[int]:
    line = []
    for _ in range(moves):
        node = max(node.children.values(), key=lambda child: child.visit_count)
        line.append(node.action)
    return line


def _advance(sims: int, rows: int, moves: int) -> Work:
    forest = AlphaZero(evaluators.Uniform(), sims, seed=1).forest([games.Othello()] * rows, seeds=1).simulate()
    lines = [_most_visited(result.root, moves) for result in forest.results()]

    def work() -> int:
        for row, line in enumerate(lines):
            for action in line:
                forest.advance(row, action)
        return rows * moves

    return work


#: By name, each about 50 to 100 million instructions.
KERNELS: dict[str, Kernel] = {
    "UCT tic-tac-toe": partial(_uct, games.TicTacToe, 20_000),
    "UCT Connect 4": partial(_uct, games.ConnectFour, 20_000),
    "UCT Othello": partial(_uct, games.Othello, 4_000),
    "UCT chess": partial(_uct, games.Chess, 200),
    "UCT Python game": partial(_uct, tic_tac_toe.State, 500),
    "AlphaZero Connect 4, Uniform": partial(_puct, games.ConnectFour, evaluators.Uniform, 20_000, 0),
    "AlphaZero Connect 4, observations": partial(_puct, games.ConnectFour, partial(Prepared, 7), 200, 64),
    "AlphaZero chess, packed": partial(_puct, games.Chess, partial(PreparedPacked, 4672), 100, 32),
    "Gumbel Connect 4, packed": partial(_puct, games.ConnectFour, partial(PreparedPacked, 7), 128, 64, Gumbel),
    "AlphaZero Connect 4, single rows": partial(_puct, games.ConnectFour, partial(Prepared, 7), 400, 0),
    "200 calls of UCT.run, 16 simulations": partial(_calls, 16, 200),
    "MuZero, 18 actions": partial(_latent, MuZero, 18, 100, 64),
    "MuZero, 4672 actions": partial(_latent, MuZero, 4672, 30, 4),
    "Gumbel MuZero, 18 actions": partial(_latent, Gumbel, 18, 64, 64),
    "Hybrid chess": partial(_hybrid, 300),
    "advance, Othello": partial(_advance, 10_000, 8, 4),
}

#: Timed, but not counted: callgrind runs one thread at a time.
PARALLEL: dict[str, Kernel] = {
    "UCT Connect 4, 64 trees, 2 threads": partial(_uct, games.ConnectFour, 2_000, 64, 2),
    "UCT chess, 8 trees, 2 threads": partial(_uct, games.Chess, 100, 8, 2),
}


def measure(name: str, seconds: float) -> dict[str, float]:
    """Runs a kernel once to warm up, then until `seconds` of CPU time are spent."""
    return timed((KERNELS | PARALLEL)[name], seconds)


def timed(prepare: Kernel, seconds: float) -> dict[str, float]:
    """Does the same with any kernel."""
    prepare()()
    units, cpu, wall = 0, 0.0, 0.0
    while cpu < seconds:
        work = prepare()
        gc.collect()
        begun, started = time.perf_counter(), time.process_time()
        units += work()
        cpu += time.process_time() - started
        wall += time.perf_counter() - begun
    return {"units": units, "cpu": cpu, "wall": wall}


def environment() -> dict[str, str]:
    """Returns the measured version."""
    return {"package": str(Path(pondertree.__file__).parent), "numpy": np.__version__}


if __name__ == "__main__":
    serve(rates={}, handlers={"measure": measure, "environment": environment})
