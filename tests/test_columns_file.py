"""Files of columns: what is written is read, and any other byte is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pondertree
from pondertree import files
from pondertree.errors import InvalidArgumentError, MissingFileError
from pondertree.files import read_columns, write_columns
from pondertree.games import TicTacToe


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "x.tree"
    pondertree.UCT(seed=1).tree(TicTacToe()).simulate(12).save(path)
    return path


def checked(head: bytes, rest: bytes) -> bytes:
    """Returns a file with a valid checksum."""
    return head + hashlib.sha256(head + rest).digest() + rest


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError) as error:
        pondertree.load_tree(path)
    assert path.name in str(error.value)
    return str(error.value)


def test_every_flipped_bit_is_noticed(saved: Path) -> None:
    content = saved.read_bytes()
    for place in range(len(content)):
        for bit in range(8) if place < 64 else [place % 8]:
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            refused(saved, bytes(changed))


def test_missing_and_additional_bytes_are_noticed(saved: Path) -> None:
    content = saved.read_bytes()
    for length in [*range(130), *range(130, len(content), 97), len(content) - 1]:
        refused(saved, content[:length])
    assert "instead of" in refused(saved, content + b"\0")
    assert "does not begin as one" in refused(saved, b"\0" + content)


def test_file_of_a_later_version_is_refused_by_version(saved: Path) -> None:
    content = saved.read_bytes()
    later = content[:8] + struct.pack("<I", 2) + content[12:32]
    assert "the file is of version 2: this release reads version 1" in refused(saved, checked(later, content[64:]))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"PK\x03\x04" + bytes(200), b"\x80\x04\x95" + bytes(99), b"1. e4 e5\n" * 40]
)
def test_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    assert "is not a saved tree, or is damaged" in refused(tmp_path / "x", content)


@pytest.mark.parametrize(
    "place",
    [
        ["<f8", [2**60], 0],
        ["<f8", [9, 9], 0],
        ["|O", [1], 0],
        ["<f8,<f8", [1], 0],
        ["<f8", [-1], 0],
        ["<f8", [1], 8],
        "x",
    ],
)
def test_columns_beyond_the_file_or_of_other_types_are_refused(place: Any, tmp_path: Path) -> None:
    text = json.dumps({"kind": "tree", "columns": {"a": place}}).encode()
    text += b" " * (-len(text) % 64)
    head = struct.pack("<8sIIQ8x", files.COLUMNS_MAGIC, 1, len(text), 64 + len(text) + 8)
    refused(tmp_path / "x", checked(head, text + bytes(8)))


ARRAYS = st.tuples(
    st.sampled_from(["u1", "i1", "?", "<u2", ">u2", "<i4", "<u8", "<f4", ">f8", "<f2", "<c16"]),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
)


@given(arrays=st.lists(ARRAYS, max_size=5), about=st.dictionaries(st.text(max_size=5), st.integers(), max_size=3))
def test_columns_are_read_as_written(
    arrays: list[tuple[str, list[int]]], about: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("columns") / "x"
    numbers = np.random.default_rng(0)
    columns = {f"c{place}": (numbers.random(shape) * 9).astype(kind) for place, (kind, shape) in enumerate(arrays)}
    about.pop("columns", None)
    write_columns(path, about, columns)
    found, again = read_columns(path)
    assert found == about
    assert list(again) == list(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(again[name], column)
        assert again[name].dtype == column.dtype.newbyteorder("=")
    length = struct.unpack_from("<8sIIQ", path.read_bytes())[2]
    places = json.loads(path.read_bytes()[64 : 64 + length])["columns"]
    assert all((64 + length + offset) % 64 == 0 for _, _, offset in places.values())


def test_interrupted_write_keeps_the_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = saved.read_bytes()
    tree = pondertree.UCT(seed=2).tree(TicTacToe())

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        tree.save(saved)
    assert saved.read_bytes() == content
    assert list(saved.parent.iterdir()) == [saved]


def test_writers_of_one_path_leave_the_whole_file_of_one_of_them(tmp_path: Path) -> None:
    path, other = tmp_path / "x.tree", tmp_path / "x.tree.part"
    other.write_bytes(b"a file of the user")
    contents = [bytes([number]) * (1 << 20) for number in range(4)]
    failures: list[BaseException] = []
    torn = 0

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                files.write_bytes(path, content, "path")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            torn += path.read_bytes() not in contents
    for thread in threads:
        thread.join()
    assert failures == []
    assert torn == 0
    assert path.read_bytes() in contents
    assert other.read_bytes() == b"a file of the user"
    assert sorted(tmp_path.iterdir()) == [path, other]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_written_file_keeps_its_permissions_and_the_link_to_it(saved: Path) -> None:
    link, before = saved.with_name("link.tree"), saved.read_bytes()
    saved.chmod(0o600)
    link.symlink_to(saved.name)
    pondertree.UCT(seed=2).tree(TicTacToe()).simulate(12).save(link)
    assert link.is_symlink()
    assert saved.read_bytes() != before
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    lost = saved.with_name("lost.tree")
    lost.symlink_to("nowhere/x.tree")
    with pytest.raises(InvalidArgumentError, match="no folder"):
        pondertree.load_tree(saved).save(lost)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="cannot be read"):
        pondertree.load_tree(tmp_path / "x")
    tree = pondertree.UCT(seed=2).tree(TicTacToe())
    for path in (tmp_path, tmp_path / "no" / "x", ""):
        with pytest.raises(InvalidArgumentError, match="path"):
            tree.save(path)
    with pytest.raises(InvalidArgumentError):
        pondertree.load_tree(tmp_path)
