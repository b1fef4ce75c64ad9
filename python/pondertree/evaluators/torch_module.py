"""Networks of PyTorch."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.batch import Packed
from pondertree.evaluators.cpu_precision import check_cpu_precision
from pondertree.evaluators.dispatch import take_rows
from pondertree.evaluators.outputs import policy_axes, require, two_outputs
from pondertree.evaluators.protocol import check_policy_kind
from pondertree.forks import after_fork_in_child
from pondertree.gpu.protocol import RowLayout, padded
from pondertree.gpu.torch_network import all_modules, check_dtype, first_weights, network_key, number_types

#: From so many rows on, halves of them take turns on an accelerator.
TURNS_FROM = 1024
#: Lanes kept for the next searches.
MAX_BUFFERS = 8
#: Held while lanes are taken or given back: several threads may search with one network.
_BUFFERS_LOCK = threading.Lock()


@after_fork_in_child
def _renew_lock() -> None:
    global _BUFFERS_LOCK
    _BUFFERS_LOCK = threading.Lock()


class Torch:
    """A `torch.nn.Module`: `module(observations [B, ...]) -> (policy_logits [B, num_actions], values [B])`.

    For chess a policy may also be its 73 planes of 8 x 8 squares; values may be `[B, 1]` or `[B, num_players]`, too.

    The module is moved to `device` (default: where its weights are) and used in place, so that weights trained
    meanwhile count at once; it is in eval mode and without gradients while it evaluates, and in its own modes again
    afterwards. After a change of weights, change `version` if there is a `Cached` around it.

    `dtype` "bfloat16" or "float16" (or `torch.bfloat16`) computes in that type under autocast and leaves the weights as
    they are; a module whose weights already have that type (`module.to(torch.bfloat16)`) is faster, since nothing is
    cast on the way, and needs no `dtype`. Answers come back as float32 (float64 ones as they are). On the CPU each of
    the two types is tried in a child process first, since not every CPU that advertises them can run them. `batch_size`
    splits larger batches, where the device's memory is short.

    Compiled games are asked in the fast form: packed planes and legal actions go to the device and are unpacked
    there, and only the logits of legal actions come back.

    Threads: several searches may evaluate at once if the module is in eval mode already. In training mode the modes are
    switched on the way, so a module that one thread trains must not be evaluated by another: give each its own copy.
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
        torch = require("torch", "torch")
        if not isinstance(module, torch.nn.Module):
            raise InvalidArgumentError(f"module must be a torch.nn.Module, not a {type(module).__name__}")
        self._dtype = check_dtype(dtype)
        parts = all_modules([module])
        self._input_dtype, self._autocast_dtype = number_types(parts, self._dtype)
        if device is None:
            weights = first_weights(parts)
            device = torch.device("cpu") if weights is None else weights.device
        try:
            self.device = torch.device(device)
            self.module = module.to(self.device)
        except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
            raise InvalidArgumentError(f"device {validation.shown(device)} cannot be used: {error}") from error
        self.policy = check_policy_kind(policy)
        self.batch_size = None if batch_size is None else validation.count(batch_size, "batch_size")
        self.version = 0
        """To be changed whenever the weights change, so that a `Cached` around it forgets the old answers."""
        self._buffers: list[Any] = []
        self._returned: deque[Any] = deque()
        self._fused: Any = None
        self._fused_of: object = None
        self._known: object = None
        self._notice()

    @property
    def _torch(self) -> Any:
        # Not kept: a module of Python can be neither pickled nor copied, and an evaluator goes to other processes.
        return importlib.import_module("torch")

    def weights_version(self) -> int:
        """A number that changes when the weights are trained in place or replaced, for a `version` that follows them.

        Not noticed is what only someone who hides it does: writing to `parameter.data`, biases and norms left alone.
        """
        torch = self._torch
        tensors = [
            tensor
            for part in self.module.modules()
            for tensor in (*part._parameters.values(), *part._buffers.values())
            if tensor is not None
        ]
        counts = tuple((id(tensor), 0 if tensor.is_inference() else tensor._version) for tensor in tensors)
        # PyTorch counts what is done to a tensor, but its fused optimizers do not. Those change the short tensors, too,
        # biases and norms, which are quickly looked at.
        short = [tensor for tensor in tensors if tensor.ndim == 1 and tensor.is_floating_point()]
        with torch.no_grad():
            return hash((counts, torch.cat(short).float().cpu().numpy().tobytes() if short else b""))

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(policy_logits [B, num_actions], values [B, ...])."""
        torch = self._torch
        self._notice()
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
        self._notice()
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

    def rows_per_call(self, rows: int) -> int:
        """How many of so many rows are best computed at once: two halves take turns where each fills the device."""
        if self.batch_size is not None:
            return min(rows, self.batch_size)
        return (rows + 1) // 2 if self.device.type != "cpu" and rows >= TURNS_FROM else rows

    def acquire_buffers(self, layout: RowLayout, capacities: Sequence[int]) -> list[Any]:
        """A lane for each capacity, or for a little more; those of an earlier search if they fit."""
        from pondertree.gpu.buffer import TorchBuffer

        key, buffers = self._notice(), []
        with _BUFFERS_LOCK:
            while self._returned:
                self._buffers.append(self._returned.popleft())
            del self._buffers[:-MAX_BUFFERS]
        if key != self._fused_of:
            self._fused_of, self._fused = key, self._fuse(layout)
        # Of few sizes: games that end one after another would ask for a new one at every move.
        for capacity in map(padded, capacities):
            with _BUFFERS_LOCK:
                known = next((one for one in self._buffers if _fits(one, layout, capacity, self._input_dtype)), None)
                if known is not None:
                    self._buffers.remove(known)
            if known is None:
                known = TorchBuffer(
                    layout, capacity, self.batch_size, self.device, self._input_dtype, self._forward, self._evaluating
                )
            known.renew(key)
            buffers.append(known)
        return buffers

    def _fuse(self, layout: RowLayout) -> Any:
        """The module with fewer kernels, where the device has such; None elsewhere."""
        if self.device.type != "cuda" or self._input_dtype == self._torch.float32 or self._autocast_dtype is not None:
            return None
        from pondertree.gpu.torch_fusion import fused

        shape = (2, layout.planes + layout.scalars, layout.height, layout.width)
        with self._evaluating():
            example = self._torch.rand(shape, device=self.device).to(self._input_dtype)
            return fused(self.module, example.contiguous(memory_format=self._torch.channels_last))

    def open_trees(self, buffers: Sequence[Any], sizes: Sequence[int], simulations: int, rule: Any) -> Any:
        """Trees that grow on the device, of so many roots to each of these lanes; None where they cannot."""
        opened = [buffer.open_trees(size, simulations, rule) for buffer, size in zip(buffers, sizes, strict=True)]
        if any(trees is None for trees in opened):
            return None
        from pondertree.gpu.device_trees import Grove

        return Grove(opened, sizes)

    def release_buffers(self, buffers: Sequence[Any]) -> None:
        """Keeps lanes for the next search."""
        # Without a lock: a forest among the garbage may be collected while this very thread holds it.
        self._returned.extend(buffers)

    def _notice(self) -> object:
        """What tells the network from what it was. Where it has changed, all of it is on the device again, and is asked
        in the type that its weights now have.
        """
        parts = all_modules([self.module])
        key = network_key(parts)
        if key != self._known:
            torch = self._torch
            self._input_dtype, self._autocast_dtype = number_types(parts, self._dtype)
            check_cpu_precision(self.device, self._input_dtype, self._autocast_dtype)
            self.module.to(self.device)
            if self.device.type == "cuda" and self._input_dtype in (torch.bfloat16, torch.float16):
                # The order of numbers in memory that fast convolutions of short types want; they stay what they are.
                self.module.to(memory_format=torch.channels_last)
            self._fused = self._fused_of = None
            self._known = key = network_key(parts)
        return key

    def __getstate__(self) -> dict[str, Any]:
        # Lanes hold memory of a device.
        without: dict[str, Any] = {
            "_buffers": [],
            "_returned": deque(),
            "_fused": None,
            "_fused_of": None,
            "_known": None,
        }
        return {**self.__dict__, **without}

    def _forward(self, observations: Any) -> tuple[Any, Any]:
        """The module's answer, its structure checked; the numbers are checked where every evaluator's are."""
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
        """The observations [B, P + S, H, W], made on the device: byte k of a plane holds its cells 8k to 8k + 7."""
        torch = self._torch
        rows, planes = packed.planes.shape
        cells = packed.height * packed.width
        octets = self._send(np.ascontiguousarray(packed.planes, dtype="<u8").view(np.uint8))
        shifts = torch.arange(8, dtype=torch.uint8, device=self.device)
        bits = (octets[:, :, None] >> shifts) & 1
        whole = torch.empty(
            (rows, planes + packed.scalars.shape[1], cells), dtype=self._input_dtype, device=self.device
        )
        whole[:, :planes] = bits.reshape(rows, planes, 64)[:, :, :cells]
        whole[:, planes:] = self._send(packed.scalars)[:, :, None]
        return whole.reshape(rows, -1, packed.height, packed.width)

    def _legal(self, logits: Any, packed: Packed) -> Any:
        """The logits of the legal actions, picked on the device. Actions travel as 16 bits, in torch signed ones."""
        torch = self._torch
        actions = self._send(packed.legal_actions.view(np.int16)).to(torch.int64) & 0xFFFF
        counts = self._send(np.diff(packed.legal_offsets).astype(np.int64))
        numbers = torch.arange(len(packed), device=self.device)
        return logits[numbers.repeat_interleave(counts, output_size=len(packed.legal_actions)), actions]

    def _send(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self.device)

    def _fetch(self, tensor: Any) -> Any:
        # What float32 cannot hold must not become infinite here: it is refused where every evaluator's numbers are.
        return (tensor if tensor.dtype == self._torch.float64 else tensor.float()).cpu()

    def _chunks(self, rows: int) -> Iterator[tuple[int, int]]:
        size = self.batch_size or max(rows, 1)
        return ((first, min(first + size, rows)) for first in range(0, max(rows, 1), size))

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Eval mode, no gradients, the type to compute in; every part of the module has its mode back at the end."""
        torch = self._torch
        in_training = [part for part in all_modules([self.module]) if part.training]
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if self._autocast_dtype is not None:
                stack.enter_context(torch.autocast(self.device.type, dtype=self._autocast_dtype))
            try:
                if in_training:
                    self.module.eval()
                yield
            finally:
                for part in in_training:
                    part.training = True

    def __repr__(self) -> str:
        return f"Torch({type(self.module).__name__}, device={str(self.device)!r}, policy={self.policy!r})"


def _fits(buffer: Any, layout: RowLayout, capacity: int, dtype: Any) -> bool:
    return bool(buffer.layout == layout and buffer.capacity == capacity and buffer._dtype == dtype)
