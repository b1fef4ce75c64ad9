"""Game records, shards and the store: durable, idempotent, checked on reading."""

from __future__ import annotations

import errno
import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.games import ConnectFour
from pondertree.learn.data.records import GameRecord, from_columns, to_columns
from pondertree.learn.data.shards import BATCH, GameStore, list_shards, read_shard, write_shard

HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
KINDS = ["npz", pytest.param("parquet", marks=pytest.mark.skipif(not HAS_PYARROW, reason="needs pyarrow"))]


def make_game(number: int, plies: int = 6, seed: int = 0) -> GameRecord:
    """Returns a game of random moves with policy targets."""
    numbers = np.random.default_rng([number, seed])
    state = ConnectFour()
    moves, actions, policies = [], [], []
    for _ in range(plies):
        if state.is_terminal:
            break
        legal = state.legal_actions()
        policy = numbers.random(len(legal)).astype(np.float32)
        moves.append(int(numbers.choice(legal)))
        actions.append(np.array(legal, dtype=np.uint16))
        policies.append(policy / policy.sum())
        state = state.play(moves[-1])
    count = len(moves)
    return GameRecord(
        number=number,
        opening=np.array(moves[: count // 3], dtype=np.uint16),
        moves=np.array(moves[count // 3 :], dtype=np.uint16),
        values=numbers.uniform(-1, 1, count - count // 3).astype(np.float32),
        versions=numbers.integers(0, 100, count - count // 3),
        full=numbers.random(count - count // 3) < 0.7,
        counts=np.array([len(one) for one in actions[count // 3 :]], dtype=np.uint16),
        actions=np.concatenate([np.zeros(0, np.uint16), *actions[count // 3 :]]),
        policy=np.concatenate([np.zeros(0, np.float32), *policies[count // 3 :]]),
        returns=np.array([1.0, -1.0], dtype=np.float32),
        cut=bool(number % 2),
        resigned=bool(number % 3 == 0),
    )


def same(one: GameRecord, other: GameRecord) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in GameRecord.__dataclass_fields__)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 30)), max_size=5))
def test_columns_round_trip(numbered_plies: list[tuple[int, int]]) -> None:
    games = [make_game(number, plies) for number, plies in numbered_plies]
    back = from_columns(to_columns(games))
    assert len(back) == len(games)
    assert all(same(one, other) for one, other in zip(games, back, strict=True))


def test_examples_pair_positions_with_targets() -> None:
    game = make_game(3, 12)
    examples = list(game.examples(ConnectFour))
    state = ConnectFour()
    for move in game.opening.tolist():
        state = state.play(move)
    for place, example in enumerate(examples):
        assert example.state == state
        assert example.actions.tolist() == state.legal_actions()
        assert (example.policy is not None) == game.full[place]
        assert example.result == (1.0 if state.to_play == 0 else -1.0)
        assert example.value == pytest.approx(float(game.values[place]))
        assert example.version == game.versions[place]
        state = state.play(int(game.moves[place]))


@pytest.mark.parametrize("kind", KINDS)
def test_shard_round_trips(kind: str, tmp_path: Path) -> None:
    games = [make_game(number, number) for number in range(9)]
    shard = write_shard(tmp_path, 0, games, kind=kind)
    assert list_shards(tmp_path) == [shard]
    assert all(same(one, other) for one, other in zip(games, read_shard(shard), strict=True))
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_shard_is_refused_by_name_or_reads_equal(kind: str, tmp_path: Path, data: Any) -> None:
    games = [make_game(number, 8) for number in range(4)]
    shard = write_shard(tmp_path, 0, games, kind=kind)
    content = bytearray(shard.path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    shard.path.write_bytes(bytes(content))
    try:
        found = read_shard(shard)
    except StorageError as error:
        assert shard.path.name in str(error)  # noqa: PT017 (harmless damage is read, all others named)
    else:
        assert all(same(one, other) for one, other in zip(games, found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_shard_larger_than_decoding_batch_keeps_order(kind: str, tmp_path: Path) -> None:
    games = [make_game(number, number % 7) for number in range(3 * BATCH + 5)]
    read = read_shard(write_shard(tmp_path, 0, games, kind=kind))
    assert len(read) == len(games)
    assert all(same(one, other) for one, other in zip(games, read, strict=True))


@pytest.mark.skipif(not HAS_PYARROW, reason="needs pyarrow")
def test_parquet_shard_with_wrong_game_count_is_refused_before_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    shard = write_shard(tmp_path, 0, [make_game(number) for number in range(8)], kind="parquet")

    def decode(*_: object, **__: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", decode)
    with pytest.raises(StorageError, match="it has 8 games, its name says 3"):
        read_shard(replace(shard, count=3))


def test_columns_with_non_finite_numbers_are_refused() -> None:
    columns = to_columns([make_game(1)])
    columns["policy"][0] = np.nan
    with pytest.raises(InvalidArgumentError, match="game 1: it has a number that is not finite"):
        from_columns(columns)


def test_missing_shard_is_reported(tmp_path: Path) -> None:
    store = GameStore(tmp_path)
    store.append([make_game(0)])
    first = store.shards[0].path
    store.append([make_game(1), make_game(2)])
    first.unlink()
    with pytest.raises(StorageError, match="should have a shard that starts with game 0"):
        GameStore(tmp_path)
    with pytest.raises(StorageError, match="has 0 games, but the checkpoint counts 5"):
        GameStore(tmp_path / "other", 5)


def test_store_append_is_idempotent_for_replayed_games(tmp_path: Path) -> None:
    store = GameStore(tmp_path)
    for numbers in ([0, 1], [3, 2], [4]):
        store.append([make_game(number) for number in numbers])
    # A run that resumes from the checkpoint after the first shard and replays the same games.
    again = GameStore(tmp_path, 2)
    assert (again.committed, again.stored, again.known) == (2, 5, {2, 3, 4})
    committed = again.append([make_game(3, seed=1), make_game(2, seed=1)])
    assert [game.number for game in committed] == [3, 2]
    assert same(committed[0], make_game(3))
    assert (again.committed, again.append([]), again.committed) == (4, [], 4)
    assert [game.number for game in again.append([make_game(4)])] == [4]
    assert [game.number for game in again.append([make_game(5)])] == [5]
    everything = [game.number for shard in list_shards(tmp_path) for game in read_shard(shard)]
    assert everything == [0, 1, 3, 2, 4, 5]


def test_store_commits_waiting_games_when_replay_diverges(tmp_path: Path) -> None:
    store = GameStore(tmp_path)
    for numbers in ([0], [1, 2], [3]):
        store.append([make_game(number) for number in numbers])
    again = GameStore(tmp_path, 1)
    committed = again.append([make_game(2, seed=1), make_game(7)])
    assert sorted(game.number for game in committed) == [1, 2, 3, 7]
    assert again.append([make_game(1, seed=1)]) == []
    everything = [game.number for shard in list_shards(tmp_path) for game in read_shard(shard)]
    assert everything == [0, 1, 2, 3, 7]


def test_newest_reads_only_needed_shards(tmp_path: Path) -> None:
    store = GameStore(tmp_path)
    for number in range(6):
        store.append([make_game(number, 9)])
    positions = int(make_game(5, 9).full.sum()) + 1
    assert [game.number for game in store.newest(positions)] == [4, 5]
    assert [game.number for game in GameStore(tmp_path, 3).newest(10**6)] == [0, 1, 2]


def test_full_disk_is_reported_and_loses_no_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GameStore(tmp_path)
    store.append([make_game(0)])

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device; games stored earlier are intact"):
            store.append([make_game(1)])
    assert (store.stored, store.committed) == (1, 1)
    again = GameStore(tmp_path)
    assert not list(tmp_path.glob("*.part"))
    assert [game.number for game in again.append([make_game(1)])] == [0, 1]
