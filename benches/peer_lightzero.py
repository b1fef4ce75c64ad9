"""The worker process of LightZero's compiled trees; runs in its own environment.

The trees are extension modules without dependencies, in a package with dozens: it is installed without them, and the
modules are loaded from their files.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import distribution, version
from types import ModuleType
from typing import Any

import numpy as np
from uneven import HIDDEN, prepared
from worker import Work, serve

PB_C_BASE, PB_C_INIT, DISCOUNT = 19652, 1.25, 0.997
#: Lower bound of the range in value normalisation, from its configurations.
MIN_SPAN = 0.01


def compiled(name: str) -> ModuleType:
    """Loads an extension module of the installed wheel."""
    files = distribution("LightZero").files or []
    [path] = [str(file.locate()) for file in files if file.name.startswith(f"{name}.") and file.suffix == ".so"]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Trees:
    """Common parts of the searches: roots without noise, one player."""

    def __init__(self, name: str, actions: int, batch: int) -> None:
        self.library: Any = compiled(name)
        self.batch = batch
        self.legal = [list(range(actions)) for _ in range(batch)]
        self.to_play = [-1] * batch
        self.nothing = [0.0] * batch
        self.root_logits = np.zeros((batch, actions)).tolist()

    def bounds(self) -> Any:
        """Returns the minimum and maximum value of each tree."""
        bounds = self.library.MinMaxStatsList(self.batch)
        bounds.set_delta(MIN_SPAN)
        return bounds


def latent_tree(algorithm: str, actions: int, sims: int, batch: int) -> Work:
    """Measures the compiled part: tree creation, precomputed model outputs as lists, reading visits and values."""
    values, logits = (array.tolist() for array in prepared(batch, actions, sims))
    return (muzero_tree if algorithm == "muzero" else gumbel_tree)(actions, sims, batch, values, logits)


def muzero_tree(actions: int, sims: int, batch: int, values: Any, logits: Any) -> Work:
    """MuZero."""
    trees = Trees("mz_tree", actions, batch)
    library, rewards = trees.library, trees.nothing

    def work() -> int:
        roots = library.Roots(batch, trees.legal)
        roots.prepare_no_noise(rewards, trees.root_logits, trees.to_play)
        bounds = trees.bounds()
        for number in range(sims):
            paths = library.ResultsWrapper(batch)
            *_, to_play = library.batch_traverse(roots, PB_C_BASE, PB_C_INIT, DISCOUNT, bounds, paths, trees.to_play)
            library.batch_backpropagate(
                number + 1, DISCOUNT, rewards, values[number], logits[number], bounds, paths, to_play
            )
        found = (roots.get_distributions(), roots.get_values())
        return sum(map(sum, found[0]))

    return work


def gumbel_tree(actions: int, sims: int, batch: int, values: Any, logits: Any) -> Work:
    """Gumbel MuZero."""
    trees = Trees("gmz_tree", actions, batch)
    library, rewards = trees.library, trees.nothing

    def work() -> int:
        roots = library.Roots(batch, trees.legal)
        roots.prepare_no_noise(rewards, trees.nothing, trees.root_logits, trees.to_play)
        bounds = trees.bounds()
        for number in range(sims):
            paths = library.ResultsWrapper(batch)
            *_, to_play = library.batch_traverse(roots, sims, min(16, actions), DISCOUNT, paths, trees.to_play)
            library.batch_back_propagate(
                number + 1, DISCOUNT, rewards, values[number], logits[number], bounds, paths, to_play
            )
        found = (roots.get_distributions(), roots.get_values())
        return sum(map(sum, found[0]))

    return work


def latent_loop(actions: int, sims: int, batch: int) -> Work:
    """Measures its complete search without the network: hidden-state indices, outputs converted to lists."""
    trees = Trees("mz_tree", actions, batch)
    library = trees.library
    values, logits = prepared(batch, actions, sims)
    rewards = np.zeros((batch, 1), np.float32)
    first = np.zeros((batch, HIDDEN), np.float32)

    def work() -> int:
        roots = library.Roots(batch, trees.legal)
        roots.prepare_no_noise(trees.nothing, trees.root_logits, trees.to_play)
        bounds = trees.bounds()
        hidden = [first]
        for number in range(sims):
            paths = library.ResultsWrapper(batch)
            steps, rows, _, to_play = library.batch_traverse(
                roots, PB_C_BASE, PB_C_INIT, DISCOUNT, bounds, paths, trees.to_play
            )
            parents = np.asarray([hidden[step][row] for step, row in zip(steps, rows, strict=True)])
            hidden.append(parents + 0)
            library.batch_backpropagate(
                number + 1,
                DISCOUNT,
                rewards.reshape(-1).tolist(),
                values[number].tolist(),
                logits[number].tolist(),
                bounds,
                paths,
                to_play,
            )
        found = (roots.get_distributions(), roots.get_values())
        return sum(map(sum, found[0]))

    return work


def environment() -> dict[str, Any]:
    """Returns the version."""
    return {"packages": {"LightZero": version("LightZero")}}


if __name__ == "__main__":
    serve(rates={"latent_tree": latent_tree, "latent_loop": latent_loop}, answers={"environment": environment})
