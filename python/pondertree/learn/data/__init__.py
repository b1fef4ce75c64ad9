"""Training data: game records and shards, replay buffers, targets, checkpoints, the run folder. Imports no PyTorch."""

from pondertree.learn.data.checkpoint import (
    CONFIG,
    Checkpoint,
    Counters,
    keep_newest,
    newest_intact,
    save_checkpoint,
)
from pondertree.learn.data.journal import Arrival, Origin, ShardJournal, elapsed_at, read_order
from pondertree.learn.data.observations import observation_bytes, packed_widths, refuse_observations
from pondertree.learn.data.outcomes import MOVE_OUTCOMES, OPENING_OUTCOMES, draw_outcomes, replay_line, reward_of
from pondertree.learn.data.policy_targets import LegalActions, pruned_policy
from pondertree.learn.data.records import GameRecord, check_games
from pondertree.learn.data.replay import ReplayBuffer, TrainingBatch
from pondertree.learn.data.run_folder import RunFolder, stored_config
from pondertree.learn.data.shards import EncodedGames, GameStore, encode_games, list_shards, read_shard
from pondertree.learn.data.trajectories import TrajectoryBuffer, UnrolledBatch

__all__ = [
    "Arrival",
    "CONFIG",
    "Checkpoint",
    "Counters",
    "EncodedGames",
    "GameRecord",
    "GameStore",
    "LegalActions",
    "MOVE_OUTCOMES",
    "OPENING_OUTCOMES",
    "Origin",
    "ReplayBuffer",
    "RunFolder",
    "ShardJournal",
    "TrainingBatch",
    "TrajectoryBuffer",
    "UnrolledBatch",
    "check_games",
    "draw_outcomes",
    "elapsed_at",
    "encode_games",
    "keep_newest",
    "list_shards",
    "newest_intact",
    "observation_bytes",
    "packed_widths",
    "pruned_policy",
    "read_order",
    "read_shard",
    "refuse_observations",
    "replay_line",
    "reward_of",
    "save_checkpoint",
    "stored_config",
]
