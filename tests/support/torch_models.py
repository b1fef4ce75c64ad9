"""A small learned model of PyTorch, and the devices that tests run on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pondertree.models import HiddenPool, Inference, min_max

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SIZE, ACTIONS = 6, 5
OBSERVATIONS = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
CHOSEN = np.array([4, 0, 1, 2])


class Net(torch.nn.Module):  # type: ignore[misc]
    """A small model with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, SIZE), torch.nn.Dropout(0.5))
        self.step = torch.nn.Linear(SIZE + ACTIONS, SIZE + 1)
        self.head = torch.nn.Linear(SIZE, ACTIONS + 1)

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        assert not torch.is_grad_enabled()
        assert not self.training
        hidden = min_max(self.body(observations.flatten(1)))
        return (hidden, *self.see(hidden))

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        assert actions.dtype == torch.int64
        assert actions.device == hidden.device
        coded = torch.nn.functional.one_hot(actions, ACTIONS).to(hidden.dtype)
        out = self.step(torch.cat([hidden, coded], dim=1))
        after = torch.tanh(out[:, :SIZE])
        return (after, out[:, SIZE:], *self.see(after))

    def see(self, hidden: Any) -> tuple[Any, Any]:
        out = self.head(hidden)
        return out[:, :ACTIONS], out[:, ACTIONS:]


def net(kind: type = Net) -> Any:
    torch.manual_seed(0)
    return kind()


def play(model: Any, observations: Any = OBSERVATIONS) -> list[np.ndarray]:
    """The outputs of two steps with a pool."""
    inference, pool = Inference(model), HiddenPool(2)
    root = inference.initial(observations)
    pool.scatter(np.arange(4), root.hidden)
    one = inference.recurrent(pool.gather(np.arange(4)), CHOSEN)
    pool.scatter(np.arange(4, 8), one.hidden)
    two = inference.recurrent(pool.gather(np.array([6, 0, 6])), CHOSEN[:3])
    return [root.logits, root.values, one.rewards, one.logits, one.values, two.rewards, two.logits, two.values]


def same(one: list[np.ndarray], other: list[np.ndarray], tolerance: float = 1e-5) -> bool:
    return all(np.allclose(a, b, atol=tolerance, rtol=tolerance) for a, b in zip(one, other, strict=True))
