"""Steps of learning on a GPU, recorded once and launched as one.

A step is some hundred small kernels. Launched one by one they take longer than they run, and hold the interpreter's
lock, which self-play beside them waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray

from pondertree.gpu.cuda_graph import fast_kernels, own_stream, recording

#: What a step does with its inputs: named numbers, still on the device.
Work = Callable[[Sequence[torch.Tensor]], dict[str, torch.Tensor]]
#: Steps with inputs of the same shapes that are done kernel by kernel before one is recorded.
UNRECORDED = 2


class Steps:
    """A step that is done again and again, with inputs of few different shapes."""

    def __init__(self, device: torch.device, work: Work, *, captured: bool) -> None:
        """On a CPU, or if it is not to be `captured`, `work` is done as it is."""
        self._device = device
        self._work = work
        self._captured = captured and device.type == "cuda"
        self._shapes: dict[tuple[Any, ...], _Recorded] = {}
        if self._captured:
            self._stream = own_stream(self, device)

    def __call__(self, arrays: Sequence[NDArray[Any]]) -> dict[str, torch.Tensor]:
        """Does it with these inputs. What it gives is overwritten by the next step of the same shapes."""
        tensors = [torch.from_numpy(array) for array in arrays]
        if self._device.type != "cuda":
            return self._work(tensors)
        tensors = [tensor.pin_memory() for tensor in tensors]
        if not self._captured:
            return self._work([tensor.to(self._device, non_blocking=True) for tensor in tensors])
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        recorded = self._shapes.get(shapes)
        if recorded is None:
            recorded = self._shapes[shapes] = _Recorded(
                [torch.empty_like(tensor, device=self._device) for tensor in tensors], self._work
            )
        # Whoever copies weights does so on the current stream: before this step, and after it.
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for place, tensor in zip(recorded.inputs, tensors, strict=True):
                place.copy_(tensor, non_blocking=True)
            outputs = recorded.step(self._stream)
        current.wait_stream(self._stream)
        return outputs


class _Recorded:
    """The step for inputs of certain shapes."""

    def __init__(self, inputs: list[torch.Tensor], work: Work) -> None:
        self.inputs = inputs
        self._work = work
        self._done = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._outputs: dict[str, torch.Tensor] = {}

    def step(self, stream: torch.cuda.Stream) -> dict[str, torch.Tensor]:
        if self._graph is None and self._done < UNRECORDED:
            self._done += 1
            with fast_kernels():
                return self._work(self.inputs)
        if self._graph is None:
            self._graph = self._record(stream)
        self._graph.replay()
        return self._outputs

    def _record(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with recording():
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                with fast_kernels():
                    self._outputs = self._work(self.inputs)
            finally:
                graph.capture_end()
        return graph
