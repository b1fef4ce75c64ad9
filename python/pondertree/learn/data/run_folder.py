"""The folder of a run: its layout, and the lock that admits one process.

run.json            format, version, game
config.toml         the resolved configuration
games/              shards of finished games
checkpoints/        the newest checkpoints, a folder each
players/            evaluated players, opponents of later ones
metrics.jsonl       one line per round and evaluation
shards.jsonl        one line per shard: its actor, and the learner's step
scratch/            temporary files of executors
report.html, plots/ the report
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from pondertree import games
from pondertree.errors import InvalidArgumentError, StorageError, UsageError
from pondertree.files import check_path, lock, make_folder, reading, replace_file
from pondertree.learn.config import Config, text_of_config
from pondertree.networks import list_checkpoints, read_about, run_header

CONFIG = "config.toml"
#: All entries that a run creates before its first game or checkpoint.
ENTRIES = (
    "run.json",
    CONFIG,
    "metrics.jsonl",
    "shards.jsonl",
    "tensorboard",
    "games",
    "checkpoints",
    "players",
    "scratch",
    "lock",
)


class RunFolder:
    """The folder of a run, locked by this process until `__exit__`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_path(path, "out", "checkpoints/round-00000000.part/training.safetensors")
        self.games = self.path / "games"
        """Folder of the shards."""
        self.checkpoints = self.path / "checkpoints"
        self.players = self.path / "players"
        """Folder of the evaluated players."""
        self.metrics = self.path / "metrics.jsonl"
        self.journal = self.path / "shards.jsonl"
        self.scratch = self.path / "scratch"
        """Temporary files, removed at the end, or at the next start after a kill."""
        self._lock: IO[bytes] | None = None
        self._is_begun = False
        self._is_resumed = False
        self._new_folders: list[Path] = []
        """The folder and its missing parents, innermost first."""
        self._new_entries: list[Path] = []
        """Entries that were missing when the folder was locked."""

    def begin(self, config: Config, resume: bool) -> bool:
        """Creates or locks the folder; returns whether it holds a run to resume."""
        folders = (self.path, *self.path.parents)
        self._new_folders = list(itertools.takewhile(lambda folder: not folder.exists(), folders))
        make_folder(self.path, "out")
        had_lock = (self.path / "lock").exists()
        try:
            self._lock = open(self.path / "lock", "ab")  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise StorageError(f"out: {str(self.path)!r} cannot be written: {error.strerror}") from None
        lock(self._lock, f"out: another process is training in {str(self.path)!r}")
        if not _has_name(self._lock, self.path / "lock"):  # removed meanwhile by a start that failed
            raise UsageError(f"out: another process has just released {str(self.path)!r}: try again")
        # Listed under the lock: only these may be removed again.
        self._new_entries = [path for name in ENTRIES if not (path := self.path / name).exists()]
        if not had_lock:
            self._new_entries.append(self.path / "lock")
        self._is_resumed = self._has_resumable_run(config, resume)
        self._is_begun = True
        if self._is_resumed:
            self._new_entries = []
        folders = self.path, self.checkpoints, self.players
        for left in (self.scratch, *(part for folder in folders for part in folder.glob("*.part"))):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        for folder in (self.games, self.checkpoints, self.players):
            make_folder(folder, "out")
        return self._is_resumed

    def _has_resumable_run(self, config: Config, resume: bool) -> bool:
        """Whether the locked folder has a run to resume; raises if resuming or starting anew is not allowed."""
        about = read_about(self.path) if (self.path / "run.json").exists() else None
        if about is None:
            if resume and any(self.path.rglob("*.*")):
                raise StorageError(f"{str(self.path)!r} is not a run folder: it has no run.json")
            return False
        if not self._has_data():
            return False  # the start was killed before any data was stored
        if not resume:
            raise InvalidArgumentError(
                f"out: {str(self.path)!r} already has a run: resume it (--resume), or name another folder"
            )
        if config.game not in (about["game"], games.name_of(games.known(about["game"]))):
            raise InvalidArgumentError(f"out: {str(self.path)!r} is a run of {about['game']}, not {config.game}")
        return True

    def write_header(self, config: Config) -> None:
        """Writes config.toml and run.json, once the run is valid: a refused one must leave nothing behind."""
        self.write(CONFIG, text_of_config(config).encode())
        if not self._is_resumed:
            self.write("run.json", run_header(config.game))

    def check_in_place(self) -> None:
        """Raises `StorageError` if the folder was removed or replaced: a checkpoint would go to another one."""
        if self._lock is not None and not _has_name(self._lock, self.path / "lock"):
            raise StorageError(
                f"the run folder {str(self.path)!r} was removed or replaced during the training, which ends: "
                "restore it and resume (--resume), or start another run"
            )

    @contextlib.contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Names the cause of errors of any file within: that the folder was removed, or that its disk is full."""
        try:
            yield
        except (OSError, StorageError) as error:
            self.check_in_place()
            reason = _full_disk(error)
            if reason:
                raise StorageError(
                    f"the disk of the run folder {str(self.path)!r} is full ({reason}): free some space, and resume "
                    "(--resume); stored games and checkpoints are intact"
                ) from error
            raise

    def write(self, name: str, content: bytes) -> None:
        """Writes a file of the folder atomically."""
        try:
            replace_file(self.path / name, content)
        except OSError as error:
            raise StorageError(f"{str(self.path / name)!r} cannot be written: {error.strerror}") from None

    def read(self, name: str) -> bytes | None:
        """Returns the content of a file of the folder; None if it does not exist."""
        path = self.path / name
        with reading(path, "a file of this run", StorageError):
            return path.read_bytes() if path.exists() else None

    def _has_data(self) -> bool:
        """Whether there is a shard or a checkpoint."""
        found = (*self.games.glob("games-*"), *self.checkpoints.glob("round-*"))
        return any(path.suffix != ".part" for path in found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # A run that was refused, or failed before its first shard or checkpoint, leaves the folder unchanged.
        is_void = kind is not None and not (self._is_begun and self._has_data())
        if self._is_begun:
            shutil.rmtree(self.scratch, ignore_errors=True)
        if self._lock is not None and os.name == "nt":
            self._lock.close()  # Windows removes no open file; other systems keep the lock until it is removed
        if self._lock is not None and is_void:
            for path in self._new_entries:
                with contextlib.suppress(OSError):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        for folder in self._new_folders if is_void else ():
            with contextlib.suppress(OSError):  # not empty: another process created files in it
                folder.rmdir()


def _has_name(file: IO[bytes], path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _full_disk(error: BaseException | None) -> str:
    """Returns the reason if an error or one of its causes is that of a full disk, else an empty string."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            return str(error.strerror)
        error = error.__cause__ or error.__context__
    return ""


def stored_config(path: Path) -> Path | None:
    """Returns the configuration file of a run: its own, or that of the newest checkpoint; None if there is none."""
    saved = [checkpoint / CONFIG for checkpoint in reversed(list_checkpoints(path / "checkpoints"))]
    return next((file for file in (path / CONFIG, *saved) if file.is_file()), None)
