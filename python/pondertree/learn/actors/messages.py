"""Messages between the driver and its actors: setup, tasks, shards of finished games, evaluations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pondertree import validation
from pondertree.learn.config import Config
from pondertree.learn.data import EncodedGames, GameRecord
from pondertree.learn.executors import Blob, Executor

#: A lease is a range of this many game numbers, so that actors never start the same game.
GAMES_PER_LEASE = 1 << 32


def lease_of(number: int) -> int:
    """Returns the lease of a game number."""
    return number // GAMES_PER_LEASE


class ActorState(NamedTuple):
    """What an actor needs to continue its unfinished games."""

    games: list[GameRecord]
    """The unfinished games."""
    self_play: dict[str, Any]
    """The other state of self-play, JSON-compatible."""

    @property
    def lease(self) -> int:
        """The lease of its game numbers."""
        return lease_of(validation.whole_number(self.self_play.get("next_number"), "next_number", most=1 << 62))


def empty_state(lease: int) -> ActorState:
    """Returns the state of an actor that begins a lease."""
    next_number = lease * GAMES_PER_LEASE
    return ActorState([], {"next_number": next_number, "moves_played": 0, "low": [], "given_up": [], "checked": []})


@dataclass(frozen=True)
class ActorSetup:
    """What an actor is made of."""

    config: Config
    factory: Callable[[], Any] | None
    """Starting states of a game that cannot be imported by name."""
    device: str
    threads: int = 1
    """Threads of PyTorch in another process."""
    paths: tuple[str, ...] = ()
    """The driver's module search path."""
    known: frozenset[int] = frozenset()
    """Numbers of stored games, whose unfinished copies are dropped."""
    encode: bool = True
    """Whether shards are encoded, to be sent to another process."""


def setup_for(executor: Executor, setup: ActorSetup, index: int) -> ActorSetup:
    """Returns the setup of actor `index`: its device, and on a CPU the search threads that the executor gives it."""
    if executor.threads is None:
        return setup
    device = executor.device_of(index, setup.device)
    workers = executor.threads if device == "cpu" else 1
    config = setup.config.with_values(self_play={"workers": workers})
    return replace(setup, device=device, threads=executor.threads, config=config)


class ShardId(NamedTuple):
    """Identifies a shard: the driver stores each once, however often it arrives."""

    actor: int
    lease: int
    number: int


@dataclass(frozen=True, slots=True)
class Task:
    """A batch of self-play."""

    id: ShardId
    version: int
    """Optimiser step of the weights."""
    weights: Blob
    """`LiveWeights`, or the content of a player file."""
    moves: int | None
    """Moves in each game; None: as many as fit into `seconds`."""
    seconds: float | None
    """Time limit; with `moves`, of the run."""
    with_state: bool
    """Whether the shard includes the state of the actor after it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The finished games of a task, and measurements."""

    id: ShardId
    version: int
    games: list[GameRecord] | EncodedGames
    count: int
    """Number of games."""
    positions: int
    """Number of their searched moves."""
    moves: int
    """Moves played in each concurrent game."""
    seconds: float
    """Duration of the task."""
    cpu_seconds: float
    """CPU time of the actor's process during it."""
    false_positive_rate: float
    """Of resignation."""
    state: ActorState | None = None
    encoded: EncodedGames | None = None
    """The encoded games, where the driver has decoded them."""
    lost: int = 0
    """Unfinished episodes that the actor could not restore since its last shard."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """An evaluation of a player."""

    player: bytes
    """The content of its file."""
    counters: Any
    lines: list[dict[str, Any]]
    """Metrics of the evaluations so far."""
    earlier: dict[str, bytes] = field(default_factory=dict)
    """Files of the previously evaluated player, by name."""


class EvaluationReply(NamedTuple):
    """The result of an evaluation."""

    evaluation: Any
    files: dict[str, bytes]
    """Files for the run folder, by name."""
