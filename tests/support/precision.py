"""Skips tests of reduced precision on CPUs that do not support it."""

from __future__ import annotations

from typing import Any

import pytest

from pondertree.evaluators.cpu_precision import REDUCED, cpu_precision_failure


def need_cpu_precision(dtype: Any, device: str = "cpu") -> None:
    """Skips the test if PyTorch cannot compute in `dtype` on `device`, by a probe in a child process."""
    name = str(dtype).removeprefix("torch.")
    reason = cpu_precision_failure(name) if name in REDUCED and device == "cpu" else None
    if reason is not None:
        pytest.skip(f"{name} does not work on this CPU: {reason}")
