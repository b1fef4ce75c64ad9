"""What both adapters of PyTorch look at in a network: its modules, the types it computes in, and whether it is still
the one that was recorded.

PyTorch is not imported here: who has a module has loaded it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any

from pondertree.errors import InvalidArgumentError
from pondertree.validation import shown

DTYPES = ("float32", "bfloat16", "float16")
#: Attributes of these types are part of what a network is. They are quickly compared, and equal only if they are alike.
_SIMPLE = frozenset((int, float, bool, str, NoneType, FunctionType, BuiltinFunctionType, MethodType))


def all_modules(tops: Iterable[Any]) -> list[Any]:
    """These modules and all within them, each once; PyTorch's own way through them takes several times as long."""
    found: dict[int, Any] = {}
    waiting = list(tops)[::-1]
    while waiting:
        module = waiting.pop()
        if module is not None and id(module) not in found:
            found[id(module)] = module
            waiting += list(module._modules.values())[::-1]
    return list(found.values())


def fingerprint_of(modules: Sequence[Any], owner: Any = None) -> tuple[Any, ...]:
    """Differs when a network is no longer the one that was recorded: modules, hooks, simple attributes, or where the
    weights are. What is trained in place counts by itself, and is not looked at. `owner` has modules as attributes.
    """
    tensor_type, of_all = sys.modules["torch"].Tensor, _attributes_of_all()
    key: list[Any] = []
    for part in modules if owner is None else (owner, *modules):
        key += (id(part), type(part))
        attributes = getattr(part, "__dict__", {})
        for name in attributes:
            if name not in of_all:
                value = attributes[name]
                kind = type(value)
                if kind in _SIMPLE:
                    key += (name, value)
                elif kind is tensor_type:
                    key += (name, value.data_ptr())
    for part in modules:
        # Hooks are numbered, and no number is given twice.
        key += (*part._forward_hooks, *part._forward_pre_hooks)
        for tensors in (part._parameters, part._buffers):
            for tensor in tensors.values():
                if tensor is not None:
                    try:
                        key.append(tensor.data_ptr())
                    except (RuntimeError, ValueError):  # of a lazy module that was never asked, or kept in parts
                        key.append(id(tensor))
    return tuple(key)


@lru_cache(maxsize=1)
def _attributes_of_all() -> frozenset[str]:
    """What every module has, and most have nothing else; among it the mode, which changes nothing in a search."""
    return frozenset(sys.modules["torch"].nn.Module().__dict__)


def first_weights(modules: Sequence[Any]) -> Any:
    """The first weights that are no whole numbers, which tell the type and the device of all; None without any."""
    parameters = (tensor for module in modules for tensor in module._parameters.values())
    buffers = (tensor for module in modules for tensor in module._buffers.values())
    for tensors in (parameters, buffers):
        for tensor in tensors:
            if tensor is not None and tensor.is_floating_point():
                return tensor
    return None


def check_dtype(dtype: Any) -> str | None:
    """The name of a type to compute in, which may be given as PyTorch's own."""
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, sys.modules["torch"].dtype) else dtype
    if name is not None and name not in DTYPES:
        raise InvalidArgumentError(f"dtype must be {', '.join(DTYPES)} or None, not {shown(dtype)}")
    return name


def number_types(modules: Sequence[Any], dtype: str | None) -> tuple[Any, Any]:
    """The type of the weights, and the one to cast to on the way, if that is another."""
    torch = sys.modules["torch"]
    weights = first_weights(modules)
    own = torch.float32 if weights is None else weights.dtype
    wanted = own if dtype is None else getattr(torch, dtype)
    if wanted != own and own != torch.float32:
        raise InvalidArgumentError(
            f"dtype is {dtype}, but the weights are {str(own).removeprefix('torch.')}: leave it out"
        )
    return own, None if wanted == own else wanted
