"""Thread-safe output of the engine: whole lines, and a reply that is sent exactly once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence


class LineWriter:
    """Writes lines from several threads. Once the stream is closed, calls `closed` and discards all output."""

    def __init__(self, write: Callable[[str], object], closed: Callable[[], object] = lambda: None) -> None:
        self._write = write
        self._closed = closed
        self._lock = threading.Lock()
        self.is_closed = False

    def write(self, lines: Iterable[str]) -> None:
        """Writes lines as one block."""
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

    def info_string(self, text: str) -> None:
        """Writes an `info string`, folded into one line."""
        self.write([f"info string {' '.join(text.split())}"])


class Reply:
    """The reply to one `go`. `fallback` returns its lines if the search does not."""

    def __init__(self, writer: LineWriter, fallback: Callable[[], Sequence[str]]) -> None:
        self._writer = writer
        self._fallback = fallback
        self._lock = threading.Lock()
        self._timers: list[threading.Timer] = []
        self.sent = threading.Event()

    def report(self, lines: Sequence[str]) -> None:
        """Writes lines before the reply; does nothing after it."""
        with self._lock:
            if not self.sent.is_set():
                self._writer.write(lines)

    def send(self, lines: Sequence[str]) -> None:
        """Sends the reply unless it was sent before."""
        with self._lock:
            if self.sent.is_set():
                return
            self._writer.write(lines)
            self.sent.set()
            for timer in self._timers:
                timer.cancel()

    def send_at(self, deadline: float) -> None:
        """Sends the fallback at `deadline`, by `time.perf_counter`, unless the system has no thread left."""
        timer = threading.Timer(max(deadline - time.perf_counter(), 0.0), self._send_fallback)
        timer.daemon = True
        with self._lock:
            if self.sent.is_set():
                return
            self._timers.append(timer)
        with contextlib.suppress(RuntimeError):
            timer.start()

    def _send_fallback(self) -> None:
        if not self.sent.is_set():
            self.send(self._fallback())
