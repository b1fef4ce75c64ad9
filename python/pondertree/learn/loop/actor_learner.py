"""Scheduling of self-play (actors) and optimisation (learner): alternating, or concurrent.

`run_synchronously` plays some moves, then runs the optimiser steps due for the new positions. It depends on no clock,
so that a run interrupted anywhere resumes bit for bit (on one CPU), whichever executor plays. `run_concurrently`
optimises while actors play, to keep a GPU or several actors busy. Back-pressure works both ways: the learner waits when
all positions have been sampled often enough, the actors when the learner is far behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from pondertree.learn.data import GameRecord
from pondertree.learn.loop.session import Limits, Session

#: Called after a round, with the games added since and the losses of the last step.
AfterRound = Callable[[list[GameRecord], dict[str, torch.Tensor]], None]

#: Concurrent runs: seconds of a batch of self-play, whose games are a shard, with up to this many actors (with more,
#: batches are longer in proportion, so that shards do not become more); seconds between reports, and between
#: publications of weights; and the largest backlog of the learner, in rounds of optimiser steps.
SHARD_SECONDS, SHARD_ACTORS = 1.0, 16
ROUND_SECONDS = 1.0
PUBLISH_SECONDS = 1.0
MAX_OWED = 4.0


def run_synchronously(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Alternates self-play and optimisation until a limit is reached."""
    counters = session.counters
    session.elapsed = limits.freeze
    losses: dict[str, torch.Tensor] = {}
    games: list[GameRecord] = []
    reported_step = counters.step
    while not limits.reached:
        session.check_interrupts()
        if session.can_learn():
            losses = session.learn_step(limits.learning_progress)
            if session.can_learn():
                continue
            session.publish()
        else:
            # Within a round only the clock can reach a limit: without minutes, every round is a whole one.
            games = session.play_round(limits.seconds_of_clock)
            counters.round += 1
            if session.can_learn():
                continue
        after_round(games, losses)
        games = []
        reported_step = counters.step
    if games or counters.step > reported_step:
        after_round(games, losses)


def run_concurrently(session: Session, limits: Limits, after_round: AfterRound) -> None:
    """Optimises while the actors play until a limit is reached."""

    @contextmanager
    def pause_self_play() -> Iterator[None]:
        # Finished games are no longer in the state of an actor in this process: they are stored before a checkpoint is.
        _take_all(session)
        yield

    session.elapsed = limits.freeze
    session.pause_self_play = pause_self_play
    try:
        _learn_concurrently(session, limits, after_round)
    except KeyboardInterrupt:
        _take_all(session)
        raise
    _take_all(session)


def _take_all(session: Session) -> None:
    session.take(session.actors.drain())


def _learn_concurrently(session: Session, limits: Limits, after_round: AfterRound) -> None:
    counters, config = session.counters, session.config
    moves_per_round = config.self_play.games_at_once * config.cycle_moves * len(session.actors.slots)
    most_owed = MAX_OWED * moves_per_round * config.learner.passes / config.learner.batch_size
    shard_seconds = SHARD_SECONDS * max(1.0, len(session.actors.slots) / SHARD_ACTORS)
    losses: dict[str, torch.Tensor] = {}
    committed: list[GameRecord] = []
    reported = published = time.monotonic()
    while not limits.reached:
        session.check_interrupts()
        committed += session.take(session.actors.poll(shard_seconds, wait=not session.can_learn()))
        if session.can_learn():
            losses = session.learn_step(limits.learning_progress)
        now = time.monotonic()
        if now - published >= PUBLISH_SECONDS and losses:
            session.publish()
            published = now
        # Until the replay buffer has enough positions, the learner waits for the actors, whatever is due.
        session.actors.is_allowed = counters.owed <= most_owed or not session.has_enough()
        if committed and now - reported >= ROUND_SECONDS:
            counters.round += 1
            after_round(committed, losses)
            committed, reported = [], time.monotonic()
