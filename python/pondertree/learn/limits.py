"""How far a training goes, and how far it has come."""

from __future__ import annotations

import time

from pondertree.learn.config import Config
from pondertree.learn.session import Counters


class Limits:
    """Minutes, games and steps: the first that is reached ends the training."""

    def __init__(self, config: Config, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self._before = counters.elapsed
        self._begun = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before it was taken up again included."""
        return self._before + time.monotonic() - self._begun

    @property
    def progress(self) -> float:
        """From 0 to 1. Minutes are looked at only where they are a limit: the rest of a training is free of clocks."""
        config, counters = self._config, self._counters
        shares = [0.0]
        if config.minutes is not None:
            shares.append(self.elapsed / (60.0 * config.minutes))
        if config.games is not None:
            shares.append(counters.games / config.games)
        if config.steps is not None:
            shares.append(counters.step / config.steps)
        return min(max(shares), 1.0)

    @property
    def reached(self) -> bool:
        """Whether it is over."""
        return self.progress >= 1.0

    @property
    def seconds_left(self) -> float | None:
        """About how long it will go on; None where nothing is known yet."""
        progress = self.progress
        return None if progress <= 0.0 else self.elapsed * (1.0 - progress) / progress
