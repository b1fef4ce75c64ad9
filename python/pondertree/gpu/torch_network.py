"""What both adapters of PyTorch look at in a network: its modules, the types it computes in, and whether it is still
the one that was recorded.

PyTorch is not imported here: who has a module has loaded it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any

import torch
from torch import fx, nn

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


def network_key(modules: Sequence[Any], owner: Any = None) -> tuple[Any, ...]:
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


_RELU_FUNCTIONS = (torch.relu, nn.functional.relu, torch.relu_)
_ADD_FUNCTIONS = (operator.add, operator.iadd, torch.add)
#: Both round to the type of the weights, at different places.
_TOLERANCE = 0.05


def fused(module: nn.Module, example: Any) -> nn.Module | None:
    """The same network with convolutions, additions and ReLUs in one; None if that cannot be, or brings nothing.

    `example` is a batch of observations, by which both are compared before anything is believed.
    """
    if any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()):
        return None
    try:
        traced = fx.symbolic_trace(module)
        if not _rewrite(traced):
            return None
        before, after = module(example), traced(example)
        close = all(_alike(one, other) for one, other in zip(before, after, strict=True))
    except Exception:  # whatever a network does or answers that cannot be followed: it is then used as it is
        return None
    return traced if close else None


def _alike(one: Any, other: Any) -> bool:
    scale = float(one.abs().max()) + 1e-3
    return float((one - other).abs().max()) <= _TOLERANCE * scale


def _rewrite(traced: fx.GraphModule) -> bool:
    """Replaces every ReLU behind a convolution, or behind a sum with one: whether there was any."""
    parts = dict(traced.named_modules())
    found = False
    for node in list(traced.graph.nodes):
        if not _is_relu(node, parts):
            continue
        source = node.args[0]
        convolution, added = source, None
        if _is_sum(source):
            one, other = source.args
            convolution, added = (other, one) if _is_convolution(other, parts) else (one, other)
        if not _is_convolution(convolution, parts) or not isinstance(added, fx.Node | None):
            continue
        if len(source.users) > 1 or len(convolution.users) > 1:
            continue
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(_one_kernel(traced.graph, convolution, added, parts[convolution.target]))
        found = True
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return found


def _one_kernel(graph: fx.Graph, convolution: fx.Node, added: fx.Node | None, part: Any) -> fx.Node:
    weight = graph.get_attr(f"{convolution.target}.weight")
    bias = None if part.bias is None else graph.get_attr(f"{convolution.target}.bias")
    shape = (part.stride, part.padding, part.dilation, part.groups)
    if added is None:
        return graph.call_function(torch.cudnn_convolution_relu, (convolution.args[0], weight, bias, *shape))
    arguments = (convolution.args[0], weight, added, 1.0, bias, *shape)
    return graph.call_function(torch.cudnn_convolution_add_relu, arguments)


def _is_relu(node: fx.Node, parts: dict[str, Any]) -> bool:
    if node.op == "call_module":
        return type(parts[str(node.target)]) is nn.ReLU
    if node.op == "call_method":
        return node.target in ("relu", "relu_")
    return node.op == "call_function" and node.target in _RELU_FUNCTIONS


def _is_sum(node: Any) -> bool:
    return (
        isinstance(node, fx.Node)
        and node.op == "call_function"
        and node.target in _ADD_FUNCTIONS
        and len(node.args) == 2
        and not node.kwargs
        and all(isinstance(each, fx.Node) for each in node.args)
    )


def _is_convolution(node: Any, parts: dict[str, Any]) -> bool:
    if not isinstance(node, fx.Node) or node.op != "call_module":
        return False
    part = parts[str(node.target)]
    return type(part) is nn.Conv2d and part.padding_mode == "zeros" and not isinstance(part.padding, str)
