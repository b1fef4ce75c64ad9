"""Training data: game records and shards, replay buffers, targets, checkpoints, the run folder. Imports no PyTorch."""

from pondertree.learn.data.checkpoint import Checkpoint, Counters, load_checkpoint, newest_intact, save_checkpoint
from pondertree.learn.data.records import GameRecord
from pondertree.learn.data.replay import ReplayBuffer
from pondertree.learn.data.run_folder import RunFolder
from pondertree.learn.data.shards import GameStore, list_shards, read_shard, write_shard
from pondertree.learn.data.trajectories import TrajectoryBuffer

__all__ = [
    "Checkpoint",
    "Counters",
    "GameRecord",
    "GameStore",
    "ReplayBuffer",
    "RunFolder",
    "TrajectoryBuffer",
    "list_shards",
    "load_checkpoint",
    "newest_intact",
    "read_shard",
    "save_checkpoint",
    "write_shard",
]
