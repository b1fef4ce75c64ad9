"""Training data: game records and shards, replay buffers, targets, checkpoints, the run folder."""
