"""Trained policy-value networks in NumPy, for machines without PyTorch; equal to PyTorch up to rounding.

Convolutions are matrix products of patches (im2col), channels last. Products run on one OpenBLAS thread: they are
small, and contention between BLAS threads made one evaluation thirty times slower on a busy machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from pondertree.errors import EvaluationError, StorageError
from pondertree.files import reading
from pondertree.forks import after_fork_in_child
from pondertree.models.support import Support
from pondertree.networks.architecture import Architecture
from pondertree.networks.weights_file import read_weights

Array = NDArray[np.float32]

#: Rows per matrix product: the patches of more exceed the cache.
ROWS = 32


def load_numpy_player(path: Path) -> NumpyPlayer | None:
    """Loads the player of a file; returns None for a model (of a MuZero run)."""
    with reading(path, "a player", StorageError) as file:
        about, weights = read_weights(file.read_bytes())
        network = about.get("network")
        if isinstance(network, dict) and network.get("kind") == "model":
            return None
        return NumpyPlayer(about, weights)


class NumpyPlayer:
    """A trained policy-value network as an evaluator; thread-safe."""

    policy = "logits"
    device = "cpu"

    def __init__(self, about: dict[str, Any], weights: dict[str, Array]) -> None:
        """`weights` must match the network that `about` describes."""
        self.about = about
        """Metadata of the file: game, step, network."""
        self.version = 0
        """Part of the key of a `Cached` around it; change it to invalidate cached answers."""
        architecture = Architecture.of_data(about.get("network"))
        expected = architecture.weight_shapes()
        found = {name: array.shape for name, array in weights.items()}
        wrong = [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
        if wrong:
            name = wrong[0]
            raise StorageError(
                f"its weights do not fit the network it describes: {repr(name)[:80]} has shape {found.get(name)}, "
                f"not {expected.get(name)}"
            )
        self.shape = architecture.shape
        self._blocks = architecture.size.blocks
        self._support = Support(architecture.support) if architecture.support else None
        # Dense layers after a flatten see all squares at once, channels first in the file.
        flattened = (
            ("value_hidden.weight",) if architecture.policy_planes else ("value_hidden.weight", "policy_out.weight")
        )
        # Matrices [inputs, outputs]; convolutions take patches [rows, columns, channels] as one row.
        self._matrices = {
            name.removesuffix(".weight"): _matrix(array, architecture.cells if name in flattened else 1)
            for name, array in weights.items()
            if name.endswith(".weight")
        }
        self._biases = {name.removesuffix(".bias"): array for name, array in weights.items() if name.endswith(".bias")}
        self._kernel_size = {
            name.removesuffix(".weight"): shape[-1] for name, shape in expected.items() if len(shape) == 4
        }

    def evaluate(self, observations: Array) -> tuple[Array, Array]:
        """Returns (policy_logits [B, num_actions], values [B]), for the player to move.

        Values are from -1 to 1, of a player trained on rewards expected returns.
        """
        given = np.asarray(observations, dtype=np.float32)
        if given.shape[1:] != self.shape:
            game = self.about.get("game")
            name = f"of {game}, which" if game else "that"
            raise EvaluationError(
                f"this is a player {name} takes observations of shape {self.shape}, not {given.shape[1:]}"
            )
        # Overflow is rejected by the check of every evaluator's output.
        with np.errstate(all="ignore"), _SINGLE_THREADED.region():
            parts = [self._forward(given[first : first + ROWS]) for first in range(0, max(len(given), 1), ROWS)]
        if len(parts) == 1:
            return parts[0]
        logits, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return logits, values

    def _forward(self, observations: Array) -> tuple[Array, Array]:
        is_board = len(self.shape) == 3
        x = np.ascontiguousarray(np.moveaxis(observations, 1, -1)) if is_board else _flat(observations)
        x = _relu(self._layer("stem", x))
        for number in range(self._blocks):
            y = self._layer(f"blocks.{number}.second", _relu(self._layer(f"blocks.{number}.first", x)))
            y += x
            x = _relu(y)
        policy = _relu(self._layer("policy_layer", x))
        if "policy_out" not in self._kernel_size:
            policy = _flat(policy)
        # An action on a board may be `cell * policy_planes + plane` (chess has 73); planes are the last axis.
        logits = _flat(self._layer("policy_out", policy))
        value = _flat(_relu(self._layer("value_layer", x)))
        outcomes = self._layer("value_out", _relu(self._layer("value_hidden", value)))
        if self._support is not None:
            expected: Array = self._support.to_scalar(outcomes)
            return logits, expected
        shares = np.exp(outcomes - outcomes.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return logits, shares[:, 0] - shares[:, 2]

    def _layer(self, name: str, x: Array) -> Array:
        """Applies a dense layer over the last axis, or a convolution of boards [B, H, W, C]."""
        if self._kernel_size.get(name, 1) == 3:
            x = _patches(x)
        y: Array = x.reshape(-1, x.shape[-1]) @ self._matrices[name]
        y += self._biases[name]
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def __repr__(self) -> str:
        return f"NumpyPlayer({self.about.get('game') or 'unnamed'}, step={self.about.get('step')})"


class _SingleThreadedBlas:
    """Limits NumPy's OpenBLAS to one thread while any thread of the process is in a region.

    The limit is process-wide: unrelated products run on one thread meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        """Number of threads in a region."""
        self._threads_before = 1
        """The limit to restore; meaningful while `_depth` > 0."""

    @contextlib.contextmanager
    def region(self) -> Iterator[None]:
        """A region; the end of the last one restores the limit."""
        functions = openblas_threads()
        if functions is None:
            yield
            return
        get, change = functions
        with self._lock:
            if self._depth == 0:
                self._threads_before = get()
                change(1)
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    change(self._threads_before)

    def renew(self) -> None:
        """Resets a forked child, which has none of the parent's threads: restores the limit and replaces the lock."""
        functions = openblas_threads()
        if functions is not None and self._depth > 0:
            functions[1](self._threads_before)
        self._depth = 0
        self._lock = threading.Lock()


_SINGLE_THREADED = _SingleThreadedBlas()
after_fork_in_child(_SINGLE_THREADED.renew)


@lru_cache(maxsize=1)
def openblas_threads() -> tuple[Any, Any] | None:
    """Returns (get, set) of OpenBLAS's thread limit; None if NumPy uses another library."""
    compiled = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    # Wheels bundle the library; other builds expose it through the module that NumPy links.
    paths = [*(Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"), getattr(compiled, "__file__", None)]
    for path in paths:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in ("scipy_", ""):
            for suffix in ("64_", ""):
                with contextlib.suppress(AttributeError):
                    get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}")
                    change = getattr(library, f"{prefix}openblas_set_num_threads{suffix}")
                    get.argtypes, get.restype = (), ctypes.c_int
                    change.argtypes, change.restype = (ctypes.c_int,), None
                    return get, change
    return None


def _matrix(weight: Array, cells: int) -> Array:
    """Returns a layer's matrix [inputs, outputs]; a dense one of `cells` squares is permuted to channels last."""
    outputs = len(weight)
    if weight.ndim == 4:
        weight = weight.transpose(0, 2, 3, 1)
    elif cells > 1:
        weight = weight.reshape(outputs, -1, cells).transpose(0, 2, 1)
    return np.ascontiguousarray(weight.reshape(outputs, -1).T)


def _patches(x: Array) -> Array:
    """Returns the 3 x 3 neighbourhoods of boards [B, H, W, C], zero-padded: [B, H, W, 9 C]."""
    rows, height, width, channels = x.shape
    bordered = np.zeros((rows, height + 2, width + 2, channels), dtype=np.float32)
    bordered[:, 1:-1, 1:-1] = x
    row, down, right, channel = bordered.strides
    shape, strides = (rows, height, width, 3, 3, channels), (row, down, right, down, right, channel)
    return as_strided(bordered, shape, strides, writeable=False).reshape(rows, height, width, 9 * channels)


def _flat(x: Array) -> Array:
    """Flattens to [B, -1]; B may be 0."""
    return x.reshape(len(x), math.prod(x.shape[1:]))


def _relu(x: Array) -> Array:
    """ReLU in place."""
    return np.maximum(x, 0.0, out=x)
