"""Where a network runs, and what is said when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pondertree.errors import EvaluationError, InvalidArgumentError, TrainingError


def choose_device(text: str) -> torch.device:
    """The device of a configuration; one that was asked for and is absent is refused."""
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(text)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise InvalidArgumentError(f"device {text!r} is none that PyTorch knows: {reason}") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise InvalidArgumentError(f"device {text!r} was asked for, but PyTorch finds no GPU here: use cpu or auto")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise InvalidArgumentError(f"device {text!r} was asked for, but there are {torch.cuda.device_count()} GPUs")
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise InvalidArgumentError(f"device {text!r} was asked for, but PyTorch finds none here: use cpu or auto")
    elif device.type not in ("cpu", "mps"):
        raise InvalidArgumentError(f"device must be cpu, cuda or auto, not {text!r}")
    return device


@contextmanager
def memory_complaints(doing: str, setting: str) -> Iterator[None]:
    """Says which setting to lower when the memory of the device is used up."""
    try:
        yield
    except (torch.OutOfMemoryError, EvaluationError) as error:
        # A search tells what its evaluator raised as an error of its own.
        cause = error if isinstance(error, torch.OutOfMemoryError) else error.__cause__
        if not isinstance(cause, torch.OutOfMemoryError):
            raise
        raise TrainingError(
            f"the device has no memory left for {doing}: lower {setting} ({str(cause).splitlines()[0]})"
        ) from None
