"""The trainer of a network: optimiser, learning-rate schedule, gradient clipping, weight averaging (EMA), state dicts.

Losses are defined by the subclasses. A step depends on the weights, the batch and its number alone, so that tensors and
counters suffice to resume exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pondertree.errors import StorageError, TrainingError
from pondertree.gpu.captured_step import GraphedSteps
from pondertree.learn.config import Config, LearnerConfig
from pondertree.validation import brief

#: Momentum of SGD.
MOMENTUM = 0.9
#: The optimisers' state tensors per weight.
STATES = {"adamw": {"step", "exp_avg", "exp_avg_sq"}, "sgd": {"momentum_buffer"}}


class Trainer(ABC):
    """A network in training, and the moving average of its weights, which plays."""

    def __init__(self, network: Any, config: Config, device: torch.device) -> None:
        self._config: LearnerConfig = config.learner
        self._seed = config.seed
        self.device = device
        self.step = 0
        """Optimiser steps so far."""
        self.network = network
        self.network.to(device, memory_format=torch.channels_last)
        self.average = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.optimiser = self._make_optimiser()
        self._average_weight = torch.zeros((), device=device)
        """Weight of the current weights in the moving average at this step."""
        # Of the optimisers only AdamW keeps its whole state on the device, as a captured step requires.
        self.steps = GraphedSteps(device, self.loss_and_update, captured=config.learner.optimiser == "adamw")

    @abstractmethod
    def learn_from(self, replay: Any, progress: float) -> dict[str, torch.Tensor]:
        """Runs one step on a batch sampled from `replay`; returns the losses on the device, for `checked_losses`."""

    @abstractmethod
    def loss_and_update(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Computes the losses of a step and calls `optimise`; captured as a CUDA graph, so it must not synchronise."""

    def step_generator(self) -> np.random.Generator:
        """Returns the random generator of this step."""
        return np.random.Generator(np.random.Philox(key=[self._seed, self.step]))

    def run_step(self, inputs: Sequence[NDArray[Any]], progress: float) -> dict[str, torch.Tensor]:
        """Runs `loss_and_update` on these inputs with this step's learning rate and averaging weight."""
        rate = self.learning_rate(progress)
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.step += 1
        # Early averaging weights are larger, so that the initial weights do not dominate the average for long.
        self._average_weight.fill_(1.0 - min(self._config.averaged, (self.step + 1) / (self.step + 10)))
        return self.steps(inputs)

    def optimise(self, loss: torch.Tensor) -> torch.Tensor:
        """Performs one optimiser step with gradient clipping; returns the gradient norm before clipping."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm: torch.Tensor = nn.utils.clip_grad_norm_(self.network.parameters(), self._config.clip)
        self.optimiser.step()
        self._average()
        return norm.detach()

    def _make_optimiser(self) -> torch.optim.Optimizer:
        # No weight decay on norms and biases, which are vectors.
        named = list(self.network.named_parameters())
        groups = [
            {"params": [tensor for _, tensor in named if tensor.ndim > 1], "weight_decay": self._config.weight_decay},
            {"params": [tensor for _, tensor in named if tensor.ndim <= 1], "weight_decay": 0.0},
        ]
        rate = self._config.learning_rate
        if self._config.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=MOMENTUM, nesterov=True)
        if self.device.type == "cuda":
            # The learning rate is a device tensor, so that a captured step reads it there.
            return torch.optim.AdamW(groups, lr=torch.tensor(rate, device=self.device), capturable=True)
        return torch.optim.AdamW(groups, lr=rate)

    def learning_rate(self, progress: float) -> float:
        """Returns the learning rate of this step: linear warm-up, constant, linear decay; `progress` is in [0, 1]."""
        config = self._config
        warm = min((self.step + 1) / config.warm_up, 1.0) if config.warm_up else 1.0
        left = 1.0
        if progress > config.decay_from:
            done = (progress - config.decay_from) / max(1.0 - config.decay_from, 1e-9)
            left = 1.0 + min(done, 1.0) * (config.final_rate - 1.0)
        return config.learning_rate * warm * left

    def _average(self) -> None:
        with torch.no_grad():
            for name, tensor in self.network.state_dict().items():
                if tensor.is_floating_point():
                    self.average[name].lerp_(tensor, self._average_weight)
                else:
                    self.average[name].copy_(tensor)

    def checked_losses(self, losses: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """Returns the losses as floats; raises `TrainingError` if one is not finite."""
        numbers = {name: float(tensor) for name, tensor in losses.items()}
        wrong = [name for name, number in numbers.items() if not np.isfinite(number)]
        if wrong:
            raise TrainingError(
                f"{wrong[0]} is {numbers[wrong[0]]} at step {self.step}: the last checkpoint is intact; "
                f"resume from it with a lower learner.learning_rate, now {self._config.learning_rate}"
            )
        return numbers

    @staticmethod
    def _format(tensor: torch.Tensor) -> torch.memory_format:
        return torch.channels_last if tensor.ndim == 4 else torch.contiguous_format

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Returns all state needed to resume, as CPU tensors by name."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"average.{name}": tensor for name, tensor in self.average.items()}
        for number, values in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": torch.as_tensor(value) for name, value in values.items()}
        # Copies: training continues in the tensors themselves.
        contiguous = torch.contiguous_format
        return {name: tensor.detach().cpu().clone(memory_format=contiguous) for name, tensor in tensors.items()}

    def load_state_dict(self, tensors: Mapping[str, torch.Tensor], step: int) -> None:
        """Restores what `state_dict` returned after `step` steps; raises `StorageError` if it does not fit."""
        parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "average": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            if part not in parts:
                raise StorageError(f"tensor {name!r} is unknown to this version")
            parts[part][rest] = tensor
        # Everything is validated before copying: later failures are the device's, not the file's.
        weights = [tensor for group in self.optimiser.param_groups for tensor in group["params"]]
        for part, own in (("network", self.network.state_dict()), ("average", self.average)):
            for name in {**own, **parts[part]}:
                expected, found = own.get(name), parts[part].get(name)
                if expected is None or found is None or expected.shape != found.shape:
                    raise StorageError(f"the saved tensors do not fit this network: {brief(f'{part}.{name}')}")
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in parts["optimiser"].items():
            number, _, key = name.partition(".")
            place = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else len(weights)
            if place >= len(weights) or tensor.shape != (() if key == "step" else weights[place].shape):
                raise StorageError(f"the saved tensors do not fit this network: {brief(f'optimiser.{name}')}")
            state.setdefault(place, {})[key] = tensor
        for place, found in list(state.items()):
            if found.keys() not in STATES.values():
                raise StorageError(f"optimiser.{place}: {brief(', '.join(found))} is not an optimiser's state")
            if found.keys() != STATES[self._config.optimiser]:
                del state[place]  # learner.optimiser was changed: the new one starts without state
        self.network.load_state_dict(parts["network"], strict=True)
        for name, tensor in self.average.items():
            tensor.copy_(parts["average"][name])
        for place, tensors_of_weight in state.items():
            for key, tensor in tensors_of_weight.items():
                like = weights[place]
                # In the memory format of the weights: another order may round differently.
                if tensor.shape == like.shape:
                    tensors_of_weight[key] = torch.empty_like(like).copy_(tensor)
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.step = step
