"""Games on disk and in memory: records, shards, replay, checkpoints, the run folder."""
