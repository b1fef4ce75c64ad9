"""PyTorch modules as learned models."""

from __future__ import annotations

import contextlib
import math
import sys
import weakref
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from pondertree import validation
from pondertree.errors import EvaluationError
from pondertree.evaluators.cpu_precision import check_cpu_precision
from pondertree.gpu.context import LeaseCache
from pondertree.gpu.protocol import SUPPORTED, Job, Mode, Support, graph_batch_size
from pondertree.gpu.torch_network import all_modules, check_dtype, evaluating, fingerprint_of, number_types, place
from pondertree.models.adapters import SpecificationModel
from pondertree.models.arrays import library_of
from pondertree.models.hidden import flatten
from pondertree.models.protocol import check_model, is_specification_form
from pondertree.models.responses import root_parts, step_parts
from pondertree.optional import require

if TYPE_CHECKING:
    from pondertree.models.torch_context import TorchLatentContext

#: From this many rows on, two halves are computed alternately on an accelerator.
PIPELINE_MIN_ROWS = 512
#: Contexts cached for later forests.
MAX_CONTEXTS = 4
#: Cached pinned arrays for observations, and the most bytes of one.
MAX_PINNED_ARRAYS, MAX_PINNED_BYTES = 4, 1 << 26
#: What functions of PyTorch raise about a wrong dtype.
_WRONG_DTYPE = (RuntimeError, TypeError, IndexError)


class TorchModel:
    """A `torch.nn.Module` with `initial_inference` and `recurrent_inference`, or any object with both whose attributes
    include modules, such as `ComposedModel(representation, dynamics, prediction)`. Its methods take and return tensors;
    the MuZero specification's form (see `SpecificationModel`) is adapted.

    The modules are moved to `device` (default: where their weights are) and used in place: weights trained meanwhile
    take effect at once, replaced modules at the next search. During inference they are in eval mode and inference mode;
    their own modes are restored afterwards. Observations arrive in the dtype of the weights, actions as int64, both on
    the device. Hidden states stay there; logits, values and rewards are downloaded.

    `dtype` "bfloat16" or "float16" (or `torch.bfloat16`) computes under autocast and leaves the weights unchanged; on
    the CPU it is probed in a child process first, since not every CPU that advertises it can run it. With
    `compile=True` the methods are compiled by `torch.compile`.

    The first call determines the form of the observations: if the model raises about integers (or booleans) cast to the
    dtype of the weights, as an embedding does, it gets them uncast; if it cannot take tensors (a `TypeError`), it gets
    NumPy arrays. If that fails too, the first error is reported.

    Threads: several searches may use one adapter if the modules are in eval mode and the first call is over.
    """

    #: The adapter moves actions to the device itself.
    sends_actions = True

    def __init__(self, model: Any, device: Any = None, *, dtype: Any = None, compile: bool = False) -> None:
        require("torch", "torch", "this model")
        check_model(model)
        self._dtype = check_dtype(dtype)
        tops = torch_modules(model)
        modules = all_modules(tops)
        number_types(modules, self._dtype)
        self.device = place(tops, modules, device)
        self.model = model
        self.compile = validation.flag(compile, "compile")
        self._fingerprint: object = None
        self._refresh()
        self._casts: bool | None = None
        """Whether integers are cast to the dtype of the weights; None before the first."""
        self._takes_tensors: bool | None = None
        self._contexts: LeaseCache[TorchLatentContext] = LeaseCache(MAX_CONTEXTS)
        self._pinned: deque[Any] = deque(maxlen=MAX_PINNED_ARRAYS)
        self._methods = self._adapted()

    def initial_inference(self, observations: Any) -> Any:
        """(hidden_state on the device, policy_logits [B, num_actions], value [B])."""
        self._refresh()  # every search begins with a call of this method
        if self._takes_tensors is False:
            return self._run(self._methods.initial_inference, root_parts, observations)
        # Blocking: the array may be reused afterwards.
        sent = self._send(observations, non_blocking=False)
        is_whole = not (sent.is_floating_point() or sent.is_complex())
        casts = self._casts is not False if is_whole else sent.is_floating_point()
        try:
            cast = sent.to(self._input_dtype) if casts else sent
            answer = self._run(self._methods.initial_inference, root_parts, cast)
        except Exception as error:
            may_be_uncast = is_whole and self._casts is None
            answer = self._retry_observations(observations, sent if may_be_uncast else None, _root_cause(error))
            if answer is None:
                raise
            return answer
        self._takes_tensors = True
        if is_whole:
            self._casts = casts
        return answer

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        """Returns (hidden_state on the device, reward [B], policy_logits [B, num_actions], value [B]), any discount."""
        if self._takes_tensors is not False or any(library_of(leaf) == "torch" for leaf in flatten(hidden_states)[0]):
            actions = self._send(actions)
        return self._run(self._methods.recurrent_inference, step_parts, hidden_states, actions)

    def supports(self, job: Job, mode: Mode) -> Support:
        """Double-buffered batches if hidden states are on the device; trees there where the kernel can search them."""
        if mode is Mode.DEVICE:
            if all(shape.runs_on(self.device) for shape in job.shapes):
                return SUPPORTED
            return Support(False, f"the kernel cannot search these trees on {self.device}, or not faster")
        arrays, _ = flatten(job.hidden)
        # Unknown before the first observation, in a search that continues a saved tree.
        if self._takes_tensors is False or any(library_of(array) != "torch" for array in arrays):
            return Support(False, "the model does not compute with tensors")
        if any(array.device.type != self.device.type for array in arrays):
            return Support(False, f"hidden states are not on {self.device}")
        return SUPPORTED

    def rows_per_batch(self, rows: int) -> int:
        """Rows per call of the model: halves are computed alternately where each of them fills the device."""
        return (rows + 1) // 2 if self.device.type != "cpu" and rows >= PIPELINE_MIN_ROWS else rows

    def acquire(self, job: Job) -> TorchLatentContext:
        """Leases a pool for hidden states like those of the job, with buffers and device trees."""
        from pondertree.models.torch_context import TorchLatentContext

        arrays, structure = flatten(job.hidden)
        # Padded to few sizes: games that end one by one would need a new pool each time.
        trees = graph_batch_size(job.trees)
        key = (trees, structure, tuple((tuple(array.shape[1:]), array.dtype) for array in arrays))
        context = self._contexts.take(lambda each: each.key == key)
        if context is None:
            context = TorchLatentContext(key, trees, self.device, self._step, self._evaluating)
        self.refresh(context)
        return context

    def refresh(self, context: TorchLatentContext | None) -> None:
        """Follows changes of the model since the last search; a context drops graphs of a model that was replaced."""
        fingerprint = self._refresh()
        if context is not None:
            context.refresh(fingerprint)

    def release(self, context: TorchLatentContext) -> None:
        """Takes a context back for later forests."""
        self._contexts.release([context])

    def observation_array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A pinned array for observations, reused once all its views are gone; None if that is not possible."""
        size = math.prod(shape) * dtype.itemsize
        # A model that takes arrays as they are may keep them.
        is_pinned = self.device.type == "cuda" and self._takes_tensors
        if not is_pinned or dtype.hasobject or not 0 < size <= MAX_PINNED_BYTES:
            return None
        try:
            pinned = self._pinned.popleft()
        except IndexError:
            pinned = ()
        if len(pinned) < size:
            torch = sys.modules["torch"]
            try:
                pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            except RuntimeError:  # out of pinned memory
                return None
        # Views of the array hold `whole`, so that the memory is not reused before all are gone.
        whole = pinned.numpy()
        weakref.finalize(whole, self._pinned.append, pinned)
        return whole[:size].view(dtype).reshape(shape)

    def __getstate__(self) -> dict[str, Any]:
        # Contexts and pinned arrays stay in their process; fingerprints contain addresses.
        fresh = {
            "_contexts": LeaseCache(MAX_CONTEXTS),
            "_pinned": deque(maxlen=MAX_PINNED_ARRAYS),
            "_fingerprint": None,
        }
        state: dict[str, Any] = {**self.__dict__, **fresh}
        if self.compile:
            # Compiled functions cannot be pickled; whether the model takes batches is kept.
            state["_methods"] = getattr(self._methods, "batched", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.compile:
            self._methods = self._adapted()
            if isinstance(self._methods, SpecificationModel):
                self._methods.batched = state["_methods"]

    def _adapted(self) -> Any:
        """An object with the methods of `Model`: the model itself, its compiled methods, or an adapter."""
        model, methods = self.model, self.model
        if self.compile:
            names = (
                "initial_inference",
                "recurrent_inference",
                *(("prediction",) if is_specification_form(model) else ()),
            )
            compiled = sys.modules["torch"].compile
            methods = SimpleNamespace(**{name: compiled(getattr(model, name)) for name in names})
        return SpecificationModel(methods) if is_specification_form(model) else methods

    def _refresh(self) -> object:
        """Returns the model's fingerprint; if it has changed, moves modules to the device and reads the dtype again."""
        tops = torch_modules(self.model)
        modules = all_modules(tops)
        owner = None if tops and tops[0] is self.model else self.model
        key = fingerprint_of(modules, owner)
        if key != self._fingerprint:
            self._input_dtype, self._autocast_dtype = number_types(modules, self._dtype)
            check_cpu_precision(self.device, self._input_dtype, self._autocast_dtype)
            for top in tops:
                top.to(self.device)
            # Walking through the modules takes longer than a small network.
            self._modules = modules
            self._fingerprint = key = fingerprint_of(modules, owner)
        return key

    def _retry_observations(self, observations: Any, sent: Any, error: BaseException) -> Any:
        """Passes observations in another form, which is then remembered; None if that does not help.

        `sent` are uncast integers, if the first call had cast ones.
        """
        function = self._methods.initial_inference
        if sent is not None and isinstance(error, _WRONG_DTYPE):
            with contextlib.suppress(Exception):
                answer = self._run(function, root_parts, sent)
                self._takes_tensors, self._casts = True, False
                return answer
        if not self._takes_tensors and isinstance(error, TypeError) and library_of(observations) != "torch":
            with contextlib.suppress(Exception):
                answer = self._run(function, root_parts, observations)
                self._takes_tensors = False
                return answer
        return None

    def _step(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        return step_parts(self._methods.recurrent_inference(hidden_states, actions))

    def _run(self, function: Callable[..., Any], parts: Callable[[Any], tuple[Any, ...]], *arguments: Any) -> Any:
        """Calls a method; returns the hidden state, and the other outputs as NumPy arrays."""
        with self._evaluating():
            hidden, *rest = parts(function(*arguments))
            return hidden, *self._fetch(rest)

    def _evaluating(self) -> contextlib.AbstractContextManager[None]:
        return evaluating(self._modules, self.device, self._autocast_dtype)

    def _send(self, array: Any, non_blocking: bool = True) -> Any:
        torch = sys.modules["torch"]
        if library_of(array) != "torch":
            array = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        return array.to(self.device, non_blocking=non_blocking)

    def _fetch(self, tensors: list[Any]) -> list[Any]:
        """Downloads tensors as NumPy arrays: all copies are queued, then awaited once. Other objects are unchanged."""
        torch = sys.modules["torch"]
        fetched, devices = [], set()
        for tensor in tensors:
            if library_of(tensor) == "torch":
                if tensor.is_floating_point() and tensor.element_size() < 4:
                    tensor = tensor.float()  # NumPy has no bfloat16
                if tensor.device.type != "cpu":
                    devices.add(tensor.device)
                    tensor = _host_tensor(tensor).copy_(tensor, non_blocking=True)
            fetched.append(tensor)
        for device in devices:
            if device.type == "cuda":
                torch.cuda.current_stream(device).synchronize()
            else:
                torch.accelerator.synchronize(device)
        return [tensor.numpy() if library_of(tensor) == "torch" else tensor for tensor in fetched]

    def __repr__(self) -> str:
        return f"TorchModel({type(self.model).__name__}, device={str(self.device)!r})"


def _host_tensor(tensor: Any) -> Any:
    """An empty host tensor for a download, pinned if possible; PyTorch caches pinned memory."""
    torch = sys.modules["torch"]
    if tensor.device.type == "cuda" and tensor.numel() * tensor.element_size() <= MAX_PINNED_BYTES:
        with contextlib.suppress(RuntimeError):  # out of pinned memory
            return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def torch_modules(model: Any) -> list[Any]:
    """The PyTorch modules of a model: itself, or its attributes. Empty if PyTorch is not loaded."""
    module_type = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", ())
    if isinstance(model, module_type):
        return [model]
    return [part for part in getattr(model, "__dict__", {}).values() if isinstance(part, module_type)]


def _root_cause(error: BaseException) -> BaseException:
    """The exception of the model, which may be wrapped in `EvaluationError`."""
    while isinstance(error, EvaluationError) and error.__cause__ is not None:
        error = error.__cause__
    return error
