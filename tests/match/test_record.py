"""Match records: truncated lines, damaged and foreign files, locks."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from pondertree.errors import InvalidArgumentError, MissingExtraError, PondertreeError, UsageError
from pondertree.match import GameRecord, Opening, PairRecord, read_record, record
from pondertree.match.record import RecordFile, read_line, write_line

SETTINGS: dict[str, Any] = {"game": "connect_four", "seed": 3, "games": 10}


def pair(number: int) -> PairRecord:
    games = tuple(
        GameRecord(
            number=2 * number + place,
            first=place + 1,
            points=0.5 * place,
            reason="finished",
            fen=None,
            moves=("4", "ä", "1"),
            opening=1,
            seconds=(0.1, 0.25),
            values=(None, -0.5),
            culprit=None if place else 1,
            detail="" if place else 'said "no"',
        )
        for place in (0, 1)
    )
    return PairRecord(number, Opening(("4",)), (games[0], games[1]))


def written(path: Path, pairs: int = 3) -> bytes:
    file = RecordFile(path, SETTINGS)
    for number in range(pairs):
        file.append(pair(number))
    file.close()
    return path.read_bytes()


def test_records_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    written(path)
    assert read_record(path) == (SETTINGS, [pair(number) for number in range(3)])
    file = RecordFile(path, SETTINGS, resume=True)
    assert file.known == {number: pair(number) for number in range(3)}
    file.append(pair(7))
    file.append(pair(4))
    file.finish([pair(number) for number in (0, 1, 2, 4)])
    assert [one.number for one in read_record(path)[1]] == [0, 1, 2, 4]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["match.jsonl"]
    with pytest.raises(UsageError):
        file.append(pair(8))


def test_truncated_line_is_dropped_on_resume(tmp_path: Path) -> None:
    """Truncated at any byte: complete lines are kept and the match resumes."""
    path = tmp_path / "match.jsonl"
    content = written(path)
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for length in sorted({*random.Random(1).sample(range(len(content)), 60), 0, 1, *ends, *(end - 1 for end in ends)}):
        path.write_bytes(content[:length])
        file = RecordFile(path, SETTINGS, resume=True)
        assert sorted(file.known) == list(range(max(0, sum(end <= length for end in ends) - 1)))
        for number in range(3):
            if number not in file.known:
                file.append(pair(number))
        file.close()
        assert path.read_bytes() == content


def test_long_truncated_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    content = written(path)
    path.write_bytes(content + b'{"pair":3,' + b"x" * 100_000)
    file = RecordFile(path, SETTINGS, resume=True)
    assert path.read_bytes() == content
    file.append(pair(3))
    file.close()
    assert [one.number for one in read_record(path)[1]] == [0, 1, 2, 3]


def test_damaged_file_raises_and_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    content = written(path)
    numbers = random.Random(2)
    last = content.rindex(b"\n")
    for _ in range(200):
        place = numbers.randrange(last)
        damaged = bytearray(content)
        damaged[place] ^= 1 << numbers.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(InvalidArgumentError, match=r"match\.jsonl.*line \d"):
            RecordFile(path, SETTINGS, resume=True)
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("content", [b"hello\n", b"hello", b'{"a": 1}\n', b"\x00\n", b"[1]\n", b'[1],"crc32":1}\n'])
def test_foreign_file_raises_and_is_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for resume in (False, True):
        with pytest.raises(InvalidArgumentError, match=r"notes\.txt"):
            RecordFile(path, SETTINGS, resume=resume)
        assert path.read_bytes() == content


def test_resume_rejects_different_settings(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    content = written(path)
    for other in ({**SETTINGS, "seed": 4}, {**SETTINGS, "players": ["a", "b"]}, {"game": "connect_four", "games": 10}):
        with pytest.raises(InvalidArgumentError, match=r"resume: .*match.jsonl' was started with (seed|players) = "):
            RecordFile(path, other, resume=True)
    with pytest.raises(InvalidArgumentError, match="exists already"):
        RecordFile(path, SETTINGS)
    assert path.read_bytes() == content
    RecordFile(path, {**SETTINGS, "games": 99}, resume=True).close()


def test_record_file_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    file = RecordFile(path, SETTINGS)
    with pytest.raises(UsageError, match="the record of a match, is being written by another process"):
        RecordFile(path, SETTINGS, resume=True)
    file.append(pair(0))
    file.close()
    assert len(read_record(path)[1]) == 1


def test_record_written_between_open_and_lock_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "match.jsonl"
    content = written(path)
    path.unlink()
    lock = record.lock

    def lock_late(file: IO[bytes], complaint: str) -> None:
        path.write_bytes(content)
        lock(file, complaint)

    monkeypatch.setattr(record, "lock", lock_late)
    with pytest.raises(InvalidArgumentError, match="exists already"):
        RecordFile(path, SETTINGS)
    assert path.read_bytes() == content


def test_record_without_filelock_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingExtraError, match=r"needs filelock.*\[match\]"):
        RecordFile(tmp_path / "match.jsonl", SETTINGS)


def test_unwritable_paths_raise(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "match.jsonl"):
        with pytest.raises(PondertreeError, match="out: "):
            RecordFile(path, SETTINGS)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_record(tmp_path / "missing.jsonl")


def test_checksums_of_lines_are_verified() -> None:
    line = write_line({"a": [1, "ü"]})
    assert read_line(line[:-1]) == {"a": [1, "ü"]}
    for wrong in (b"", b"{}", line[:-2], line[:-1].replace(b"1", b"2", 1)):
        with pytest.raises(ValueError, match="checksum"):
            read_line(wrong)
