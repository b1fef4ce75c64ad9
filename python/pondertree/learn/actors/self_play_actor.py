"""The self-play actor: a copy of the network, and games that it plays in batches. It runs in any process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from pondertree.errors import EvaluationError, GameContractError, StorageError, TrainingError
from pondertree.gpu.cuda_graph import own_stream
from pondertree.learn.actors.messages import ActorSetup, ActorState, Shard, Task, lease_of
from pondertree.learn.config import GameSpec, game_spec
from pondertree.learn.data import GameRecord, encode_games, refuse_observations
from pondertree.learn.executors import Blob
from pondertree.learn.self_play import SelfPlay
from pondertree.learn.trainer import algorithm_of, empty_player, reported_out_of_memory
from pondertree.networks import player_of_bytes, update_player


@dataclass(frozen=True)
class LiveWeights:
    """Weights in the memory of this process."""

    tensors: dict[str, torch.Tensor]
    """Training weights, whose norms the player folds."""
    written: Any = None
    """The CUDA event after which they may be read on another stream."""


class SelfPlayActor:
    """Plays batches of moves and returns shards of finished games."""

    def __init__(self, setup: ActorSetup, state: ActorState, spec: GameSpec | None = None, player: Any = None) -> None:
        """Continues from `state`; `spec` and `player` are given within the driver's process."""
        self._config = config = setup.config
        self._encode = setup.encode
        if spec is None:
            spec = game_spec(config.game, setup.factory, model=config.learns_model)
        self._spec = spec
        self._device = torch.device(setup.device)
        self.player = empty_player(spec, config, self._device) if player is None else player
        if config.learner.reduced_precision and self._device.type == "cuda":
            self.player.to(torch.bfloat16)
        self._evaluator = algorithm_of(config).evaluator(self.player)
        self.self_play = SelfPlay(spec, config, self._evaluator)
        self._version = -1
        self.cut = threading.Event()
        """Set by the driver's thread: the batch ends after the current move."""
        self.heartbeat: Callable[[], None] | None = None
        """Called after each move of all games, where the executor sets it."""
        self._stream: Any = None
        self.self_play.restore(list(state.games), state.self_play)
        self.self_play.begin(frozenset(number for number in setup.known if lease_of(number) == state.lease))

    def state(self) -> ActorState:
        """Returns the state between two batches."""
        return ActorState(*self.self_play.snapshot())

    def play(self, task: Task) -> Shard:
        """Plays the moves of a task and returns the games that ended."""
        started, used = time.monotonic(), time.process_time()
        finished: list[GameRecord] = []
        moves = 0
        with self._on_stream():
            self._load(task)
            while (task.moves is None or moves < task.moves) and not self.cut.is_set():
                is_late = task.seconds is not None and time.monotonic() - started >= task.seconds
                # A batch without a number of moves has at least one.
                if is_late and (moves or task.moves is not None):
                    break
                finished += self.play_move(task.version)
                moves += 1
                if self.heartbeat is not None:
                    self.heartbeat()
        lost, self.self_play.lost = self.self_play.lost, 0
        return Shard(
            task.id,
            task.version,
            encode_games(finished) if self._encode else finished,
            len(finished),
            sum(len(game.moves) for game in finished),
            moves,
            time.monotonic() - started,
            time.process_time() - used,
            self.self_play.resignation.false_positive_rate,
            self.state() if task.with_state else None,
            lost=lost,
        )

    def play_move(self, version: int) -> list[GameRecord]:
        """Plays one move in every game; errors state the step and the remedy."""
        try:
            with reported_out_of_memory("self-play", "self_play.games_at_once"):
                return self.self_play.move(version)
        except (EvaluationError, GameContractError) as error:
            # The cause may be an invalid observation of the game.
            refuse_observations([game.state for game in self.self_play.games], self._spec)
            if isinstance(error, GameContractError):
                raise
            raise TrainingError(
                f"self-play stopped at step {version}, after {self.self_play.moves_played} moves: {error}; "
                "nothing of this batch was stored"
            ) from error

    def close(self) -> None:
        """Shuts down the worker threads."""
        self.self_play.close()

    def _on_stream(self) -> AbstractContextManager[Any]:
        """Returns a context with a CUDA stream of its own, where the driver computes on the same device."""
        if self._device.type != "cuda" or threading.current_thread() is threading.main_thread():
            return nullcontext()
        if self._stream is None:
            self._stream = own_stream(self, self._device)
        context: AbstractContextManager[Any] = torch.cuda.stream(self._stream)
        return context

    def _load(self, task: Task) -> None:
        """Loads the weights of a task unless the player has them."""
        if task.version == self._version:
            return
        weights = task.weights.get()
        if isinstance(weights, LiveWeights):
            if weights.written is not None:
                torch.cuda.current_stream(self._device).wait_event(weights.written)
            self.load(weights.tensors)
        else:
            self._load_file(weights, task.version)
        if self._device.type == "cuda":
            # Searches run on other streams, which do not wait for this one.
            torch.cuda.current_stream(self._device).synchronize()
        if hasattr(self._evaluator, "version"):
            self._evaluator.version += 1
        self._version = task.version

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Copies training weights into the player."""
        update_player(self.player, tensors)

    def _load_file(self, content: bytes, version: int) -> None:
        """Copies the weights of a player file into the player."""
        try:
            found, _ = player_of_bytes(content)
        except StorageError as error:
            raise TrainingError(f"the weights of step {version} are unusable: {error}") from None
        if found.architecture != self.player.architecture:
            raise TrainingError(
                f"the weights of step {version} do not fit the network of this actor: they are of "
                f"{found.architecture}, but the configuration describes {self.player.architecture}"
            )
        self.player.load_state_dict(found.state_dict())


def make_self_play_actor(setup: ActorSetup, state: Blob) -> SelfPlayActor:
    """Makes the actor of another process."""
    prepare_process(setup)
    return SelfPlayActor(setup, state.get())


def prepare_process(setup: ActorSetup) -> None:
    """Sets up a process for an actor: its threads, and modules that the driver can import."""
    torch.set_num_threads(setup.threads)
    sys.path += [path for path in setup.paths if path not in sys.path]
