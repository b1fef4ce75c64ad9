"""Captured graphs of CUDA: a network's kernels, recorded once and launched as one, which small batches gain most by.

PyTorch is imported here, and only where it is known to be there.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

_RECORDING = threading.Lock()
#: How many streams PyTorch has; it hands them out in turn, over and over.
STREAMS = 32
_CHOOSING = threading.Lock()
_OWNERS: Counter[int] = Counter()
_LEFT: deque[int] = deque()


def host_buffer(rows: int, columns: int, dtype: Any, device: Any) -> tuple[Any, NDArray[Any]]:
    """Memory of this machine that `device` reads and writes by itself, as a tensor and as an array."""
    array = np.zeros((rows, columns), dtype=dtype)
    # Torch has few operations for unsigned words, and none is needed.
    tensor = torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)
    if device.type == "cuda" and array.nbytes:
        tensor = torch.empty_like(tensor, pin_memory=True).zero_()
        array = tensor.numpy().view(array.dtype)
    return tensor, array


#: What tells pieces of work apart: a number of rows, say.
Work = TypeVar("Work", bound=Hashable)


class Graphs(Generic[Work]):
    """Work on one stream of a device that is done again and again, for several numbers of rows, for example.

    For a new number it is done step by step the first time, whereby libraries choose their kernels, and recorded the
    second time. Work that cannot be recorded is done step by step ever after.
    """

    def __init__(self, device: Any, work: Callable[[Work], None], prepare: Callable[[], Any]) -> None:
        """`work` does it for one such number, within the context of `prepare()`."""
        self._device = device
        self._prepare = prepare
        self._work = work
        self._seen: set[Work] = set()
        self._graphs: dict[Work, Any] = {}
        self._pool: Any = None
        self._captures = device.type == "cuda"
        if self._captures:
            # One stream of its own for each: what two of them do may overlap.
            self._stream = own_stream(self, device)
            self._done = torch.cuda.Event()

    def launch(self, rows: Work) -> None:
        """Begins the work, for so many rows."""
        if self._device.type != "cuda":
            with self._prepare():
                self._work(rows)
            return
        graph = self._graphs.get(rows)
        with torch.cuda.stream(self._stream):
            if graph is None and self._captures and rows in self._seen:
                with self._prepare():
                    graph = self._capture(rows)
            if graph is not None:
                graph.replay()
            else:
                with self._prepare(), fast_kernels():
                    self._work(rows)
                self._seen.add(rows)
            self._done.record(self._stream)

    def follow(self) -> None:
        """Whatever this thread has asked of the device so far comes before all further work: new weights, say."""
        if self._device.type == "cuda":
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def drain(self) -> None:
        """Comes back when its stream is empty, though a launch may have failed."""
        if self._device.type == "cuda":
            with contextlib.suppress(RuntimeError):
                self._stream.synchronize()

    def wait(self) -> None:
        """Comes back when the work is done."""
        if self._device.type == "cuda":
            self._done.synchronize()

    def forget(self) -> None:
        """Drops what was recorded: what it read or wrote has moved."""
        self._graphs.clear()
        self._seen.clear()

    def _capture(self, rows: Work) -> Any:
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with recording():
                # Other threads may use the device meanwhile: a learner beside the search, for example.
                graph.capture_begin(*(() if self._pool is None else (self._pool,)), capture_error_mode="thread_local")
                try:
                    with fast_kernels():
                        self._work(rows)
                finally:
                    graph.capture_end()
        except RuntimeError:
            # Some networks look at their numbers on the way, which cannot be recorded.
            self._captures = False
            torch.cuda.synchronize(self._device)
            return None
        self._pool = graph.pool()
        self._graphs[rows] = graph
        return graph


def own_stream(owner: object, device: Any) -> Any:
    """A stream that nobody else has while `owner` lives, as long as there are enough of them.

    What another thread does on a stream that is being recorded would become part of the recording.
    """
    with _CHOOSING:
        while _LEFT:
            _OWNERS[_LEFT.popleft()] -= 1
        streams = [torch.cuda.Stream(device) for _ in range(STREAMS)]
        stream = min(streams, key=lambda stream: _OWNERS[stream.cuda_stream])
        _OWNERS[stream.cuda_stream] += 1
    # It may be called at any moment, by the collector of garbage too, so it waits for no lock.
    weakref.finalize(owner, _LEFT.append, stream.cuda_stream)
    return stream


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """To be within while a graph is recorded: one thread at a time, and nobody collects garbage meanwhile.

    A graph among the garbage would be dropped on the thread that records, which spoils the recording.
    """
    with _RECORDING:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


@contextlib.contextmanager
def fast_kernels() -> Iterator[None]:
    """Lets convolutions try which of their kernels is fastest for each shape, which are few here; the rest stays."""
    backend = torch.backends.cudnn
    before, backend.benchmark = backend.benchmark, True
    try:
        yield
    finally:
        backend.benchmark = before
