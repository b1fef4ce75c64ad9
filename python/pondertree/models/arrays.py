"""Arrays of NumPy, PyTorch and JAX: detection, conversion and dtype promotion.

No library is imported here: if it is not loaded, no object is an array of it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree.errors import EvaluationError


def library_of(array: Any) -> str | None:
    """Returns "numpy", "torch" or "jax" for an array of that library, else None."""
    if isinstance(array, np.ndarray):
        return "numpy"
    # If the library is not loaded (or is just being loaded), nothing is an instance of the empty tuple.
    if isinstance(array, getattr(sys.modules.get("torch"), "Tensor", ())):
        return "torch"
    if isinstance(array, getattr(sys.modules.get("jax"), "Array", ())):
        return "jax"
    return None


def namespace_of(array: Any) -> Any:
    """Returns the array's namespace: `numpy` (also for numbers and lists), `torch` or `jax.numpy`."""
    library = library_of(array)
    if library == "torch":
        return sys.modules["torch"]
    return sys.modules["jax"].numpy if library == "jax" else np


def number_array(given: Any, name: str) -> NDArray[Any]:
    """Converts an array of any library and device, or lists, to a NumPy array of numbers."""
    if type(given) is np.ndarray and given.dtype.kind in "fiub":
        return given
    try:
        if given is None:
            raise TypeError("it is None")
        if library_of(given) == "torch":
            # NumPy has no bfloat16 and cannot read tensors with gradients or on a device.
            narrow = given.is_floating_point() and given.element_size() < 4
            array: NDArray[Any] = (given.detach().float() if narrow else given.detach()).cpu().numpy()
        else:
            array = np.asarray(given)
            if array.dtype.kind == "V" and array.dtype.names is None:  # JAX's bfloat16 and float8
                array = array.astype(np.float32)
            elif array.dtype.kind == "O":
                array = array.astype(np.float64)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"their dtype is {array.dtype}")
    except Exception as error:
        raise EvaluationError(f"{name} cannot be read as numbers: {error}") from error
    return array


def to_raw(array: Any) -> NDArray[Any]:
    """Returns an array of any library and device as one of NumPy; dtypes that NumPy lacks become unsigned integers."""
    if library_of(array) == "torch":
        array = array.detach().cpu().contiguous()
        try:
            raw: NDArray[Any] = array.numpy()
        except TypeError:  # bfloat16, float8
            torch = sys.modules["torch"]
            raw = (
                array.view({1: torch.uint8, 2: torch.int16}[array.element_size()])
                .numpy()
                .view(f"u{array.element_size()}")
            )
        return raw
    raw = np.asarray(array)
    return raw.view(f"u{raw.dtype.itemsize}") if raw.dtype.kind == "V" else raw


def from_raw(raw: NDArray[Any], library: str, dtype: str, device: Any) -> Any:
    """Returns the array of `to_raw` in its library, with its dtype, on a device (None: the default one)."""
    if library == "torch":
        torch = importlib.import_module("torch")
        narrow = raw.dtype.kind == "u" and dtype != raw.dtype.name
        array = torch.from_numpy(raw.view(f"i{raw.itemsize}").copy() if narrow else raw.copy())
        return (array.view(getattr(torch, dtype)) if narrow else array).to(device)
    if library == "jax":
        numpy = importlib.import_module("jax.numpy")
        return numpy.asarray(raw if raw.dtype.name == dtype else raw.view(numpy.dtype(dtype)))
    return raw


def dtype_name(array: Any) -> str:
    """Returns the dtype's name, such as "float32", in every library."""
    return str(array.dtype).removeprefix("torch.")


def wider(array: Any, dtype: Any) -> Any:
    """Returns the dtype that holds `dtype` and the array's dtype without loss; None if they differ in kind.

    float32 and float64 have one; integers and floats have not, since large integers would be rounded.
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


#: The smallest range that is divided by, so that constant rows stay finite.
LEAST = 1e-5


def min_max(hidden: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Scales each row of hidden states [B, ...] to [0, 1], the range of encoded actions (MuZero, appendix G).

    Minimum and maximum are taken over `axes`, by default all but the first; for images [B, C, H, W], (2, 3) scales each
    channel separately. Takes arrays of NumPy, PyTorch or JAX; differentiable.
    """
    if library_of(hidden) is None:
        hidden = np.asarray(hidden, dtype=np.float64)
    xp = namespace_of(hidden)
    over = tuple(range(1, hidden.ndim)) if axes is None else axes
    least = xp.amin(hidden, axis=over, keepdims=True)
    span = xp.amax(hidden, axis=over, keepdims=True) - least
    return (hidden - least) / xp.clip(span, LEAST, None)
