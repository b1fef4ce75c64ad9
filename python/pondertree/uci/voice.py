"""What the engine says: whole lines, one after another, whoever speaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


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
