"""How far a training goes, and how far it has come."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from pondertree.errors import EvaluationError, InvalidArgumentError, TrainingError
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config
from pondertree.learn.data.checkpoint import Counters
from pondertree.learn.data.observations import widths
from pondertree.learn.trainer.architectures import model_architecture


class Limits:
    """Minutes, games and steps: the first that is reached ends the training."""

    def __init__(self, config: Config, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self._before = counters.elapsed
        self._begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before it was taken up again included."""
        return self._before + time.monotonic() - self._begun

    @property
    def progress(self) -> float:
        """From 0 to 1. Minutes are looked at only where they are a limit: the rest of a training is free of clocks."""
        config, counters = self._config, self._counters
        shares = [0.0]
        if config.minutes is not None:
            shares.append(self.elapsed / (60.0 * config.minutes))
        if config.games is not None:
            shares.append(counters.games / config.games)
        if config.steps is not None:
            shares.append(counters.step / config.steps)
        return min(max(shares), 1.0)

    @property
    def reached(self) -> bool:
        """Whether it is over."""
        return self.progress >= 1.0

    @property
    def seconds_left(self) -> float | None:
        """About how long it will go on; None where nothing is known yet."""
        progress = self.progress
        return None if progress <= 0.0 else self.elapsed * (1.0 - progress) / progress


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


#: The share of all memory that a part may want.
MOST_SHARE = 0.9
#: Bytes of a number of a hidden state.
WIDE, NARROW = 4, 2


def check_room(spec: GameSpec, config: Config, device: torch.device) -> None:
    """Refuses a training whose positions or hidden states cannot fit."""
    planes, numbers = widths(spec)
    row = 8 * planes + (1 if spec.pixels else 4) * numbers
    _check(
        config.replay.window * row,
        memory_of(torch.device("cpu")),
        f"replay.window is {config.replay.window:,} positions of {_size(row)} each, which",
        "replay.window",
    )
    if config.algorithm != "muzero":
        return
    play = config.self_play
    shape = model_architecture(spec, config).hidden_shape
    hidden = int(np.prod(shape)) * (NARROW if device.type == "cuda" and config.learner.reduced_precision else WIDE)
    _check(
        play.games_at_once * (play.simulations + 1) * hidden,
        memory_of(device),
        f"{play.games_at_once} games at once, {play.simulations} simulations and hidden states of shape {list(shape)}",
        "self_play.games_at_once, self_play.simulations or network.channels",
    )


def memory_of(device: torch.device) -> int | None:
    """All memory that a device has, in bytes; None where that cannot be known."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _check(wanted: int, there: int | None, what: str, settings: str) -> None:
    if there is not None and wanted > MOST_SHARE * there:
        raise InvalidArgumentError(f"{what} need {_size(wanted)}, but there are {_size(there)}: lower {settings}")


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 10_000:
            return f"{count:,} {unit}"
        count = round(count / 1000)
    return f"{count:,} GB"
