"""A training under way: its parts, its counters, and how all of it is saved and taken up again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pondertree.errors import EvaluationError, GameContractError, InvalidArgumentError, StorageError, TrainingError
from pondertree.files import naming, reading
from pondertree.learn.config.game_spec import GameSpec
from pondertree.learn.config.schema import Config, field_names, read_config
from pondertree.learn.data.checkpoint import CONFIG, Checkpoint, Counters, keep_newest, newest_whole, save_checkpoint
from pondertree.learn.data.observations import refuse_observations
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.run_folder import RunFolder
from pondertree.learn.data.shards import GameStore
from pondertree.learn.loop.limits import memory_complaints
from pondertree.learn.self_play.actor import SelfPlay
from pondertree.learn.trainer.algorithms import variant_of
from pondertree.networks.architecture import NetworkConfig
from pondertree.networks.model_network import support_for
from pondertree.networks.policy_value import player_of, update_player
from pondertree.networks.weights_file import player_bytes

#: Moves in every game, without an end of any, after which that is told.
LONG = 3000


class Session:
    """The parts of a training. What happens when is the loop's business."""

    def __init__(self, config: Config, spec: GameSpec, device: torch.device, folder: RunFolder) -> None:
        self.config = config
        self.spec = spec
        self.device = device
        self.folder = folder
        self.counters = Counters()
        self.notes: list[str] = []
        """What should be told to whoever watches, when it begins."""
        self.tell: Callable[[str], None] = self.notes.append
        """Tells it at once, when it has begun."""
        self._is_told: set[str] = set()
        self._moves_without_end = 0
        variant = variant_of(config)
        self.learner = variant.learner(spec, config, device)
        self.player = player_of(self.learner.network)
        if config.learner.reduced_precision and device.type == "cuda":
            self.player.to(torch.bfloat16)
        self.evaluator = variant.asked(self.player)
        self.self_play = SelfPlay(spec, config, self.evaluator)
        self.replay = variant.replay(spec, config)
        self.store: GameStore
        self.quiet: Callable[[], AbstractContextManager[None]] = nullcontext
        """While what it gives is entered, no game goes on."""

    def begin(self, *, resume: bool, exact: bool) -> None:
        """Begins anew, or goes on from the newest whole checkpoint; `exact` plays again what came after it."""
        found = newest_whole(self.folder.checkpoints) if resume else None
        if found is None:
            self.store = GameStore(self.folder.games, spec=self.spec)
        else:
            path, checkpoint, wrong = found
            self.notes += [f"{text}: left out" for text in wrong]
            self._refuse_another_network(read_config(path / CONFIG, self.config))
            self._restore(path, checkpoint)
            if self.self_play.lost:
                self.notes.append(f"{self.self_play.lost} episodes do not repeat themselves: others are begun instead")
            self.notes.append(f"going on from {path.name}, step {self.counters.step}, {self.counters.games} games")
        if not exact:
            self._take(self.store.count_all())
        self.self_play.begin(self.store.known if not exact else frozenset())
        self.refresh_player(self.learner.average)

    def _refuse_another_network(self, before: Config) -> None:
        """What the weights were made for cannot change."""
        for name, old, new in made_for(before, self.config):
            if old != new:
                raise InvalidArgumentError(
                    f"{name} is {old} in this training and cannot become {new}: begin another one for that"
                )

    def _restore(self, path: Path, checkpoint: Checkpoint) -> None:
        """Takes up a checkpoint. What a game or a device raises meanwhile is not the fault of its files."""
        own = {name: tensor for name, tensor in checkpoint.tensors.items() if name.startswith("replay.")}
        rest = {name: tensor for name, tensor in checkpoint.tensors.items() if name not in own}
        with reading(path, "a checkpoint of this training", StorageError):
            self.counters = Counters.of_data(checkpoint.state["counters"])
            self_play = checkpoint.state["self_play"]
            kept = {name.removeprefix("replay."): tensor.numpy() for name, tensor in own.items()}
        with naming(path, StorageError):
            self.learner.restore(rest, self.counters.step)
            self.self_play.restore(checkpoint.games, self_play)
        self.store = GameStore(self.folder.games, self.counters.games, self.spec)
        with naming(self.folder.games, StorageError):
            self.replay.add(self.store.newest(self.config.replay.window))
        with naming(path, StorageError):
            self.replay.restore(kept)

    def save(self) -> None:
        """Makes a checkpoint."""
        with self.quiet():
            games, self_play = self.self_play.saved()
            state = {"counters": asdict(self.counters), "self_play": self_play}
        current = self.averaged_player()
        about = self.spec.about(self.counters.step, self.counters.games)
        tensors = self.learner.saved()
        tensors |= {f"replay.{name}": torch.from_numpy(array.copy()) for name, array in self.replay.saved().items()}
        checkpoint = Checkpoint(player_bytes(current, about), tensors, games, state)
        save_checkpoint(self.folder.checkpoints, self.counters.round, checkpoint, self.config)
        keep_newest(self.folder.checkpoints, self.config.keep_checkpoints)

    def averaged_player(self) -> Any:
        """A player of its own with the averaged weights."""
        player = player_of(self.learner.network)
        update_player(player, self.learner.average)
        return player

    def quality(self, player: Any) -> dict[str, list[float | None]]:
        """How good the model of a player is, by the steps it imagines; nothing where it imagines none."""
        measure = variant_of(self.config).quality
        with self.quiet():
            return {} if measure is None else measure(player, self.replay)

    def refresh_player(self, weights: dict[str, torch.Tensor]) -> None:
        """Gives the player of self-play these weights."""
        update_player(self.player, weights)
        if self.device.type == "cuda":
            # Searches run on streams of their own, which do not wait for this one.
            torch.cuda.current_stream(self.device).synchronize()
        if hasattr(self.evaluator, "version"):
            self.evaluator.version += 1

    def play_move(self, version: int) -> list[GameRecord]:
        """One move in every game; what goes wrong says where."""
        try:
            with memory_complaints("self-play", "self_play.games_at_once"):
                finished = self.self_play.move(version)
        except (EvaluationError, GameContractError) as error:
            # The network may only have been shown nonsense.
            refuse_observations([game.state for game in self.self_play.games], self.spec)
            if isinstance(error, GameContractError):
                raise
            raise TrainingError(
                f"self-play stopped at step {version}, after {self.self_play.moves_played} moves: {error}; "
                "nothing of this batch was stored"
            ) from error
        self._tell_endless(finished)
        return finished

    def _tell_endless(self, finished: list[GameRecord]) -> None:
        """Tells, once, of games that do not end: what is learned from are games that have ended."""
        if finished or "endless" in self._is_told:
            self._is_told.add("endless")
            return
        self._moves_without_end += 1
        if self._moves_without_end >= LONG:
            self._is_told.add("endless")
            most = self.config.self_play.max_moves
            self.tell(
                f"no game of {self.spec.name} has ended in {LONG:,} moves, and nothing is learned before one does: "
                f"self_play.max_moves = {LONG // 3} would break them off there (it is {most:,})"
            )

    def take_games(self, finished: list[GameRecord]) -> list[GameRecord]:
        """Stores finished games and learns from them later; those that count from now on."""
        counting = self.store.append(finished)
        self._take(counting)
        return counting

    def _take(self, games: list[GameRecord]) -> None:
        added = self.replay.add(games)
        self._tell_support()
        self.counters.games = self.store.counted
        self.counters.positions += added
        self.counters.owed += added * self.config.learner.passes / self.config.learner.batch_size

    def _tell_support(self) -> None:
        """Tells, once, of numbers that the network cannot say."""
        support, largest = self.config.muzero.support, getattr(self.replay, "largest", 0.0)
        if not support or "support" in self._is_told:
            return
        reach = self.learner.network.categories.largest
        if largest > reach * (1.0 + 1e-6):
            self._is_told.add("support")
            self.tell(
                f"muzero.support = {support} reaches to {reach:,.5g}, and there are rewards or values of "
                f"{largest:,.5g}, which are learned as {reach:,.5g}: begin another training with "
                f"muzero.support = {support_for(largest)} or more, or make rewards smaller"
            )

    def can_learn(self) -> bool:
        """Whether a step of learning is due."""
        return self.counters.owed >= 1.0 and len(self.replay) >= self.config.replay.learned_first

    def learn_step(self, progress: float) -> dict[str, torch.Tensor]:
        """One step of learning."""
        with memory_complaints("learning", "learner.batch_size"):
            losses = self.learner.learn_from(self.replay, progress)
        self.counters.step = self.learner.step
        self.counters.owed -= 1.0
        return losses


def made_for(before: Config, now: Config) -> Iterator[tuple[str, Any, Any]]:
    """(setting, what it was, what it is) of all that weights are made for."""
    if "muzero" in (before.algorithm, now.algorithm):  # the other two have the same network
        yield "algorithm", before.algorithm, now.algorithm
    for name in field_names(NetworkConfig):
        yield f"network.{name}", getattr(before.network, name), getattr(now.network, name)
    if now.algorithm == "muzero":
        for name in ("support", "dynamics_blocks"):
            yield f"muzero.{name}", getattr(before.muzero, name), getattr(now.muzero, name)
        old, new = before.muzero.consistency, now.muzero.consistency
        if (old > 0.0) != (new > 0.0):  # without it there are no layers to compare by
            yield "muzero.consistency", old, new
