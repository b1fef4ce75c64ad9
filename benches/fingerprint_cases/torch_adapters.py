"""Cases of the adapters of PyTorch, with modules whose arithmetic is exact."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fingerprint_cases.case import Cases, Options, forest, named, reused, run
from fingerprint_cases.models import observation
from fingerprint_cases.positions import (
    ACTIONS,
    position,
    rows_of,
)
from pondertree import AlphaZero, Gumbel, MuZero, evaluators


def torch_cases() -> Cases:
    """The adapters of PyTorch on the CPU, with modules whose arithmetic is exact."""
    if importlib.util.find_spec("torch") is None:
        return
    for game in ("connect_four", "chess"):
        for preset in (AlphaZero, Gumbel):
            for options in ({}, {"in_flight": 16}, {"threads": 2, "solve": False}):
                full = {"num_simulations": 48, "seed": 26, **options}
                search = partial(_with_torch, preset, game, full)
                yield named(f"torch {preset.__name__} {game}", options), run(search, partial(rows_of, game, 5), seeds=3)
        search = partial(_with_torch, AlphaZero, game, {"num_simulations": 48, "seed": 26})
        yield f"torch kept {game}", reused(search, partial(position, game, 0), 4, add_noise=True)
        yield f"torch forest {game}", forest(search, partial(rows_of, game, 7))
    for actions in (18, 4672):
        rows = {"observation": [np.array([row], dtype=np.float32) for row in range(4)]}
        for preset in (MuZero, Gumbel):
            search = partial(_with_torch_model, preset, actions, {"num_simulations": 20, "seed": 26})
            yield f"torch {preset.__name__} {actions}", run(search, rows.copy, seeds=2)
    yield "torch kept MuZero", reused(partial(_with_torch_model, MuZero, 18, {"seed": 26}), observation, 4)


def _with_torch(preset: Callable[..., Any], game: str, options: Options) -> Any:
    import torch
    from gpu_networks import Table

    torch.set_num_threads(1)
    module = Table({"connect_four": 3 * 6 * 7, "chess": 119 * 8 * 8}[game], ACTIONS[game])
    return preset(evaluators.Torch(module, "cpu"), **options)


def _with_torch_model(preset: Callable[..., Any], actions: int, options: Options) -> Any:
    import torch
    from gpu_agreement import LatentTable

    from pondertree.models import TorchModel

    torch.set_num_threads(1)
    return preset(model=TorchModel(LatentTable(actions), "cpu"), **options)
