"""What a policy-value network learns: its losses, and positions turned by the symmetries of the game."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from ponderosa.evaluators.symmetry import Symmetry
from ponderosa.learn.config import Config
from ponderosa.learn.game_spec import GameSpec
from ponderosa.learn.networks import Architecture, PolicyValueNetwork, fresh
from ponderosa.learn.optimised import Optimised
from ponderosa.learn.replay import Replay, TrainingBatch


def policy_loss(logits: torch.Tensor, actions: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the policy over the legal actions [B, K]; what is illegal has no say."""
    rows, number = logits.shape
    # A column behind the last action takes what is no action.
    padded = torch.cat([logits, logits.new_full((rows, 1), -torch.inf)], dim=1)
    log_shares = functional.log_softmax(padded.gather(1, actions).float(), dim=1)
    return -(policy * log_shares.masked_fill(actions == number, 0.0)).sum(dim=1).mean()


def outcome_shares(values: torch.Tensor) -> torch.Tensor:
    """A value from -1 to 1 as shares of won, drawn and lost [B, 3]; whole results are certain."""
    won, lost = values.clamp(min=0.0), (-values).clamp(min=0.0)
    return torch.stack([won, 1.0 - won - lost, lost], dim=1)


def value_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of won, drawn and lost."""
    return -(target * functional.log_softmax(logits.float(), dim=1)).sum(dim=1).mean()


def turned(batch: TrainingBatch, symmetries: tuple[Symmetry, ...], which: NDArray[np.int64]) -> TrainingBatch:
    """The batch with the board of each row turned by its symmetry."""
    cells = np.stack([one.cells for one in symmetries])[which]
    boards = batch.observations.reshape(len(which), -1, cells.shape[1])
    observations = np.take_along_axis(boards, cells[:, None, :], axis=2).reshape(batch.observations.shape)
    moved = np.stack([np.append(one.actions, len(one.actions)) for one in symmetries])
    actions = np.take_along_axis(moved[which], batch.actions, axis=1)
    return TrainingBatch(observations, actions, batch.policy, batch.results, batch.values)


class Learner(Optimised):
    """A policy-value network that learns."""

    network: PolicyValueNetwork

    def __init__(self, spec: GameSpec, config: Config, device: torch.device) -> None:
        super().__init__(fresh(Architecture.of(spec, config.network), config.seed), config, device)
        self._symmetries = spec.symmetries

    def learn_from(self, replay: Replay, progress: float) -> dict[str, torch.Tensor]:
        """One step on positions of the games; the losses, still on the device."""
        return self.learn(self.draw(replay), progress)

    def draw(self, replay: Replay) -> TrainingBatch:
        """The positions of this step."""
        numbers = self.numbers()
        batch = replay.sample(self._config.batch_size, numbers)
        if self._config.symmetries and len(self._symmetries) > 1:
            batch = turned(batch, self._symmetries, numbers.integers(len(self._symmetries), size=len(batch.results)))
        return batch

    def learn(self, batch: TrainingBatch, progress: float) -> dict[str, torch.Tensor]:
        """One step; the losses, still on the device. They are looked at by `check`, not at every step."""
        config = self._config
        self.network.train()
        observations, actions, policy, results, values = (
            self.send(array) for array in (batch.observations, batch.actions, batch.policy, batch.results, batch.values)
        )
        target = outcome_shares(torch.lerp(results, values, config.root_value_share))
        reduced = config.reduced_precision and self.device.type == "cuda"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=reduced):
            logits, outcomes = self.network.heads(observations.contiguous(memory_format=self._format(observations)))
        losses = {"policy_loss": policy_loss(logits, actions, policy), "value_loss": value_loss(outcomes, target)}
        loss = losses["policy_loss"] + config.value_weight * losses["value_loss"]
        norm = self.improve(loss, progress)
        return {**{name: one.detach() for name, one in losses.items()}, "gradient": norm}
