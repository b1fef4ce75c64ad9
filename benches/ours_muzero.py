"""The jobs of `muzero.py` for Pondertree."""

from __future__ import annotations

import resource
import sys
from typing import Any

import numpy as np
from uneven import HIDDEN, RecordedModel, Sines, prepared
from worker import Work, resident_bytes

from pondertree import Gumbel, MuZero, _core
from pondertree.game import GameInfo


def _search(algorithm: str, model: Any, sims: int, **settings: Any) -> Any:
    if algorithm == "gumbel":
        return Gumbel(model, sims, max_num_considered_actions=16, seed=1, **settings)
    return MuZero(model, sims, seed=1, **settings)


def _observations(batch: int) -> list[Any]:
    return list(np.zeros((batch, HIDDEN), np.float32))


def latent_tree(algorithm: str, actions: int, sims: int, batch: int) -> Work:
    """Measures the engine alone: tree creation, search with precomputed model outputs, reading visits and values."""
    info = GameInfo("the model", False, actions, 1, False, True)
    rules = {"normalize": "tree"} if algorithm == "muzero" else {}
    search = _search(algorithm, Sines(batch, actions), sims, **rules)
    parts = search.config(info).engine_data(info, batch)
    values, logits = prepared(batch, actions, sims)
    values = values.astype(np.float64)
    rewards = np.zeros(batch)
    to_play, keys = [0] * batch, [(1, 0, row) for row in range(batch)]
    legal: list[list[int] | None] = [None] * batch  # all
    root_logits, root_values = np.zeros((batch, actions), np.float32), np.zeros(batch)

    def work() -> int:
        core = _core.Forest("latent", parts)
        core.plant_latent(to_play, legal, root_logits, root_values, keys)
        core.allow([sims] * batch)
        core.gather_latent()
        for number in range(sims):
            core.step_latent(rewards, logits[number], values[number], None)
        found = [(view.visits(actions), view.value) for view in core.views()]
        return int(sum(visits.sum() for visits, _ in found))

    return work


def latent_loop(actions: int, sims: int, batch: int) -> Work:
    """Measures a complete search with precomputed network outputs, including hidden states and reading of results."""
    search = MuZero(RecordedModel(batch, actions, sims), sims, num_players=1, normalize="tree", seed=1)
    observations = _observations(batch)

    def work() -> int:
        results = search.run(observation=observations)
        found = [(result.visits, result.value) for result in results]
        return int(sum(visits.sum() for visits, _ in found))

    return work


def latent_search(algorithm: str, actions: int, sims: int, batch: int, model: str = "sines") -> Work:
    """Measures a complete two-player search with root noise, including reading of actions and policies."""
    said: Any = Sines(batch, actions) if model == "sines" else RecordedModel(batch, actions, sims)
    search = _search(algorithm, said, sims, discount=1.0, num_players=2)
    observations = _observations(batch)
    temperature = 1.0 if algorithm == "muzero" else 0.0

    def work() -> int:
        results = search.run(observation=observations, temperature=temperature, add_noise=True)
        found = [(result.action, result.policy) for result in results]
        return len(found) * sims

    return work


def latent_memory(actions: int, sims: int, batch: int) -> dict[str, Any]:
    """Returns the memory of one search by its own count, and the increase of the process at its peak."""
    search = _search("muzero", Sines(batch, actions), sims, discount=1.0, num_players=2)
    search.run(observation=_observations(1))
    before = resident_bytes()
    forest = search.forest(observation=_observations(batch))
    forest.simulate(sims, add_noise=True)
    results = forest.results()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "trees": sum(result.memory for result in results),
        "hidden": forest._world._pool.nbytes,
        "peak": peak - before,
    }
