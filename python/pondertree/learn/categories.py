"""Numbers as categories: how a network says values and rewards, and what is learned of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from pondertree.learn.architecture import OUTCOMES
from pondertree.learn.learner import outcome_shares
from pondertree.models.support import Support


@dataclass(frozen=True, slots=True)
class Categories:
    """With `support` 0: won, drawn and lost, for numbers from -1 to 1. Else `Support`, for rewards of any size."""

    support: int

    @property
    def count(self) -> int:
        """How many logits a network gives."""
        return 2 * self.support + 1 if self.support else OUTCOMES

    @property
    def largest(self) -> float:
        """The largest number that can be said."""
        return Support(self.support).largest if self.support else 1.0

    def to_numbers(self, logits: torch.Tensor) -> torch.Tensor:
        """The numbers [...] that logits [..., count] mean."""
        if not self.support:
            shares = torch.softmax(logits.float(), dim=-1)
            return shares[..., 0] - shares[..., 2]
        numbers: torch.Tensor = Support(self.support).to_scalar(logits.float())
        return numbers

    def loss(self, logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """The cross-entropy of each row: logits [B, count], numbers [B]."""
        if self.support:
            target = Support(self.support).to_categorical(numbers)
        else:
            target = outcome_shares(numbers.clamp(-1.0, 1.0))
        return -(target * functional.log_softmax(logits.float(), dim=-1)).sum(dim=-1)


def support_for(number: float) -> int:
    """The least support that reaches to a number."""
    return math.ceil(float(Support(1).transform(abs(number))))
