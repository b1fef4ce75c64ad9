"""Checkpoints: folders that are there whole or not at all, with everything it takes to go on.

A checkpoint is made under another name, every file in it synced, then renamed. Its `state.json` holds the counters, and
a checksum of each other file, so that a cut or flipped one is noticed before anything is taken from it. Tensors are
safetensors, games under way columns of NumPy, the rest JSON and TOML: nothing is pickled, nothing is executed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import arrays_of, current_format, reading, sync_folder
from pondertree.learn.config.schema import Config, text_of_config
from pondertree.learn.data.records import GameRecord, from_columns, to_columns
from pondertree.networks.run_files import OLD, PLAYER, STATE, list_checkpoints
from pondertree.optional import require
from pondertree.validation import brief

if TYPE_CHECKING:
    import torch

FORMAT = "pondertree-checkpoint"
VERSION = 1
TRAINING, GAMES, CONFIG = "training.safetensors", "games.npz", "config.toml"


@dataclass(slots=True)
class Counters:
    """What is counted, and saved with every checkpoint."""

    round: int = 0
    """Rounds of self-play that were stored."""
    step: int = 0
    """Steps of learning."""
    games: int = 0
    """Games that were finished."""
    positions: int = 0
    """Positions of them that are learned."""
    owed: float = 0.0
    """Steps that the positions so far have still to be learned by."""
    elapsed: float = 0.0
    """Seconds of training."""

    @classmethod
    def of_data(cls, data: Any) -> Counters:
        """From plain data of a checkpoint."""
        whole = {name: validation.whole_number(data[name], name, most=1 << 62) for name in ("round", "step", "games")}
        positions = validation.whole_number(data["positions"], "positions", most=1 << 62)
        owed, elapsed = (validation.number(data[name], name) for name in ("owed", "elapsed"))
        return cls(**whole, positions=positions, owed=owed, elapsed=elapsed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint holds."""

    player: bytes
    """The player, as a file of its own."""
    tensors: dict[str, torch.Tensor]
    """Weights, averaged weights and the optimiser."""
    games: list[GameRecord]
    """Games under way."""
    state: dict[str, Any]
    """Counters."""


def save_checkpoint(folder: Path, number: int, checkpoint: Checkpoint, config: Config) -> Path:
    """Makes checkpoint `number` in a folder; when it comes back, it is on the disk."""
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
    told = {"format": FORMAT, "version": VERSION, "state": checkpoint.state, "sha256": sums}
    told["own"] = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    contents[STATE] = (json.dumps(told, indent=1) + "\n").encode()
    path = folder / f"round-{number:08d}"
    beside = folder / f"{path.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name, content in contents.items():
            with open(beside / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        sync_folder(beside)
        old = folder / f"{path.name}{OLD}"
        if path.exists():  # of a training that came here again: at any instant one of the two is whole and listed
            shutil.rmtree(old, ignore_errors=True)
            os.replace(path, old)
        os.replace(beside, path)
        sync_folder(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise StorageError(
            f"the checkpoint cannot be written to {str(path)!r}: {error.strerror}; those made before are whole"
        ) from error
    return path


def keep_newest(folder: Path, count: int) -> None:
    """Removes all but the newest checkpoints. Each loses its name first, so that none is ever half there."""
    for path in list_checkpoints(folder)[:-count]:
        gone = path.with_name(f"{path.name}.part")
        os.replace(path, gone)
        shutil.rmtree(gone, ignore_errors=True)


def load_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, checked; one that is cut, changed or of another version is refused by name."""
    load = require("safetensors.torch", "torch", "loading a checkpoint").load
    contents = {}
    for name in (PLAYER, TRAINING, GAMES, CONFIG, STATE):
        with reading(path / name, "a file of a checkpoint", StorageError) as file:
            contents[name] = file.read_bytes()
    with reading(path / STATE, "the state of a checkpoint", StorageError):
        told = json.loads(contents[STATE])
        own = told.pop("own")
        if current_format(told.get("format")) != FORMAT or told.get("version") != VERSION:
            found = brief(f"{told.get('format')} {told.get('version')}")
            raise StorageError(f"it is {found}; this version reads {FORMAT} {VERSION}")
        if own != hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest():
            raise StorageError("it is damaged, its checksum differs")
        state, sums = dict(told["state"]), dict(told["sha256"])
    for name in (PLAYER, TRAINING, GAMES, CONFIG):
        if hashlib.sha256(contents[name]).hexdigest() != sums.get(name):
            raise StorageError(f"checkpoint {str(path)!r}: {name} is damaged, its checksum differs")
    with reading(path / GAMES, "a file of games", StorageError):
        games = from_columns(arrays_of(contents[GAMES]))
    with reading(path / TRAINING, "a file of tensors", StorageError):
        return Checkpoint(contents[PLAYER], load(contents[TRAINING]), games, state)


def newest_whole(folder: Path) -> tuple[Path, Checkpoint, list[str]] | None:
    """The newest checkpoint that is whole, and what is wrong with newer ones; None where there is none at all."""
    wrong: list[str] = []
    paths = list_checkpoints(folder)
    for path in reversed(paths):
        try:
            return path, load_checkpoint(path), wrong
        except (StorageError, InvalidArgumentError) as error:
            wrong.append(str(error))
    if wrong:
        raise StorageError(f"no checkpoint in {str(folder)!r} is whole: {wrong[0]}")
    return None
