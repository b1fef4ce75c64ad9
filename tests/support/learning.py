"""A small tic-tac-toe run for tests, and the checksum of its weights."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pondertree.game import CHANCE
from pondertree.learn import Config, Watcher, default_config, list_shards, read_shard
from pondertree.learn.report.progress import Status

with contextlib.suppress(ImportError):
    import torch

    # Test networks are too small for several threads, which would contend on a busy machine.
    torch.set_num_threads(1)

GYM = "gym:CartPole-v1"
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
    """Returns the configuration of a run of some seconds at most."""
    return default_config(game).with_values(**SMALL).with_values(out=str(out), **values)


def digest(folder: Path, names: str = "training.safetensors") -> str:
    """Returns the SHA-256 of the weights in the newest checkpoint."""
    newest = sorted((folder / "checkpoints").glob("round-*"))[-1]
    return hashlib.sha256((newest / names).read_bytes()).hexdigest()


def learned_again(out: Path) -> bool:
    """Whether the weights of the newest checkpoint follow from the games and the recorded order."""
    from pondertree.learn import relearn
    from pondertree.learn.data import newest_intact

    found = newest_intact(out / "checkpoints")
    assert found is not None
    tensors = relearn(out).state_dict()
    return all(bool((found[1].tensors[name] == tensor).all()) for name, tensor in tensors.items())


def small_muzero(out: Path, game: str = "tic-tac-toe", **values: Any) -> Config:
    """Returns a configuration that trains for some seconds."""
    muzero = {"unroll": 3, **values.pop("muzero", {})}
    if game == GYM:
        pytest.importorskip("gymnasium")
        muzero = {"support": 20, "discount": 0.99, "td_steps": 5, **muzero}
        values["self_play"] = {"opening_plies": 0, "temperature_moves": 0, **values.get("self_play", {})}
    config = small(out, game, **values) if game != GYM else small(out).with_values(game=GYM, **values)
    return config.with_values(algorithm="muzero", muzero=muzero)


class Stopper(Watcher):
    """Interrupts a run after some rounds, as Ctrl-C or a kill would."""

    def __init__(self, rounds: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.rounds = rounds
        self.error = error
        self.notes: list[str] = []

    def show(self, status: Status) -> None:
        if status.counters.round >= self.rounds:
            raise self.error

    def note(self, text: str) -> None:
        self.notes.append(text)


class Killed(BaseException):
    """Ends a run without a chance to save."""


def numbers_of(out: Path) -> list[int]:
    return [game.number for shard in list_shards(out / "games") for game in read_shard(shard)]


class Stairs:
    """A single-player game with a reward for each step up."""

    num_actions, num_players, to_play = 2, 1, 0

    def __init__(self, height: int = 0, moves: int = 0, paid: float = 0.0) -> None:
        self.height, self.moves, self.paid = height, moves, paid
        self.is_terminal = moves >= 6

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> Stairs:
        return Stairs(self.height + action, self.moves + 1, float(action))

    def rewards(self) -> list[float]:
        return [self.paid]

    def returns(self) -> list[float]:
        return [0.0]

    def observation(self) -> Any:
        return np.array([self.height, self.moves], np.float32)


class Dice:
    """A single-player game of six rolls: bank ten points a pip, or skip and double the next roll, up to fourfold.

    A roll of six pays five points at once.
    """

    num_actions, num_players = 2, 1

    def __init__(self, turn: int = 0, pips: int = 0, factor: int = 1, paid: float = 0.0) -> None:
        self.turn, self.pips, self.factor, self.paid = turn, pips, factor, paid
        self.is_terminal = turn >= 6

    @property
    def to_play(self) -> int:
        return 0 if self.pips else CHANCE

    def legal_actions(self) -> list[int]:
        if self.is_terminal:
            return []
        return [0, 1] if self.pips else list(range(6))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(pips, 1.0 / 6.0) for pips in range(6)]

    def play(self, action: int) -> Dice:
        if self.pips == 0:
            return type(self)(self.turn, action + 1, self.factor, 5.0 if action == 5 else 0.0)
        if action == 0:
            return type(self)(self.turn + 1, 0, min(2 * self.factor, 4))
        return type(self)(self.turn + 1, 0, 1, 10.0 * self.pips * self.factor)

    def rewards(self) -> list[float]:
        return [self.paid]

    def returns(self) -> list[float]:
        return [0.0]

    def observation(self) -> Any:
        return np.array([self.turn, self.pips, self.factor], np.float32)

    def __str__(self) -> str:
        return f"turn {self.turn}, {self.pips} pips x {self.factor}"
