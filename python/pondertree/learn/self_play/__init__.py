"""Self-play: concurrent games searched in shared batches, resignation, and the searches of each algorithm."""
