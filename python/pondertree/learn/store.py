"""The games of a training on the disk, and which of them count.

A checkpoint says how many games were stored when it was made. A training that was killed later than that finds more:
these games are safe, and nothing of them may be lost or stored again. Where playing and learning alternate, the same
games are played again, in the same order, and each takes the place that it has on the disk. Where that cannot be
expected, or turns out otherwise, they count at once, and games of the same numbers that were under way are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pondertree.errors import StorageError
from pondertree.files import make_folder
from pondertree.learn.game_spec import GameSpec
from pondertree.learn.records import GameRecord
from pondertree.learn.shards import list_shards, read_shard, write_shard


class GameStore:
    """Shards in a folder, and how many of their games count."""

    def __init__(self, folder: Path, counted: int = 0, spec: GameSpec | None = None) -> None:
        """`counted` games were stored when the training was last saved; shards with games of no `spec` are refused."""
        make_folder(folder, "out")
        for left in folder.glob("*.part"):
            left.unlink(missing_ok=True)
        self.folder = folder
        self._spec = spec
        self.shards = list_shards(folder)
        self.stored = self.shards[-1].end if self.shards else 0
        if self.stored < counted:
            raise StorageError(
                f"{str(folder)!r} has {self.stored} games, but the checkpoint knows {counted}: shards are missing"
            )
        self.counted = counted
        """Games that count."""
        waiting = [shard for shard in self.shards if shard.end > counted]
        if waiting and waiting[0].first < counted:
            raise StorageError(f"{str(waiting[0].path)!r} was stored across a checkpoint: it is from another training")
        self._waiting = [(shard, read_shard(shard, spec)) for shard in waiting]
        self._known = {game.number for _, games in self._waiting for game in games}

    @property
    def known(self) -> frozenset[int]:
        """Numbers of games that were stored after the checkpoint, and must not be stored again."""
        return frozenset(self._known)

    def newest(self, positions: int) -> list[GameRecord]:
        """The newest games that count, in their order, until they have so many positions to learn from."""
        chosen: list[list[GameRecord]] = []
        for shard in reversed(self.shards):
            if positions <= 0:
                break
            if shard.end <= self.counted:
                chosen.append(read_shard(shard, self._spec))
                positions -= sum(int(game.full.sum()) for game in chosen[-1])
        return [game for games in reversed(chosen) for game in games]

    def count_all(self) -> list[GameRecord]:
        """Lets everything that is stored count; the games that now do."""
        games = [game for _, games in self._waiting for game in games]
        self._waiting = []
        self.counted = self.stored
        return games

    def append(self, games: Sequence[GameRecord]) -> list[GameRecord]:
        """Stores games, each once; those that count from now on, which may have been stored before."""
        counting: list[GameRecord] = []
        if self._waiting:
            shard, expected = self._waiting[0]
            if [game.number for game in games] == [game.number for game in expected]:
                del self._waiting[0]
                self.counted = shard.end
                return expected
            if not games:
                return []
            counting = self.count_all()
        new = [game for game in games if game.number not in self._known]
        if new:
            shard = write_shard(self.folder, self.stored, new)
            self.shards.append(shard)
            self.stored = self.counted = shard.end
        return [*counting, *new]
