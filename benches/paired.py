"""Ratios of paired measurements, and the criterion for a regression."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: The minimum median of new speed to old speed.
BAR = 0.97


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios, and a distribution-free confidence interval of the median by order statistics."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float], confidence: float = 0.95) -> Ratio:
        """Computes the interval; below six ratios it is their range, with lower confidence (94 % for five)."""
        values = sorted(ratios)
        count, cut = len(values), 0
        # The interval between the k-th lowest and the k-th highest misses the median with P(Bin(n, 1/2) < k), twice.
        while 2 * sum(math.comb(count, less) for less in range(cut + 2)) / 2**count <= 1 - confidence:
            cut += 1
        return cls(statistics.median(values), values[cut], values[count - 1 - cut])

    @property
    def passed(self) -> bool:
        """Whether the median is at least 0.97 or the interval contains 1."""
        return self.median >= BAR or self.low <= 1.0 <= self.high

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"
