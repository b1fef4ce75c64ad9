"""The device of a run: its choice, a memory check before the start, and out-of-memory errors with a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from pondertree.errors import EvaluationError, InvalidArgumentError, TrainingError
from pondertree.learn.config import Config, GameSpec
from pondertree.learn.data import packed_widths
from pondertree.learn.trainer.architectures import model_architecture

#: The largest fraction of a device's memory that one buffer may take.
MAX_MEMORY_SHARE = 0.9


def choose_device(text: str) -> torch.device:
    """Returns the device that a configuration names; raises `InvalidArgumentError` if it is unavailable."""
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(text)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise InvalidArgumentError(f"device {text!r} is unknown to PyTorch: {reason}") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise InvalidArgumentError(f"device {text!r} is unavailable: PyTorch finds no GPU; use cpu or auto")
        if device.index is not None and device.index >= torch.cuda.device_count():
            raise InvalidArgumentError(f"device {text!r} is unavailable: there are {torch.cuda.device_count()} GPUs")
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise InvalidArgumentError(f"device {text!r} is unavailable: PyTorch finds none; use cpu or auto")
    elif device.type not in ("cpu", "mps"):
        raise InvalidArgumentError(f"device must be cpu, cuda or auto, not {text!r}")
    return device


@contextmanager
def reported_out_of_memory(activity: str, setting: str) -> Iterator[None]:
    """Turns an out-of-memory error of the device into a `TrainingError` that names the setting to lower."""
    try:
        yield
    except (torch.OutOfMemoryError, EvaluationError) as error:
        # A search wraps what its evaluator raises.
        cause = error if isinstance(error, torch.OutOfMemoryError) else error.__cause__
        if not isinstance(cause, torch.OutOfMemoryError):
            raise
        raise TrainingError(
            f"the device ran out of memory during {activity}: lower {setting} ({str(cause).splitlines()[0]})"
        ) from None


def check_memory(spec: GameSpec, config: Config, device: torch.device) -> None:
    """Refuses a run whose replay buffer or hidden states cannot fit into memory."""
    planes, numbers = packed_widths(spec)
    row = 8 * planes + (1 if spec.pixels else 4) * numbers
    _check(
        config.replay.window * row,
        memory_of(torch.device("cpu")),
        f"replay.window is {config.replay.window:,} positions of {_size(row)} each, which",
        "replay.window",
    )
    if not config.learns_model:
        return
    play = config.self_play
    shape = model_architecture(spec, config).hidden_shape
    bytes_per_number = 2 if device.type == "cuda" and config.learner.reduced_precision else 4
    _check(
        play.games_at_once * (play.simulations + 1) * int(np.prod(shape)) * bytes_per_number,
        memory_of(device),
        f"{play.games_at_once} games at once, {play.simulations} simulations and hidden states of shape {list(shape)}",
        "self_play.games_at_once, self_play.simulations or network.channels",
    )


def memory_of(device: torch.device) -> int | None:
    """Returns the total memory of a device in bytes; None if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _check(needed: int, available: int | None, what: str, settings: str) -> None:
    if available is not None and needed > MAX_MEMORY_SHARE * available:
        raise InvalidArgumentError(f"{what} need {_size(needed)}, but there are {_size(available)}: lower {settings}")


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 10_000:
            return f"{count:,} {unit}"
        count = round(count / 1000)
    return f"{count:,} GB"
