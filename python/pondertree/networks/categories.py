"""The categorical encoding of values and rewards in networks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.fx
from torch.nn import functional

from pondertree.models.support import Support
from pondertree.networks.architecture import OUTCOMES


def expected_numbers(logits: torch.Tensor, support: int) -> torch.Tensor:
    """Returns the numbers [...] of logits [..., 2 support + 1]: the inverse transform of the expected atom."""
    numbers: torch.Tensor = Support(support).to_scalar(logits.float())
    return numbers


# One node of a traced graph: its placeholders have no shape to check.
torch.fx.wrap("expected_numbers")


@dataclass(frozen=True, slots=True)
class Categories:
    """The categorical encoding of values and rewards.

    `support` 0: win, draw and loss, for numbers from -1 to 1; otherwise `Support`, for any range.
    """

    support: int

    @property
    def count(self) -> int:
        """Number of logits."""
        return 2 * self.support + 1 if self.support else OUTCOMES

    @property
    def largest(self) -> float:
        """Largest representable number."""
        return Support(self.support).largest if self.support else 1.0

    def to_numbers(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns the expected numbers [...] of logits [..., count]."""
        if not self.support:
            shares = torch.softmax(logits.float(), dim=-1)
            return shares[..., 0] - shares[..., 2]
        return expected_numbers(logits, self.support)

    def loss(self, logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Returns the cross-entropy of each row: logits [B, count], targets [B]."""
        if self.support:
            target = Support(self.support).to_categorical(numbers)
        else:
            target = outcome_shares(numbers.clamp(-1.0, 1.0))
        return -(target * functional.log_softmax(logits.float(), dim=-1)).sum(dim=-1)


def support_for(number: float) -> int:
    """Returns the smallest support that represents a number."""
    return math.ceil(float(Support(1).transform(abs(number))))


def outcome_shares(values: torch.Tensor) -> torch.Tensor:
    """Encodes values in [-1, 1] as probabilities of win, draw and loss [B, 3] of least entropy."""
    won, lost = values.clamp(min=0.0), (-values).clamp(min=0.0)
    return torch.stack([won, 1.0 - won - lost, lost], dim=1)
