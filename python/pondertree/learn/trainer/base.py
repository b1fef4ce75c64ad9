"""A network that learns: its optimiser, the schedule of the learning rate, averaged weights, how all is saved.

What is learned, and from what, its variants say (`learner.py`). A step depends on the weights, on the batch and on its
number alone, so nothing but tensors and counters has to be kept to go on exactly.
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
from pondertree.gpu.captured_step import Steps
from pondertree.learn.config.schema import Config
from pondertree.learn.config.sections import LearnerConfig
from pondertree.validation import brief

#: Momentum of SGD.
MOMENTUM = 0.9
#: The tensors that each optimiser keeps of a weight.
STATES = {"adamw": {"step", "exp_avg", "exp_avg_sq"}, "sgd": {"momentum_buffer"}}


class Optimised(ABC):
    """A network that learns, and the average of its weights, which plays."""

    def __init__(self, network: Any, config: Config, device: torch.device) -> None:
        self._config: LearnerConfig = config.learner
        self._seed = config.seed
        self.device = device
        self.step = 0
        """Steps so far."""
        self.network = network
        self.network.to(device, memory_format=torch.channels_last)
        self.average = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        self.optimiser = self._make_optimiser()
        self._pull = torch.zeros((), device=device)
        """How far the average goes towards the weights in this step."""
        # Of the optimisers only this one keeps everything on the device.
        self.steps = Steps(device, self.work, captured=config.learner.optimiser == "adamw")

    @abstractmethod
    def learn_from(self, replay: Any, progress: float) -> dict[str, torch.Tensor]:
        """One step on a batch that is drawn from `replay`; the losses, still on the device, for `check` to look at."""

    @abstractmethod
    def work(self, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """What a step computes from its inputs, with `improve` at the end; nothing in it may wait for the device."""

    def numbers(self) -> np.random.Generator:
        """The random numbers of this step."""
        return np.random.Generator(np.random.Philox(key=[self._seed, self.step]))

    def take_step(self, inputs: Sequence[NDArray[Any]], progress: float) -> dict[str, torch.Tensor]:
        """Does `work` with these inputs."""
        rate = self.rate(progress)
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.step += 1
        # At the start the average follows closely, or it would long be that of the first weights.
        self._pull.fill_(1.0 - min(self._config.averaged, (self.step + 1) / (self.step + 10)))
        return self.steps(inputs)

    def improve(self, loss: torch.Tensor) -> torch.Tensor:
        """Goes down a loss; the length of its gradient."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm: torch.Tensor = nn.utils.clip_grad_norm_(self.network.parameters(), self._config.clip)
        self.optimiser.step()
        self._average()
        return norm.detach()

    def _make_optimiser(self) -> torch.optim.Optimizer:
        # Norms and biases are vectors; to pull them towards 0 only hurts.
        named = list(self.network.named_parameters())
        groups = [
            {"params": [tensor for _, tensor in named if tensor.ndim > 1], "weight_decay": self._config.weight_decay},
            {"params": [tensor for _, tensor in named if tensor.ndim <= 1], "weight_decay": 0.0},
        ]
        rate = self._config.learning_rate
        if self._config.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=MOMENTUM, nesterov=True)
        if self.device.type == "cuda":
            # Its numbers live on the device, so that a recorded step finds them there.
            return torch.optim.AdamW(groups, lr=torch.tensor(rate, device=self.device), capturable=True)
        return torch.optim.AdamW(groups, lr=rate)

    def rate(self, progress: float) -> float:
        """The learning rate at this step, when `progress`, from 0 to 1, of the training is done."""
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
                    self.average[name].lerp_(tensor, self._pull)
                else:
                    self.average[name].copy_(tensor)

    def check(self, losses: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """The losses as numbers; a training whose numbers are not finite is stopped."""
        numbers = {name: float(tensor) for name, tensor in losses.items()}
        wrong = [name for name, number in numbers.items() if not np.isfinite(number)]
        if wrong:
            raise TrainingError(
                f"{wrong[0]} is {numbers[wrong[0]]} at step {self.step}: the last checkpoint is whole; "
                f"go on from it with a lower learner.learning_rate, now {self._config.learning_rate}"
            )
        return numbers

    @staticmethod
    def _format(tensor: torch.Tensor) -> torch.memory_format:
        return torch.channels_last if tensor.ndim == 4 else torch.contiguous_format

    def saved(self) -> dict[str, torch.Tensor]:
        """Everything that is needed to go on, as tensors by name."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"average.{name}": tensor for name, tensor in self.average.items()}
        for number, values in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": torch.as_tensor(value) for name, value in values.items()}
        # Copies: learning goes on in the tensors themselves.
        contiguous = torch.contiguous_format
        return {name: tensor.detach().cpu().clone(memory_format=contiguous) for name, tensor in tensors.items()}

    def restore(self, tensors: Mapping[str, torch.Tensor], step: int) -> None:
        """Goes on from what `saved` gave, after `step` steps."""
        parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "average": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            if part not in parts:
                raise StorageError(f"tensor {name!r} belongs to nothing that this version knows")
            parts[part][rest] = tensor
        # All is checked before anything is copied: what fails then is the device's fault, not the file's.
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
                raise StorageError(f"optimiser.{place}: {brief(', '.join(found))} is the state of no optimiser")
            if found.keys() != STATES[self._config.optimiser]:
                del state[place]  # learner.optimiser was changed: the new one begins anew
        self.network.load_state_dict(parts["network"], strict=True)
        for name, tensor in self.average.items():
            tensor.copy_(parts["average"][name])
        for place, tensors_of_weight in state.items():
            for key, tensor in tensors_of_weight.items():
                like = weights[place]
                # In the order of the weights in memory, too: another order may round otherwise.
                if tensor.shape == like.shape:
                    tensors_of_weight[key] = torch.empty_like(like).copy_(tensor)
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.step = step
