"""Inspection of PyTorch networks: modules, dtypes, and the fingerprint that invalidates captured graphs.

This module does not import PyTorch: callers that have a module have imported it already.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any

from pondertree.errors import InvalidArgumentError
from pondertree.validation import shown

DTYPES = ("float32", "bfloat16", "float16")
#: Attributes of these types are part of the fingerprint: cheap to compare, and equal only if interchangeable.
_SIMPLE = frozenset((int, float, bool, str, NoneType, FunctionType, BuiltinFunctionType, MethodType))


def all_modules(tops: Iterable[Any]) -> list[Any]:
    """All submodules of these modules, each once; several times as fast as `Module.modules`."""
    found: dict[int, Any] = {}
    waiting = list(tops)[::-1]
    while waiting:
        module = waiting.pop()
        if module is not None and id(module) not in found:
            found[id(module)] = module
            waiting += list(module._modules.values())[::-1]
    return list(found.values())


def fingerprint_of(modules: Sequence[Any], owner: Any = None) -> tuple[Any, ...]:
    """Returns a fingerprint of modules, hooks, simple attributes and the addresses of weights.

    Weights that are trained in place keep their fingerprint: graphs read them by address. `owner` is an object that has
    the modules as attributes.
    """
    tensor_type, common = sys.modules["torch"].Tensor, _common_attributes()
    key: list[Any] = []
    for part in modules if owner is None else (owner, *modules):
        key += (id(part), type(part))
        attributes = getattr(part, "__dict__", {})
        for name in attributes:
            if name not in common:
                value = attributes[name]
                kind = type(value)
                if kind in _SIMPLE:
                    key += (name, value)
                elif kind is tensor_type:
                    key += (name, value.data_ptr())
    for part in modules:
        # Hook ids are unique.
        key += (*part._forward_hooks, *part._forward_pre_hooks)
        for tensors in (part._parameters, part._buffers):
            for tensor in tensors.values():
                if tensor is not None:
                    try:
                        key.append(tensor.data_ptr())
                    except (RuntimeError, ValueError):  # uninitialised lazy or sharded tensors
                        key.append(id(tensor))
    return tuple(key)


@lru_cache(maxsize=1)
def _common_attributes() -> frozenset[str]:
    """Attributes of every module; among them the mode, which is not part of the fingerprint."""
    return frozenset(sys.modules["torch"].nn.Module().__dict__)


def first_weights(modules: Sequence[Any]) -> Any:
    """Returns the first floating-point tensor, whose dtype and device represent the network; None if there is none."""
    parameters = (tensor for module in modules for tensor in module._parameters.values())
    buffers = (tensor for module in modules for tensor in module._buffers.values())
    for tensors in (parameters, buffers):
        for tensor in tensors:
            if tensor is not None and tensor.is_floating_point():
                return tensor
    return None


def check_dtype(dtype: Any) -> str | None:
    """Validates a dtype, given by name or as `torch.dtype`; returns its name."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, sys.modules["torch"].dtype) else dtype
    if name is not None and name not in DTYPES:
        raise InvalidArgumentError(f"dtype must be {', '.join(DTYPES)} or None, not {shown(dtype)}")
    return name


def number_types(modules: Sequence[Any], dtype: str | None) -> tuple[Any, Any]:
    """Returns the dtype of the weights, and the autocast dtype if it differs."""
    torch = sys.modules["torch"]
    weights = first_weights(modules)
    own = torch.float32 if weights is None else weights.dtype
    requested = own if dtype is None else getattr(torch, dtype)
    if requested != own and own != torch.float32:
        raise InvalidArgumentError(
            f"dtype is {dtype}, but the weights are {str(own).removeprefix('torch.')}: leave it out"
        )
    return own, None if requested == own else requested


def place(tops: Iterable[Any], modules: Sequence[Any], device: Any) -> Any:
    """Moves modules to a device, by default that of the first weights below them; returns the device."""
    torch = sys.modules["torch"]
    weights = first_weights(modules)
    if device is None:
        device = torch.device("cpu") if weights is None else weights.device
    try:
        found = torch.device(device)
        for top in tops:
            top.to(found)
    except (AssertionError, NotImplementedError, RuntimeError, TypeError) as error:
        raise InvalidArgumentError(f"device {shown(device)} cannot be used: {error}") from error
    return found


@contextlib.contextmanager
def evaluating(modules: Sequence[Any], device: Any, autocast_dtype: Any) -> Iterator[None]:
    """Eval mode, inference mode, and autocast unless its dtype is None; restores the mode of every module."""
    torch = sys.modules["torch"]
    in_training = [module for module in modules if module.training]
    cast = contextlib.nullcontext() if autocast_dtype is None else torch.autocast(device.type, dtype=autocast_dtype)
    try:
        for module in in_training:
            module.training = False
        with torch.inference_mode(), cast:
            yield
    finally:
        for module in in_training:
            module.training = True
