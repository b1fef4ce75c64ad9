"""Limits of a training run: minutes, games and optimiser steps."""

from __future__ import annotations

import time

from pondertree.learn.config.schema import Config
from pondertree.learn.data.checkpoint import Counters


class Limits:
    """Ends a run at the first limit reached: minutes, games or steps."""

    def __init__(self, config: Config, counters: Counters) -> None:
        self._config = config
        self._counters = counters
        self._elapsed_before = counters.elapsed
        self._started = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of training, including those before the run was resumed."""
        return self._elapsed_before + time.monotonic() - self._started

    @property
    def progress(self) -> float:
        """The fraction done, from 0 to 1. Reads the clock only if minutes are a limit, for reproducible runs."""
        config, counters = self._config, self._counters
        fractions = [0.0]
        if config.minutes is not None:
            fractions.append(self.elapsed / (60.0 * config.minutes))
        if config.games is not None:
            fractions.append(counters.games / config.games)
        if config.steps is not None:
            fractions.append(counters.step / config.steps)
        return min(max(fractions), 1.0)

    @property
    def reached(self) -> bool:
        """Whether a limit is reached."""
        return self.progress >= 1.0

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining seconds; None before any progress."""
        progress = self.progress
        return None if progress <= 0.0 else self.elapsed * (1.0 - progress) / progress
