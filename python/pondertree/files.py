"""Files: read so that hostile ones raise typed errors, written under another name, synced and renamed.

`reading` is the one place where whatever a file or a path provokes becomes an error of ours that names the file.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from pondertree.validation import brief, shown

#: Errors of ours about the content of a file; the others (a missing package, a broken game) are not the file's.
_ABOUT_CONTENT = (InvalidArgumentError, InvalidActionError, InvalidPositionError, GameOverError, StorageError)
#: Deflate encodes at most 258 bytes in 2 bits: no file of ours, however uniform its arrays, is compressed further.
MAX_DEFLATE_RATIO = 1032
#: Files may claim to hold this many bytes whatever their own size.
MAX_UNACCOUNTED_BYTES = 1 << 26

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


@contextmanager
def reading(
    path: str | os.PathLike[str], what: str, error: type[PondertreeError] = InvalidArgumentError
) -> Iterator[Path]:
    """Gives the path of a file; whatever reading it raises becomes `error`, which names the file and the reason.

    `what` the file should be is told with its article: "a player". Exceptions that are not the file's fault pass: a
    package that is missing, a game that breaks its contract, exhausted memory, an interrupt.
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
            if type(found).__name__ == "OutOfMemoryError":  # of PyTorch, which is not imported for this
                raise
            raise error(f"{shown} is not {what}, or is damaged: {_reason(found)}") from found


@contextmanager
def naming(path: str | os.PathLike[str], error: type[PondertreeError]) -> Iterator[None]:
    """Turns errors of ours about content, of the file `path`, into `error` with its name; all other exceptions pass."""
    try:
        yield
    except _ABOUT_CONTENT as found:
        shown, text = _shown(path), str(found)
        kind = MissingFileError if isinstance(found, MissingFileError) and error is InvalidArgumentError else error
        if type(found) is kind and shown in text:
            raise
        raise kind(text if shown in text else f"{shown}: {text}") from None


def check_path(path: str | os.PathLike[str], name: str, inside: str = "") -> Path:
    """A path that the file system accepts, whether there is something or not; and so is `inside` below it."""
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
    """What is wrong with a file. NumPy takes whatever is no array for a pickle, and offers to execute it."""
    text = str(error)
    if "pickle" in text.lower():
        return "it does not hold arrays as they were written"
    return brief(text if type(error) is ValueError and text else f"{type(error).__name__}: {text}")


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file so that there is the old one or the new one, and never half of one."""
    part = part_of(path)
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
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


def check_writable(path: str | os.PathLike[str], name: str) -> Path:
    """Refuses a file that cannot be written before the work, not after it."""
    if path == "":
        raise InvalidArgumentError(f"{name}: the path is empty: name a file")
    target = check_path(path, name)
    folder = target.absolute().parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: there is no folder {str(folder)!r}")
    if not target.name or target.is_dir():
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: it is a folder")
    check_path(part_of(target), name)
    if not os.access(folder, os.W_OK):
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: the folder does not allow it")
    return target


def make_folder(path: Path, name: str) -> None:
    """Makes a folder, if it is not there, that can be written to."""
    check_path(path, name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is too deep"
        raise InvalidArgumentError(f"{name}: the folder {_shown(path)} cannot be made: {reason}") from None
    check_writable(path / "x", name)


def write_bytes(path: str | os.PathLike[str], content: bytes, name: str) -> None:
    """The old file or the new one, and never half of one."""
    target = check_writable(path, name)
    try:
        replace_file(target, content)
    except OSError as error:
        raise InvalidArgumentError(f"{name}: {_shown(path)} cannot be written: {error.strerror}") from None


def write_json(path: Path, data: Any, name: str) -> None:
    """Plain data."""
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode(), name)


def write_arrays(
    path: str | os.PathLike[str], kind: str, version: int, arrays: Mapping[str, NDArray[Any]], about: Any = None
) -> None:
    """Arrays and some plain data as .npz; `kind` and `version` say what they are."""
    header = json.dumps({"format": kind, "version": version, "about": about})
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, header=np.array(header), **arrays)
    write_bytes(path, file.getvalue(), kind)


def read_arrays(
    path: str | os.PathLike[str], kind: str, version: int, names: tuple[str, ...]
) -> tuple[dict[str, NDArray[Any]], Any]:
    """(arrays, plain data) that `write_arrays` wrote; nothing in the file is executed."""
    with reading(path, f"a file of {kind}") as file:
        arrays = arrays_of(file.read_bytes())
        header = json.loads(str(arrays["header"]))
        if not isinstance(header, dict) or current_format(header.get("format")) != kind:
            raise InvalidArgumentError(f"format must be {kind!r}")
        if header.get("version") != version:
            raise InvalidArgumentError(f"version must be {version}, not {shown(header.get('version'))}")
        return {name: arrays[name] for name in names}, header["about"]


def arrays_of(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file. None is unpickled, and nothing is allocated that the file does not account for."""
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


def check_claim(claimed: int, size: int) -> None:
    """Refuses a file of `size` bytes that claims to hold more than deflate can compress, before it is unpacked."""
    if claimed > max(MAX_UNACCOUNTED_BYTES, MAX_DEFLATE_RATIO * size):
        raise ValueError(f"its {size:,} bytes claim to hold {claimed:,}")


def _array_of(content: bytes) -> NDArray[Any]:
    """The array of an .npy file."""
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
