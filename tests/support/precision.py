"""Tests that compute in reduced precision on the CPU are skipped, with the reason, where that does not work."""

from __future__ import annotations

from typing import Any

import pytest

from pondertree.evaluators.cpu_precision import REDUCED, cpu_precision_failure


def need_cpu_precision(dtype: Any, device: str = "cpu") -> None:
    """Skips the test where PyTorch cannot compute in `dtype` on `device`, which is tried once in a child process."""
    name = str(dtype).removeprefix("torch.")
    reason = cpu_precision_failure(name) if name in REDUCED and device == "cpu" else None
    if reason is not None:
        pytest.skip(f"{name} does not work on this CPU: {reason}")
