"""The supervisor of self-play actors, with actors that the test answers for."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.learning import small

pytest.importorskip("torch")

from pondertree.errors import TrainingError
from pondertree.learn.actors import ActorSetup, ActorState, Shard, ShardId, Supervisor
from pondertree.learn.actors import supervisor as module
from pondertree.learn.actors.messages import GAMES_PER_LEASE, Task, empty_state
from pondertree.learn.data import EncodedGames
from pondertree.learn.executors import Actor, Blob, Executor, Pool, Reply


class FakeActor(Actor):
    """Records its tasks."""

    def __init__(self, setup: ActorSetup, state: ActorState) -> None:
        self.setup = setup
        self.given = state
        self.tasks: list[Task] = []
        self.is_killed = False

    def call(self, method: str, *arguments: Any) -> None:
        assert method == "play"
        self.tasks.append(arguments[0])

    def kill(self) -> None:
        self.is_killed = True


@dataclass
class Stored:
    """A blob."""

    value: Any

    def get(self) -> Any:
        return self.value


class FakePool(Pool):
    """Replies what a test puts into `replies`."""

    def __init__(self) -> None:
        self.actors: list[FakeActor] = []
        self.replies: list[Reply] = []

    def launch(self, make: Callable[..., Any], setup: Any, *blobs: Blob) -> Actor:
        self.actors.append(FakeActor(setup, blobs[0].get()))
        return self.actors[-1]

    def poll(self, timeout: float) -> list[Reply]:
        found, self.replies = self.replies, []
        return found

    def put(self, value: Any) -> Blob:
        return Stored(value)

    def close(self) -> None:
        pass

    def reply(self, place: int, kind: str, value: Any = None) -> FakePool:
        self.replies.append(Reply(self.actors[place], kind, value))
        return self


@dataclass(frozen=True)
class FakeExecutor(Executor):
    """Two actors."""

    actors: int = 2
    timeout: float = 1000.0

    def open(self, scratch: Path) -> Pool:
        return FakePool()


class Setting:
    """A supervisor with its pool and messages."""

    def __init__(
        self,
        *,
        is_synchronous: bool = False,
        decode: Any = None,
        timeout: float = 1000.0,
        max_lag: int = 5,
        states: tuple[ActorState, ...] = (),
        known: frozenset[int] = frozenset(),
        next_lease: int = 0,
        check_storage: Callable[[], None] = lambda: None,
    ) -> None:
        self.pool = FakePool()
        self.notes: list[str] = []
        self.supervisor = Supervisor(
            FakeExecutor(timeout=timeout),
            self.pool,
            FakeActor,
            ActorSetup(small(Path("unused")), None, "cpu", 1),
            self.notes.append,
            is_synchronous=is_synchronous,
            max_lag=max_lag,
            decode=decode,
            check_storage=check_storage,
        )
        self.supervisor.start(states, known, next_lease)
        self.supervisor.publish(0, b"")

    def ready(self, *places: int) -> None:
        for place in places:
            self.pool.reply(place, "ready")
        self.poll()
        self.poll()

    def poll(self) -> list[Shard]:
        return self.supervisor.poll(1.0, wait=False)

    def finish(self, place: int, task: int, version: int = 0) -> None:
        self.pool.reply(place, "value", shard(self.pool.actors[place].tasks[task].id, version))


def shard(identity: ShardId, version: int = 0, state: ActorState | None = None) -> Shard:
    return Shard(identity, version, [], 3, 12, 4, 0.001, 0.001, 0.0, state)


def test_each_actor_has_at_most_two_tasks_in_flight() -> None:
    setting = Setting()
    setting.poll()
    assert [len(actor.tasks) for actor in setting.pool.actors] == [0, 0]  # not ready
    setting.ready(0)
    for _ in range(3):
        setting.poll()
    assert [len(actor.tasks) for actor in setting.pool.actors] == [2, 0]
    setting.finish(0, 0)
    assert [one.id for one in setting.poll()] == [ShardId(0, 0, 0)]
    setting.poll()
    assert [task.id.number for task in setting.pool.actors[0].tasks] == [0, 1, 2]


def test_back_pressure_sends_no_further_tasks() -> None:
    setting = Setting()
    setting.ready(0, 1)
    setting.supervisor.is_allowed = False
    setting.finish(0, 0)
    setting.poll()
    setting.poll()
    assert [len(actor.tasks) for actor in setting.pool.actors] == [2, 2]
    setting.supervisor.is_allowed = True
    setting.poll()
    assert [len(actor.tasks) for actor in setting.pool.actors] == [3, 2]


def test_shard_that_arrives_twice_or_out_of_order_is_accepted_once() -> None:
    setting = Setting()
    setting.ready(0, 1)
    setting.finish(0, 0)
    setting.finish(0, 0)
    assert len(setting.poll()) == 1
    setting.pool.reply(1, "value", shard(ShardId(0, 0, 1)))  # another actor's
    assert setting.poll() == []
    assert setting.supervisor.measurements(0)["0"]["dropped"] == 1


def test_dead_actor_is_replaced_under_a_new_lease_and_its_late_shard_is_dropped() -> None:
    setting = Setting()
    setting.ready(0, 1)
    setting.pool.reply(0, "died", "killed")
    setting.poll()
    assert setting.pool.actors[0].is_killed
    replacement = setting.pool.actors[2]
    assert replacement.given.lease == 2
    assert replacement.given.self_play["next_number"] == 2 * GAMES_PER_LEASE
    setting.finish(0, 0)
    assert setting.poll() == []
    setting.pool.reply(2, "ready")
    setting.poll()
    setting.poll()
    assert replacement.tasks[0].id == ShardId(0, 2, 0)
    assert setting.supervisor.measurements(0)["0"]["restarts"] == 1
    assert "actor 0 died and is replaced: killed" in setting.notes[0]


def test_actor_that_always_raises_is_quarantined_and_the_others_continue() -> None:
    setting = Setting()
    setting.ready(0, 1)
    place = 0
    for failure in range(module.MAX_ERRORS):
        setting.pool.reply(place, "error", "ValueError: odd")
        setting.poll()
        if failure + 1 < module.MAX_ERRORS:
            setting.supervisor.slots[0].retry_at = 0.0
            setting.poll()
            place = len(setting.pool.actors) - 1
            setting.pool.reply(place, "ready")
            setting.poll()
    assert "actor 0 is quarantined" in setting.notes[-1]
    assert setting.supervisor.measurements(0)["0"]["quarantined"] == 1
    launched = len(setting.pool.actors)
    setting.finish(1, 0)
    assert len(setting.poll()) == 1
    assert len(setting.pool.actors) == launched
    for _ in range(module.MAX_ERRORS - 1):
        setting.supervisor.slots[1].retry_at = 0.0
        setting.pool.replies.append(Reply(setting.supervisor.slots[1].actor, "failed", "ImportError: gone"))  # type: ignore[arg-type]
        setting.poll()
        setting.supervisor.slots[1].retry_at = 0.0
        setting.poll()
    setting.pool.replies.append(Reply(setting.supervisor.slots[1].actor, "failed", "ImportError: gone"))  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=r"no self-play actor is left: all 2 failed.*ImportError: gone"):
        setting.poll()


def test_a_shard_ends_a_row_of_failures() -> None:
    setting = Setting()
    setting.ready(0, 1)
    for _ in range(2 * module.MAX_ERRORS):
        slot = setting.supervisor.slots[0]
        setting.pool.replies.append(Reply(slot.actor, "error", "once in a while"))  # type: ignore[arg-type]
        setting.poll()
        slot.retry_at = 0.0
        setting.poll()
        setting.ready(len(setting.pool.actors) - 1)
        setting.finish(len(setting.pool.actors) - 1, 0)
        assert len(setting.poll()) == 1
    assert not slot.quarantined


def test_silent_actor_is_replaced_without_waiting_for_it() -> None:
    setting = Setting(timeout=0.05)
    setting.ready(0, 1)
    deadline = time.monotonic() + 30.0
    answered = 0
    while not setting.pool.actors[0].is_killed and time.monotonic() < deadline:
        setting.finish(1, answered)
        answered += len(setting.poll())
        setting.poll()
    assert answered > 1
    assert setting.pool.actors[0].is_killed
    assert "no reply for" in setting.notes[0]


def test_shard_of_weights_beyond_the_lag_is_dropped() -> None:
    setting = Setting(max_lag=5)
    setting.ready(0, 1)
    setting.supervisor.publish(5, b"")
    setting.finish(0, 0)
    assert len(setting.poll()) == 1
    setting.supervisor.publish(6, b"")
    setting.finish(0, 1)
    assert setting.poll() == []
    assert "was 6 optimiser steps behind: its 3 games were dropped" in setting.notes[0]


def test_synchronous_round_continues_a_dead_actor_from_its_last_state() -> None:
    setting = Setting(is_synchronous=True)
    pool, supervisor = setting.pool, setting.supervisor
    later = ActorState([], {**empty_state(0).self_play, "next_number": 7})
    script = [
        lambda: (pool.reply(0, "ready"), pool.reply(1, "ready")),
        lambda: pool.reply(1, "value", shard(pool.actors[1].tasks[0].id, state=empty_state(1))),
        lambda: pool.reply(0, "value", shard(pool.actors[0].tasks[0].id, state=later)),
    ]
    poll = pool.poll

    def scripted(timeout: float) -> list[Reply]:
        if script:
            script.pop(0)()
        return poll(timeout)

    pool.poll = scripted  # type: ignore[method-assign]
    first = supervisor.play_round(4, None)
    assert [one.id for one in first] == [ShardId(0, 0, 0), ShardId(1, 1, 0)]
    assert supervisor.states() == [empty_state(0), empty_state(1)]  # until their games are stored
    supervisor.confirm_round(first)
    script += [
        lambda: pool.reply(1, "value", shard(pool.actors[1].tasks[1].id, state=empty_state(1))),
        lambda: pool.reply(0, "died", "killed"),
        lambda: pool.reply(2, "ready"),
        lambda: pool.reply(2, "value", shard(pool.actors[2].tasks[0].id, state=later)),
    ]
    assert [one.id for one in supervisor.play_round(4, None)] == [ShardId(0, 0, 1), ShardId(1, 1, 1)]
    assert pool.actors[2].given is later
    assert supervisor.states() == [later, empty_state(1)]


def test_states_of_asynchronous_actors_begin_a_new_lease() -> None:
    setting = Setting()
    [state] = setting.supervisor.states()
    assert (state.games, state.lease) == ([], 2)
    resumed = Setting(states=(state,), known=frozenset({9 * GAMES_PER_LEASE + 5}))
    assert [actor.given.lease for actor in resumed.pool.actors] == [2, 10]


def scripted(pool: FakePool, script: list[Callable[[], object]]) -> None:
    """Runs one step of the script before each poll."""
    poll = pool.poll

    def run(timeout: float) -> list[Reply]:
        if script:
            script.pop(0)()
        return poll(timeout)

    pool.poll = run  # type: ignore[method-assign]


def test_interrupted_round_does_not_advance_the_states() -> None:
    setting = Setting(is_synchronous=True)
    pool, supervisor = setting.pool, setting.supervisor
    later = ActorState([], {**empty_state(0).self_play, "next_number": 7})

    def interrupt() -> None:
        raise KeyboardInterrupt

    scripted(
        pool,
        [
            lambda: (pool.reply(0, "ready"), pool.reply(1, "ready")),
            lambda: pool.reply(0, "value", shard(pool.actors[0].tasks[0].id, state=later)),
            interrupt,
        ],
    )
    with pytest.raises(KeyboardInterrupt):
        supervisor.play_round(4, None)
    assert supervisor.states() == [empty_state(0), empty_state(1)]


def test_quarantine_in_a_round_does_not_end_it_for_the_others() -> None:
    setting = Setting(is_synchronous=True)
    pool, supervisor = setting.pool, setting.supervisor

    def fail() -> None:
        slot = supervisor.slots[1]
        slot.errors = module.MAX_ERRORS
        pool.replies.append(Reply(slot.actor, "failed", "ImportError: gone"))  # type: ignore[arg-type]

    scripted(
        pool,
        [
            lambda: (pool.reply(0, "ready"), pool.reply(1, "ready")),
            lambda: pool.reply(1, "value", shard(pool.actors[1].tasks[0].id, state=empty_state(1))),
            fail,
            lambda: None,
            lambda: pool.reply(0, "value", shard(pool.actors[0].tasks[0].id, state=empty_state(0))),
        ],
    )
    assert [one.id for one in supervisor.play_round(4, None)] == [ShardId(0, 0, 0), ShardId(1, 1, 0)]
    assert supervisor.slots[1].quarantined
    assert not supervisor.slots[0].tasks


def test_error_does_not_discard_the_shards_before_it() -> None:
    setting = Setting()
    setting.ready(0, 1)
    setting.finish(0, 0)
    setting.pool.reply(1, "error", MemoryError("full"))
    assert [one.id for one in setting.poll()] == [ShardId(0, 0, 0)]
    with pytest.raises(MemoryError, match="full"):
        setting.poll()


@pytest.mark.parametrize("error", [ValueError, OSError, KeyError, zipfile.BadZipFile])
def test_actor_whose_games_are_refused_is_quarantined(error: type[Exception]) -> None:
    def refuse(games: EncodedGames) -> Any:
        raise error("damaged")

    setting = Setting(decode=refuse)
    setting.ready(0, 1)
    for _ in range(module.MAX_ERRORS):
        slot = setting.supervisor.slots[0]
        assert not slot.quarantined
        content = replace(shard(slot.tasks[0].id), games=EncodedGames("npz", b"", 3))
        setting.pool.replies.append(Reply(slot.actor, "value", content))  # type: ignore[arg-type]
        assert setting.poll() == []
        slot.retry_at = 0.0
        setting.poll()
        setting.ready(len(setting.pool.actors) - 1)
    assert "its games were refused" in slot.quarantined
    assert "damaged" in slot.quarantined


def test_task_whose_games_are_refused_is_played_again_in_a_round() -> None:
    contents = [EncodedGames("npz", b"bad", 1), EncodedGames("npz", b"good", 1)]

    def decode(games: EncodedGames) -> Any:
        if games.content == b"bad":
            raise ValueError(games.content)
        return ["a game"]

    setting = Setting(is_synchronous=True, decode=decode)
    pool, supervisor = setting.pool, setting.supervisor

    def answer(place: int) -> None:
        found = shard(pool.actors[place].tasks[0].id, state=empty_state(0))
        pool.reply(place, "value", replace(found, games=contents.pop(0)))

    scripted(
        pool,
        [
            lambda: (pool.reply(0, "ready"), pool.reply(1, "ready")),
            lambda: pool.reply(1, "value", shard(pool.actors[1].tasks[0].id, state=empty_state(1))),
            lambda: answer(0),
            lambda: pool.reply(2, "ready"),
            lambda: answer(2),
        ],
    )
    [first, _] = supervisor.play_round(4, None)
    assert first.id == ShardId(0, 0, 0)
    assert list(first.games) == ["a game"]  # type: ignore[arg-type, comparison-overlap]
    assert first.encoded == EncodedGames("npz", b"good", 1)
    assert pool.actors[2].given == empty_state(0)


def test_no_lease_is_granted_twice() -> None:
    setting = Setting(is_synchronous=True)
    two, next_lease = setting.supervisor.states(), setting.supervisor.next_lease
    assert ([state.lease for state in two], next_lease) == ([0, 1], 2)
    again = Setting(is_synchronous=True, states=(two[0],), next_lease=next_lease)
    assert [actor.given.lease for actor in again.pool.actors] == [0, 2]
    again.supervisor.renew_leases(frozenset({9 * GAMES_PER_LEASE + 5}))
    assert [actor.given.lease for actor in again.pool.actors[2:]] == [10, 11]
    assert [state.lease for state in again.supervisor.states()] == [10, 11]
