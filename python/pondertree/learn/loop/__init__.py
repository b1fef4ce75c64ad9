"""The training loop: `train`, the session it drives, actor and learner in turn or concurrently, limits, devices."""
