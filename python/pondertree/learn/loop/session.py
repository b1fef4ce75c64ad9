"""A run in progress: its components and counters, saved to checkpoints and resumed from them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.files import naming, reading
from pondertree.learn.actors import (
    ActorSetup,
    ActorState,
    LiveWeights,
    SelfPlayActor,
    Shard,
    Supervisor,
    make_self_play_actor,
)
from pondertree.learn.config import Config, GameSpec, field_names, read_config
from pondertree.learn.data import (
    CONFIG,
    Checkpoint,
    Counters,
    EncodedGames,
    GameRecord,
    GameStore,
    Origin,
    RunFolder,
    ShardJournal,
    elapsed_at,
    keep_newest,
    newest_intact,
    save_checkpoint,
)
from pondertree.learn.executors import Executor, Pool
from pondertree.learn.loop.signals import deferred_signals
from pondertree.learn.trainer import algorithm_of, reported_out_of_memory
from pondertree.networks import NetworkConfig, player_bytes, player_of, support_for, update_player

#: Moves per game without any finished game, after which a warning is issued.
MOVES_WITHOUT_END = 3000
#: Game numbers are below 2^62.
MOST_LEASES = 1 << 30


class Session:
    """The components of a run. Scheduling is left to the loop."""

    def __init__(self, config: Config, spec: GameSpec, device: torch.device, folder: RunFolder) -> None:
        self.config = config
        self.spec = spec
        self.device = device
        self.folder = folder
        self.counters = Counters()
        self.notes: list[str] = []
        """Messages to report at the start."""
        self.report: Callable[[str], None] = self.notes.append
        """Reports a message; at once after the start."""
        self._reported: set[str] = set()
        self._moves_without_end = 0
        algorithm = algorithm_of(config)
        self.learner = algorithm.trainer(spec, config, device)
        self.replay = algorithm.replay(spec, config)
        self.journal = ShardJournal(folder.journal)
        self.store: GameStore
        self.actors: Supervisor
        self.is_remote = self._is_concurrent = False
        """Whether actors run in other processes."""
        self.elapsed: Callable[[], float] = lambda: self.counters.elapsed
        """Returns the seconds of training that the journal records, which the schedules see until the next call."""
        self.scheduled_elapsed = 0.0
        """The seconds that the schedules see at the start: those of the last recorded shard."""
        self.pause_self_play: Callable[[], AbstractContextManager[None]] = nullcontext
        """Returns a context in which self-play in this process is paused."""
        self.check_interrupts: Callable[[], None] = lambda: None
        """Raises `KeyboardInterrupt` if there was one."""

    def begin(
        self, executor: Executor, pool: Pool, factory: Callable[[], Any] | None, *, resume: bool, exact: bool
    ) -> None:
        """Starts anew or resumes from the newest intact checkpoint; `exact` replays the games stored after it."""
        found = newest_intact(self.folder.checkpoints) if resume else None
        states: list[ActorState] = []
        if found is None:
            self.store = GameStore(self.folder.games, spec=self.spec, journal=self.journal)
        else:
            path, checkpoint, damaged = found
            self.notes += [f"{text}: ignored" for text in damaged]
            self._refuse_another_network(read_config(path / CONFIG, self.config))
            states = self._restore(path, checkpoint)
        if found is not None:
            recorded = elapsed_at(self.folder.journal, self.counters.games)
            self.scheduled_elapsed = self.counters.elapsed if recorded is None else recorded
        with naming(self.folder.checkpoints if found is None else found[0], StorageError):
            saved = 0 if found is None else found[1].state.get("next_lease", 0)
            next_lease = validation.whole_number(saved, "next_lease", most=MOST_LEASES)
            self._launch(executor, pool, factory, states, next_lease, is_synchronous=exact)
        if found is not None:
            if len(states) > executor.actors:
                dropped = len(states) - executor.actors
                self.notes.append(f"the unfinished games of {dropped} actors are dropped: there are fewer actors now")
            self.notes.append(f"resuming from {found[0].name}, step {self.counters.step}, {self.counters.games} games")
        if not exact:
            self._add_to_replay(self.store.commit_all(self.counters.step, self.scheduled_elapsed))
        self.publish()

    def _launch(
        self,
        executor: Executor,
        pool: Pool,
        factory: Callable[[], Any] | None,
        states: list[ActorState],
        next_lease: int,
        *,
        is_synchronous: bool,
    ) -> None:
        """Starts the self-play actors."""
        self.is_remote, self._is_concurrent = executor.is_remote, not is_synchronous
        setup = ActorSetup(self.config, factory, str(self.device), paths=tuple(sys.path), encode=self.is_remote)
        player = None if self.is_remote else player_of(self.learner.network)

        def make_here(setup: ActorSetup, state: Any) -> SelfPlayActor:
            return SelfPlayActor(setup, state.get(), self.spec, player)

        learner, window = self.config.learner, self.config.replay.window
        self.actors = Supervisor(
            executor,
            pool,
            make_self_play_actor if self.is_remote else make_here,
            setup,
            lambda text: self.report(text),
            is_synchronous=is_synchronous,
            # The steps in which the replay buffer is renewed: it would have dropped such positions.
            max_lag=max(1, int(window * learner.passes / learner.batch_size)),
            decode=lambda games: games.decode(self.spec),
            check_storage=self.folder.check_in_place,
        )
        self.actors.start(states, self.store.known, next_lease, is_synchronous)

    def _refuse_another_network(self, before: Config) -> None:
        """Raises `InvalidArgumentError` if the configured architecture differs from that of the weights."""
        for name, old, new in architecture_fields(before, self.config):
            if old != new:
                raise InvalidArgumentError(
                    f"{name} is {old} in this run and cannot become {new}: start another run for that"
                )

    def _restore(self, path: Path, checkpoint: Checkpoint) -> list[ActorState]:
        """Restores a checkpoint; returns the states of the actors.

        Errors of games and devices are not reported as damage of its files.
        """
        replay = {name: tensor for name, tensor in checkpoint.tensors.items() if name.startswith("replay.")}
        trainer = {name: tensor for name, tensor in checkpoint.tensors.items() if name not in replay}
        with reading(path, "a checkpoint of this run", StorageError):
            self.counters = Counters.of_data(checkpoint.state["counters"])
            states = actor_states(checkpoint)
            arrays = {name.removeprefix("replay."): tensor.numpy() for name, tensor in replay.items()}
        with naming(path, StorageError):
            self.learner.load_state_dict(trainer, self.counters.step)
        self.store = GameStore(self.folder.games, self.counters.games, self.spec, self.journal)
        with naming(self.folder.games, StorageError):
            self.replay.add(self.store.newest(self.config.replay.window))
        with naming(path, StorageError):
            self.replay.load_state_dict(arrays)
        return states

    def save(self) -> None:
        """Saves a checkpoint."""
        self.folder.check_in_place()
        with self.pause_self_play():
            states = self.actors.states()
            state: dict[str, Any] = {"counters": asdict(self.counters), "self_play": states[0].self_play}
            state["next_lease"] = self.actors.next_lease
            if len(states) > 1:
                state["actors"] = [[len(one.games), one.self_play] for one in states]
        games = [game for one in states for game in one.games]
        current = self.averaged_player()
        about = self.spec.metadata(self.counters.step, self.counters.games)
        tensors = self.learner.state_dict()
        tensors |= {
            f"replay.{name}": torch.from_numpy(array.copy()) for name, array in self.replay.state_dict().items()
        }
        checkpoint = Checkpoint(player_bytes(current, about), tensors, games, state)
        save_checkpoint(self.folder.checkpoints, self.counters.round, checkpoint, self.config)
        keep_newest(self.folder.checkpoints, self.config.keep_checkpoints)

    def averaged_player(self) -> Any:
        """Returns a new player with the averaged weights."""
        player = player_of(self.learner.network)
        update_player(player, self.learner.average)
        return player

    def prediction_errors(self, player: Any) -> dict[str, list[float | None]]:
        """Measures the errors of a player's model by unroll depth; empty without a learned model."""
        measure = algorithm_of(self.config).prediction_errors
        with self.pause_self_play():
            return {} if measure is None else measure(player, self.replay)

    def publish(self) -> None:
        """Publishes the averaged weights, which actors load before their next batch."""
        if self.is_remote:
            about = self.spec.metadata(self.counters.step, self.counters.games)
            self.actors.publish(self.counters.step, player_bytes(self.averaged_player(), about))
            return
        tensors, written = self.learner.average, None
        if self.device.type == "cuda":
            # The actor reads them on a stream of its own, while the learner continues.
            written = torch.cuda.Event()
        if self._is_concurrent:
            tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        if written is not None:
            written.record()
        self.actors.publish(self.counters.step, LiveWeights(tensors, written))

    def play_round(self, seconds: float | None) -> list[GameRecord]:
        """Plays a round of all actors and stores its games; returns the newly committed ones."""
        shards = self.actors.play_round(self.config.cycle_moves, seconds)
        with deferred_signals():
            games = self.take(shards)
            self.actors.confirm_round(shards)
            if self.store.has_diverged:
                self.actors.renew_leases(self.store.known)
                self.store.has_diverged = False
        return games

    def take(self, shards: Sequence[Shard]) -> list[GameRecord]:
        """Stores the games of shards and adds them to the replay buffer; returns the newly committed ones.

        Interrupts wait meanwhile: the actors have advanced, and do not return these games again.
        """
        with deferred_signals():
            return [game for shard in shards for game in self._take(shard)]

    def _take(self, shard: Shard) -> list[GameRecord]:
        assert not isinstance(shard.games, EncodedGames)
        self._report_endless(shard)
        if shard.lost:
            self.report(f"{shard.lost} episodes are not reproducible and were replaced")
        committed = self.store.append(
            shard.games, shard.encoded, lambda: Origin(*shard.id, shard.version, self.counters.step, self.elapsed())
        )
        self._add_to_replay(committed)
        return committed

    def _report_endless(self, shard: Shard) -> None:
        """Warns once if no game ends: only finished games become training data."""
        if shard.count or "endless" in self._reported:
            self._reported.add("endless")
            return
        self._moves_without_end += shard.moves
        if self._moves_without_end >= MOVES_WITHOUT_END:
            self._reported.add("endless")
            most = self.config.self_play.max_moves
            self.report(
                f"no game of {self.spec.name} has ended in {MOVES_WITHOUT_END:,} moves, and only finished games are "
                f"training data: self_play.max_moves = {MOVES_WITHOUT_END // 3} would truncate them (it is {most:,})"
            )

    def _add_to_replay(self, games: list[GameRecord]) -> None:
        added = self.replay.add(games)
        self._report_support()
        self.counters.games = self.store.committed
        self.counters.positions += added
        self.counters.owed += added * self.config.learner.passes / self.config.learner.batch_size

    def _report_support(self) -> None:
        """Warns once of targets beyond the categorical support."""
        categories, largest = self.learner.network.categories, self.replay.largest
        if not categories.support or "support" in self._reported:
            return
        reach = categories.largest
        name = f"{'muzero' if self.config.learns_model else 'returns'}.support"
        if largest > reach * (1.0 + 1e-6):
            self._reported.add("support")
            self.report(
                f"{name} = {categories.support} represents up to {reach:,.5g}, but there are rewards or values of "
                f"{largest:,.5g}, which are clipped to {reach:,.5g}: start another run with "
                f"{name} = {support_for(largest)} or more, or scale rewards down"
            )

    def can_learn(self) -> bool:
        """Whether an optimiser step is due."""
        return self.counters.owed >= 1.0 and self.has_enough()

    def has_enough(self) -> bool:
        """Whether the replay buffer has the positions with which learning begins."""
        return len(self.replay) >= self.config.replay.learned_first

    def learn_step(self, progress: float) -> dict[str, torch.Tensor]:
        """Runs one optimiser step. Interrupts wait meanwhile: half a step would be saved with the weights."""
        with deferred_signals():
            with reported_out_of_memory("optimisation", "learner.batch_size"):
                losses = self.learner.learn_from(self.replay, progress)
            self.counters.step = self.learner.step
            self.counters.owed -= 1.0
        return losses


def actor_states(checkpoint: Checkpoint) -> list[ActorState]:
    """Returns the states of the actors in a checkpoint."""
    parts = checkpoint.state.get("actors", [[len(checkpoint.games), checkpoint.state["self_play"]]])
    states, first = [], 0
    for count, self_play in parts:
        states.append(ActorState(checkpoint.games[first : first + count], dict(self_play)))
        first += count
    if first != len(checkpoint.games):
        raise ValueError("its unfinished games are not those of its actors")
    return states


def architecture_fields(before: Config, now: Config) -> Iterator[tuple[str, Any, Any]]:
    """Yields (field, old value, new value) of all fields that determine the weights' shapes."""
    if before.learns_model or now.learns_model:  # the others share their architecture
        yield "algorithm", before.algorithm, now.algorithm
    for name in field_names(NetworkConfig):
        yield f"network.{name}", getattr(before.network, name), getattr(now.network, name)
    if not now.learns_model:
        yield "returns.support", before.returns.support, now.returns.support
    else:
        for name in ("support", "dynamics_blocks"):
            yield f"muzero.{name}", getattr(before.muzero, name), getattr(now.muzero, name)
        old, new = before.muzero.consistency, now.muzero.consistency
        if (old > 0.0) != (new > 0.0):  # projection layers exist only with the consistency loss
            yield "muzero.consistency", old, new


class Limits:
    """Ends a run at the first limit reached: minutes, games or steps."""

    def __init__(
        self,
        config: Config,
        counters: Counters,
        started_at: Callable[[], float | None],
        scheduled_elapsed: float = 0.0,
    ) -> None:
        """`started_at` returns the time from which minutes count, None before.

        `scheduled_elapsed` are the seconds that the schedules of the learner see until `freeze` is called.
        """
        self._config = config
        self._counters = counters
        self._elapsed_before = counters.elapsed
        self._started_at = started_at
        self._frozen = scheduled_elapsed

    @property
    def elapsed(self) -> float:
        """Seconds of training, including those before the run was resumed."""
        started = self._started_at()
        return self._elapsed_before + (0.0 if started is None else time.monotonic() - started)

    def freeze(self) -> float:
        """Fixes the time that the schedules of the learner see, until the next call; returns it."""
        self._frozen = self.elapsed
        return self._frozen

    @property
    def progress(self) -> float:
        """The fraction done, from 0 to 1. Reads the clock only if minutes are a limit, for reproducible runs."""
        return fraction_done(self._config, self._counters, lambda: self.elapsed)

    @property
    def learning_progress(self) -> float:
        """The fraction done by the frozen time, a function of the recorded order of shards."""
        return fraction_done(self._config, self._counters, lambda: self._frozen)

    @property
    def reached(self) -> bool:
        """Whether a limit is reached."""
        return self.progress >= 1.0

    @property
    def seconds_of_clock(self) -> float | None:
        """Seconds until the limit in minutes; None without one."""
        return None if self._config.minutes is None else 60.0 * self._config.minutes - self.elapsed

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining seconds; None before any progress."""
        progress = self.progress
        return None if progress <= 0.0 else self.elapsed * (1.0 - progress) / progress


def fraction_done(config: Config, counters: Counters, elapsed: Callable[[], float]) -> float:
    """Returns the fraction done, from 0 to 1; calls `elapsed` only if minutes are a limit."""
    fractions = [0.0]
    if config.minutes is not None:
        fractions.append(elapsed() / (60.0 * config.minutes))
    if config.games is not None:
        fractions.append(counters.games / config.games)
    if config.steps is not None:
        fractions.append(counters.step / config.steps)
    return min(max(fractions), 1.0)
