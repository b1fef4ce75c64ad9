"""File access: hostile files raise typed errors, writes are atomic (temporary file, fsync, rename).

`reading` converts every exception of a file or path into an error that names the file.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import math
import os
import secrets
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import (
    GameOverError,
    InvalidActionError,
    InvalidArgumentError,
    InvalidPositionError,
    MissingFileError,
    PondertreeError,
    StorageError,
    UsageError,
)
from pondertree.optional import require
from pondertree.validation import brief, shown

#: Errors about the content of a file; others (a missing package, a broken game) are not the file's fault.
_ABOUT_CONTENT = (InvalidArgumentError, InvalidActionError, InvalidPositionError, GameOverError, StorageError)
#: Deflate encodes at most 258 bytes in 2 bits, which bounds the ratio of any file.
MAX_DEFLATE_RATIO = 1032
#: Files may declare this many bytes whatever their own size.
MAX_UNACCOUNTED_BYTES = 1 << 26

#: The package's former name, in the format names of older files.
_FORMER_NAME = "ponderosa"


def current_format(name: Any) -> Any:
    """Returns a format name in the package's present spelling."""
    if isinstance(name, str) and name.startswith(_FORMER_NAME):
        return "pondertree" + name.removeprefix(_FORMER_NAME)
    return name


def player_metadata(metadata: Mapping[str, str]) -> str:
    """Returns the JSON description of a player from the metadata of its safetensors file."""
    return metadata["pondertree" if "pondertree" in metadata else _FORMER_NAME]


@contextmanager
def reading(
    path: str | os.PathLike[str], what: str, error: type[PondertreeError] = InvalidArgumentError
) -> Iterator[Path]:
    """Yields the path of a file; exceptions of reading it become `error`, with the file and the reason.

    `what` names the expected content with its article: "a player". Other exceptions pass: missing packages, games that
    violate their contract, exhausted memory, interrupts.
    """
    shown = _shown(path)
    with naming(path, error):
        try:
            yield check_path(path, what)
        except (PondertreeError, MemoryError):
            raise
        except OSError as found:
            kind = MissingFileError if isinstance(found, FileNotFoundError) and error is InvalidArgumentError else error
            raise kind(f"{shown} cannot be read: {found.strerror or found}") from None
        except Exception as found:
            if type(found).__name__ == "OutOfMemoryError":  # of PyTorch, which is not imported here
                raise
            raise error(f"{shown} is not {what}, or is damaged: {_reason(found)}") from found


@contextmanager
def naming(path: str | os.PathLike[str], error: type[PondertreeError]) -> Iterator[None]:
    """Converts errors about the content of the file `path` into `error` with its name; other exceptions pass."""
    try:
        yield
    except _ABOUT_CONTENT as found:
        shown, text = _shown(path), str(found)
        kind = MissingFileError if isinstance(found, MissingFileError) and error is InvalidArgumentError else error
        if type(found) is kind and shown in text:
            raise
        raise kind(text if shown in text else f"{shown}: {text}") from None


def check_path(path: str | os.PathLike[str], name: str, inside: str = "") -> Path:
    """Returns the path if the file system accepts it, and `inside` below it, whether it exists or not."""
    try:
        found = Path(path)
        os.lstat(found.absolute() / inside)
    except TypeError:
        raise InvalidArgumentError(f"{name}: a path must be a text or a Path, not {shown(path)}") from None
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:  # too long, a null byte, a lone surrogate
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidArgumentError(f"{name}: {_shown(path)} is not a path of this file system: {reason}") from None
    return found


def _shown(path: Any) -> str:
    return shown(os.fspath(path) if isinstance(path, os.PathLike) else path, 300)


def _reason(error: Exception) -> str:
    """Returns the reason why a file is invalid. NumPy takes anything but arrays for a pickle."""
    text = str(error)
    if "pickle" in text.lower():
        return "it does not hold arrays as they were written"
    return brief(text if type(error) is ValueError and text else f"{type(error).__name__}: {text}")


def replace_file(path: Path, *parts: bytes | memoryview) -> None:
    """Replaces a file by the concatenation of parts, atomically: of several writers, the last one wins.

    Permissions of an existing file are kept, and a symbolic link is followed.
    """
    path = Path(os.path.realpath(path))
    part, handle = _create_part(path)
    try:
        with open(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                with suppress(OSError):  # the file is new, or the file system has no permissions
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _create_part(path: Path) -> tuple[Path, int]:
    """Creates a temporary file exclusively for one writer; returns its path and descriptor."""
    while True:
        part = _part_of(path, secrets.token_hex(4))
        with suppress(FileExistsError):
            return part, os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _part_of(path: Path, key: str) -> Path:
    return path.with_name(f"{path.name}.{key}.part")


def remove_parts(path: Path) -> None:
    """Removes the temporary files that killed writers of `path` have left; no writer may be active."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


def append_lines(path: Path) -> io.FileIO:
    """Opens a file of lines for appending, unbuffered; truncates a last line that a full disk or a kill has cut."""
    file = io.FileIO(path, "a+")
    try:
        end = size = file.seek(0, os.SEEK_END)
        while end:
            begin = max(end - 4096, 0)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            end = begin + newline + 1
            if newline >= 0:
                break
        if end < size:
            file.truncate(end)
    except BaseException:
        file.close()
        raise
    return file


def write_all(file: io.FileIO, content: bytes) -> None:
    """Writes all of the content to an unbuffered file."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def sync_folder(folder: Path) -> None:
    """Flushes the directory entries of a folder, on systems that support it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def lock(file: IO[bytes], complaint: str) -> None:
    """Locks a file until it is closed; raises `UsageError` if another process has locked it."""
    filelock = require("filelock", "match", "a record that one process alone may write")
    try:
        is_locked = filelock.lock_descriptor(file.fileno(), blocking=False)
    except OSError as error:  # a file system without locks
        raise StorageError(f"{_shown(file.name)} cannot be locked: {error.strerror}") from None
    if not is_locked:
        raise UsageError(complaint)


def check_writable(path: str | os.PathLike[str], name: str) -> Path:
    """Returns the path of a file; raises if it cannot be written, before any work is done."""
    if path == "":
        raise InvalidArgumentError(f"{name}: the path is empty: name a file")
    target = check_path(path, name)
    real = Path(os.path.realpath(target))
    folder = real.parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: there is no folder {str(folder)!r}")
    if not target.name or target.is_dir():
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: it is a folder")
    check_path(_part_of(real, "0" * 8), name)
    if not os.access(folder, os.W_OK):
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: the folder does not allow it")
    return target


def make_folder(path: Path, name: str) -> None:
    """Creates a folder unless it exists; raises if it is not writable."""
    check_path(path, name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is too deep"
        raise InvalidArgumentError(f"{name}: the folder {_shown(path)} cannot be made: {reason}") from None
    check_writable(path / "x", name)


def write_bytes(path: str | os.PathLike[str], content: bytes | Sequence[bytes | memoryview], name: str) -> None:
    """Writes a file atomically, of one or several parts."""
    target = check_writable(path, name)
    try:
        replace_file(target, *([content] if isinstance(content, bytes) else content))
    except OSError as error:
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: {error.strerror}") from None


def write_json(path: Path, data: Any, name: str) -> None:
    """Writes plain data as JSON."""
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode(), name)


def write_arrays(
    path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, NDArray[Any]], about: Any = None
) -> None:
    """Writes arrays and plain data as .npz; `kind` and `version` identify the format."""
    header = json.dumps({"format": kind, "version": version, "about": about})
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, header=np.array(header), **arrays)
    write_bytes(path, file.getvalue(), kind)


def read_arrays(
    path: str | os.PathLike[str], kind: str, version: int, names: tuple[str, ...]
) -> tuple[dict[str, NDArray[Any]], Any]:
    """Returns (arrays, plain data) of a file of `write_arrays`; nothing in it is executed."""
    with reading(path, f"a file of {kind}") as file:
        arrays = arrays_of(file.read_bytes())
        header = json.loads(str(arrays["header"]))
        if not isinstance(header, dict) or current_format(header.get("format")) != kind:
            raise InvalidArgumentError(f"format must be {kind!r}")
        if header.get("version") != version:
            raise InvalidArgumentError(f"version must be {version}, not {shown(header.get('version'))}")
        return {name: arrays[name] for name in names}, header["about"]


def arrays_of(content: bytes) -> dict[str, NDArray[Any]]:
    """Returns the arrays of an .npz file, without unpickling and without allocating more than the file accounts for."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        check_claim(sum(entry.file_size for entry in entries), len(content))
        if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
            raise ValueError("its arrays must be stored or deflated")
        found = {}
        for entry in entries:
            with archive.open(entry) as file:
                found[entry.filename.removesuffix(".npy")] = _array_of(file.read(entry.file_size))
        return found


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object of these pairs, for `object_pairs_hook`; raises if a name is given twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for place, name in enumerate(names) if name in names[:place])
        raise InvalidArgumentError(f"{brief(repeated)} is given twice")
    return found


def check_claim(claimed: int, size: int) -> None:
    """Raises `ValueError` if a file of `size` bytes declares more than deflate can compress, before it is unpacked."""
    if claimed > max(MAX_UNACCOUNTED_BYTES, MAX_DEFLATE_RATIO * size):
        raise ValueError(f"its {size:,} bytes claim to hold {claimed:,}")


def _array_of(content: bytes) -> NDArray[Any]:
    """Returns the array of an .npy file."""
    file = io.BytesIO(content)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(file)]
    shape, is_fortran, dtype = read_header(file)
    size = len(content) - file.tell()
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{size:,} bytes are no array of shape {shape} and type {dtype}")
    offset = file.tell()
    view: NDArray[Any] = np.ndarray(shape, dtype, buffer=content, offset=offset, order="F" if is_fortran else "C")
    return view.copy(order="K")


#: The first bytes of a file of columns; text conversions destroy them, as those of a PNG file.
COLUMNS_MAGIC = b"\x89PTREE\r\n"
#: The version of the format (docs/trees.md); later ones are refused.
COLUMNS_VERSION = 1
#: Alignment of the columns in the file.
ALIGNMENT = 64
#: Magic, version, length of the metadata, length of the file, zeros; then SHA-256 of these 32 bytes and of the rest.
_HEADER = struct.Struct("<8sIIQ8x")
_COLUMN_TYPES = {
    f"{order}{kind}"
    for order, kinds in {"|": "u1 i1 b1", "<": "u2 u4 u8 i2 i4 i8 f2 f4 f8 c8 c16"}.items()
    for kind in kinds.split()
}


def write_columns(
    path: str | os.PathLike[str], about: Mapping[str, Any], columns: Mapping[str, NDArray[Any]], name: str = "path"
) -> None:
    """Writes arrays of numbers as raw bytes behind a header with plain data `about`, in the format of docs/trees.md."""
    parts: list[bytes | memoryview] = []
    places: dict[str, list[Any]] = {}
    offset = 0
    for key, column in columns.items():
        array = np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
        if array.dtype.str not in _COLUMN_TYPES:
            raise InvalidArgumentError(f"{key} has the dtype {array.dtype}: a file holds numbers alone")
        places[key] = [array.dtype.str, list(column.shape), offset]
        padding = -array.nbytes % ALIGNMENT
        parts += [array.reshape(-1).view(np.uint8).data, bytes(padding)]
        offset += array.nbytes + padding
    text = json.dumps({**about, "columns": places}).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    head = _HEADER.pack(COLUMNS_MAGIC, COLUMNS_VERSION, len(text), 2 * _HEADER.size + len(text) + offset)
    digest = hashlib.sha256(head)
    for part in (text, *parts):
        digest.update(part)
    write_bytes(path, [head, digest.digest(), text, *parts], name)


def read_columns(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Returns (plain data, read-only arrays) of a file of `write_columns`; raises for any other, within `reading`."""
    content = path.read_bytes()
    if len(content) < 2 * _HEADER.size or not content.startswith(COLUMNS_MAGIC):
        raise ValueError("it does not begin as one")
    _, version, length, size = _HEADER.unpack_from(content)
    if version != COLUMNS_VERSION:
        raise InvalidArgumentError(f"the file is of version {version}: this release reads version {COLUMNS_VERSION}")
    if size != len(content):
        raise ValueError(f"it has {len(content):,} bytes instead of {size:,}")
    start = 2 * _HEADER.size
    digest = hashlib.sha256(content[: _HEADER.size])
    digest.update(memoryview(content)[start:])
    if digest.digest() != content[_HEADER.size : start]:
        raise ValueError("its checksum is wrong")
    about = json.loads(content[start : start + length])
    data = start + length
    columns = {}
    for key, (kind, shape, offset) in about.pop("columns").items():
        if kind not in _COLUMN_TYPES or not all(type(number) is int and number >= 0 for number in (*shape, offset)):
            raise ValueError(f"the column {brief(key)!r} is of type {shown(kind)}, shape {shown(shape)}")
        # Raises ValueError beyond the end of the file.
        array = np.frombuffer(content, kind, math.prod(shape), data + offset)
        columns[key] = array.astype(array.dtype.newbyteorder("="), copy=False).reshape(shape)
    return about, columns
