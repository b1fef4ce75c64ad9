"""Arrays of NumPy, PyTorch and JAX told apart. No library is imported for it: where it is not loaded, nothing is its.

What a model answers comes from any of the three, and `number_array` reads it; what hidden states look like is read
off by `library_of`, `dtype_name` and `wider`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError


def library_of(thing: Any) -> str | None:
    """ "numpy", "torch" or "jax" for an array of theirs; None for anything else."""
    if isinstance(thing, np.ndarray):
        return "numpy"
    # An empty tuple where the library is not loaded (or is only being loaded): nothing is an instance of it.
    if isinstance(thing, getattr(sys.modules.get("torch"), "Tensor", ())):
        return "torch"
    if isinstance(thing, getattr(sys.modules.get("jax"), "Array", ())):
        return "jax"
    return None


def namespace_of(thing: Any) -> Any:
    """The module whose functions take this array: `numpy`, `torch` or `jax.numpy`. Numbers and lists are NumPy's."""
    library = library_of(thing)
    if library == "torch":
        return sys.modules["torch"]
    return sys.modules["jax"].numpy if library == "jax" else np


def number_array(given: Any, name: str) -> NDArray[Any]:
    """Numbers from any of the libraries and any device, or from lists, as a NumPy array."""
    if type(given) is np.ndarray and given.dtype.kind in "fiub":
        return given
    try:
        if given is None:
            raise TypeError("there are none")
        if library_of(given) == "torch":
            # NumPy has no bfloat16, and reads neither what has gradients nor what lies on a device.
            narrow = given.is_floating_point() and given.element_size() < 4
            array: NDArray[Any] = (given.detach().float() if narrow else given.detach()).cpu().numpy()
        else:
            array = np.asarray(given)
            if array.dtype.kind == "V" and array.dtype.names is None:  # JAX's bfloat16 and its kind
                array = array.astype(np.float32)
            elif array.dtype.kind == "O":
                array = array.astype(np.float64)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"their dtype is {array.dtype}")
    except Exception as error:
        raise EvaluationError(f"{name} cannot be read as numbers: {error}") from error
    return array


def dtype_name(array: Any) -> str:
    """ "float32" in every library."""
    return str(array.dtype).removeprefix("torch.")


def wider(array: Any, dtype: Any) -> Any:
    """The type that holds both `dtype` and the array's without loss; None where there is none in their kind.

    float32 and float64 have one, integers and floating numbers have not: a large integer would be rounded.
    """
    library = library_of(array)
    if library == "torch":
        torch = sys.modules["torch"]
        both = torch.promote_types(array.dtype, dtype)
        kinds = {_torch_kind(each) for each in (array.dtype, dtype, both)}
        return both if len(kinds) == 1 else None
    try:
        both = (sys.modules["jax"].numpy.promote_types if library == "jax" else np.result_type)(array.dtype, dtype)
    except TypeError:  # records, dates
        return None
    kinds = {"i" if each.kind == "u" else each.kind for each in (array.dtype, dtype, both)}
    return both if len(kinds) == 1 or kinds == {"V", "f"} else None


def _torch_kind(dtype: Any) -> str:
    if dtype.is_floating_point:
        return "f"
    return "c" if dtype.is_complex else "b" if str(dtype) == "torch.bool" else "i"


#: The least range that is stretched to 1: a row whose numbers are all alike stays finite.
LEAST = 1e-5


def min_max(hidden: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Hidden states [B, ...] with each row scaled to [0, 1], the range of encoded actions (MuZero, appendix G).

    `axes`: over which the least and the greatest number are sought, by default all but the first. For images
    [B, C, H, W], (2, 3) scales each channel by itself. For arrays of NumPy, PyTorch or JAX; gradients pass.
    """
    if library_of(hidden) is None:
        hidden = np.asarray(hidden, dtype=np.float64)
    xp = namespace_of(hidden)
    over = tuple(range(1, hidden.ndim)) if axes is None else axes
    least = xp.amin(hidden, axis=over, keepdims=True)
    span = xp.amax(hidden, axis=over, keepdims=True) - least
    return (hidden - least) / xp.clip(span, LEAST, None)
