"""The jobs of `alphazero.py` for Pondertree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from worker import Work

from pondertree import AlphaZero
from pondertree.evaluators import Onnx, Packed, Uniform
from pondertree.games import Chess, ConnectFour

GAMES: dict[str, Any] = {"connect_four": ConnectFour, "chess": Chess}


class Free:
    """A constant Python evaluator of minimal cost."""

    def evaluate_packed(self, packed: Packed) -> tuple[Any, Any]:
        """Returns uniform logits and zeros."""
        return np.zeros(len(packed.legal_actions), dtype=np.float32), np.zeros(len(packed))


def puct_compiled(game: str, sims: int) -> Work:
    """A search with a compiled evaluator."""
    search = AlphaZero(Uniform(), sims, c_puct=1.25, solve=False, seed=1)
    start = GAMES[game]()
    return lambda: int(search.run(start).simulations)


def puct_python(game: str, sims: int, batch: int) -> Work:
    """A search of many games, with one leaf of each per batch."""
    search = AlphaZero(Free(), sims, c_puct=1.25, solve=False, seed=1)
    starts = [GAMES[game]()] * batch
    return lambda: sum(result.simulations for result in search.run(starts))


def puct_memory(game: str, sims: int) -> dict[str, Any]:
    """Returns the memory of one search, including unused capacity."""
    return {"bytes": AlphaZero(Uniform(), sims, solve=False, seed=1).run(GAMES[game]()).memory}


class Timed:
    """An evaluator that records the time spent in it."""

    def __init__(self, evaluate: Callable[[Any], Any]) -> None:
        self._evaluate = evaluate
        self.seconds = 0.0

    def evaluate(self, observations: Any) -> Any:
        """Runs the network."""
        begun = time.perf_counter()
        answer = self._evaluate(observations)
        self.seconds += time.perf_counter() - begun
        return answer


def _network() -> Timed:
    from network import connect_four_network

    return Timed(Onnx(connect_four_network(), threads=1).evaluate)


def tree_share(games: int, sims: int) -> dict[str, Any]:
    """Returns the share of a batched search outside the network."""
    network = _network()
    search = AlphaZero(network, sims, seed=1, solve=False)
    search.run([ConnectFour()] * games)
    network.seconds = 0.0
    begun = time.perf_counter()
    search.run([ConnectFour()] * games)
    whole = time.perf_counter() - begun
    return {"share": 1 - network.seconds / whole, "seconds": whole}


def one_move(sims: int, in_flight: int) -> dict[str, Any]:
    """Returns milliseconds, depths and a time breakdown of one move with the parameters of the PUCT mathematics."""
    network = _network()
    search = AlphaZero.connect_four(network, sims, in_flight=in_flight, seed=1, solve=False)
    search.run(ConnectFour())
    forest = search.forest([ConnectFour()])
    core = forest._core
    world: Any = forest._world
    core.allow([sims])
    parts = {"select and expand": 0.0, "network": 0.0, "backup": 0.0}
    begun = time.perf_counter()
    while core.wants_more():
        started = time.perf_counter()
        core.gather()
        gathered = time.perf_counter()
        answer = world._leaves.answer()
        answered = time.perf_counter()
        core.apply(answer.policy, answer.values, answer.probabilities)
        parts["select and expand"] += gathered - started
        parts["network"] += answered - gathered
        parts["backup"] += time.perf_counter() - answered
    whole = time.perf_counter() - begun
    depth, deepest = forest.result().depths()
    return {
        "milliseconds": 1e3 * whole,
        "depth": depth,
        "deepest": deepest,
        "split": {part: seconds / whole for part, seconds in parts.items()},
    }
