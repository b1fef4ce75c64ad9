"""Training of a policy-value network: policy and value losses, with symmetry augmentation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from pondertree.evaluators.symmetry import Symmetry
from pondertree.gpu.buffer import unpacked
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import ReplayBuffer, TrainingBatch
from pondertree.learn.trainer.architectures import policy_value_architecture
from pondertree.learn.trainer.base import Trainer
from pondertree.networks import PolicyValueNetwork, fresh


def policy_loss(logits: torch.Tensor, actions: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Returns the mean cross-entropy of the policy over the legal actions [B, K]."""
    rows, number = logits.shape
    # An extra column for the padding action.
    extended = torch.cat([logits, logits.new_full((rows, 1), -torch.inf)], dim=1)
    log_shares = functional.log_softmax(extended.gather(1, actions).float(), dim=1)
    return -(policy * log_shares.masked_fill(actions == number, 0.0)).sum(dim=1).mean()


class SymmetryTransforms:
    """The symmetries of a game as device tensors, for data augmentation."""

    def __init__(self, symmetries: tuple[Symmetry, ...], device: torch.device) -> None:
        self._cells = torch.from_numpy(np.stack([one.cells for one in symmetries])).to(device)
        # The padding action maps to itself.
        actions = np.stack([np.append(one.actions, len(one.actions)) for one in symmetries])
        self._actions = torch.from_numpy(actions).to(device)

    def __len__(self) -> int:
        return len(self._cells)

    def apply(
        self, observations: torch.Tensor, actions: torch.Tensor, which: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Transforms observations [B, ...] and actions [B, K], each row by its symmetry [B]."""
        cells = self._cells[which][:, None, :]
        boards = observations.reshape(len(which), -1, cells.shape[2])
        found = boards.gather(2, cells.expand(-1, boards.shape[1], -1)).reshape(observations.shape)
        return found, self._actions[which].gather(1, actions)

    def apply_to_actions(self, actions: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """Transforms actions [B, ...], each row by its symmetry [B]."""
        moved: torch.Tensor = self._actions[which].gather(1, actions.flatten(1)).reshape(actions.shape)
        return moved


class PolicyValueTrainer(Trainer):
    """Trains a policy-value network."""

    network: PolicyValueNetwork

    def __init__(self, spec: GameSpec, config: Config, device: torch.device) -> None:
        super().__init__(fresh(policy_value_architecture(spec, config), config.seed), config, device)
        self._shape = spec.shape
        self._symmetries = SymmetryTransforms(spec.symmetries, device)

    def learn_from(self, replay: ReplayBuffer, progress: float) -> dict[str, torch.Tensor]:
        """Runs one step on a sampled batch; returns the losses on the device."""
        generator = self.step_generator()
        batch = replay.sample(self._config.batch_size, generator)
        return self.learn(batch, generator.integers(len(self._symmetries), size=len(batch.results)), progress)

    def learn(self, batch: TrainingBatch, symmetry_ids: NDArray[np.int64], progress: float) -> dict[str, torch.Tensor]:
        """Runs one step on a batch, each row under its symmetry."""
        observations = (batch.seen.planes.view(np.int64), batch.seen.numbers)
        targets = (batch.actions, batch.policy, batch.results, batch.values)
        return self.run_step([*observations, *targets, symmetry_ids], progress)

    def loss_and_update(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Computes the losses and performs the optimiser step."""
        planes, scalars, actions, policy, results, values, symmetry_ids = inputs
        config = self._config
        self.network.train()
        observations = unpacked(planes, scalars, self._shape)
        if config.symmetries and len(self._symmetries) > 1:
            observations, actions = self._symmetries.apply(observations, actions, symmetry_ids)
        target = torch.lerp(results, values, config.root_value_share)
        reduced = config.reduced_precision and self.device.type == "cuda"
        # Each weight is read once: caching its bfloat16 copy gains nothing.
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=reduced, cache_enabled=False):
            logits, value = self.network.heads(observations.contiguous(memory_format=self._format(observations)))
        value_loss = self.network.categories.loss(value, target).mean()
        losses = {"policy_loss": policy_loss(logits, actions, policy), "value_loss": value_loss}
        norm = self.optimise(losses["policy_loss"] + config.value_weight * losses["value_loss"])
        return {**{name: one.detach() for name, one in losses.items()}, "gradient": norm}
