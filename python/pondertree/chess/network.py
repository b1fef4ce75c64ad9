"""`ChessNN`: the residual policy-value network of the AlphaZero chess specification."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import optional, validation
from pondertree.chess import residual_keras
from pondertree.chess.config import NUM_MOVES, PLANES, ChessNetworkConfig
from pondertree.chess.residual_keras import KerasNetwork
from pondertree.errors import InvalidArgumentError, MissingFileError, UsageError
from pondertree.evaluators.batch import Packed
from pondertree.files import check_path, current_format, reading
from pondertree.games import chess_interop
from pondertree.optional import require

Floats = NDArray[np.float32]
FORMAT = "pondertree.chess.ChessNN"


class ChessNN:
    """A residual network from observations [B, 119, 8, 8] to policy logits [B, 4672] and values [B], from the mover's
    side; an evaluator for any search.

    A stem, `blocks` residual blocks of `channels` channels, a policy head of 73 planes and a value head. `build()`
    initialises the weights, `load_model(path)` reads them; any use before that raises a UsageError. Runs in PyTorch on
    `device` (None: a GPU if available).

    Files are `.safetensors` (needs PyTorch) or `.keras` (needs Keras as well); loading executes no code from a file.
    Third-party `.keras` networks are used as they are if their input is (119, 8, 8) or (8, 8, 119) and their outputs
    are 4672 moves and a value; a final softmax is detected.
    """

    #: The form of the policy that `evaluate` returns.
    policy = "logits"

    def __init__(
        self,
        blocks: int = 6,
        channels: int = 64,
        value_channels: int = 8,
        value_hidden: int = 64,
        *,
        device: str | None = None,
    ) -> None:
        #: The architecture; None for a third-party network.
        self.config: ChessNetworkConfig | None = ChessNetworkConfig(blocks, channels, value_channels, value_hidden)
        self.device = device
        self._network: Any = None
        self._builds = 0

    @property
    def version(self) -> tuple[int, int]:
        """Changes with the weights, which invalidates a `Cached` around the network.

        Covers `build`, `load_model` and in-place training with PyTorch. After training a network run by Keras, call
        `Cached.clear()`.
        """
        network = self._network
        return self._builds, network.weights_version() if hasattr(network, "weights_version") else 0

    @property
    def is_built(self) -> bool:
        """Whether `build` or `load_model` was called."""
        return self._network is not None

    def require_built(self) -> None:
        """Raises a UsageError if the network is not built."""
        if self._network is None:
            raise UsageError("this ChessNN has no network yet: call build() or load_model() first")

    def build(self, seed: int | None = None) -> ChessNN:
        """Initialises the weights, reproducibly for a given `seed`, and returns self."""
        if self.config is None:
            raise UsageError("this ChessNN holds a third-party network: build a new ChessNN(...) instead")
        optional.torch()
        from pondertree.chess.residual_torch import fresh

        self._take_torch(
            fresh(self.config, None if seed is None else validation.whole_number(seed, "seed")), self.config
        )
        return self

    @property
    def module(self) -> Any:
        """The underlying `torch.nn.Module`, or the Keras model where Keras runs the network."""
        self.require_built()
        return self._network.module

    def evaluate(self, observations: Any) -> tuple[Floats, Floats]:
        """Returns (policy logits [B, 4672], values [B]) of observations [B, 119, 8, 8]."""
        self.require_built()
        array = np.ascontiguousarray(observations, dtype=np.float32)
        if array.ndim != 4 or array.shape[1:] != (PLANES, 8, 8):
            raise InvalidArgumentError(f"observations must be [B, {PLANES}, 8, 8], not {list(array.shape)}")
        if len(array) == 0:
            return np.zeros((0, NUM_MOVES), dtype=np.float32), np.zeros(0, dtype=np.float32)
        logits, values = self._network.evaluate(array)
        return logits, values

    def evaluate_packed(self, packed: Packed) -> tuple[Floats, Floats]:
        """Returns (logits of the legal moves, values [B]) of packed positions: the fast path of `evaluate`."""
        self.require_built()
        if hasattr(self._network, "evaluate_packed"):
            logits, values = self._network.evaluate_packed(packed)
            return logits, values
        logits, values = self._network.evaluate(packed.unpack())
        return logits[packed.rows(), packed.legal_actions], values

    def predict(self, position: Any) -> tuple[Floats, Any]:
        """Returns (policy [4672], value) of a `ChessGame`, a `chess.Board`, a state or an observation [119, 8, 8].

        The policy is the softmax over all 4672 moves, without masking illegal ones; the value is in [-1, 1] for the
        side to move. A list of positions, or observations [B, 119, 8, 8], return ([B, 4672], [B]).
        """
        self.require_built()
        many = isinstance(position, (list, tuple)) or getattr(position, "ndim", 3) == 4
        if isinstance(position, (list, tuple)) and not position:
            raise InvalidArgumentError("position is an empty list: give at least one")
        logits, values = self.evaluate(_observations(position if many else [position]))
        policy = np.exp(logits - logits.max(axis=1, keepdims=True))
        policy /= policy.sum(axis=1, keepdims=True)
        return (policy, values) if many else (policy[0], float(values[0]))

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes the network to a `.safetensors` or `.keras` file, replacing an existing one atomically."""
        self.require_built()
        target = check_path(path, "path")
        kind = _kind(target)
        check_path(_temporary(target), "path")
        if not target.parent.is_dir():
            raise MissingFileError(f"there is no folder {str(target.parent)!r} to save {target.name} in")
        ours = not isinstance(self._network, KerasNetwork)
        if kind == ".keras":
            model = self._keras_model() if ours else self.module
            with _replacing(target) as temporary:
                model.save(temporary)
            return
        if not ours:
            raise InvalidArgumentError("a network run by Keras can only be saved as a .keras file")
        save_file = require("safetensors.torch", "torch", "a .safetensors file").save_file
        metadata = {"format": FORMAT, "version": "1", "config": json.dumps(asdict(self.module.config))}
        tensors = {
            name: (tensor.float() if tensor.is_floating_point() else tensor).cpu().contiguous()
            for name, tensor in self.module.state_dict().items()
        }
        with _replacing(target) as temporary:
            save_file(tensors, temporary, metadata=metadata)

    def load_model(self, path: str | os.PathLike[str]) -> ChessNN:
        """Reads architecture and weights from a `.safetensors` or `.keras` file; unchanged after an error."""
        source = check_path(path, "path")
        kind = _kind(source)
        if not source.is_file():
            raise MissingFileError(f"there is no file {str(source)!r}")
        if kind == ".keras":
            self._load_keras(source)
        else:
            self._load_safetensors(source)
        return self

    def _load_safetensors(self, source: Path) -> None:
        optional.torch()
        safe_open = require("safetensors", "torch", "a .safetensors file").safe_open
        from pondertree.chess.residual_torch import of_tensors

        with reading(source, "a network"):
            with safe_open(source, framework="pt", device="cpu") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in list(file.keys())}
            if current_format(metadata.get("format")) != FORMAT or metadata.get("version") != "1":
                raise InvalidArgumentError("it was not written by this version of ChessNN.save_model")
            config = ChessNetworkConfig(**json.loads(metadata["config"]))
            module = of_tensors(config, tensors)
        self._take_torch(module, config)

    def _load_keras(self, source: Path) -> None:
        model = residual_keras.load(source)
        config = residual_keras.config_of(model)
        if config is None or find_spec("torch") is None:
            self._network = KerasNetwork(model)
            self.config = config
            self._builds += 1
            return
        from pondertree.chess.residual_torch import fresh, set_weights

        module = fresh(config, 0)
        set_weights(module, residual_keras.get_weights(model))
        self._take_torch(module, config)

    def _take_torch(self, module: Any, config: ChessNetworkConfig) -> None:
        import torch

        from pondertree.evaluators.torch_module import Torch

        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._network = Torch(module.eval(), device)
        self.config = config
        self._builds += 1

    def _keras_model(self) -> Any:
        from pondertree.chess.residual_torch import get_weights

        model = residual_keras.build(self.module.config)
        residual_keras.set_weights(model, get_weights(self.module))
        return model

    def __repr__(self) -> str:
        if self.config is None:
            return f"ChessNN(<{type(self.module).__name__} of a third party>)"
        built = "" if self.is_built else ", not built"
        return f"ChessNN(blocks={self.config.blocks}, channels={self.config.channels}{built})"


def _observations(positions: Sequence[Any] | NDArray[Any]) -> Floats:
    rows = []
    for position in positions:
        state = chess_interop.to_state(position)
        row = np.asarray(state.observation() if hasattr(state, "observation") else state, dtype=np.float32)
        if row.shape != (PLANES, 8, 8):
            raise InvalidArgumentError(
                "a position must be a ChessGame, a chess.Board, a Chess state or an observation of shape "
                f"({PLANES}, 8, 8), not {type(position).__name__} of shape {row.shape}"
            )
        rows.append(row)
    return np.stack(rows) if rows else np.zeros((0, PLANES, 8, 8), dtype=np.float32)


def _kind(path: Path) -> str:
    if path.suffix not in (".safetensors", ".keras"):
        raise InvalidArgumentError(f"{str(path)!r} must end in .safetensors or .keras")
    return path.suffix


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.stem}.{os.getpid()}.tmp{target.suffix}")


@contextmanager
def _replacing(target: Path) -> Iterator[str]:
    """Yields a temporary path in the same folder, which replaces `target` on exit."""
    temporary = _temporary(target)
    try:
        yield str(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
