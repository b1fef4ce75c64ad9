"""Reading files and checking paths: what a hostile file or path raises, and what is refused before it is allocated."""

from __future__ import annotations

import io
import json
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pondertree.chess import MoveScores, Pesto
from pondertree.errors import (
    GameContractError,
    InvalidActionError,
    InvalidArgumentError,
    MissingExtraError,
    MissingFileError,
    StorageError,
)
from pondertree.files import (
    MAX_UNACCOUNTED_BYTES,
    arrays_of,
    check_path,
    check_writable,
    make_folder,
    naming,
    read_arrays,
    reading,
    write_arrays,
)
from pondertree.games import Chess, ConnectFour
from pondertree.learn.config.schema import Config, data_of_text, read_config
from pondertree.match.notation import read_games
from pondertree.match.openings import make_openings
from pondertree.match.record import read_record, write_line
from pondertree.match.runner import play_match
from pondertree.tune import Positions, read_positions, tune_search


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), RecursionError("deep"), OverflowError("big"), ZeroDivisionError(), AttributeError("y")],
)
@pytest.mark.parametrize("kind", [StorageError, InvalidArgumentError])
def test_reading_converts_whatever_a_file_raises(tmp_path: Path, error: Exception, kind: Any) -> None:
    path = tmp_path / "file.bin"
    with pytest.raises(kind, match="bin' is not a thing, or is damaged") as caught, reading(path, "a thing", kind):
        raise error
    assert type(error).__name__ in str(caught.value)
    assert caught.value.__cause__ is error


def test_reading_names_the_file_once_and_keeps_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    with pytest.raises(StorageError) as caught, reading(path, "a thing", StorageError), reading(path, "a part"):
        raise InvalidActionError("no such move")
    assert str(caught.value) == f"{str(path)!r}: no such move"


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), GameContractError("x"), MissingExtraError("x")])
def test_reading_passes_what_is_not_the_fault_of_the_file(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, reading(tmp_path, "a thing"):
        raise error
    assert caught.value is error


def test_naming_adds_the_file_to_errors_about_content_and_passes_all_others(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    with pytest.raises(StorageError) as caught, naming(path, StorageError):
        raise InvalidActionError("no such move")
    assert str(caught.value) == f"{str(path)!r}: no such move"
    for error in (RuntimeError("a device"), KeyError("x"), GameContractError("a game"), OSError("a socket")):
        with pytest.raises(type(error)) as passed, naming(path, StorageError):
            raise error
        assert passed.value is error


def test_reading_a_file_that_is_missing_or_a_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(MissingFileError, match="nothing' cannot be read: No such file"),
        reading(tmp_path / "nothing", "a thing") as file,
    ):
        file.read_bytes()
    with pytest.raises(InvalidArgumentError, match="cannot be read: Is a directory"), reading(tmp_path, "it") as file:
        file.read_bytes()
    assert issubclass(MissingFileError, FileNotFoundError)


PATHS = ("x" * 5000, "a\0b", "\ud800", "x/" * 3000)


@pytest.mark.parametrize("path", PATHS, ids=["long", "null", "surrogate", "deep"])
def test_paths_that_no_file_system_accepts_are_refused_by_name(tmp_path: Path, path: str) -> None:
    uses: dict[str, Callable[[], object]] = {
        "check_path": lambda: check_path(path, "out"),
        "check_writable": lambda: check_writable(path, "out"),
        "make_folder": lambda: make_folder(Path(path), "out"),
        "Pesto": lambda: Pesto.from_file(path),
        "Pesto.to_file": lambda: Pesto().to_file(path),
        "MoveScores": lambda: MoveScores.from_file(path),
        "MoveScores.to_file": lambda: MoveScores().to_file(path),
        "Positions": lambda: Positions.load(path),
        "read_positions": lambda: read_positions(f"{path}.pgn"),
        "read_config": lambda: read_config(path, Config()),  # type: ignore[arg-type]
        "read_record": lambda: read_record(path),
        "openings": lambda: make_openings(path, ConnectFour, "connect_four", 0, None),
        "out": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, out=path, concurrency=1),
        "resume": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, out=path, resume=True),
        "pgn": lambda: play_match("random", "first", "tic-tac-toe", num_games=2, pgn=path, concurrency=1),
        "tune_search": lambda: tune_search(out=path, compare=lambda *_: 0.5),
    }
    for name, use in uses.items():
        with pytest.raises(InvalidArgumentError) as caught:
            use()
        assert "file system" in str(caught.value), name
        assert len(str(caught.value)) < 600, name


def test_a_name_without_room_for_the_temporary_one_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="not a path of this file system"):
        check_writable(tmp_path / ("x" * 253), "out")
    with pytest.raises(InvalidArgumentError, match="out: the path is empty"):
        check_writable("", "out")
    for path in (".", "/"):
        with pytest.raises(InvalidArgumentError, match="it is a folder"):
            check_writable(path, "out")
    for wrong in (3, None, b"x", 10**5000):
        with pytest.raises(InvalidArgumentError, match="out: a path must be a text or a Path"):
            check_path(wrong, "out")  # type: ignore[arg-type]


def npz(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def header(shape: tuple[int, ...], kind: str) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_2_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((2**47,), "<f8"), ((2**32, 2**32), "<f8"), ((-1,), "<f8"), ((10**15,), "|V0"), ((1,), "|O"), ((3,), "<f8")],
)
def test_arrays_that_claim_what_the_file_does_not_hold_are_refused(shape: tuple[int, ...], kind: str) -> None:
    with pytest.raises(ValueError, match="are no array of shape"):
        arrays_of(npz(x=header(shape, kind) + b"12345678"))


def test_zip_bomb_is_refused_before_decompression() -> None:
    content = npz(x=header((1,), "<f8") + bytes(8))
    place = content.rfind(b"PK\x01\x02") + 24
    with pytest.raises(ValueError, match="claim to hold 4,294,967,294"):
        arrays_of(content[:place] + struct.pack("<I", 2**32 - 2) + content[place + 4 :])


def test_arrays_compressed_as_far_as_deflate_can_are_read_back() -> None:
    """Frames of an environment hardly differ: what was written must never count as damaged."""
    frames = np.zeros((100, 1 << 20), dtype=np.uint8)
    frames[:, 0] = np.arange(100)
    file = io.BytesIO()
    np.savez_compressed(file, frames=frames)
    assert frames.nbytes > MAX_UNACCOUNTED_BYTES
    assert frames.nbytes / len(file.getvalue()) > 900
    assert np.array_equal(arrays_of(file.getvalue())["frames"], frames)


def test_arrays_of_gives_back_what_numpy_wrote() -> None:
    arrays: dict[str, Any] = {
        "whole": np.arange(6).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "text": np.array("ä"),
        "empty": np.zeros((0, 4), dtype=np.uint16),
        "flags": np.array([True, False]),
    }
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **arrays)
        found = arrays_of(file.getvalue())
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)
            assert found[name].flags.writeable


def test_read_arrays_names_the_file_for_headers_that_nest_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write_arrays(path, "thing", 1, {"x": np.arange(3)}, {"a": 1})
    assert read_arrays(path, "thing", 1, ("x",))[1] == {"a": 1}
    file = io.BytesIO()
    np.savez(file, header=np.array("[" * 100_000), x=np.arange(3))
    path.write_bytes(file.getvalue())
    with pytest.raises(InvalidArgumentError, match=r"x\.npz' is not a file of thing, or is damaged: RecursionError"):
        read_arrays(path, "thing", 1, ("x",))


@pytest.mark.parametrize("text", ["x = " + "[" * 50_000, "x = " + "9" * 5000, "a." * 100_000 + "a = 1"])
def test_toml_that_is_deep_or_has_endless_numbers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"config\.toml.*(invalid|not the) TOML"):
        read_config(tmp_path / "config.toml", Config())
    with pytest.raises(InvalidArgumentError):
        data_of_text(text)


@pytest.mark.parametrize("sign", ["{", "{ ", "(", "{(", '[x "', ";", "$", "1.", "e4 {"])
def test_pgn_is_read_in_linear_time(sign: str) -> None:
    began = time.perf_counter()
    read_games(sign * (100_000 // len(sign)))
    assert time.perf_counter() - began < 5.0  # under a second, but for a quadratic tokenizer


def test_an_unclosed_comment_ends_with_its_game() -> None:
    text = (
        '[Result "1-0"]\n\n1. e4 e5 {no end 2. Nf3\n2... Nc6 1-0\n\n[Result "0-1"]\n\n1. d4 ) d5 (1... f5) 2. c4 0-1\n'
    )
    assert read_games(text) == [(None, ("e4", "e5"), "1-0"), (None, ("d4", "d5", "c4"), "0-1")]


def change(record: Path, line: int, **changes: Any) -> None:
    """Forges a game of a record, its checksum included."""
    lines = record.read_bytes().splitlines(keepends=True)
    data = json.loads(lines[line])
    del data["crc32"]
    data["opening"].update(changes.pop("of_opening", {}))
    data["games"][0].update(changes)
    lines[line] = write_line(data)
    record.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"moves": ["a1", "a1"], "opening": 2, "seconds": [], "values": []}, "move 2"),
        ({"moves": [3]}, "moves must be text"),
        ({"moves": "a1"}, "moves must be a list"),
        ({"opening": -1}, "opening must be at least 0"),
        ({"opening": 10**9}, "opening must be at most"),
        ({"points": 0.75}, "points must be 0, 0.5 or 1"),
        ({"points": float("nan")}, "points must be a finite number"),
        ({"first": 3}, "first must be at most 2"),
        ({"seconds": [1.0]}, "one for each move played"),
        ({"number": 7}, "pair 0 must have games 0 and 1"),
        ({"fen": 3}, "fen must be text"),
        ({"of_opening": {"fen": "8/8/8 w"}}, "TypeError"),
        ({"of_opening": {"moves": ["z9"]}}, "move 1"),
        ({"culprit": "x"}, "culprit must be a whole number"),
    ],
)
def test_a_forged_record_of_a_match_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    record, options = tmp_path / "match.jsonl", {"num_games": 4, "seed": 1, "plies": 2, "concurrency": 1}
    play_match("random", "first", "tic-tac-toe", out=record, **options)  # type: ignore[arg-type]
    change(record, 1, **changes)
    before = record.read_bytes()
    with pytest.raises(InvalidArgumentError, match=rf"match\.jsonl.*{says}"):
        play_match("random", "first", "tic-tac-toe", out=record, resume=True, **options)  # type: ignore[arg-type]
    assert record.read_bytes() == before


def test_positions_of_a_record_with_an_illegal_move_name_the_file(tmp_path: Path) -> None:
    record = tmp_path / "match.jsonl"
    play_match("random", "first", Chess, num_games=2, seed=1, plies=2, out=record, concurrency=1)
    change(record, 1, moves=["e2e5"], opening=1, seconds=[], values=[])
    with pytest.raises(InvalidArgumentError, match=r"match\.jsonl.*e2e5"):
        read_positions(record)


@pytest.mark.parametrize("weights", [[10**30], [float("inf")], ["x"], {"a": 1}, [[1]], None, "12"])
def test_forged_move_scores_are_refused_by_name(tmp_path: Path, weights: Any) -> None:
    path = tmp_path / "moves.json"
    path.write_text(json.dumps({"format": "pondertree move scores", "weights": weights}))
    with pytest.raises(InvalidArgumentError, match=r"moves\.json"):
        MoveScores.from_file(path)
