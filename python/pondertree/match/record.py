"""The record of a match: a JSON line with its settings, then one per pair of games, each with a checksum.

Every line is synced before the next pair counts, so that a killed match resumes where it stopped. Pairs are appended in
order of completion and sorted at the end of the match: the file does not depend on the number of workers.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

from pondertree import validation
from pondertree.errors import InvalidArgumentError, UsageError
from pondertree.files import check_writable, current_format, lock, reading, replace_file, sync_folder
from pondertree.match.game import GameRecord, optional_text, texts
from pondertree.match.openings import Opening

FORMAT = "pondertree match"
VERSION = 1
#: Settings that may change on resume.
MUTABLE_SETTINGS = ("games",)
#: Upper bound of pair numbers.
MAX_PAIRS = 1 << 32


@dataclass(frozen=True, slots=True)
class PairRecord:
    """Two games of one opening with sides exchanged."""

    number: int
    opening: Opening
    games: tuple[GameRecord, GameRecord]

    @property
    def points(self) -> float:
        """Points of player 1, from 0 to 2."""
        return self.games[0].points + self.games[1].points

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        opening = {"moves": list(self.opening.moves), "fen": self.opening.fen}
        return {"pair": self.number, "opening": opening, "games": [game.as_json() for game in self.games]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PairRecord:
        """Validates and converts plain data."""
        number = validation.whole_number(data["pair"], "pair", most=MAX_PAIRS)
        opening = Opening(
            texts(data["opening"]["moves"], "opening.moves"), optional_text(data["opening"]["fen"], "fen")
        )
        first, second = (GameRecord.from_json(game) for game in data["games"])
        if (first.number, second.number) != (2 * number, 2 * number + 1):
            raise InvalidArgumentError(f"pair {number} must have games {2 * number} and {2 * number + 1}")
        return cls(number, opening, (first, second))


class LineFile:
    """An append-only file of JSON lines with checksums, the first of which is a header; locked until `close`.

    `CONTENT` is what it records, with an article.

    Every line is synced. The incomplete last line of a killed process is removed.
    """

    CONTENT: ClassVar[str]

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        header: Mapping[str, Any],
        read: Callable[[bytes], object],
        *,
        resume: bool,
    ) -> None:
        """`read` gets the content of an existing file, which needs `resume`; `name` is the argument, for errors."""
        self.path = check_writable(path, name)
        shown = f"{name}: {str(self.path)!r}"
        self._file: IO[bytes] | None = None
        try:  # nothing is truncated before the file is locked
            self._file = open(self.path, "r+b", opener=_open_or_create)  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise InvalidArgumentError(f"{shown} cannot be written: {error.strerror}") from None
        try:
            lock(self._file, f"{shown}, the record of {self.CONTENT}, is being written by another process")
            content = self._file.read()
            whole = content.rfind(b"\n") + 1
            if content and not resume:
                raise InvalidArgumentError(f"{shown} exists already: continue it (resume), or give another name")
            if whole == 0 and not write_line(header).startswith(content[:10]):
                raise InvalidArgumentError(f"{shown} is not the record of {self.CONTENT}")
            if content:
                read(content)
            self._file.truncate(whole)
            self._file.seek(whole)
            if whole == 0:
                self.write(header)
                sync_folder(self.path.absolute().parent)
        except BaseException:
            self.close()
            raise

    def write(self, data: Mapping[str, Any]) -> None:
        """Appends a line and syncs the file."""
        if self._file is None:
            raise UsageError("this record is closed")
        self._file.write(write_line(data))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class RecordFile(LineFile):
    """The record of a match. `known` are the pairs it held when it was opened."""

    CONTENT = "a match"

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, Any],
        *,
        resume: bool = False,
        replay: Callable[[PairRecord], object] = lambda pair: None,
    ) -> None:
        """`replay` raises a PondertreeError for a pair that cannot belong to this match."""
        self.header = {"format": FORMAT, "version": VERSION, "settings": dict(settings)}
        self.known: dict[int, PairRecord] = {}

        def read(content: bytes) -> None:
            recorded, self.known = read_lines(content, self.path)
            if recorded is not None:
                check_same_settings(recorded, settings, self.path)
            with reading(self.path, "the record of this match"):
                for pair in self.known.values():
                    replay(pair)

        super().__init__(path, "out", self.header, read, resume=resume)

    def append(self, pair: PairRecord) -> None:
        """Appends a pair and syncs the file."""
        self.write(pair.as_json())

    def finish(self, pairs: Iterable[PairRecord]) -> None:
        """Atomically replaces the file by one with exactly these pairs, in order."""
        lines = [write_line(self.header), *(write_line(pair.as_json()) for pair in pairs)]
        if os.name == "nt":
            self.close()  # Windows replaces no open file
        replace_file(self.path, b"".join(lines))
        self.close()


def _open_or_create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def write_line(data: Mapping[str, Any]) -> bytes:
    """Encodes a line with its checksum."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f'{body[:-1]},"crc32":{zlib.crc32(body.encode())}}}\n'.encode()


def read_line(line: bytes) -> dict[str, Any]:
    """Decodes a line; raises a ValueError if its checksum is wrong."""
    body, mark, tail = line.rpartition(b',"crc32":')
    whole = body + b"}"
    if not mark or not tail.endswith(b"}") or int(tail[:-1]) != zlib.crc32(whole):
        raise ValueError("its checksum is wrong")
    data = json.loads(whole)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def settings_of_header(data: Mapping[str, Any], form: str, version: int) -> dict[str, Any]:
    """Returns the settings in the first line of a record; raises a ValueError if it has another format or version."""
    if current_format(data.get("format")) != form or data.get("version") != version:
        raise ValueError(f"it is not the record of a {form.removeprefix('pondertree ')}")
    return dict(data["settings"])


def read_lines(content: bytes, path: Path) -> tuple[dict[str, Any] | None, dict[int, PairRecord]]:
    """Returns (settings, pairs by number) of the complete lines."""
    settings: dict[str, Any] | None = None
    pairs: dict[int, PairRecord] = {}
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        with reading(path, f"the record of a match (line {number})"):
            data = read_line(line)
            if number == 1:
                settings = settings_of_header(data, FORMAT, VERSION)
            else:
                pair = PairRecord.from_json(data)
                pairs[pair.number] = pair
    return settings, pairs


def read_record(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[PairRecord]]:
    """Returns (settings, pairs in order) of a finished or unfinished match."""
    with reading(path, "the record of a match") as file:
        settings, pairs = read_lines(file.read_bytes(), file)
        if settings is None:
            raise InvalidArgumentError("it is not the record of a match: it has no settings line")
        return settings, [pairs[number] for number in sorted(pairs)]


def check_same_settings(
    recorded: Mapping[str, Any], requested: Mapping[str, Any], path: Path, mutable: Sequence[str] = MUTABLE_SETTINGS
) -> None:
    """Raises an InvalidArgumentError if a record was made with other settings."""
    for name in {**recorded, **requested}:
        if name not in mutable and recorded.get(name) != requested.get(name):
            raise InvalidArgumentError(
                f"resume: {str(path)!r} was started with {name} = {recorded.get(name)!r}, not {requested.get(name)!r}"
            )
