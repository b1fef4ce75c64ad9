"""Models of PyTorch."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from pondertree import validation
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.cpu_precision import check_cpu_precision
from pondertree.forks import after_fork_in_child
from pondertree.gpu.protocol import padded
from pondertree.gpu.torch_network import all_modules, check_dtype, first_weights, network_key, number_types
from pondertree.models.adapters import SeedForm
from pondertree.models.arrays import library_of
from pondertree.models.hidden import flatten
from pondertree.models.inference import check_model, is_seed_form
from pondertree.models.responses import root_parts, step_parts
from pondertree.optional import require

#: From so many rows on, halves of them take turns on an accelerator.
TURNS_FROM = 512
#: Studios kept for the next forests.
MAX_CONTEXTS = 4
#: Rooms for observations that are kept, and how large they are at most, in bytes.
MOST_ROOMS, LARGEST_ROOM = 4, 1 << 26
#: Held while studios are taken or given back. By a lock that one thread may take twice: garbage may be collected, and a
#: forest give its studio back, while another is being taken.
_CONTEXTS_LOCK = threading.RLock()
#: What is raised by functions of PyTorch that want numbers of another type.
_WRONG_TYPE = (RuntimeError, TypeError, IndexError)


@after_fork_in_child
def _renew_lock() -> None:
    global _CONTEXTS_LOCK
    _CONTEXTS_LOCK = threading.RLock()


class TorchModel:
    """A `torch.nn.Module` with `initial_inference` and `recurrent_inference`, or any object with both that keeps its
    modules as attributes, such as `Parts(representation, dynamics, prediction)`. Its methods take and give tensors; the
    seed's form (see `SeedForm`) will do, too.

    The modules are moved to `device` (default: where their weights are) and used in place, so that weights trained
    meanwhile count at once, and modules that were replaced at the next search; they are in eval mode and in inference
    mode while they are asked, and in their own modes again afterwards. Observations arrive in the type of the weights,
    actions as int64, both on the device. Hidden states stay there; logits, values and rewards come back.

    `dtype` "bfloat16" or "float16" (or `torch.bfloat16`) computes in that type under autocast and leaves the weights as
    they are; on the CPU it is tried in a child process first, since not every CPU that advertises it can run it.
    With `compile=True` the methods go through `torch.compile`.

    What a model cannot take is found out at the first question: one that raises about whole numbers (and True and
    False) in the type of the weights, as an embedding does, gets them as they were given; one that cannot take tensors
    (a `TypeError`) gets arrays as they were given. Where that fails, too, it is told what was raised first.

    Threads: several searches may ask at once if the modules are in eval mode already and the model was asked before.
    """

    #: Actions need not be sent to the device for it.
    sends_actions = True

    def __init__(self, model: Any, device: Any = None, *, dtype: Any = None, compile: bool = False) -> None:
        torch = require("torch", "torch", "this model")
        check_model(model)
        self._dtype = check_dtype(dtype)
        tops = torch_modules(model)
        modules = all_modules(tops)
        number_types(modules, self._dtype)
        if device is None:
            weights = first_weights(modules)
            device = torch.device("cpu") if weights is None else weights.device
        try:
            self.device = torch.device(device)
            for top in tops:
                top.to(self.device)
        except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
            raise InvalidArgumentError(f"device {validation.shown(device)} cannot be used: {error}") from error
        self.model = model
        self.compile = validation.flag(compile, "compile")
        self._known: object = None
        self._notice()
        self._casts: bool | None = None
        """Whether whole numbers are cast to the type of the weights; None until the first were asked about."""
        self._takes_tensors: bool | None = None
        self._contexts: list[Any] = []
        self._rooms: deque[Any] = deque(maxlen=MOST_ROOMS)
        self._asked = self._methods()

    def initial_inference(self, observations: Any) -> Any:
        """(hidden_state on the device, policy_logits [B, num_actions], value [B])."""
        self._notice()  # every search begins here
        if self._takes_tensors is False:
            return self._run(self._asked.initial_inference, root_parts, observations)
        # They are there when it comes back: their room may be used again.
        sent = self._send(observations, non_blocking=False)
        is_whole = not (sent.is_floating_point() or sent.is_complex())
        casts = self._casts is not False if is_whole else sent.is_floating_point()
        try:
            told = sent.to(self._input_dtype) if casts else sent
            answer = self._run(self._asked.initial_inference, root_parts, told)
        except Exception as error:
            may_stay = is_whole and self._casts is None
            answer = self._ask_otherwise(observations, sent if may_stay else None, _root_cause(error))
            if answer is None:
                raise
            return answer
        self._takes_tensors = True
        if is_whole:
            self._casts = casts
        return answer

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> Any:
        """(hidden_state on the device, reward [B], policy_logits [B, num_actions], value [B][, discount [B]])."""
        if self._takes_tensors is not False or any(library_of(leaf) == "torch" for leaf in flatten(hidden_states)[0]):
            actions = self._send(actions)
        return self._run(self._asked.recurrent_inference, step_parts, hidden_states, actions)

    def rows_per_call(self, rows: int) -> int:
        """How many of so many rows are best computed at once: two halves take turns where each fills the device."""
        return (rows + 1) // 2 if self.device.type != "cpu" and rows >= TURNS_FROM else rows

    def room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array for observations in memory that the device reads by itself, used again and again; None elsewhere."""
        size = math.prod(shape) * dtype.itemsize
        # Who takes arrays as they are may keep them.
        if self.device.type != "cuda" or not self._takes_tensors or dtype.hasobject or not 0 < size <= LARGEST_ROOM:
            return None
        try:
            kept = self._rooms.popleft()
        except IndexError:
            kept = ()
        if len(kept) < size:
            torch = sys.modules["torch"]
            try:
                kept = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            except RuntimeError:  # there is no such memory left
                return None
        # Views of the array hold this one, so that it is not used again before all are gone.
        whole = kept.numpy()
        weakref.finalize(whole, self._rooms.append, kept)
        return whole[:size].view(dtype).reshape(shape)

    def acquire(self, hidden: Any, trees: int) -> Any:
        """A table of hidden states with lanes, one of an earlier forest if it fits."""
        arrays, structure = flatten(hidden)
        if not self._takes_tensors or any(library_of(array) != "torch" for array in arrays):
            return None
        if any(array.device.type != self.device.type for array in arrays):
            return None
        from pondertree.models.torch_context import TorchLatentContext

        # Of few sizes: games that end one by one shall not ask for a new one at every move.
        trees = padded(trees)
        key = (trees, structure, tuple((tuple(array.shape[1:]), array.dtype) for array in arrays))
        with _CONTEXTS_LOCK:
            context = next((one for one in self._contexts if one.key == key), None)
            if context is not None:
                self._contexts.remove(context)
        if context is None:
            context = TorchLatentContext(key, trees, self.device, self._step, self._asking)
        self.refresh(context)
        return context

    def refresh(self, context: Any) -> None:
        """Lets a studio forget what was recorded of a model that has changed since."""
        key = self._notice()
        if context is not None:
            context.renew(key)

    def release(self, context: Any) -> None:
        """Keeps it for the next forest."""
        with _CONTEXTS_LOCK:
            self._contexts = [*self._contexts, context][-MAX_CONTEXTS:]

    def __getstate__(self) -> dict[str, Any]:
        # Studios hold memory of a device, and rooms such as it reads; what tells models apart does so in one process.
        state = {**self.__dict__, "_contexts": [], "_rooms": deque(maxlen=MOST_ROOMS), "_known": None}
        if self.compile:
            # Compiled functions cannot be pickled. What was found out about the form of the seed goes along.
            state["_asked"] = getattr(self._asked, "batched", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.compile:
            self._asked = self._methods()
            if isinstance(self._asked, SeedForm):
                self._asked.batched = state["_asked"]

    def _methods(self) -> Any:
        """What is asked: the model in our form, its methods compiled if that is wanted."""
        model, asked = self.model, self.model
        if self.compile:
            names = ("initial_inference", "recurrent_inference", *(("prediction",) if is_seed_form(model) else ()))
            compiled = sys.modules["torch"].compile
            asked = SimpleNamespace(**{name: compiled(getattr(model, name)) for name in names})
        return SeedForm(asked) if is_seed_form(model) else asked

    def _notice(self) -> object:
        """What tells the model from what it was. Where it has changed, all of it is on the device again, and is asked
        in the type that its weights now have.
        """
        tops = torch_modules(self.model)
        modules = all_modules(tops)
        owner = None if tops and tops[0] is self.model else self.model
        key = network_key(modules, owner)
        if key != self._known:
            self._input_dtype, self._autocast_dtype = number_types(modules, self._dtype)
            check_cpu_precision(self.device, self._input_dtype, self._autocast_dtype)
            for top in tops:
                top.to(self.device)
            # Kept: walking through the modules takes longer than a small network does.
            self._modules = modules
            self._known = key = network_key(modules, owner)
        return key

    def _ask_otherwise(self, observations: Any, sent: Any, error: BaseException) -> Any:
        """The answer to observations in another form, which is then the model's; None if there is none.

        `sent` are whole numbers as they are, if it was asked with others.
        """
        function = self._asked.initial_inference
        if sent is not None and isinstance(error, _WRONG_TYPE):
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
        return step_parts(self._asked.recurrent_inference(hidden_states, actions))

    def _run(self, function: Callable[..., Any], parts: Callable[[Any], tuple[Any, ...]], *arguments: Any) -> Any:
        """What a method answers: evaluated without gradients, and all but the hidden state fetched."""
        with self._asking():
            hidden, *rest = parts(function(*arguments))
            return hidden, *self._fetch(rest)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Eval mode, no gradients, the type to compute in; every module has its mode back at the end."""
        torch = sys.modules["torch"]
        in_training = [module for module in self._modules if module.training]
        try:
            for module in in_training:
                module.training = False
            with torch.inference_mode():
                if self._autocast_dtype is None:
                    yield
                else:
                    with torch.autocast(self.device.type, dtype=self._autocast_dtype):
                        yield
        finally:
            for module in in_training:
                module.training = True

    def _send(self, array: Any, non_blocking: bool = True) -> Any:
        torch = sys.modules["torch"]
        if library_of(array) != "torch":
            array = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        return array.to(self.device, non_blocking=non_blocking)

    def _fetch(self, tensors: list[Any]) -> list[Any]:
        """The tensors as arrays of NumPy: all copies are begun, then waited for once. Other things stay as they are."""
        torch = sys.modules["torch"]
        fetched, devices = [], set()
        for tensor in tensors:
            if library_of(tensor) == "torch":
                if tensor.is_floating_point() and tensor.element_size() < 4:
                    tensor = tensor.float()  # NumPy has no bfloat16
                if tensor.device.type != "cpu":
                    devices.add(tensor.device)
                    tensor = _place_for(tensor).copy_(tensor, non_blocking=True)
            fetched.append(tensor)
        for device in devices:
            if device.type == "cuda":
                torch.cuda.current_stream(device).synchronize()
            else:
                torch.accelerator.synchronize(device)
        return [tensor.numpy() if library_of(tensor) == "torch" else tensor for tensor in fetched]

    def __repr__(self) -> str:
        return f"TorchModel({type(self.model).__name__}, device={str(self.device)!r})"


def _place_for(tensor: Any) -> Any:
    """Memory of this machine for what a device has: such as a GPU writes by itself, all of which PyTorch keeps."""
    torch = sys.modules["torch"]
    if tensor.device.type == "cuda" and tensor.numel() * tensor.element_size() <= LARGEST_ROOM:
        with contextlib.suppress(RuntimeError):  # there is no such memory left
            return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def torch_modules(model: Any) -> list[Any]:
    """The modules of PyTorch in a model: itself, or its attributes. None where PyTorch is not loaded."""
    kind = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", ())
    if isinstance(model, kind):
        return [model]
    return [part for part in getattr(model, "__dict__", {}).values() if isinstance(part, kind)]


def _root_cause(error: BaseException) -> BaseException:
    """What the model raised, which may have been told as its fault already."""
    while isinstance(error, EvaluationError) and error.__cause__ is not None:
        error = error.__cause__
    return error
