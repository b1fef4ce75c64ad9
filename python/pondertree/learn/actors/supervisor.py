"""The supervisor of the self-play actors: leases, back-pressure, replacement of dead and silent ones, quarantine.

Asynchronous actors have at most two batches in flight each; a shard is accepted once, in order of arrival, while the
lease under which it was played is valid. Whatever happens to an actor, its next one starts under a new lease.
In synchronous rounds every actor plays the same number of moves with the same weights and returns its state, from which
a dead one is continued: rounds are a function of the weights, and shards are in the order of the actors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pondertree.errors import PondertreeError, TrainingError
from pondertree.learn.actors.messages import (
    ActorSetup,
    ActorState,
    Shard,
    ShardId,
    Task,
    empty_state,
    lease_of,
    setup_for,
)
from pondertree.learn.actors.slot import ShardTiming, Slot
from pondertree.learn.data import EncodedGames, GameRecord
from pondertree.learn.executors import Blob, Executor, Pool, Reply

#: Batches in flight per actor: while the driver handles one, the next is being played.
MAX_IN_FLIGHT = 2
#: Errors in a row, without a shard between them, after which an actor is quarantined; and deaths in a row.
MAX_ERRORS, MAX_DEATHS = 3, 10
#: Seconds before the second replacement in a row, doubled for each further one up to the largest.
FIRST_DELAY, LARGEST_DELAY = 0.5, 10.0
#: A silent actor is replaced after its timeout, or after this many times its estimated interval between replies if that
#: is longer; before its first reply to a task, after this many timeouts; while it starts, after this many seconds at
#: least. The estimate is the longest interval, which decays by a factor with each reply.
PATIENT_FACTOR, START_TIMEOUT = 10.0, 120.0
INTERVAL_DECAY = 0.9


class Weights(NamedTuple):
    """Published weights."""

    version: int
    content: Blob


class Supervisor:
    """Runs the self-play actors of a training."""

    def __init__(
        self,
        executor: Executor,
        pool: Pool,
        make: Callable[[ActorSetup, Blob], Any],
        setup: ActorSetup,
        report: Callable[[str], None],
        *,
        is_synchronous: bool,
        max_lag: int,
        decode: Callable[[EncodedGames], list[GameRecord]] | None = None,
        check_storage: Callable[[], None] = lambda: None,
    ) -> None:
        """`max_lag` is the largest age of weights, in optimiser steps, at which a shard is still accepted.

        `decode` decodes and validates the games of a shard; an exception is an error of the actor. `check_storage`
        raises if an actor fails through no fault of its own, since the files of the run are gone.
        """
        self._executor = executor
        self._pool = pool
        self._make = make
        self._setup = setup
        self.report = report
        self._is_synchronous = is_synchronous
        self._max_lag = max_lag
        self._decode = decode
        self._check_storage = check_storage
        self.slots = [Slot(index) for index in range(executor.actors)]
        self.next_lease = 0
        """The lease that the next actor without a state is granted."""
        self.ready_at: float | None = None
        """When the first actor was ready."""
        self.failure: TrainingError | None = None
        """Set when no actor is left."""
        self._error: BaseException | None = None
        self._drained: list[Shard] = []
        self._weights: Weights | None = None
        self.is_allowed = True
        """Whether further asynchronous batches may begin: the back-pressure of the learner."""

    def start(
        self, states: Sequence[ActorState], known: frozenset[int], next_lease: int = 0, is_replay: bool = False
    ) -> None:
        """Launches the actors, the first ones from these states.

        `known` are the numbers of games stored since, `next_lease` is that of the checkpoint. With `is_replay` the
        known games are played again; otherwise the leases after theirs are granted.
        """
        leases = [state.lease for state in states] + [lease_of(number) for number in known if not is_replay]
        self.next_lease = max(next_lease, max(leases, default=-1) + 1)
        self._setup = replace(self._setup, known=frozenset() if is_replay else known)
        for slot, state in zip(self.slots, states, strict=False):
            slot.state = state
        for slot in self.slots:
            self._launch(slot)

    def publish(self, version: int, content: Any) -> None:
        """Stores new weights, which actors load before their next batch."""
        self._weights = Weights(version, self._pool.put(content))

    # Synchronous rounds.

    def play_round(self, moves: int, seconds: float | None) -> list[Shard]:
        """Plays some moves in all games of all actors; returns the shards in the order of the actors."""
        shards: dict[int, Shard] = {}
        active = [slot for slot in self.slots if not slot.quarantined]
        for slot in active:
            slot.tasks.append(self._task(slot, moves, seconds, with_state=True))
            self._send(slot)
        while any(slot.index not in shards for slot in active):
            for shard in self._handle(self._pool.poll(0.05)):
                shards[shard.id.actor] = shard
            self._replace_silent_actors()
            active = [slot for slot in active if not slot.quarantined]
        if self._error is not None:
            raise self._error
        return [shards[index] for index in sorted(shards)]

    def confirm_round(self, shards: Sequence[Shard]) -> None:
        """Advances the states for checkpoints, once the games are stored: a round interrupted before is repeated."""
        for shard in shards:
            self.slots[shard.id.actor].stored_state = shard.state

    def renew_leases(self, known: frozenset[int]) -> None:
        """Begins new leases after those of the known games, which the actors were to play again but did not."""
        self.next_lease = max([self.next_lease, *(lease_of(number) + 1 for number in known)])
        for slot in self.slots:
            if slot.quarantined:
                continue
            if slot.actor is not None:
                slot.actor.kill()
            slot.state = slot.stored_state = None
            slot.tasks.clear()
            self._launch(slot)

    # Asynchronous batches.

    def poll(self, seconds: float, wait: bool) -> list[Shard]:
        """Returns the shards that arrived, and sends batches of this duration to actors with fewer than two."""
        for slot in self.slots:
            while self.is_allowed and self._is_idle(slot):
                slot.tasks.append(self._task(slot, None, seconds, with_state=False))
                self._send(slot, last=True)
        found = self._handle(self._pool.poll(0.05 if wait else 0.0))
        self._replace_silent_actors()
        return found

    def drain(self) -> list[Shard]:
        """Returns the shards that arrived; the batches of an actor in this process end early and are waited for."""
        for slot in self.slots:
            if slot.actor is None:
                continue
            with slot.actor.interrupted() as ends_early:
                while ends_early and slot.tasks:
                    self._drained += self._handle(self._pool.poll(0.05))  # retained if this is interrupted
        self._drained += self._handle(self._pool.poll(0.0))
        found, self._drained = self._drained, []
        return found

    # State.

    def states(self) -> list[ActorState]:
        """Returns the states for a checkpoint. Asynchronous actors in other processes lose their unfinished games."""
        if self._is_synchronous:
            return [slot.stored_state for slot in self.slots if slot.stored_state is not None]
        found = [slot.actor.state() for slot in self.slots if slot.actor is not None]
        return [one for one in found if one is not None] or [empty_state(self.next_lease)]

    @property
    def false_positive_rate(self) -> float:
        """The highest false-positive rate of resignation of an actor."""
        return max(slot.false_positive_rate for slot in self.slots)

    def measurements(self, step: int) -> dict[str, dict[str, float]]:
        """Returns measurements by actor; `step` is the optimiser step of the learner."""
        return {str(slot.index): slot.measurements(step) for slot in self.slots}

    def end_self_play(self) -> None:
        """Ends the actors, whose CPUs and GPUs are free then."""
        for slot in self.slots:
            self._end(slot)

    # One actor.

    def _launch(self, slot: Slot) -> None:
        if slot.state is None:
            slot.state = empty_state(self.next_lease)
            self.next_lease += 1
            slot.number = 0
        slot.stored_state = slot.stored_state or slot.state
        slot.lease = slot.state.lease
        slot.state_blob = self._pool.put(slot.state)
        slot.is_ready = False
        slot.actor = self._pool.launch(self._make, setup_for(self._executor, self._setup, slot.index), slot.state_blob)
        slot.waiting_since = time.monotonic()
        slot.launches += 1

    def _task(self, slot: Slot, moves: int | None, seconds: float | None, *, with_state: bool) -> Task:
        assert self._weights is not None
        identity = ShardId(slot.index, slot.lease, slot.number)
        slot.number += 1
        return Task(identity, *self._weights, moves, seconds, with_state)

    def _is_idle(self, slot: Slot) -> bool:
        return slot.is_ready and len(slot.tasks) < MAX_IN_FLIGHT

    def _send(self, slot: Slot, *, last: bool = False) -> None:
        """Sends the tasks of a ready actor, or the last one."""
        if slot.actor is None or not slot.is_ready:
            return
        if len(slot.tasks) == 1 or not last:
            slot.waiting_since = time.monotonic()
        for task in [slot.tasks[-1]] if last else slot.tasks:
            slot.actor.call("play", task)

    def _handle(self, replies: list[Reply]) -> list[Shard]:
        """Handles replies; returns the accepted shards. An error is raised once those before it have been returned."""
        found: list[Shard] = []
        for reply in replies if self._error is None else ():
            if isinstance(reply.value, BaseException):
                self._error = reply.value
                break
            slot = next((slot for slot in self.slots if slot.actor is reply.actor), None)
            if slot is None:  # of an actor that was replaced
                continue
            now = time.monotonic()
            if slot.tasks and reply.kind in ("value", "heartbeat"):
                slot.interval = max(now - slot.waiting_since, INTERVAL_DECAY * (slot.interval or 0.0))
            slot.waiting_since = now
            if reply.kind == "heartbeat":
                continue
            if reply.kind == "ready":
                slot.is_ready = True
                self.ready_at = now if self.ready_at is None else self.ready_at
                self._send(slot)
            elif reply.kind == "value":
                found += self._accept(slot, reply.value)
            elif self._is_storage_intact():
                (self._after_death if reply.kind == "died" else self._after_error)(slot, reply.value)
        if self._error is not None and not found:
            raise self._error
        return found

    def _is_storage_intact(self) -> bool:
        try:
            self._check_storage()
        except PondertreeError as error:
            self._error = error
            return False
        return True

    def _accept(self, slot: Slot, shard: Shard) -> list[Shard]:
        """Returns the shard if it answers the oldest task of the lease, and its weights are not too old.

        Its games are decoded; content that is refused is an error of the actor, which plays the task again in a
        synchronous round.
        """
        if not slot.tasks or shard.id != slot.tasks[0].id:
            slot.dropped += 1
            return []
        if self._decode is not None and isinstance(shard.games, EncodedGames):
            try:
                shard = replace(shard, games=self._decode(shard.games), encoded=shard.games)
            except MemoryError:
                raise
            except Exception as error:  # whatever the readers of the formats raise for damaged content
                self._after_error(slot, f"its games were refused: {type(error).__name__}: {error}")
                return []
        slot.tasks.popleft()
        slot.errors = slot.deaths = 0
        slot.recent.append(ShardTiming(time.monotonic(), shard.count, shard.positions, shard.seconds))
        slot.version = shard.version
        slot.false_positive_rate = shard.false_positive_rate
        if shard.state is not None:
            slot.state = shard.state
        newest = self._weights.version if self._weights is not None else shard.version
        if newest - shard.version > self._max_lag:
            slot.dropped += 1
            if not slot.is_late:
                self.report(
                    f"self-play actor {slot.index} was {newest - shard.version:,} optimiser steps behind: "
                    f"its {shard.count} games were dropped, as will be others (see its measurements)"
                )
            slot.is_late = True
            return []
        slot.add(shard)
        return [shard]

    def _after_error(self, slot: Slot, text: str) -> None:
        slot.errors += 1
        last = text.splitlines()[-1] if text else ""
        if slot.errors >= MAX_ERRORS:
            self._quarantine(slot, text)
            return
        self.report(f"self-play actor {slot.index} failed ({slot.errors} of {MAX_ERRORS} times in a row): {last}")
        # An actor that raised may be inconsistent: another one takes its place.
        self._replace(slot, slot.errors)

    def _after_death(self, slot: Slot, text: str) -> None:
        slot.deaths += 1
        if slot.deaths >= MAX_DEATHS:
            advice = "does the game, or a library of it, end its process, or is memory short?"
            self._quarantine(slot, f"{text} ({slot.deaths} times in a row: {advice})")
            return
        self.report(f"self-play actor {slot.index} died and is replaced: {text}")
        self._replace(slot, slot.deaths)

    def _end(self, slot: Slot) -> None:
        if slot.actor is not None:
            slot.actor.kill()
        slot.actor, slot.is_ready = None, False

    def _replace(self, slot: Slot, failures: int) -> None:
        self._end(slot)
        if not self._is_synchronous:
            # Its tasks are void, and the next one starts under a new lease.
            slot.tasks.clear()
            slot.state = None
        delay = 0.0 if failures < 2 else min(FIRST_DELAY * 2.0 ** (failures - 2), LARGEST_DELAY)
        slot.retry_at = time.monotonic() + delay

    def _quarantine(self, slot: Slot, text: str) -> None:
        self._end(slot)
        slot.tasks.clear()
        slot.quarantined = text or "for an unknown reason"
        self.report(f"self-play actor {slot.index} is quarantined, it failed again and again: {text}")
        if all(other.quarantined for other in self.slots):
            self._error = self.failure = TrainingError(
                f"no self-play actor is left: all {len(self.slots)} failed again and again; the last reason: {text}"
            )

    def _replace_silent_actors(self) -> None:
        """Replaces actors that are silent for too long and, after a delay, those that died."""
        now = time.monotonic()
        timeout = self._executor.timeout
        for slot in self.slots:
            if slot.quarantined:
                continue
            if slot.actor is None:
                if now >= slot.retry_at:
                    self._launch(slot)
                continue
            silence = now - slot.waiting_since
            patience = (
                PATIENT_FACTOR * timeout if slot.interval is None else max(timeout, PATIENT_FACTOR * slot.interval)
            )
            if slot.is_ready and slot.tasks and silence > patience:
                self._after_death(slot, f"no reply for {silence:.0f} s")
            elif not slot.is_ready and silence > max(timeout, START_TIMEOUT):
                self.report(
                    f"self-play actor {slot.index} has not started in {silence:.0f} s: "
                    "is there a machine with the CPUs and GPUs that it needs?"
                )
                self._replace(slot, 1)
