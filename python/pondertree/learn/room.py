"""Whether a training fits into memory, asked before it begins; if not, which setting to lower."""

from __future__ import annotations

import os

import numpy as np
import torch

from pondertree.errors import InvalidArgumentError
from pondertree.learn.config import Config
from pondertree.learn.game_spec import GameSpec
from pondertree.learn.model_architecture import ModelArchitecture
from pondertree.learn.observations import widths

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
    shape = ModelArchitecture.of(spec, config).hidden_shape
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
