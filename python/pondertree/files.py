"""Files that are there whole or not at all: written under another name, synced and renamed; arrays without pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import InvalidArgumentError, UsageError

#: What files written before the package was renamed say in place of `pondertree`.
_FORMER_NAME = "ponderosa"


def current_format(name: Any) -> Any:
    """Returns a format name found in a file in today's spelling: files of the package's former name still load."""
    if isinstance(name, str) and name.startswith(_FORMER_NAME):
        return "pondertree" + name.removeprefix(_FORMER_NAME)
    return name


def player_metadata(metadata: Mapping[str, str]) -> str:
    """The JSON text that describes a player, from the metadata of its safetensors file."""
    return metadata["pondertree" if "pondertree" in metadata else _FORMER_NAME]


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file so that there is the old one or the new one, and never half of one."""
    beside = part_of(path)
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.absolute().parent)


def part_of(path: Path) -> Path:
    """The name under which a file is written, which stays behind if the program is killed meanwhile."""
    return path.with_name(f"{path.name}.part")


def sync_folder(folder: Path) -> None:
    """Puts the names in a folder on the disk too, where folders can be asked for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock(file: IO[bytes], complaint: str) -> None:
    """Holds a file until it is closed; if somebody else does, complains. Where locks are unknown, nothing is done."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(complaint) from None


def check_writable(path: Path, name: str) -> None:
    """Complains of a file that cannot be written before the work, not after it."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{name}: {str(path)!r} cannot be written: there is no folder {str(folder)!r}")
    if path.is_dir():
        raise InvalidArgumentError(f"{name}: {str(path)!r} cannot be written: it is a folder")
    if not os.access(folder, os.W_OK):
        raise InvalidArgumentError(f"{name}: {str(path)!r} cannot be written: the folder does not allow it")


def make_folder(path: Path, name: str) -> None:
    """Makes a folder, if it is not there, that can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(f"{name}: the folder {str(path)!r} cannot be made: {error.strerror}") from None
    check_writable(path / "x", name)


def write_bytes(path: Path, content: bytes, name: str) -> None:
    """The old file or the new one, and never half of one."""
    try:
        replace_file(path, content)
    except OSError as error:
        raise InvalidArgumentError(f"{name}: {str(path)!r} cannot be written: {error.strerror}") from None


def write_json(path: Path, data: Any, name: str) -> None:
    """Plain data."""
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode(), name)


def write_arrays(path: Path, kind: str, version: int, arrays: Mapping[str, NDArray[Any]], about: Any = None) -> None:
    """Arrays and some plain data as .npz; `kind` and `version` say what they are."""
    header = json.dumps({"format": kind, "version": version, "about": about})
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, header=np.array(header), **arrays)
    write_bytes(path, file.getvalue(), kind)


def read_arrays(path: Path, kind: str, version: int, names: tuple[str, ...]) -> tuple[dict[str, NDArray[Any]], Any]:
    """(arrays, plain data) that `write_arrays` wrote; nothing in the file is executed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{str(path)!r} cannot be read: {error.strerror or error}") from None
    try:
        # From memory: of a damaged file, NumPy would leave the handle open.
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if not isinstance(header, dict) or current_format(header.get("format")) != kind:
                raise InvalidArgumentError(f"{str(path)!r}: format must be {kind!r}")
            if header.get("version") != version:
                raise InvalidArgumentError(f"{str(path)!r}: version must be {version}, not {header.get('version')!r}")
            return {name: file[name] for name in names}, header["about"]
    except InvalidArgumentError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        TypeError,
        AttributeError,
    ) as error:
        raise InvalidArgumentError(
            f"{str(path)!r} is no file of {kind}, or was damaged: {_in_our_words(error)}"
        ) from None


def _in_our_words(error: Exception) -> str:
    """What is wrong with a file of arrays. NumPy takes whatever is none for a pickle, and offers to execute it."""
    text = str(error)
    return "it does not hold arrays as they were written" if "pickle" in text.lower() else text
