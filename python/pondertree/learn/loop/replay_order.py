"""Replays the learner of a run from its games and the recorded order of shards."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from pondertree.errors import StorageError
from pondertree.files import check_path
from pondertree.learn.config import Config, game_spec, read_config
from pondertree.learn.data import Counters, RunFolder, list_shards, newest_intact, read_order, read_shard, stored_config
from pondertree.learn.loop.session import fraction_done
from pondertree.learn.trainer import Trainer, algorithm_of


def relearn(out: str | os.PathLike[str], factory: Callable[[], Any] | None = None) -> Trainer:
    """Learns again what a run has learned until its newest checkpoint; returns the trainer.

    The weights are a function of the configuration and of the order in which the learner received the shards, between
    which optimiser steps: that order is recorded in `shards.jsonl`. On a CPU, with as many threads of PyTorch, they
    equal those of the run bit for bit, whatever played the games. Training that changed its configuration cannot be
    replayed. `factory` is that of `train`.
    """
    folder = RunFolder(check_path(out, "out"))
    found = newest_intact(folder.checkpoints)
    path = stored_config(folder.path)
    if found is None or path is None:
        raise StorageError(f"{str(folder.path)!r} has no checkpoint to learn again")
    config = read_config(path, Config())
    spec = game_spec(config.game, factory, model=config.learns_model)
    algorithm = algorithm_of(config)
    trainer, replay = algorithm.trainer(spec, config, torch.device(config.device)), algorithm.replay(spec, config)
    counters, last = Counters(), Counters.of_data(found[1].state["counters"])
    elapsed = 0.0
    shards = list_shards(folder.games)
    if not last.games:
        raise StorageError(f"{str(folder.path)!r} has no game in its newest checkpoint: it has learned nothing yet")
    if not shards or shards[-1].end < last.games:
        stored = shards[-1].end if shards else 0
        raise StorageError(
            f"{str(folder.games)!r} has {stored:,} games, but the checkpoint counts {last.games:,}: shards are missing"
        )

    def learn_until(step: int) -> None:
        while trainer.step < step:
            counters.step = trainer.step
            trainer.learn_from(replay, fraction_done(config, counters, lambda: elapsed))

    arrivals = {arrival.first: arrival for arrival in read_order(folder.journal)}
    for shard in shards:
        if shard.first >= last.games:
            break
        arrival = arrivals.get(shard.first)
        if arrival is None or arrival.count != shard.count:
            raise StorageError(f"{str(folder.journal)!r} has no line for {shard.path.name}")
        learn_until(arrival.origin.step)
        elapsed = arrival.origin.elapsed
        replay.add(read_shard(shard, spec))
        counters.games = shard.end
    learn_until(last.step)
    return trainer
