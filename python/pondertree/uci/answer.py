"""The one `bestmove` of a `go`, whoever gives it: the search, or a guard where the search is not back in time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from pondertree.uci.voice import Voice


class Answer:
    """Given once. `in_place` says what to answer where the search does not."""

    def __init__(self, voice: Voice, in_place: Callable[[], Sequence[str]]) -> None:
        self._voice = voice
        self._in_place = in_place
        self._lock = threading.Lock()
        self._guards: list[threading.Timer] = []
        self.given = threading.Event()

    def report(self, lines: Sequence[str]) -> None:
        """Something said on the way; nothing comes after the answer."""
        with self._lock:
            if not self.given.is_set():
                self._voice.say(lines)

    def give(self, lines: Sequence[str]) -> None:
        """The answer, with what stands before it, unless there has been one."""
        with self._lock:
            if self.given.is_set():
                return
            self._voice.say(lines)
            self.given.set()
            for guard in self._guards:
                guard.cancel()

    def guard(self, when: float) -> None:
        """Answers at `when`, by `time.perf_counter`, if nobody has by then; not if the system has no thread left."""
        guard = threading.Timer(max(when - time.perf_counter(), 0.0), self._stand_in)
        guard.daemon = True
        with self._lock:
            if self.given.is_set():
                return
            self._guards.append(guard)
        with contextlib.suppress(RuntimeError):
            guard.start()

    def _stand_in(self) -> None:
        if not self.given.is_set():
            self.give(self._in_place())
