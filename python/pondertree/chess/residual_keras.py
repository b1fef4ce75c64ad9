"""The residual network in Keras, for `.keras` files; third-party Keras networks as evaluators.

Weights are exchanged as arrays with PyTorch's names and memory layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree._core import Chess
from pondertree.chess.config import NUM_MOVES, PLANES, POLICY_PLANES, ChessNetworkConfig
from pondertree.errors import EvaluationError, InvalidArgumentError
from pondertree.evaluators.outputs import flat_policy, next_power_of_two, pad_rows, policy_axes
from pondertree.files import current_format
from pondertree.optional import keras as keras_module

Weights = dict[str, NDArray[np.float32]]
#: The model name of our own networks, which are also recognised by their layers.
NAME = "pondertree_chess"


def build(config: ChessNetworkConfig) -> Any:
    """Builds the network without setting weights; channels-last inside, which every Keras backend supports."""
    keras = keras_module()
    layers = keras.layers

    def convolve(x: Any, name: str, filters: int, size: int) -> Any:
        x = layers.Conv2D(filters, size, padding="same", use_bias=False, name=f"{name}_conv{suffix}")(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{name}_norm{suffix}")(x)

    suffix = ""
    planes = keras.Input((PLANES, 8, 8), name="observation")
    x = layers.Permute((2, 3, 1), name="planes_last")(planes)
    x = layers.ReLU(name="stem_relu")(convolve(x, "stem", config.channels, 3))
    for number in range(config.blocks):
        block = f"blocks_{number}"
        suffix = "_1"
        y = layers.ReLU(name=f"{block}_relu_1")(convolve(x, block, config.channels, 3))
        suffix = "_2"
        y = convolve(y, block, config.channels, 3)
        x = layers.ReLU(name=f"{block}_relu_2")(layers.Add(name=f"{block}_add")([x, y]))
    suffix = ""
    policy = layers.ReLU(name="policy_relu")(convolve(x, "policy", config.channels, 3))
    policy = layers.Conv2D(POLICY_PLANES, 1, name="policy_out")(policy)
    policy = layers.Reshape((NUM_MOVES,), name="policy")(policy)
    value = layers.ReLU(name="value_relu")(convolve(x, "value", config.value_channels, 1))
    value = layers.Flatten(name="value_flatten")(value)
    value = layers.Dense(config.value_hidden, activation="relu", name="value_hidden")(value)
    value = layers.Dense(1, activation="tanh", name="value_out")(value)
    return keras.Model(planes, [policy, value], name=NAME)


def config_of(model: Any) -> ChessNetworkConfig | None:
    """Returns the architecture of one of our networks; None for a third-party one."""
    if current_format(model.name) != NAME:
        return None
    names = {layer.name: layer for layer in model.layers}
    try:
        config = ChessNetworkConfig(
            blocks=sum(name.startswith("blocks_") and name.endswith("_add") for name in names),
            channels=names["stem_conv"].filters,
            value_channels=names["value_conv"].filters,
            value_hidden=names["value_hidden"].units,
        )
    except (KeyError, AttributeError, InvalidArgumentError):
        return None
    return config if _outline(model) == _outline(build(config)) else None


def get_weights(model: Any) -> Weights:
    """Returns the weights of one of our networks."""
    weights: Weights = {}
    for name, layer in _weighted(model):
        arrays = [np.asarray(array, dtype=np.float32) for array in layer.get_weights()]
        if len(arrays) == 4:
            weights.update(zip(_norm(name), arrays, strict=True))
            continue
        weights[f"{name}.weight"] = np.ascontiguousarray(arrays[0].transpose(_TO_TORCH[arrays[0].ndim]))
        if len(arrays) == 2:
            weights[f"{name}.bias"] = arrays[1]
    return weights


def set_weights(model: Any, weights: Weights) -> None:
    """Sets the weights of one of our networks."""
    for name, layer in _weighted(model):
        if len(layer.weights) == 4:
            layer.set_weights([weights[key] for key in _norm(name)])
            continue
        kernel = weights[f"{name}.weight"]
        arrays = [kernel.transpose(_TO_KERAS[kernel.ndim])]
        if len(layer.weights) == 2:
            arrays.append(weights[f"{name}.bias"])
        layer.set_weights(arrays)


class KerasNetwork:
    """A Keras network from chess observations to a policy [4672] and a value."""

    def __init__(self, model: Any) -> None:
        self.module = model
        inputs, outputs = (list(getattr(model, name, None) or []) for name in ("inputs", "outputs"))
        shapes = [tuple(tensor.shape[1:]) for tensor in inputs]
        if shapes not in ([(PLANES, 8, 8)], [(8, 8, PLANES)]):
            raise InvalidArgumentError(
                f"this Keras network takes {shapes}: it must take one input of shape (119, 8, 8) or (8, 8, 119)"
            )
        self._planes_last = shapes == [(8, 8, PLANES)]
        sizes = [math.prod(size or 0 for size in tensor.shape[1:]) for tensor in outputs]
        if sorted(sizes) != [1, NUM_MOVES]:
            raise InvalidArgumentError(
                f"this Keras network gives {[tuple(tensor.shape[1:]) for tensor in outputs]}: it must give a policy of "
                f"{NUM_MOVES} moves and one value"
            )
        self._policy, self._value = sizes.index(NUM_MOVES), sizes.index(1)
        try:
            policy_axes((1, *outputs[self._policy].shape[1:]))
        except EvaluationError as error:
            raise InvalidArgumentError(f"this Keras network cannot be read: {error}") from error
        self._pads = keras_module().backend.backend() == "jax"  # which recompiles for every batch size
        # Files do not declare logits or probabilities; logits are not positive with sum 1 for two different inputs.
        probe, _ = self._raw(np.stack([Chess().observation(), np.zeros((PLANES, 8, 8), dtype=np.float32)]))
        self.gives_probabilities = bool((probe >= 0).all() and np.allclose(probe.sum(axis=1), 1, atol=1e-3))

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns (logits [B, 4672], values [B])."""
        policy, values = self._raw(observations)
        if self.gives_probabilities:
            policy = np.log(np.maximum(policy, np.finfo(np.float32).tiny))
        return policy, values

    def _raw(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        given = observations.transpose(0, 2, 3, 1) if self._planes_last else observations
        rows = len(observations)
        if self._pads:
            given = pad_rows(given, next_power_of_two(rows))
        # Outputs may be a dict; flattened, they are in the order of `model.outputs`.
        answer = keras_module().tree.flatten(self.module.predict_on_batch(np.ascontiguousarray(given)))
        policy = flat_policy(np.asarray(answer[self._policy], dtype=np.float32)[:rows])
        values = np.asarray(answer[self._value], dtype=np.float32)[:rows]
        return np.ascontiguousarray(policy), values.reshape(rows)


def load(path: Path) -> Any:
    """Loads the network of a file without executing code from it."""
    keras_module()
    from pondertree.evaluators.keras_model import Keras

    return Keras(path).model


_TO_TORCH = {4: (3, 2, 0, 1), 2: (1, 0)}
_TO_KERAS = {4: (2, 3, 1, 0), 2: (1, 0)}


def _norm(name: str) -> list[str]:
    return [f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]


def _weighted(model: Any) -> Iterator[tuple[str, Any]]:
    """Yields the layers with weights under their PyTorch names: blocks_3_conv_1 is blocks.3.conv_1."""
    for layer in model.layers:
        if layer.weights:
            _, marker, rest = layer.name.partition("blocks_")
            number, _, part = rest.partition("_")
            yield (f"blocks.{number}.{part}" if marker else layer.name), layer


def _outline(model: Any) -> list[tuple[str, str, list[tuple[int, ...]]]]:
    return [
        (layer.name, type(layer).__name__, [tuple(weight.shape) for weight in layer.weights]) for layer in model.layers
    ]
