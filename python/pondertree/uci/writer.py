"""What the engine says: whole lines, one after another, whoever speaks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence


class Voice:
    """Writes lines for several threads. When nobody listens any more, `closed` is called, and all else is silence."""

    def __init__(self, write: Callable[[str], object], closed: Callable[[], object] = lambda: None) -> None:
        self._write = write
        self._closed = closed
        self._lock = threading.Lock()
        self.is_closed = False

    def say(self, lines: Iterable[str]) -> None:
        """Lines that stand together; nobody speaks in between."""
        text = "".join(f"{line}\n" for line in lines)
        with self._lock:
            if self.is_closed or not text:
                return
            try:
                self._write(text)
            except (OSError, ValueError):  # the pipe is broken, or the stream closed
                self.is_closed = True
        if self.is_closed:
            self._closed()

    def tell(self, text: str) -> None:
        """A remark for people: one line, whatever is in it."""
        self.say([f"info string {' '.join(text.split())}"])


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
