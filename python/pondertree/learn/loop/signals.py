"""Interrupts that wait for a critical section, and interrupts that are not lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defers Ctrl-C and SIGTERM until exit, where their handlers run; only the main thread is interrupted by them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers: dict[int, Any] = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(signal.getsignal(number))
    }
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: received.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Gives a function that raises `KeyboardInterrupt` if one was raised before: Python discards it in finalizers."""
    was_interrupted = False

    def interrupt(number: int, _: object) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        raise KeyboardInterrupt

    def check() -> None:
        if was_interrupted:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    replaced = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main and signal.getsignal(number) is signal.default_int_handler
    ]
    try:
        for number in replaced:
            signal.signal(number, interrupt)
        yield check
    finally:
        for number in replaced:
            signal.signal(number, signal.default_int_handler)
