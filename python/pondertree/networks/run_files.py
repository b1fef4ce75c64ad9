"""The files of a training run that loading a player needs: `run.json` and checkpoints. Imports no PyTorch."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from pondertree.errors import StorageError
from pondertree.files import current_format, reading

FORMAT = "pondertree-training"
VERSION = 1
#: Suffix of a checkpoint that is being replaced by another one of the same round.
OLD = ".old"
NAME = re.compile(r"round-(\d{8,})")
PLAYER, STATE = "player.safetensors", "state.json"


def list_checkpoints(folder: Path) -> list[Path]:
    """Returns the checkpoints of a folder, oldest first."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        name = path.name.removesuffix(OLD)
        if NAME.fullmatch(name) and (name == path.name or not path.with_name(name).exists()):
            found[int(name.partition("-")[2])] = path
    return [found[number] for number in sorted(found)]


def is_intact(path: Path, name: str) -> bool:
    """Whether a file of a checkpoint matches its checksum."""
    try:
        with reading(path, "a checkpoint", StorageError):
            expected = json.loads((path / STATE).read_bytes())["sha256"][name]
            return bool(hashlib.sha256((path / name).read_bytes()).hexdigest() == expected)
    except StorageError:
        return False


def run_header(game: str) -> bytes:
    """Returns the content of `run.json`."""
    return (json.dumps({"format": FORMAT, "version": VERSION, "game": game}, indent=1) + "\n").encode()


def read_about(path: Path) -> dict[str, Any]:
    """Parses `run.json`; raises `StorageError` if it is missing, damaged or of another version."""
    if not (path / "run.json").is_file():
        raise StorageError(f"{str(path)!r} is not a run folder: it has no run.json")
    with reading(path / "run.json", "the header of a run", StorageError) as file:
        about: dict[str, Any] = json.loads(file.read_bytes())
        found = current_format(about["format"]), about["version"], about["game"]
        if not isinstance(found[2], str):
            raise StorageError("game must be a text")
    if found[:2] != (FORMAT, VERSION):
        raise StorageError(
            f"{str(path)!r} is a {found[0]} of version {found[1]}; this version reads {FORMAT} {VERSION}: "
            "use the version that wrote it, or another folder"
        )
    return about
