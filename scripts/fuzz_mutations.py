"""Mutations of valid files for `fuzz_files.py`: random damage, and hostile fields in structured data."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pondertree.errors import InvalidArgumentError, StorageError

#: The error classes about files, whose message must name the file.
ABOUT_FILES = (InvalidArgumentError, StorageError)
#: Values for fields of forged files.
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 2**15, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e-320, 1e38, 1e308, math.nan, math.inf, -math.inf),
    *("", "x", "\0", "\ud800", "ä" * 300, "../../etc/passwd", "NaN", "-1", "{" * 50),
    *([], [[]], {}, [None], [-1], [2**40] * 3, [0, 0, 0], [math.nan] * 2, {"": 0}, {"x": {"y": []}}),
]


def damaged(numbers: random.Random, content: bytes, *others: bytes) -> bytes:
    """Returns a file with flipped, removed, inserted or spliced bytes."""
    data = bytearray(content)
    for _ in range(numbers.choice((1, 1, 1, 2, 4, 16))):
        place = numbers.randrange(len(data) + 1)
        match numbers.randrange(8):
            case 0 | 1 if data:
                data[place % len(data)] ^= 1 << numbers.randrange(8)
            case 2 if data:
                data[place % len(data)] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF, *b'[]{}",.;()-0e\n'))
            case 3:
                del data[place:]
            case 4:
                del data[place : place + numbers.randrange(64)]
            case 5:
                data[place:place] = numbers.randbytes(numbers.randrange(16))
            case 6:
                other = numbers.choice((content, *others))
                begin = numbers.randrange(len(other) + 1)
                data[place:place] = other[begin : begin + numbers.randrange(256)]
            case 7:
                data[place : place + 8] = struct.pack("<Q", numbers.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1)))
    return bytes(data)


def endless(numbers: random.Random) -> bytes:
    """Returns deeply nested or very long text without an end."""
    signs = (b"[", b"{", b"(", b'"', b"{(", b'{"a":', b"[[1],", b"a.", b"a=[", b"\\", b" ", b"9", b"\n", b"\0", b"e4 ")
    begin: bytes = numbers.choice((b"", b"x = ", b'{"x": ', b"1. e4 "))
    return begin + numbers.choice(signs) * numbers.choice((100, 1000, 10_000, 100_000))


def forged(numbers: random.Random, data: Any) -> Any:
    """Returns plain data with one or a few values replaced, removed, repeated or swapped."""
    data = copy.deepcopy(data)
    for _ in range(numbers.choice((1, 1, 1, 2, 5))):
        places = list(_places(data))
        if not places:
            return copy.deepcopy(numbers.choice(HOSTILE))
        owner, key = numbers.choice(places)
        match numbers.randrange(8):
            case 0:
                del owner[key]
            case 1:
                owner[key] = [owner[key]] * numbers.choice((1, 2, 50))
            case 2 if isinstance(owner, list):
                owner.append(owner[key])
            case 3:
                other, where = numbers.choice(places)
                with contextlib.suppress(KeyError, IndexError):
                    owner[key] = copy.deepcopy(other[where])
            case 4 if isinstance(owner[key], (int, float)) and not isinstance(owner[key], bool):
                with contextlib.suppress(OverflowError):
                    owner[key] = numbers.choice((owner[key] + 1, owner[key] - 1, -owner[key], owner[key] * 1000))
            case 5 if isinstance(owner, dict):
                owner[numbers.choice(("", "x", "\0", "number", "shape"))] = copy.deepcopy(numbers.choice(HOSTILE))
            case 6:
                for _ in range(numbers.choice((10, 500, 3000))):
                    owner[key] = [owner[key]]
                return data
            case _:
                owner[key] = copy.deepcopy(numbers.choice(HOSTILE))
    return data


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yields (container, key) of every value, recursively."""
    waiting = [data]
    while waiting:
        owner = waiting.pop()
        keys = owner if isinstance(owner, dict) else range(len(owner)) if isinstance(owner, list) else ()
        for key in list(keys):
            yield owner, key
            waiting.append(owner[key])


def as_json(data: Any) -> str:
    """Returns forged data as JSON, or deeply nested brackets if the encoder recurses too deep."""
    try:
        return json.dumps(data)
    except RecursionError:
        return "[" * 5000 + "]" * 5000


def forged_arrays(numbers: random.Random, arrays: dict[str, Any]) -> dict[str, Any]:
    """Returns arrays of other dtypes, shapes and values."""
    arrays = dict(arrays)
    for _ in range(numbers.choice((1, 1, 2))):
        name = numbers.choice(sorted(arrays))
        array = np.array(arrays[name])
        match numbers.randrange(8):
            case 0:
                del arrays[name]
            case 1:
                kind = numbers.choice(("u1", "i8", "f4", "f8", "U3", "S3", "?", ">u2", "m8[s]", "c16"))
                with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError):
                    arrays[name] = array.astype(kind)
            case 2:
                arrays[name] = array.reshape(-1, 1) if numbers.random() < 0.5 else array.ravel()[: array.size // 2]
            case 3:
                arrays[name] = np.concatenate([np.atleast_1d(array)] * 2)
            case 4:
                many = 2 * 10**7 // max(array.dtype.itemsize, 1)
                arrays[name] = np.zeros(numbers.choice(((0,), (3,), (2, 0), (), (many,))), array.dtype)
            case _ if array.size and array.dtype.kind in "iufb":
                flat = array.reshape(-1)
                with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
                    flat[numbers.randrange(flat.size)] = numbers.choice(
                        (-1, 0, 1, 2, 7, 200, 65535, 2**31, 2**62, math.nan, math.inf, -5.0, 1e30)
                    )
                arrays[name] = array
        if not arrays:
            break
    return arrays


def npz(numbers: random.Random, arrays: dict[str, Any]) -> bytes:
    """Returns an .npz file, sometimes with headers or a directory that overstate its size."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", numbers.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
            content = entry.getvalue()
            if numbers.random() < 0.05:
                shape = numbers.choice(((2**40,), (2**50, 2**50), (-1,), (10**18, 0), (1,) * 70, (2**63,)))
                header = {"descr": numbers.choice(("<f8", "|O", "|V0", "<U0", "|S0")), "fortran_order": False}
                entry = io.BytesIO()
                np.lib.format.write_array_header_2_0(entry, {**header, "shape": shape})
                content = entry.getvalue()
            archive.writestr(f"{name}.npy", content)
    content = file.getvalue()
    if numbers.random() < 0.05:  # sizes in the central directory
        place = content.rfind(b"PK\x01\x02") + 20
        content = content[:place] + struct.pack("<II", 2**31, 2**32 - 1) + content[place + 8 :]
    return content


def write(name: str, content: bytes) -> Path:
    """Writes a file to the working directory."""
    path = Path(name)
    path.write_bytes(content)
    return path


def naming(path: Path, read: Callable[[], Any]) -> Any:
    """Calls `read` and checks that an error about a file names it."""
    try:
        return read()
    except ABOUT_FILES as error:
        if path.name not in str(error):
            raise AssertionError(f"this error does not name {path.name}: {error}") from error
        raise
