"""What a policy-value network learns: its losses, and positions turned by the symmetries of the game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from pondertree.evaluators.symmetry import Symmetry
from pondertree.gpu.buffer import unpacked
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.replay import Replay, TrainingBatch
from pondertree.learn.trainer.architectures import policy_value_architecture
from pondertree.learn.trainer.base import Optimised
from pondertree.networks.policy_value import PolicyValueNetwork, fresh, outcome_shares


def policy_loss(logits: torch.Tensor, actions: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the policy over the legal actions [B, K]; what is illegal has no say."""
    rows, number = logits.shape
    # A column behind the last action takes what is no action.
    padded = torch.cat([logits, logits.new_full((rows, 1), -torch.inf)], dim=1)
    log_shares = functional.log_softmax(padded.gather(1, actions).float(), dim=1)
    return -(policy * log_shares.masked_fill(actions == number, 0.0)).sum(dim=1).mean()


def value_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of won, drawn and lost."""
    return -(target * functional.log_softmax(logits.float(), dim=1)).sum(dim=1).mean()


class Turning:
    """The symmetries of a game, on the device where positions are turned by them."""

    def __init__(self, symmetries: tuple[Symmetry, ...], device: torch.device) -> None:
        self._cells = torch.from_numpy(np.stack([one.cells for one in symmetries])).to(device)
        # Behind the last action stands what is no action, and stays so.
        actions = np.stack([np.append(one.actions, len(one.actions)) for one in symmetries])
        self._actions = torch.from_numpy(actions).to(device)

    def __len__(self) -> int:
        return len(self._cells)

    def turned(
        self, observations: torch.Tensor, actions: torch.Tensor, which: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations [B, ...] and actions [B, K] of boards that are turned, each by its own symmetry [B]."""
        cells = self._cells[which][:, None, :]
        boards = observations.reshape(len(which), -1, cells.shape[2])
        found = boards.gather(2, cells.expand(-1, boards.shape[1], -1)).reshape(observations.shape)
        return found, self._actions[which].gather(1, actions)

    def turned_actions(self, actions: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """Actions [B, ...] of boards that are turned."""
        moved: torch.Tensor = self._actions[which].gather(1, actions.flatten(1)).reshape(actions.shape)
        return moved


class Learner(Optimised):
    """A policy-value network that learns."""

    network: PolicyValueNetwork

    def __init__(self, spec: GameSpec, config: Config, device: torch.device) -> None:
        super().__init__(fresh(policy_value_architecture(spec, config.network), config.seed), config, device)
        self._shape = spec.shape
        self._turning = Turning(spec.symmetries, device)

    def learn_from(self, replay: Replay, progress: float) -> dict[str, torch.Tensor]:
        """One step on positions of the games; the losses, still on the device. `check` looks at them, now and then."""
        numbers = self.numbers()
        batch = replay.sample(self._config.batch_size, numbers)
        return self.learn(batch, numbers.integers(len(self._turning), size=len(batch.results)), progress)

    def learn(self, batch: TrainingBatch, turns: NDArray[np.int64], progress: float) -> dict[str, torch.Tensor]:
        """One step on these positions, each turned by the symmetry of its number."""
        seen = (batch.seen.planes.view(np.int64), batch.seen.numbers)
        return self.take_step([*seen, batch.actions, batch.policy, batch.results, batch.values, turns], progress)

    def work(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The losses of a step, and the step."""
        planes, scalars, actions, policy, results, values, turns = inputs
        config = self._config
        self.network.train()
        observations = unpacked(planes, scalars, self._shape)
        if config.symmetries and len(self._turning) > 1:
            observations, actions = self._turning.turned(observations, actions, turns)
        target = outcome_shares(torch.lerp(results, values, config.root_value_share))
        reduced = config.reduced_precision and self.device.type == "cuda"
        # Each weight is read once, so there is nothing to be kept in its short form.
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=reduced, cache_enabled=False):
            logits, outcomes = self.network.heads(observations.contiguous(memory_format=self._format(observations)))
        losses = {"policy_loss": policy_loss(logits, actions, policy), "value_loss": value_loss(outcomes, target)}
        norm = self.improve(losses["policy_loss"] + config.value_weight * losses["value_loss"])
        return {**{name: one.detach() for name, one in losses.items()}, "gradient": norm}
