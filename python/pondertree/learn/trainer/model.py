"""What a model learns: rewards, values and policies along the moves that were played (MuZero, appendix G)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from pondertree.gpu.buffer import unpacked
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.trajectories import Trajectories, Unrolled
from pondertree.learn.trainer.architectures import model_architecture
from pondertree.learn.trainer.base import Optimised
from pondertree.learn.trainer.policy_value import Turning
from pondertree.learn.trainer.reanalysis import Reanalysis
from pondertree.networks.model_network import ModelNetwork, fresh_model

#: What is left of the gradient of a hidden state at each step back through the dynamics.
GRADIENT_KEPT = 0.5
#: What a step tells beside its losses: how far the value of each position was off.
ERRORS = "value_errors"


class ModelLearner(Optimised):
    """A model that learns."""

    network: ModelNetwork

    def __init__(self, spec: GameSpec, config: Config, device: torch.device) -> None:
        super().__init__(fresh_model(model_architecture(spec, config), config.seed), config, device)
        self._muzero = config.muzero
        self._shape = spec.shape
        self._turning = Turning(spec.symmetries, device)
        wanted = config.muzero.reanalyse > 0.0 or config.muzero.fresh_values
        self._reanalysis = Reanalysis(spec, config, self.network) if wanted else None

    def learn_from(self, replay: Trajectories, progress: float) -> dict[str, torch.Tensor]:
        """One step on positions and what came after them; the losses, still on the device."""
        numbers = self.numbers()
        batch = replay.sample(self._config.batch_size, numbers, later=self._muzero.consistency > 0.0)
        if self._reanalysis is not None:
            self._reanalysis.renew(batch, replay, self.average, self.step)
        losses, errors = self.learn(batch, numbers.integers(len(self._turning), size=len(batch.places)), progress)
        if self._muzero.priority > 0.0:
            replay.learn_errors(batch.places, errors.cpu().numpy())
        return losses

    def learn(
        self, batch: Unrolled, turns: NDArray[np.int64], progress: float
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """One step on these games, each turned by the symmetry of its number: (the losses, how far the value of each
        position was off [B]), both still on the device."""
        told = self.take_step(inputs_of(batch, turns), progress)
        return {name: one for name, one in told.items() if name != ERRORS}, told[ERRORS]

    def work(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The losses of a step, and the step."""
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
        norm = self.improve(torch.stack([weights[name] * one for name, one in losses.items()]).sum())
        return {**{name: one.detach() for name, one in losses.items()}, "gradient": norm, ERRORS: errors}

    def losses(self, inputs: Sequence[torch.Tensor]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """The mean losses by name, and how far the value of each position was off [B].

        The first position counts as much as all steps after it together, in every loss.
        """
        planes, scalars, moves, rewards, values, actions, policy, known, searched, weights, turns, *later = inputs
        network = self.network
        observations = unpacked(planes, scalars, self._shape)
        which = turns if self._config.symmetries and len(self._turning) > 1 else None
        if which is not None:
            observations, moves = self._turning.turned(observations, moves, which)
            actions = self._turning.turned_actions(actions, which)
        hidden = network.represent(self._laid_out(observations))
        rows, steps = moves.shape
        imagined = [hidden]
        for depth in range(steps):
            hidden = network.step(torch.lerp(hidden.detach(), hidden, GRADIENT_KEPT), moves[:, depth])
            imagined.append(hidden)
        # All depths go through the heads together: [K + 1, B] one behind another.
        logits, value = network.heads(torch.cat(imagined))
        reward = network.reward(torch.cat(imagined[1:]))
        shares = weights.new_full((steps + 1, 1), 1.0 / steps)
        shares[0] = 1.0
        counts = shares * weights
        lost = policy_losses(logits, actions.transpose(0, 1).flatten(0, 1), policy.transpose(0, 1).flatten(0, 1))
        losses = {
            "policy_loss": (lost.reshape(steps + 1, rows) * searched.T * counts).sum() / rows,
            "value_loss": (self._off(value, values) * known.T * counts).sum() / rows,
            "reward_loss": (self._off(reward, rewards) * known[:, 1:].T * counts[1:]).sum() / rows,
        }
        if later:
            goal, inside = self._goals(later, which)
            unlike = network.compared(torch.cat(imagined[1:]), goal).reshape(steps, rows)
            losses["consistency_loss"] = (unlike * inside.T * counts[1:]).sum() / rows
        errors = (network.categories.to_numbers(value[:rows].detach()) - values[:, 0]).abs()
        return losses, errors

    def _off(self, logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """The losses [K, B] of logits [K * B, ...] of numbers [B, K]."""
        rows, steps = numbers.shape
        return self.network.categories.loss(logits, numbers.T.reshape(-1)).reshape(steps, rows)

    def _goals(self, later: Sequence[torch.Tensor], which: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states of what was seen after each step [K * B, ...], and where something was [B, K]."""
        planes, scalars, inside = later
        rows, steps = inside.shape
        seen = unpacked(planes, scalars, self._shape)
        if which is not None:
            none = which.new_zeros((rows * steps, 0))
            seen, _ = self._turning.turned(seen, none, which.repeat_interleave(steps, output_size=rows * steps))
        with torch.no_grad():
            hidden = self.network.represent(self._laid_out(seen))
        return hidden.reshape(rows, steps, *hidden.shape[1:]).transpose(0, 1).flatten(0, 1), inside

    def _laid_out(self, observations: torch.Tensor) -> torch.Tensor:
        return observations.contiguous(memory_format=self._format(observations))


def inputs_of(batch: Unrolled, turns: NDArray[np.int64]) -> list[NDArray[Any]]:
    """A batch as the arrays that a step takes."""
    inputs: list[NDArray[Any]] = [batch.seen.planes.view(np.int64), batch.seen.numbers, batch.moves, batch.rewards]
    inputs += [batch.values, batch.actions, batch.policy, batch.known, batch.searched, batch.weights, turns]
    if batch.later is not None and batch.inside is not None:
        inputs += [batch.later.planes.view(np.int64), batch.later.numbers, batch.inside]
    return inputs


def policy_losses(logits: torch.Tensor, actions: torch.Tensor, policy: torch.Tensor) -> torch.Tensor:
    """Cross-entropy [B] over all actions: inside the tree nothing but the model says which are legal."""
    number = logits.shape[1]
    log_shares = functional.log_softmax(logits.float(), dim=1)
    # A column behind the last action takes what is no action.
    padded = functional.pad(log_shares, (0, 1)).gather(1, actions)
    return -(policy * padded.masked_fill(actions == number, 0.0)).sum(dim=1)


#: Positions that are looked at, spread over the newest share of those in memory.
POSITIONS = 512
NEWEST = 0.1


def errors_by_depth(player: Any, replay: Trajectories) -> dict[str, list[float | None]]:
    """Means over recent positions and the moves that were played from there, by depth from 0, the position itself.

    `value` and `reward` are absolute errors, `policy` is how far the policy is from the search's (Kullback-Leibler),
    `legal` is the share of the policy that lies on legal moves. A reward comes with a step, so it begins at depth 1.
    Behind the end of a game there is nothing to be wrong about; None where no game went on so long.
    """
    length = len(replay)
    if not length:
        return {}
    first = int((1.0 - NEWEST) * length)
    chosen = np.unique(np.linspace(first, length - 1, POSITIONS).astype(np.int64))
    batch = replay.take(chosen, np.random.default_rng(0))
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
                # The last move of a game brings its reward, although the position after it is behind the end.
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
