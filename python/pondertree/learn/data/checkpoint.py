"""Checkpoints: folders that appear by atomic rename, with everything needed to resume a run exactly.

Every file is fsynced before the folder is renamed. `state.json` holds the counters and a SHA-256 of each other file, so
that truncated or corrupted files are detected before use. Tensors are safetensors, unfinished games NumPy columns, the
rest JSON and TOML: nothing is pickled or executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pondertree import validation
from pondertree.config import bounded_int, option
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import arrays_of, current_format, reading, sync_folder
from pondertree.learn.config import Config, text_of_config
from pondertree.learn.data.records import GameRecord, from_columns, to_columns
from pondertree.networks import OLD, PLAYER, STATE, list_checkpoints
from pondertree.optional import require
from pondertree.validation import brief

if TYPE_CHECKING:
    import torch

FORMAT = "pondertree-checkpoint"
VERSION = 1
TRAINING, GAMES, CONFIG = "training.safetensors", "games.npz", "config.toml"

whole = bounded_int(0, 1 << 62)


@dataclass(slots=True)
class Counters:
    """Counters of a run, saved with every checkpoint."""

    round: int = option(0, whole)
    """Rounds of self-play stored."""
    step: int = option(0, whole)
    """Optimiser steps."""
    games: int = option(0, whole)
    """Finished games."""
    positions: int = option(0, whole)
    """Positions added to the replay buffer."""
    owed: float = option(0.0, validation.number)
    """Optimiser steps due for the positions so far."""
    elapsed: float = option(0.0, validation.number)
    """Seconds of training."""

    @classmethod
    def of_data(cls, data: Any) -> Counters:
        """Validates the counters of a checkpoint."""
        counters = cls(**{each.name: data[each.name] for each in fields(cls)})
        validation.check_fields(counters)
        return counters


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of a checkpoint."""

    player: bytes
    """The content of the player file."""
    tensors: dict[str, torch.Tensor]
    """Weights, averaged weights, optimiser state, replay priorities."""
    games: list[GameRecord]
    """Unfinished games."""
    state: dict[str, Any]
    """Counters and the state of self-play."""


def save_checkpoint(folder: Path, number: int, checkpoint: Checkpoint, config: Config) -> Path:
    """Writes checkpoint `number`; durable when it returns."""
    from safetensors.torch import save

    games = io.BytesIO()
    np.savez(games, allow_pickle=False, **to_columns(checkpoint.games))
    contents = {
        PLAYER: checkpoint.player,
        TRAINING: save(checkpoint.tensors, metadata={"format": FORMAT}),
        GAMES: games.getvalue(),
        CONFIG: text_of_config(config).encode(),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    state = {"format": FORMAT, "version": VERSION, "state": checkpoint.state, "sha256": sums}
    state["own"] = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    contents[STATE] = (json.dumps(state, indent=1) + "\n").encode()
    path = folder / f"round-{number:08d}"
    staging = folder / f"{path.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        for name, content in contents.items():
            with open(staging / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        sync_folder(staging)
        old = folder / f"{path.name}{OLD}"
        if path.exists():  # a resumed run repeats a round: at any instant one of the two is intact and listed
            shutil.rmtree(old, ignore_errors=True)
            os.replace(path, old)
        os.replace(staging, path)
        sync_folder(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise StorageError(
            f"the checkpoint cannot be written to {str(path)!r}: {error.strerror}; earlier checkpoints are intact"
        ) from error
    return path


def keep_newest(folder: Path, count: int) -> None:
    """Removes all but the newest checkpoints; renames each first, so that no listed one is ever incomplete."""
    for path in list_checkpoints(folder)[:-count]:
        removed = path.with_name(f"{path.name}.part")
        os.replace(path, removed)
        shutil.rmtree(removed, ignore_errors=True)


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint; raises `StorageError` if it is truncated, corrupted or of another version."""
    load = require("safetensors.torch", "torch", "loading a checkpoint").load
    contents = {}
    for name in (PLAYER, TRAINING, GAMES, CONFIG, STATE):
        with reading(path / name, "a file of a checkpoint", StorageError) as file:
            contents[name] = file.read_bytes()
    with reading(path / STATE, "the state of a checkpoint", StorageError):
        header = json.loads(contents[STATE])
        own = header.pop("own")
        if current_format(header.get("format")) != FORMAT or header.get("version") != VERSION:
            found = brief(f"{header.get('format')} {header.get('version')}")
            raise StorageError(f"it is {found}; this version reads {FORMAT} {VERSION}")
        if own != hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest():
            raise StorageError("it is damaged, its checksum differs")
        state, sums = dict(header["state"]), dict(header["sha256"])
    for name in (PLAYER, TRAINING, GAMES, CONFIG):
        if hashlib.sha256(contents[name]).hexdigest() != sums.get(name):
            raise StorageError(f"checkpoint {str(path)!r}: {name} is damaged, its checksum differs")
    with reading(path / GAMES, "a file of games", StorageError):
        games = from_columns(arrays_of(contents[GAMES]))
    with reading(path / TRAINING, "a file of tensors", StorageError):
        return Checkpoint(contents[PLAYER], load(contents[TRAINING]), games, state)


def newest_intact(folder: Path) -> tuple[Path, Checkpoint, list[str]] | None:
    """Returns (path, checkpoint, errors of newer ones) of the newest intact checkpoint; None if there are none."""
    errors: list[str] = []
    paths = list_checkpoints(folder)
    for path in reversed(paths):
        try:
            return path, load_checkpoint(path), errors
        except (StorageError, InvalidArgumentError) as error:
            errors.append(str(error))
    if errors:
        raise StorageError(f"no checkpoint in {str(folder)!r} is intact: {errors[0]}")
    return None
