"""How playing and learning share a machine: one after the other, or side by side.

`alternate` plays some moves, learns as many steps as the new positions are worth, and plays again. Nothing in it
depends on time, so a training that is stopped anywhere and taken up again goes the same way to the last bit (on one
CPU). `side_by_side` plays in a thread while this one learns, so that a GPU is busy with both. Neither starves:
learning waits when all positions have been learned from often enough, playing waits when learning is far behind.
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
from pondertree.learn.data.records import GameRecord
from pondertree.learn.loop.limits import Limits
from pondertree.learn.loop.session import Session

#: Called when a round is over, with the games that count since and the losses of its last step.
AfterRound = Callable[[list[GameRecord], dict[str, torch.Tensor]], None]

#: Side by side: seconds between two shards, seconds between two deliveries of weights, and rounds' worth of steps that
#: learning may be behind.
STORE_SECONDS = 1.0
PUBLISH_SECONDS = 1.0
MOST_OWED = 4.0


def alternate(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Plays and learns in turns until a limit is reached."""
    counters = session.counters
    losses: dict[str, torch.Tensor] = {}
    games: list[GameRecord] = []
    told = counters.step
    while not limits.reached:
        if session.can_learn():
            losses = session.learn_step(limits.progress)
            if session.can_learn():
                continue
            session.refresh_player(session.learner.average)
        else:
            finished: list[GameRecord] = []
            for _ in range(session.config.cycle_moves):
                finished += session.play_move(counters.step)
            games = session.take_games(finished)
            counters.round += 1
            if session.can_learn():
                continue
        after_round(games, losses)
        games = []
        told = counters.step
    if games or counters.step > told:
        after_round(games, losses)


def side_by_side(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Plays in another thread and learns in this one until a limit is reached."""
    finished: list[GameRecord] = []
    playing = Playing(session)
    try:
        with playing:
            _learn_beside(session, limits, after_round, playing, finished)
    except KeyboardInterrupt:
        session.take_games([*finished, *playing.finished(wait=False)])
        raise
    session.take_games([*finished, *playing.finished(wait=False)])


def _learn_beside(
    session: Session, limits: Limits, after_round: AfterRound, playing: Playing, finished: list[GameRecord]
) -> None:
    """Learns from what is played meanwhile; `finished` games wait there until they are stored."""
    counters = session.counters
    worth = session.config.self_play.games_at_once * session.config.cycle_moves
    most_owed = MOST_OWED * worth * session.config.learner.passes / session.config.learner.batch_size
    losses: dict[str, torch.Tensor] = {}

    @contextmanager
    def quiet() -> Iterator[None]:
        with playing.between_moves():
            # What has ended is no longer under way: it is stored before anything is saved.
            session.take_games([*finished, *playing.finished(wait=False)])
            finished.clear()
            yield

    session.quiet = quiet
    stored = published = time.monotonic()
    while not limits.reached:
        finished += playing.finished(wait=not session.can_learn())
        now = time.monotonic()
        counting: list[GameRecord] = []
        if finished and now - stored >= STORE_SECONDS:
            counting, stored = session.take_games(finished), now
            finished.clear()
            counters.round += 1
        if session.can_learn():
            losses = session.learn_step(limits.progress)
        if now - published >= PUBLISH_SECONDS and losses:
            playing.publish(session.learner.average, counters.step)
            published = now
        playing.may_play(counters.owed <= most_owed)
        if counting:
            after_round(counting, losses)


class Playing:
    """Self-play in a thread of its own."""

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

    def __enter__(self) -> Playing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._may_play.set()
        self._thread.join()

    def finished(self, wait: bool) -> list[GameRecord]:
        """Games that ended since; with `wait`, for a moment until there are some."""
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
        """Offers new weights; they are taken before the next move."""
        copy = {name: tensor.clone() for name, tensor in weights.items()}
        # The other thread has a stream of its own, which must not read what this one has not yet written.
        written = torch.cuda.Event() if self._session.device.type == "cuda" else None
        if written is not None:
            written.record()
        self._published = copy, version, written

    def may_play(self, allowed: bool) -> None:
        """Lets it play on, or wait for the learner."""
        self._may_play.set() if allowed else self._may_play.clear()

    @contextmanager
    def between_moves(self) -> Iterator[None]:
        """While entered, no move is being played: the games under way can be saved."""
        # Asked to wait first: a lock that one thread takes again at once may never be had by another.
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
                        # Handed over before the lock is let go: a checkpoint must not fall between the two.
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
