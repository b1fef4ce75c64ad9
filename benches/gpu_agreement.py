"""Agreement of searches on the GPU with searches on the CPU; run by `gpu_ours.py`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from gpu_cases import GAMES
from gpu_networks import LatentModel, Residual, Table
from torch import nn

import pondertree
from pondertree import games
from pondertree.evaluators import Torch
from pondertree.models import TorchModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class LatentTable(nn.Module):
    """A model of hash functions, exact on every device: integers and small fractions."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        # The device of a model is that of its floating-point parameters.
        self.register_buffer("scale", torch.tensor(0.125))
        self.register_buffer("moves", torch.arange(actions) * 40692)

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        """The first number of an observation is the hidden state."""
        hidden = observations[:, 0].long()
        return hidden, *self._say(hidden)

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, Any, Any, Any]:
        """A hash of the parent's key and the action."""
        after = (hidden * 31 + actions + 1) % 1000003
        return after, (after * 16807 % 17 - 8) * self.scale, *self._say(after)

    def _say(self, hidden: Any) -> tuple[Any, Any]:
        drawn = (hidden[:, None] * 48271 + self.moves) % 2147483647 * 16807 % 2147483647
        # Spread-out priors: with nearly uniform ones, almost all visits of MuZero go to one move.
        return (drawn // 127 % 17 - 8) * (self.scale * 4), (hidden * 69621 % 33 - 16) * (self.scale / 2)


def openings(game: str, count: int, seed: int = 0) -> list[Any]:
    """Distinct positions after 2 to 12 random moves."""
    draw = random.Random(seed)
    found: dict[Any, None] = {}
    while len(found) < count:
        state = getattr(games, GAMES[game].state)()
        for _ in range(draw.randint(2, 12)):
            if not state.is_terminal:
                state = state.play(draw.choice(state.legal_actions()))
        if not state.is_terminal:
            found[state] = None
    return list(found)


def agreement(*, small: bool = False) -> dict[str, str]:
    """Counts trees with equal visits: all with exact networks, nearly all with rounded ones."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    found = {}
    for game, settings in GAMES.items():
        states = openings(game, 10 if small else 1000, seed=1)
        cells = settings.planes * settings.board[0] * settings.board[1]
        torch.manual_seed(1)
        network = Residual(settings.planes, settings.board, 32, 2, settings.actions).eval()
        kinds: dict[str, Any] = {"": pondertree.AlphaZero}
        if game == "connect_four":
            kinds["Gumbel, "] = pondertree.Gumbel
        for kind, search in kinds.items():
            for name, module in (("table", Table(cells, settings.actions)), ("float32", network)):
                options: dict[str, Any] = {"evaluator": (Torch, module), "num_simulations": 4 if small else 60}
                found[f"{game}, {kind}{name}"] = _equal(search, options, {"states": states})
    seen = [np.array([row], dtype=np.float32) for row in range(10 if small else 1000)]
    torch.manual_seed(1)
    for kind, search in (("", pondertree.MuZero), ("Gumbel, ", pondertree.Gumbel)):
        for name, model in (("table", LatentTable(18)), ("4672 actions, table", LatentTable(4672))):
            options = {"model": (TorchModel, model), "num_simulations": 4 if small else 50}
            found[f"model, {kind}{name}"] = _equal(search, options, {"observation": seen})
    drawn = np.random.default_rng(1).normal(size=(len(seen), 64)).astype(np.float32)
    options = {"model": (TorchModel, LatentModel(64, 18)), "num_simulations": 4 if small else 50}
    found["model, float32"] = _equal(pondertree.MuZero, options, {"observation": drawn})
    return found


def _equal(search: Any, options: dict[str, Any], roots: dict[str, Any]) -> str:
    """Counts trees with the same visits on the CPU and on the device."""
    visits = []
    for device in ("cpu", DEVICE):
        placed = {name: part[0](part[1], device) if isinstance(part, tuple) else part for name, part in options.items()}
        visits.append(search(**placed, seed=1, solve=False).forest(**roots).simulate().visits())
    return f"{int((visits[0] == visits[1]).all(axis=1).sum())} of {len(visits[0])}"
