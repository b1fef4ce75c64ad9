"""Scheduling of self-play (actor) and optimisation (learner): alternating, or concurrent in two threads.

`run_synchronously` plays some moves, then runs the optimiser steps due for the new positions. It depends on no clock,
so that a run interrupted anywhere resumes bit for bit (on one CPU). `run_concurrently` plays in a thread of its own, to
keep a GPU busy. Back-pressure works both ways: the learner waits when all positions have been sampled often enough,
the actor when the learner is far behind.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from pondertree.gpu.cuda_graph import own_stream
from pondertree.learn.data import GameRecord
from pondertree.learn.loop.session import Limits, Session

#: Called after a round, with the games added since and the losses of the last step.
AfterRound = Callable[[list[GameRecord], dict[str, torch.Tensor]], None]

#: Concurrent runs: seconds between shards, seconds between weight updates of the actor, and the largest backlog
#: of the learner, in rounds of optimiser steps.
STORE_SECONDS = 1.0
PUBLISH_SECONDS = 1.0
MAX_OWED = 4.0


def run_synchronously(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Alternates self-play and optimisation until a limit is reached."""
    counters = session.counters
    losses: dict[str, torch.Tensor] = {}
    games: list[GameRecord] = []
    reported_step = counters.step
    while not limits.reached:
        if session.can_learn():
            losses = session.learn_step(limits.progress)
            if session.can_learn():
                continue
            session.refresh_player(session.learner.average)
        else:
            finished: list[GameRecord] = []
            for _ in range(session.config.cycle_moves):
                # Within a cycle only the clock can reach a limit: without minutes, every cycle is a whole one.
                if limits.progress >= 1.0:
                    break
                finished += session.play_move(counters.step)
            games = session.take_games(finished)
            counters.round += 1
            if session.can_learn():
                continue
        after_round(games, losses)
        games = []
        reported_step = counters.step
    if games or counters.step > reported_step:
        after_round(games, losses)


def run_concurrently(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Plays in another thread and optimises in this one until a limit is reached."""
    finished: list[GameRecord] = []
    actor = ActorThread(session)
    try:
        with actor:
            _learn_concurrently(session, limits, after_round, actor, finished)
    except KeyboardInterrupt:
        session.take_games([*finished, *actor.finished(wait=False)])
        raise
    session.take_games([*finished, *actor.finished(wait=False)])


def _learn_concurrently(
    session: Session, limits: Limits, after_round: AfterRound, actor: ActorThread, finished: list[GameRecord]
) -> None:
    """Runs the learner; `finished` collects games until they are stored."""
    counters = session.counters
    moves_per_round = session.config.self_play.games_at_once * session.config.cycle_moves
    most_owed = MAX_OWED * moves_per_round * session.config.learner.passes / session.config.learner.batch_size
    losses: dict[str, torch.Tensor] = {}

    @contextmanager
    def pause_self_play() -> Iterator[None]:
        with actor.between_moves():
            # Finished games are no longer in the actor's state: they are stored before a checkpoint is saved.
            session.take_games([*finished, *actor.finished(wait=False)])
            finished.clear()
            yield

    session.pause_self_play = pause_self_play
    stored = published = time.monotonic()
    while not limits.reached:
        finished += actor.finished(wait=not session.can_learn())
        now = time.monotonic()
        committed: list[GameRecord] = []
        if finished and now - stored >= STORE_SECONDS:
            committed, stored = session.take_games(finished), now
            finished.clear()
            counters.round += 1
        if session.can_learn():
            losses = session.learn_step(limits.progress)
        if now - published >= PUBLISH_SECONDS and losses:
            actor.publish(session.learner.average, counters.step)
            published = now
        actor.may_play(counters.owed <= most_owed)
        if committed:
            after_round(committed, losses)


class ActorThread:
    """Runs self-play in a thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._games: queue.SimpleQueue[list[GameRecord] | BaseException] = queue.SimpleQueue()
        self._between = threading.Lock()
        self._may_play = threading.Event()
        self._stopped = threading.Event()
        self._version = session.counters.step
        self._published: tuple[dict[str, torch.Tensor], int, Any] | None = None
        self._may_play.set()
        self._thread = threading.Thread(target=self._run, name="self-play", daemon=True)

    def __enter__(self) -> ActorThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._may_play.set()
        self._thread.join()

    def finished(self, wait: bool) -> list[GameRecord]:
        """Returns the games finished since the last call; `wait` blocks briefly until there are some."""
        found: list[GameRecord] = []
        try:
            given = self._games.get(timeout=0.05) if wait else self._games.get_nowait()
            while True:
                if isinstance(given, BaseException):
                    raise given
                found += given
                given = self._games.get_nowait()
        except queue.Empty:
            return found

    def publish(self, weights: dict[str, torch.Tensor], version: int) -> None:
        """Publishes new weights, which the actor loads before its next move."""
        copy = {name: tensor.clone() for name, tensor in weights.items()}
        # The actor's stream must not read the copy before this one has written it.
        written = torch.cuda.Event() if self._session.device.type == "cuda" else None
        if written is not None:
            written.record()
        self._published = copy, version, written

    def may_play(self, allowed: bool) -> None:
        """Resumes or pauses self-play."""
        self._may_play.set() if allowed else self._may_play.clear()

    @contextmanager
    def between_moves(self) -> Iterator[None]:
        """Pauses self-play between moves, so that unfinished games can be saved."""
        # Clears the event first: a lock that one thread re-acquires at once may starve the other.
        self.may_play(False)
        with self._between:
            yield
        self.may_play(True)

    def _run(self) -> None:
        device = self._session.device
        stream = torch.cuda.stream(own_stream(self, device)) if device.type == "cuda" else nullcontext()
        try:
            with stream:
                while not self._stopped.is_set():
                    self._may_play.wait()
                    with self._between:
                        self._take_weights()
                        ended = self._session.play_move(self._version)
                        # Queued before the lock is released: a checkpoint must not fall in between.
                        if ended:
                            self._games.put(ended)
        except BaseException as error:
            self._games.put(error)

    def _take_weights(self) -> None:
        published, self._published = self._published, None
        if published is None:
            return
        weights, self._version, written = published
        if written is not None:
            torch.cuda.current_stream(self._session.device).wait_event(written)
        self._session.refresh_player(weights)
