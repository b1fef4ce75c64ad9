"""CUDA graphs: the kernels of a network are captured once and launched as one, which speeds up small batches most.

This module imports PyTorch; import it only where a backend of PyTorch exists.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from pondertree.gpu.protocol import SUPPORTED, Support, UnsupportedOutput

_CAPTURE_LOCK = threading.Lock()
#: Streams in PyTorch's pool, which it hands out round-robin.
STREAMS = 32
_STREAM_LOCK = threading.Lock()
_OWNERS: Counter[int] = Counter()
_RELEASED: deque[int] = deque()


def host_buffer(rows: int, columns: int, dtype: Any, device: Any) -> tuple[Any, NDArray[Any]]:
    """Host memory, pinned if the device is CUDA, as a tensor and as an array of the same bytes."""
    array = np.zeros((rows, columns), dtype=dtype)
    # Torch has few operations for uint64, and none is needed.
    tensor = torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)
    if device.type == "cuda" and array.nbytes:
        tensor = torch.empty_like(tensor, pin_memory=True).zero_()
        array = tensor.numpy().view(array.dtype)
    return tensor, array


def require_supported(outputs: Iterable[Any], device: Any) -> None:
    """Raises `UnsupportedOutput` unless these are tensors on `device` of at most 32 bits: kernels read their memory."""
    for output in outputs:
        if not isinstance(output, torch.Tensor) or output.dtype == torch.float64 or output.is_complex():
            raise UnsupportedOutput("a network's outputs must be real tensors of at most 32 bits")
        if output.device != device:
            raise UnsupportedOutput("a network's outputs must be on its device")


#: Identifies a variant of the work: a number of rows, for example.
Key = TypeVar("Key", bound=Hashable)


class GraphCache(Generic[Key]):
    """Work on a stream of its own, with one captured graph per variant.

    The first launch of a variant runs eagerly, whereby libraries choose their kernels; the second captures it. Work
    that cannot be captured runs eagerly ever after. Graphs hold addresses: whatever moves a tensor that the work reads
    or writes must call `clear`.
    """

    def __init__(self, device: Any, work: Callable[[Key], None], prepare: Callable[[], Any]) -> None:
        """`work` is called for one variant, within the context manager that `prepare()` returns."""
        self._device = device
        self._prepare = prepare
        self._work = work
        self._seen: set[Key] = set()
        self._graphs: dict[Key, Any] = {}
        self._pool: tuple[Any, ...] = ()
        self._captures = device.type == "cuda"
        if self._captures:
            # The work of two caches may overlap.
            self._stream = own_stream(self, device)
            self._done = torch.cuda.Event()

    def launch(self, key: Key) -> Support:
        """Launches a variant; not ok if its work raises `UnsupportedOutput`, which only an eager run does."""
        try:
            self._launch(key)
        except UnsupportedOutput as error:
            return Support(False, str(error))
        return SUPPORTED

    def follow(self) -> None:
        """Makes later work wait for what this thread has queued on the current stream: new weights, for example."""
        if self._device.type == "cuda":
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def drain(self) -> None:
        """Blocks until the stream is empty, even if a launch has failed."""
        if self._device.type == "cuda":
            with contextlib.suppress(RuntimeError):
                self._stream.synchronize()

    def wait(self) -> None:
        """Blocks until the last launch is complete."""
        if self._device.type == "cuda":
            self._done.synchronize()

    def clear(self) -> None:
        """Drops all graphs: a tensor that they read or write has moved."""
        self._graphs.clear()
        self._seen.clear()

    def _launch(self, key: Key) -> None:
        if self._device.type != "cuda":
            with self._prepare():
                self._work(key)
            return
        graph = self._graphs.get(key)
        with torch.cuda.stream(self._stream):
            if graph is None and self._captures and key in self._seen:
                with self._prepare():
                    graph = self._capture(key)
            if graph is not None:
                graph.replay()
            else:
                with self._prepare(), fast_kernels():
                    self._work(key)
                self._seen.add(key)
            self._done.record(self._stream)

    def _capture(self, key: Key) -> Any:
        try:
            graph = capture(self._stream, lambda: self._work(key), self._pool)
        except RuntimeError:
            # Networks that read values on the host cannot be captured.
            self._captures = False
            torch.cuda.synchronize(self._device)
            return None
        self._pool = (graph.pool(),)
        self._graphs[key] = graph
        return graph


def own_stream(owner: object, device: Any) -> Any:
    """A stream that no other owner uses while `owner` lives, as long as the pool has enough streams.

    Work that another thread queues on a stream in capture would become part of the graph.
    """
    with _STREAM_LOCK:
        while _RELEASED:
            _OWNERS[_RELEASED.popleft()] -= 1
        streams = [torch.cuda.Stream(device) for _ in range(STREAMS)]
        stream = min(streams, key=lambda stream: _OWNERS[stream.cuda_stream])
        _OWNERS[stream.cuda_stream] += 1
    # The garbage collector may run the finalizer at any moment, so it takes no lock.
    weakref.finalize(owner, _RELEASED.append, stream.cuda_stream)
    return stream


def capture(stream: Any, work: Callable[[], object], pool: tuple[Any, ...] = ()) -> Any:
    """Captures work on the current stream, `stream`, as a graph; `pool` holds the memory pool of graphs it shares.

    Captures are serialised across threads, without garbage collection meanwhile: destroying a graph on the thread that
    captures another one invalidates the capture.
    """
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with _CAPTURE_LOCK:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            # Other threads may use the device meanwhile: a learner next to self-play, for example.
            graph.capture_begin(*pool, capture_error_mode="thread_local")
            try:
                with fast_kernels():
                    work()
            finally:
                graph.capture_end()
        finally:
            if was_enabled:
                gc.enable()
    return graph


@contextlib.contextmanager
def fast_kernels() -> Iterator[None]:
    """Enables cuDNN's benchmark mode, which pays off since there are few shapes; restores the setting afterwards."""
    backend = torch.backends.cudnn
    before, backend.benchmark = backend.benchmark, True
    try:
        yield
    finally:
        backend.benchmark = before
