"""Training of a learned model: reward, value, policy and consistency losses of unrolled games (MuZero, appendix G)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from pondertree.gpu.buffer import unpacked
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import TrajectoryBuffer, UnrolledBatch
from pondertree.learn.trainer.architectures import model_architecture
from pondertree.learn.trainer.base import Trainer
from pondertree.learn.trainer.policy_value import SymmetryTransforms
from pondertree.learn.trainer.reanalysis import Reanalysis
from pondertree.networks import ModelNetwork, fresh_model

#: Scale of the gradient of a hidden state at each step back through the dynamics.
HIDDEN_GRADIENT_SCALE = 0.5
#: Name under which a step returns the value errors of its rows, besides its losses.
ERRORS = "value_errors"


class LatentModelTrainer(Trainer):
    """Trains a learned model."""

    network: ModelNetwork

    def __init__(self, spec: GameSpec, config: Config, device: torch.device) -> None:
        super().__init__(fresh_model(model_architecture(spec, config), config.seed), config, device)
        self._muzero = config.muzero
        self._shape = spec.shape
        self._symmetries = SymmetryTransforms(spec.symmetries, device)
        is_enabled = config.muzero.reanalyse > 0.0 or config.muzero.fresh_values
        self._reanalysis = Reanalysis(spec, config, self.network) if is_enabled else None

    def learn_from(self, replay: TrajectoryBuffer, progress: float) -> dict[str, torch.Tensor]:
        """Runs one step on an unrolled batch; returns the losses on the device."""
        generator = self.step_generator()
        batch = replay.sample(self._config.batch_size, generator, later=self._muzero.consistency > 0.0)
        if self._reanalysis is not None:
            self._reanalysis.refresh_targets(batch, replay, self.average, self.step)
        losses, errors = self.learn(batch, generator.integers(len(self._symmetries), size=len(batch.places)), progress)
        if self._muzero.priority > 0.0:
            replay.update_priorities(batch.places, errors.cpu().numpy())
        return losses

    def learn(
        self, batch: UnrolledBatch, symmetry_ids: NDArray[np.int64], progress: float
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Runs one step on a batch, each row under its symmetry: (losses, value errors [B]), on the device."""
        outputs = self.run_step(inputs_of(batch, symmetry_ids), progress)
        return {name: one for name, one in outputs.items() if name != ERRORS}, outputs[ERRORS]

    def loss_and_update(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Computes the losses and performs the optimiser step."""
        self.network.train()
        reduced = self._config.reduced_precision and self.device.type == "cuda"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=reduced, cache_enabled=False):
            losses, errors = self.losses(inputs)
        weights = {
            "policy_loss": 1.0,
            "value_loss": self._config.value_weight,
            "reward_loss": self._muzero.reward_weight,
            "consistency_loss": self._muzero.consistency,
        }
        norm = self.optimise(torch.stack([weights[name] * one for name, one in losses.items()]).sum())
        return {**{name: one.detach() for name, one in losses.items()}, "gradient": norm, ERRORS: errors}

    def losses(self, inputs: Sequence[torch.Tensor]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Returns (mean losses by name, value errors of the first positions [B]).

        In every loss the first position weighs as much as all later steps together.
        """
        planes, scalars, moves, rewards, values, actions, policy, known, searched, weights, symmetry_ids, *later = (
            inputs
        )
        network = self.network
        observations = unpacked(planes, scalars, self._shape)
        which = symmetry_ids if self._config.symmetries and len(self._symmetries) > 1 else None
        if which is not None:
            observations, moves = self._symmetries.apply(observations, moves, which)
            actions = self._symmetries.apply_to_actions(actions, which)
        hidden = network.represent(self._laid_out(observations))
        rows, steps = moves.shape
        states = [hidden]
        for depth in range(steps):
            hidden = network.step(torch.lerp(hidden.detach(), hidden, HIDDEN_GRADIENT_SCALE), moves[:, depth])
            states.append(hidden)
        # One pass of the heads over all depths: [K + 1, B], depth-major.
        logits, value = network.heads(torch.cat(states))
        reward = network.reward(torch.cat(states[1:]))
        shares = weights.new_full((steps + 1, 1), 1.0 / steps)
        shares[0] = 1.0
        counts = shares * weights
        lost = policy_losses(logits, actions.transpose(0, 1).flatten(0, 1), policy.transpose(0, 1).flatten(0, 1))
        losses = {
            "policy_loss": (lost.reshape(steps + 1, rows) * searched.T * counts).sum() / rows,
            "value_loss": (self._scalar_loss(value, values) * known.T * counts).sum() / rows,
            "reward_loss": (self._scalar_loss(reward, rewards) * known[:, 1:].T * counts[1:]).sum() / rows,
        }
        if later:
            observed_hidden, inside = self._observed_states(later, which)
            consistency = network.consistency_loss(torch.cat(states[1:]), observed_hidden).reshape(steps, rows)
            losses["consistency_loss"] = (consistency * inside.T * counts[1:]).sum() / rows
        errors = (network.categories.to_numbers(value[:rows].detach()) - values[:, 0]).abs()
        return losses, errors

    def _scalar_loss(self, logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Returns the losses [K, B] of logits [K * B, ...] for targets [B, K]."""
        rows, steps = numbers.shape
        return self.network.categories.loss(logits, numbers.T.reshape(-1)).reshape(steps, rows)

    def _observed_states(
        self, later: Sequence[torch.Tensor], which: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the hidden states of the later observations [K * B, ...] and their mask [B, K]."""
        planes, scalars, inside = later
        rows, steps = inside.shape
        seen = unpacked(planes, scalars, self._shape)
        if which is not None:
            none = which.new_zeros((rows * steps, 0))
            seen, _ = self._symmetries.apply(seen, none, which.repeat_interleave(steps, output_size=rows * steps))
        with torch.no_grad():
            hidden = self.network.represent(self._laid_out(seen))
        return hidden.reshape(rows, steps, *hidden.shape[1:]).transpose(0, 1).flatten(0, 1), inside

    def _laid_out(self, observations: torch.Tensor) -> torch.Tensor:
        return observations.contiguous(memory_format=self._format(observations))


def inputs_of(batch: UnrolledBatch, symmetry_ids: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Returns a batch as the input arrays of a step."""
    inputs: list[NDArray[Any]] = [batch.seen.planes.view(np.int64), batch.seen.numbers, batch.moves, batch.rewards]
    inputs += [batch.values, batch.actions, batch.policy, batch.known, batch.searched, batch.weights, symmetry_ids]
    if batch.later is not None and batch.inside is not None:
        inputs += [batch.later.planes.view(np.int64), batch.later.numbers, batch.inside]
    return inputs


def policy_losses(logits: torch.Tensor, actions: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Returns the cross-entropy [B] over all actions: inside the tree the policy alone encodes legality."""
    number = logits.shape[1]
    log_shares = functional.log_softmax(logits.float(), dim=1)
    # An extra column for the padding action.
    extended = functional.pad(log_shares, (0, 1)).gather(1, actions)
    return -(policy * extended.masked_fill(actions == number, 0.0)).sum(dim=1)


#: Number of positions measured, spread over the newest fraction of the buffer.
POSITIONS = 512
NEWEST = 0.1


def prediction_errors_by_depth(player: Any, replay: TrajectoryBuffer) -> dict[str, list[float | None]]:
    """Measures a model on recent positions, unrolled along the played moves, by depth from 0 (the position itself).

    `value` and `reward` are mean absolute errors, `policy` is the Kullback-Leibler divergence from the policy target,
    and `legal` is the probability on legal moves. Rewards begin at depth 1. None where no game reached the depth.
    """
    length = len(replay)
    if not length:
        return {}
    first = int((1.0 - NEWEST) * length)
    chosen = np.unique(np.linspace(first, length - 1, POSITIONS).astype(np.int64))
    batch = replay.gather(chosen, np.random.default_rng(0))
    device = next(player.parameters()).device

    def send(array: Any) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    searched, actions, policy = (send(array) for array in (batch.searched, batch.actions, batch.policy))
    values, rewards, moves = send(batch.values), send(batch.rewards), send(batch.moves)
    inside = (actions[:, :, 0] < player.architecture.num_actions).float()
    found: dict[str, list[float | None]] = {"value": [], "reward": [], "policy": [], "legal": []}
    with torch.inference_mode():
        hidden = player.represent(
            unpacked(send(batch.seen.planes.view(np.int64)), send(batch.seen.numbers), player.architecture.shape)
        )
        for depth in range(actions.shape[1]):
            if depth:
                hidden = player.step(hidden, moves[:, depth - 1])
                off = (player.categories.to_numbers(player.reward(hidden)) - rewards[:, depth - 1]).abs()
                # The last move of a game has a reward, although the position after it is beyond the end.
                found["reward"].append(_mean(off, inside[:, depth - 1]))
            logits, value = player.heads(hidden)
            off = (player.categories.to_numbers(value) - values[:, depth]).abs()
            found["value"].append(_mean(off, inside[:, depth]))
            goal = policy[:, depth]
            entropy = torch.special.entr(goal).sum(dim=1)
            gap = policy_losses(logits, actions[:, depth], goal) - entropy
            found["policy"].append(_mean(gap, searched[:, depth]))
            shares = torch.nn.functional.pad(torch.softmax(logits.float(), dim=1), (0, 1))
            found["legal"].append(_mean(shares.gather(1, actions[:, depth]).sum(dim=1), inside[:, depth]))
    return found


def _mean(numbers: torch.Tensor, counts: torch.Tensor) -> float | None:
    total = float(counts.sum())
    return round(float((numbers * counts).sum()) / total, 5) if total else None
