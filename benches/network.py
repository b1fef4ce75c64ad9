"""A residual policy-value network for Connect 4 as an ONNX model, with random weights: 5 blocks of 64 channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ACTIONS, PLANES, HEIGHT, WIDTH = 7, 3, 6, 7


def connect_four_network(blocks: int = 5, channels: int = 64, seed: int = 0) -> bytes:
    """Returns the serialised model: observations [B, 3, 6, 7] to `policy` [B, 7] and `value` [B, 1]."""
    draw = np.random.default_rng(seed)
    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(name: str, *shape: int) -> str:
        scale = 1.0 / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array((draw.standard_normal(shape) * scale).astype(np.float32), name))
        return name

    def conv(name: str, source: str, fan_in: int, fan_out: int, size: int) -> str:
        inputs = [source, weight(f"{name}_w", fan_out, fan_in, size, size), weight(f"{name}_b", fan_out)]
        nodes.append(helper.make_node("Conv", inputs, [name], kernel_shape=[size, size], pads=[size // 2] * 4))
        return name

    def step(kind: str, name: str, *sources: str) -> str:
        nodes.append(helper.make_node(kind, list(sources), [name]))
        return name

    trunk = step("Relu", "stem_r", conv("stem", "observation", PLANES, channels, 3))
    for block in range(blocks):
        inner = step("Relu", f"b{block}_r", conv(f"b{block}_1", trunk, channels, channels, 3))
        added = step("Add", f"b{block}_a", conv(f"b{block}_2", inner, channels, channels, 3), trunk)
        trunk = step("Relu", f"b{block}_o", added)
    cells = HEIGHT * WIDTH
    policy = step("Flatten", "policy_f", step("Relu", "policy_r", conv("policy_c", trunk, channels, 2, 1)))
    nodes.append(helper.make_node("Gemm", [policy, weight("policy_w", 2 * cells, ACTIONS)], ["policy"]))
    value = step("Flatten", "value_f", step("Relu", "value_r", conv("value_c", trunk, channels, 1, 1)))
    nodes.append(helper.make_node("Gemm", [value, weight("value_w", cells, 1)], ["value_g"]))
    step("Tanh", "value", "value_g")
    graph = helper.make_graph(
        nodes,
        "connect_four",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["B", PLANES, HEIGHT, WIDTH])],
        [
            helper.make_tensor_value_info("policy", TensorProto.FLOAT, ["B", ACTIONS]),
            helper.make_tensor_value_info("value", TensorProto.FLOAT, ["B", 1]),
        ],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())
