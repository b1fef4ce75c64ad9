"""What the tests of learning share: a small training of tic-tac-toe, and what it left."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from pondertree.learn import Config, default_config

with contextlib.suppress(ImportError):
    import torch

    # Networks of tests are too small for several threads, which on a busy machine wait for each other most of the time.
    torch.set_num_threads(1)

SMALL: dict[str, Any] = {
    "network": {"blocks": 1, "channels": 8, "policy_channels": 4, "value_channels": 2, "value_hidden": 8},
    "self_play": {"games_at_once": 8, "simulations": 8, "opening_plies": 2, "workers": 1, "considered_actions": 4},
    "replay": {"window": 400, "learned_first": 40},
    "learner": {"batch_size": 16, "passes": 2.0, "warm_up": 5},
    "evaluation": {"games": 0, "positions": 0, "every_minutes": 0.0},
    "cycle_moves": 3,
    "checkpoint_minutes": 0.0,
    "device": "cpu",
}


def small(out: Path, game: str = "tic-tac-toe", **values: Any) -> Config:
    """A training of some seconds at most."""
    return default_config(game).with_values(**SMALL).with_values(out=str(out), **values)


def digest(folder: Path, names: str = "training.safetensors") -> str:
    """A checksum of the weights in the newest checkpoint."""
    newest = sorted((folder / "checkpoints").glob("round-*"))[-1]
    return hashlib.sha256((newest / names).read_bytes()).hexdigest()
