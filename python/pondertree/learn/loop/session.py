"""A run in progress: its components and counters, saved to checkpoints and resumed from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pondertree.errors import EvaluationError, GameContractError, InvalidArgumentError, StorageError, TrainingError
from pondertree.files import naming, reading
from pondertree.learn.config import Config, GameSpec, field_names, read_config
from pondertree.learn.data import (
    CONFIG,
    Checkpoint,
    Counters,
    GameRecord,
    GameStore,
    RunFolder,
    keep_newest,
    newest_intact,
    refuse_observations,
    save_checkpoint,
)
from pondertree.learn.loop.devices import reported_out_of_memory
from pondertree.learn.self_play import SelfPlay
from pondertree.learn.trainer import algorithm_of
from pondertree.networks import NetworkConfig, player_bytes, player_of, support_for, update_player

#: Moves per game without any finished game, after which a warning is issued.
MOVES_WITHOUT_END = 3000


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
        self.player = player_of(self.learner.network)
        if config.learner.reduced_precision and device.type == "cuda":
            self.player.to(torch.bfloat16)
        self.evaluator = algorithm.evaluator(self.player)
        self.self_play = SelfPlay(spec, config, self.evaluator)
        self.replay = algorithm.replay(spec, config)
        self.store: GameStore
        self.pause_self_play: Callable[[], AbstractContextManager[None]] = nullcontext
        """Returns a context in which self-play is paused."""

    def begin(self, *, resume: bool, exact: bool) -> None:
        """Starts anew or resumes from the newest intact checkpoint; `exact` replays the games stored after it."""
        found = newest_intact(self.folder.checkpoints) if resume else None
        if found is None:
            self.store = GameStore(self.folder.games, spec=self.spec)
        else:
            path, checkpoint, wrong = found
            self.notes += [f"{text}: ignored" for text in wrong]
            self._refuse_another_network(read_config(path / CONFIG, self.config))
            self._restore(path, checkpoint)
            if self.self_play.lost:
                self.notes.append(f"{self.self_play.lost} episodes are not reproducible and were replaced")
            self.notes.append(f"resuming from {path.name}, step {self.counters.step}, {self.counters.games} games")
        if not exact:
            self._add_to_replay(self.store.commit_all())
        self.self_play.begin(self.store.known if not exact else frozenset())
        self.refresh_player(self.learner.average)

    def _refuse_another_network(self, before: Config) -> None:
        """Raises `InvalidArgumentError` if the configured architecture differs from that of the weights."""
        for name, old, new in architecture_fields(before, self.config):
            if old != new:
                raise InvalidArgumentError(
                    f"{name} is {old} in this run and cannot become {new}: start another run for that"
                )

    def _restore(self, path: Path, checkpoint: Checkpoint) -> None:
        """Restores a checkpoint. Errors of games and devices are not reported as damage of its files."""
        replay = {name: tensor for name, tensor in checkpoint.tensors.items() if name.startswith("replay.")}
        trainer = {name: tensor for name, tensor in checkpoint.tensors.items() if name not in replay}
        with reading(path, "a checkpoint of this run", StorageError):
            self.counters = Counters.of_data(checkpoint.state["counters"])
            self_play = checkpoint.state["self_play"]
            arrays = {name.removeprefix("replay."): tensor.numpy() for name, tensor in replay.items()}
        with naming(path, StorageError):
            self.learner.load_state_dict(trainer, self.counters.step)
            self.self_play.restore(checkpoint.games, self_play)
        self.store = GameStore(self.folder.games, self.counters.games, self.spec)
        with naming(self.folder.games, StorageError):
            self.replay.add(self.store.newest(self.config.replay.window))
        with naming(path, StorageError):
            self.replay.load_state_dict(arrays)

    def save(self) -> None:
        """Saves a checkpoint."""
        with self.pause_self_play():
            games, self_play = self.self_play.snapshot()
            state = {"counters": asdict(self.counters), "self_play": self_play}
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

    def refresh_player(self, weights: dict[str, torch.Tensor]) -> None:
        """Copies weights into the self-play player."""
        update_player(self.player, weights)
        if self.device.type == "cuda":
            # Searches run on other streams, which do not wait for this one.
            torch.cuda.current_stream(self.device).synchronize()
        if hasattr(self.evaluator, "version"):
            self.evaluator.version += 1

    def play_move(self, version: int) -> list[GameRecord]:
        """Plays one move in every game; errors state the step and the remedy."""
        try:
            with reported_out_of_memory("self-play", "self_play.games_at_once"):
                finished = self.self_play.move(version)
        except (EvaluationError, GameContractError) as error:
            # The cause may be an invalid observation of the game.
            refuse_observations([game.state for game in self.self_play.games], self.spec)
            if isinstance(error, GameContractError):
                raise
            raise TrainingError(
                f"self-play stopped at step {version}, after {self.self_play.moves_played} moves: {error}; "
                "nothing of this batch was stored"
            ) from error
        self._report_endless(finished)
        return finished

    def _report_endless(self, finished: list[GameRecord]) -> None:
        """Warns once if no game ends: only finished games become training data."""
        if finished or "endless" in self._reported:
            self._reported.add("endless")
            return
        self._moves_without_end += 1
        if self._moves_without_end >= MOVES_WITHOUT_END:
            self._reported.add("endless")
            most = self.config.self_play.max_moves
            self.report(
                f"no game of {self.spec.name} has ended in {MOVES_WITHOUT_END:,} moves, and only finished games are "
                f"training data: self_play.max_moves = {MOVES_WITHOUT_END // 3} would truncate them (it is {most:,})"
            )

    def take_games(self, finished: list[GameRecord]) -> list[GameRecord]:
        """Stores finished games and adds them to the replay buffer; returns the newly committed ones."""
        committed = self.store.append(finished)
        self._add_to_replay(committed)
        return committed

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
        return self.counters.owed >= 1.0 and len(self.replay) >= self.config.replay.learned_first

    def learn_step(self, progress: float) -> dict[str, torch.Tensor]:
        """Runs one optimiser step."""
        with reported_out_of_memory("optimisation", "learner.batch_size"):
            losses = self.learner.learn_from(self.replay, progress)
        self.counters.step = self.learner.step
        self.counters.owed -= 1.0
        return losses


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

    def __init__(self, config: Config, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self._elapsed_before = counters.elapsed
        self._started = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of training, including those before the run was resumed."""
        return self._elapsed_before + time.monotonic() - self._started

    @property
    def progress(self) -> float:
        """The fraction done, from 0 to 1. Reads the clock only if minutes are a limit, for reproducible runs."""
        config, counters = self._config, self._counters
        fractions = [0.0]
        if config.minutes is not None:
            fractions.append(self.elapsed / (60.0 * config.minutes))
        if config.games is not None:
            fractions.append(counters.games / config.games)
        if config.steps is not None:
            fractions.append(counters.step / config.steps)
        return min(max(fractions), 1.0)

    @property
    def reached(self) -> bool:
        """Whether a limit is reached."""
        return self.progress >= 1.0

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining seconds; None before any progress."""
        progress = self.progress
        return None if progress <= 0.0 else self.elapsed * (1.0 - progress) / progress
