"""One of the self-play actors of a training, through all its processes, and its measurements."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from pondertree.learn.actors.messages import ActorState, Shard, Task
from pondertree.learn.executors import Actor, Blob

#: Rates are averages over this many of the newest shards.
RECENT_SHARDS = 20


class ShardTiming(NamedTuple):
    """What rates are computed from: a shard, by its size and duration."""

    time: float
    """When it arrived."""
    games: int
    positions: int
    seconds: float
    """Seconds of its task."""


@dataclass
class Slot:
    """One of the actors."""

    index: int
    lease: int = -1
    actor: Actor | None = None
    is_ready: bool = False
    state: ActorState | None = None
    """The state to continue from; None: a new lease."""
    stored_state: ActorState | None = None
    """In synchronous runs, the state after the last round whose games are stored."""
    state_blob: Blob | None = None
    """The state that the actor was given; it is freed with this."""
    number: int = 0
    """Number of the next task within the lease."""
    tasks: deque[Task] = field(default_factory=deque)
    """Tasks without a reply, oldest first."""
    waiting_since: float = 0.0
    """When the last reply or heartbeat came, or the oldest task was sent."""
    interval: float | None = None
    """Estimated seconds between replies or heartbeats in a task; None before the first."""
    retry_at: float = 0.0
    launches: int = 0
    errors: int = 0
    deaths: int = 0
    """In a row."""
    quarantined: str = ""
    """The reason."""
    games: int = 0
    positions: int = 0
    dropped: int = 0
    """Shards that were not accepted."""
    is_late: bool = False
    """Whether a shard was too old, which is reported once."""
    version: int = 0
    false_positive_rate: float = 0.0
    recent: deque[ShardTiming] = field(
        default_factory=lambda: deque([ShardTiming(time.monotonic(), 0, 0, 0.0)], RECENT_SHARDS + 1)
    )
    """The newest shards, after one whose time begins the measurement."""

    def add(self, shard: Shard) -> None:
        """Counts an accepted shard."""
        self.games += shard.count
        self.positions += shard.positions

    def measurements(self, step: int) -> dict[str, float]:
        """Returns the measurements; `step` is the optimiser step of the learner. Rates are of the newest shards."""
        first, *counted = self.recent
        passed = max(time.monotonic() - first.time, 1e-9)
        return {
            "games": self.games,
            "positions": self.positions,
            "games_per_second": round(sum(one.games for one in counted) / passed, 3),
            "positions_per_second": round(sum(one.positions for one in counted) / passed, 2),
            "lag": step - self.version if self.games or self.version else 0,
            "restarts": max(self.launches - 1, 0),
            "dropped": self.dropped,
            "utilisation": round(min(sum(one.seconds for one in counted) / passed, 1.0), 4),
            "ready": int(self.is_ready),
            "quarantined": int(bool(self.quarantined)),
            "lease": self.lease,
            "pid": (self.actor.pid if self.actor is not None else None) or 0,
        }
