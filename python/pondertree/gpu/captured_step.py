"""Training steps captured as CUDA graphs.

A step consists of some hundred small kernels. Launched one by one they take longer than they run, and hold the
interpreter lock, for which concurrent self-play waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray

from pondertree.gpu.cuda_graph import capture, fast_kernels, own_stream

#: A step: inputs on the device to named results, which stay there.
Work = Callable[[Sequence[torch.Tensor]], dict[str, torch.Tensor]]
#: Eager steps of each input shape before the capture.
EAGER_STEPS = 2


class GraphedSteps:
    """A training step with one captured graph per combination of input shapes."""

    def __init__(self, device: torch.device, work: Work, *, captured: bool) -> None:
        """Runs `work` eagerly on a CPU, or if not `captured`."""
        self._device = device
        self._work = work
        self._captured = captured and device.type == "cuda"
        self._shapes: dict[tuple[Any, ...], _CapturedStep] = {}
        if self._captured:
            self._stream = own_stream(self, device)

    def __call__(self, arrays: Sequence[NDArray[Any]]) -> dict[str, torch.Tensor]:
        """Runs one step. The next step with the same shapes overwrites its results."""
        tensors = [torch.from_numpy(array) for array in arrays]
        if self._device.type != "cuda":
            return self._work(tensors)
        tensors = [tensor.pin_memory() for tensor in tensors]
        if not self._captured:
            return self._work([tensor.to(self._device, non_blocking=True) for tensor in tensors])
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        captured = self._shapes.get(shapes)
        if captured is None:
            captured = self._shapes[shapes] = _CapturedStep(
                [torch.empty_like(tensor, device=self._device) for tensor in tensors], self._work
            )
        # Copies of the weights are queued on the current stream, before this step and after it.
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for target, tensor in zip(captured.inputs, tensors, strict=True):
                target.copy_(tensor, non_blocking=True)
            outputs = captured.run(self._stream)
        current.wait_stream(self._stream)
        return outputs


class _CapturedStep:
    """The step for inputs of certain shapes."""

    def __init__(self, inputs: list[torch.Tensor], work: Work) -> None:
        self.inputs = inputs
        self._work = work
        self._eager_steps = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._outputs: dict[str, torch.Tensor] = {}

    def run(self, stream: torch.cuda.Stream) -> dict[str, torch.Tensor]:
        if self._graph is None and self._eager_steps < EAGER_STEPS:
            self._eager_steps += 1
            with fast_kernels():
                return self._work(self.inputs)
        if self._graph is None:
            self._graph = capture(stream, self._record)
        self._graph.replay()
        return self._outputs

    def _record(self) -> None:
        self._outputs = self._work(self.inputs)
