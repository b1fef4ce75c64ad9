"""PyTorch modules as evaluators."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.batch import Packed, take_rows
from pondertree.evaluators.cpu_precision import check_cpu_precision
from pondertree.evaluators.outputs import policy_axes, two_outputs
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.gpu.context import LeaseCache, TorchGameContext
from pondertree.gpu.protocol import SUPPORTED, Job, Mode, RowLayout, Support
from pondertree.gpu.torch_network import all_modules, check_dtype, evaluating, fingerprint_of, number_types, place
from pondertree.optional import require

if TYPE_CHECKING:
    from pondertree.gpu.buffer import TorchBuffer

#: From this many rows on, two halves are computed alternately on an accelerator.
PIPELINE_MIN_ROWS = 1024
#: Buffers cached for later searches.
MAX_BUFFERS = 8
#: Dtypes of observations that the tree-search kernel writes.
KERNEL_DTYPES = ("torch.float32", "torch.bfloat16", "torch.float16")


class Torch:
    """A `torch.nn.Module`: `module(observations [B, ...]) -> (policy_logits [B, num_actions], values [B])`.

    For chess a policy may also be its 73 planes of 8 x 8 squares; values may be `[B, 1]` or `[B, num_players]`, too.

    The module is moved to `device` (default: where its weights are) and used in place, so that weights trained
    meanwhile take effect at once. It is evaluated in eval mode without gradients; its own modes are restored. After a
    change of weights, change `version` if there is a `Cached` wrapper.

    `dtype` "bfloat16" or "float16" (or `torch.bfloat16`) computes under autocast and leaves the weights unchanged; a
    module whose weights have that dtype (`module.to(torch.bfloat16)`) is faster, since nothing is cast, and needs no
    `dtype`. Outputs are returned as float32 (float64 unchanged). On the CPU each of the two is probed in a child
    process first, since not every CPU that advertises them can run them. `batch_size` splits larger batches, which
    saves memory.

    Compiled games use the packed form: bit planes and legal actions are uploaded and unpacked on the device, and only
    the logits of legal actions are downloaded.

    Threads: several searches may evaluate at once if the module is in eval mode. In training mode the modes are
    switched temporarily, so a module that one thread trains must not be evaluated by another: give each its own copy.
    """

    def __init__(
        self,
        module: Any,
        device: Any = None,
        *,
        dtype: Any = None,
        policy: str = "logits",
        batch_size: int | None = None,
    ) -> None:
        torch = require("torch", "torch", "this evaluator")
        if not isinstance(module, torch.nn.Module):
            raise InvalidArgumentError(f"module must be a torch.nn.Module, not a {type(module).__name__}")
        self._dtype = check_dtype(dtype)
        parts = all_modules([module])
        self._input_dtype, self._autocast_dtype = number_types(parts, self._dtype)
        self.device = place([module], parts, device)
        self.module = module
        self.policy = check_policy_kind(policy)
        self.batch_size = None if batch_size is None else validation.count(batch_size, "batch_size")
        self.version = 0
        """Change it whenever the weights change: it invalidates the entries of a `Cached` wrapper."""
        self._buffers: LeaseCache[TorchBuffer] = LeaseCache(MAX_BUFFERS)
        self._fused: Any = None
        self._fused_fingerprint: object = None
        self._fingerprint: object = None
        self._refresh()

    @property
    def _torch(self) -> Any:
        # Not stored: Python modules cannot be pickled, and evaluators are sent to other processes.
        return importlib.import_module("torch")

    def weights_version(self) -> int:
        """A hash that changes when weights are trained in place or replaced; for `version`.

        Writes to `parameter.data` that leave biases and normalisation unchanged are not detected.
        """
        torch = self._torch
        tensors = [
            tensor
            for part in self.module.modules()
            for tensor in (*part._parameters.values(), *part._buffers.values())
            if tensor is not None
        ]
        counts = tuple((id(tensor), 0 if tensor.is_inference() else tensor._version) for tensor in tensors)
        # PyTorch counts in-place operations, except those of fused optimizers. Those change one-dimensional tensors
        # too, biases and norms, which are cheap to compare.
        short = [tensor for tensor in tensors if tensor.ndim == 1 and tensor.is_floating_point()]
        with torch.no_grad():
            return hash((counts, torch.cat(short).float().cpu().numpy().tobytes() if short else b""))

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy_logits [B, num_actions], values [B, ...])."""
        torch = self._torch
        self._refresh()
        with self._evaluating():
            parts = []
            for first, last in self._chunks(len(observations)):
                logits, values = self._forward(self._send(observations[first:last]).to(self._input_dtype))
                parts.append((self._fetch(logits), self._fetch(values)))
            logits, values = (torch.cat(tensors).numpy() for tensors in zip(*parts, strict=True))
        return logits, values

    def evaluate_packed(self, packed: Packed) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(logits of the legal actions [L], values [B, ...])."""
        torch = self._torch
        self._refresh()
        with self._evaluating():
            parts = []
            for first, last in self._chunks(len(packed)):
                part = packed if last - first == len(packed) else take_rows(packed, np.arange(first, last))
                logits, values = self._forward(self._unpack(part))
                shape = (len(part), part.num_actions)
                if logits.shape != shape:
                    raise EvaluationError(f"policy_logits has shape {tuple(logits.shape)}: it must be {shape}")
                parts.append((self._fetch(self._legal(logits, part)), self._fetch(values)))
            logits, values = (torch.cat(tensors).numpy() for tensors in zip(*parts, strict=True))
        return logits, values

    def supports(self, job: Job, mode: Mode) -> Support:
        """Double-buffered batches on every device; device-resident trees where the kernel can search them."""
        if mode is Mode.PIPELINED:
            return SUPPORTED
        if self.policy != "logits":
            return Support(False, "the kernel reads logits, not probabilities")
        if not all(shape.runs_on(self.device) for shape in job.shapes):
            return Support(False, f"the kernel cannot search these trees on {self.device}, or not faster")
        if str(self._input_dtype) not in KERNEL_DTYPES:
            return Support(False, f"the kernel cannot write observations of {self._input_dtype}")
        return SUPPORTED

    def rows_per_batch(self, rows: int) -> int:
        """Rows per call of the module: halves are computed alternately where each of them fills the device."""
        if self.batch_size is not None:
            return min(rows, self.batch_size)
        return (rows + 1) // 2 if self.device.type != "cpu" and rows >= PIPELINE_MIN_ROWS else rows

    def acquire(self, job: Job) -> TorchGameContext:
        """Leases buffers and device trees, with graphs of the module as it is now."""
        from pondertree.gpu.buffer import TorchBuffer

        layout = job.layout
        assert layout is not None, "evaluators search games"
        fingerprint = self._refresh()
        if fingerprint != self._fused_fingerprint:
            self._fused_fingerprint, self._fused = fingerprint, self._fuse(layout)

        def make(capacity: int) -> TorchBuffer:
            return TorchBuffer(
                layout, capacity, self.batch_size, self.device, self._input_dtype, self._forward, self._evaluating
            )

        return TorchGameContext(self._buffers, layout, self._input_dtype, fingerprint, make)

    def release(self, context: TorchGameContext) -> None:
        """Takes buffers back for later searches."""
        context.close()

    def _fuse(self, layout: RowLayout) -> Any:
        """The module with fused kernels; None if the device or the module has none."""
        if self.device.type != "cuda" or self._input_dtype == self._torch.float32 or self._autocast_dtype is not None:
            return None
        from pondertree.gpu.torch_fusion import fused

        shape = (2, layout.planes + layout.scalars, layout.height, layout.width)
        with self._evaluating():
            example = self._torch.rand(shape, device=self.device).to(self._input_dtype)
            return fused(self.module, example.contiguous(memory_format=self._torch.channels_last))

    def _refresh(self) -> object:
        """Returns the module's fingerprint; after a change, moves the module and reads its dtype again."""
        parts = all_modules([self.module])
        key = fingerprint_of(parts)
        if key != self._fingerprint:
            torch = self._torch
            self._input_dtype, self._autocast_dtype = number_types(parts, self._dtype)
            check_cpu_precision(self.device, self._input_dtype, self._autocast_dtype)
            self.module.to(self.device)
            if self.device.type == "cuda" and self._input_dtype in (torch.bfloat16, torch.float16):
                # Tensor-core convolutions are fastest in this memory format.
                self.module.to(memory_format=torch.channels_last)
            self._fused = self._fused_fingerprint = None
            self._fingerprint = key = fingerprint_of(parts)
        return key

    def __getstate__(self) -> dict[str, Any]:
        # Buffers hold device memory.
        without: dict[str, Any] = {
            "_buffers": LeaseCache(MAX_BUFFERS),
            "_fused": None,
            "_fused_fingerprint": None,
            "_fingerprint": None,
        }
        return {**self.__dict__, **without}

    def _forward(self, observations: Any) -> tuple[Any, Any]:
        """Calls the module and checks the structure of its output; the numbers are checked later."""
        torch = self._torch
        module = self._fused if observations.device.type == "cuda" and self._fused is not None else self.module
        logits, values = two_outputs(module(observations), f"module {type(self.module).__name__}")
        for name, tensor in (("policy_logits", logits), ("values", values)):
            if not isinstance(tensor, torch.Tensor):
                raise EvaluationError(f"{name} is a {type(tensor).__name__}: the module must return tensors")
            if tensor.is_complex() or tensor.ndim == 0 or len(tensor) != len(observations):
                raise EvaluationError(
                    f"{name} has shape {tuple(tensor.shape)} and {tensor.dtype}: "
                    f"it must be real numbers, one row for each of the {len(observations)} positions"
                )
        if logits.ndim > 2:
            logits = logits.permute(policy_axes(tuple(logits.shape))).flatten(1)
        return logits, values

    def _unpack(self, packed: Packed) -> Any:
        """Unpacks observations [B, P + S, H, W] on the device."""
        from pondertree.gpu.buffer import unpacked_planes

        words, scalars = self._send(packed.planes.view(np.int64)), self._send(packed.scalars)
        return unpacked_planes(words, scalars, (packed.height, packed.width), self._input_dtype)

    def _legal(self, logits: Any, packed: Packed) -> Any:
        """Gathers the logits of legal actions on the device. PyTorch has only signed 16-bit integers."""
        torch = self._torch
        actions = self._send(packed.legal_actions.view(np.int16)).to(torch.int64) & 0xFFFF
        counts = self._send(np.diff(packed.legal_offsets).astype(np.int64))
        numbers = torch.arange(len(packed), device=self.device)
        return logits[numbers.repeat_interleave(counts, output_size=len(packed.legal_actions)), actions]

    def _send(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self.device)

    def _fetch(self, tensor: Any) -> Any:
        # float64 stays: numbers beyond float32 are refused by `check_policy`, not turned into infinity.
        return (tensor if tensor.dtype == self._torch.float64 else tensor.float()).cpu()

    def _chunks(self, rows: int) -> Iterator[tuple[int, int]]:
        size = self.batch_size or max(rows, 1)
        return ((first, min(first + size, rows)) for first in range(0, max(rows, 1), size))

    def _evaluating(self) -> AbstractContextManager[None]:
        return evaluating(all_modules([self.module]), self.device, self._autocast_dtype)

    def __repr__(self) -> str:
        return f"Torch({type(self.module).__name__}, device={str(self.device)!r}, policy={self.policy!r})"
