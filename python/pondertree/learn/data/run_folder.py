"""The folder of a training: what lies where, whose it is, and that only one process works in it.

run.json            what this folder is
config.toml         the resolved configuration
games/              shards of finished games
checkpoints/        the newest checkpoints, each a folder
players/            players that were evaluated, to meet later ones
metrics.jsonl       a line for each round and each evaluation
report.html, plots/ what came of it
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from pathlib import Path
from typing import IO, Any, Self

from pondertree import games
from pondertree.errors import InvalidArgumentError, StorageError, UsageError
from pondertree.files import check_path, lock, make_folder, replace_file
from pondertree.learn.config.schema import Config, text_of_config
from pondertree.networks.run_files import list_checkpoints, read_about, run_header

CONFIG = "config.toml"
#: Everything that a training writes into its folder before it has a game or a checkpoint.
ENTRIES = ("run.json", CONFIG, "metrics.jsonl", "tensorboard", "games", "checkpoints", "players", "lock")


class RunFolder:
    """The folder of a training, held by this process while it is entered."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_path(path, "out", "checkpoints/round-00000000.part/training.safetensors")
        self._lock: IO[bytes] | None = None
        self._is_begun = False
        self._goes_on = False
        self._new_folders: list[Path] = []
        """The folder and those above it that were not there, the innermost first."""
        self._new_entries: list[Path] = []
        """What was not in the folder when it was locked, of all that a training writes."""

    @property
    def games(self) -> Path:
        """Where shards of games are."""
        return self.path / "games"

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def players(self) -> Path:
        """Where evaluated players are."""
        return self.path / "players"

    @property
    def metrics(self) -> Path:
        """The file of metrics."""
        return self.path / "metrics.jsonl"

    def begin(self, config: Config, resume: bool) -> bool:
        """Makes the folder, or enters that of a training which is to go on; whether it does."""
        folders = (self.path, *self.path.parents)
        self._new_folders = list(itertools.takewhile(lambda folder: not folder.exists(), folders))
        make_folder(self.path, "out")
        had_lock = (self.path / "lock").exists()
        try:
            self._lock = open(self.path / "lock", "ab")  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise StorageError(f"out: {str(self.path)!r} cannot be written: {error.strerror}") from None
        lock(self._lock, f"out: another process is training in {str(self.path)!r}")
        if not _is_there(self._lock, self.path / "lock"):  # removed by a start that failed meanwhile
            raise UsageError(f"out: another process has just left {str(self.path)!r}: try again")
        # Listed now that no other process can add to them: what is listed may be removed again.
        self._new_entries = [path for name in ENTRIES if not (path := self.path / name).exists()]
        if not had_lock:
            self._new_entries.append(self.path / "lock")
        self._goes_on = self._is_to_go_on(config, resume)
        self._is_begun = True
        if self._goes_on:
            self._new_entries = []
        for left in (*self.checkpoints.glob("*.part"), *self.players.glob("*.part")):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        for folder in (self.games, self.checkpoints, self.players):
            make_folder(folder, "out")
        return self._goes_on

    def _is_to_go_on(self, config: Config, resume: bool) -> bool:
        """Whether the folder, which is locked, has a training to go on with; one that must not is refused."""
        about = read_about(self.path) if (self.path / "run.json").exists() else None
        if about is None:
            if resume and any(self.path.rglob("*.*")):
                raise StorageError(f"{str(self.path)!r} is no folder of a training: it has no run.json")
            return False
        if not self._holds_something():
            return False  # of a start that was killed: there is nothing to go on with, and nothing to lose
        if not resume:
            raise InvalidArgumentError(
                f"out: there is a training in {str(self.path)!r} already: go on with it (--resume), or name another "
                "folder"
            )
        if config.game not in (about["game"], _one_name(about["game"])):
            raise InvalidArgumentError(f"out: {str(self.path)!r} is a training of {about['game']}, not {config.game}")
        return True

    def settle(self, config: Config) -> None:
        """Writes down whose folder it is. Not before all is well: what was refused must leave nothing behind."""
        self.write(CONFIG, text_of_config(config).encode())
        if not self._goes_on:
            self.write("run.json", run_header(config.game))

    def write(self, name: str, content: bytes) -> None:
        """A file of the folder, whole or not at all."""
        try:
            replace_file(self.path / name, content)
        except OSError as error:
            raise StorageError(f"{str(self.path / name)!r} cannot be written: {error.strerror}") from None

    def _holds_something(self) -> bool:
        """Whether there is a game or a checkpoint in it."""
        found = (*self.games.glob("games-*"), *self.checkpoints.glob("round-*"))
        return any(path.suffix != ".part" for path in found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # A training that was refused, or failed before it had a game or a checkpoint, leaves the folder as it was.
        is_void = kind is not None and not (self._is_begun and self._holds_something())
        if self._lock is not None and os.name == "nt":
            self._lock.close()  # Windows removes no open file; elsewhere nobody else may lock it before it is gone
        if self._lock is not None and is_void:
            for path in self._new_entries:
                with contextlib.suppress(OSError):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        for folder in self._new_folders if is_void else ():
            with contextlib.suppress(OSError):  # not empty: another process has created files in it
                folder.rmdir()


def _is_there(file: IO[bytes], path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def stored_config(path: Path) -> Path | None:
    """The configuration of the training in a folder: its own, or that of the newest checkpoint; None if it has none."""
    beside = [checkpoint / CONFIG for checkpoint in reversed(list_checkpoints(path / "checkpoints"))]
    return next((file for file in (path / CONFIG, *beside) if file.is_file()), None)


def _one_name(game: Any) -> Any:
    """The name that is written down of a compiled game with several: folders of before may have another."""
    try:
        kind = games.by_name(str(game))
    except InvalidArgumentError:
        return game
    return games.name_of(kind)
