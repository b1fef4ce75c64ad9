"""Evaluators: policy and value of leaves, for the player to move.

An evaluator is an object with `evaluate(observations) -> (policy_logits [B, num_actions], values [B])`, or a plain
function of that form; or an object with `evaluate_states(states)` of the same form, for heuristics on the
states themselves. Beyond two players values are `[B, num_players]`. Both may be coroutine functions, for `Search.arun`.

`Uniform` and `Rollout` run inside the engine. Adapters: `Torch`, `Onnx`, `Keras`, `Jax`, and `Function` for a function
whose policy is probabilities. Wrappers: `Cached`, `Symmetric`. Modules are imported on first access here, network
libraries when an adapter is constructed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.evaluators.batch import Batch, Packed
from pondertree.evaluators.protocol import Evaluator, EvaluatorOutput, PackedEvaluator, StateEvaluator, evaluate_batch
from pondertree.evaluators.simple import Function, Rollout, Uniform
from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.evaluators.cached import Cached
    from pondertree.evaluators.jax_function import Jax
    from pondertree.evaluators.keras_model import Keras
    from pondertree.evaluators.onnx_session import Onnx
    from pondertree.evaluators.symmetry import Symmetric, Symmetry, symmetries_of
    from pondertree.evaluators.torch_module import Torch

__all__ = [
    "Batch",
    "Cached",
    "Evaluator",
    "EvaluatorOutput",
    "Function",
    "Jax",
    "Keras",
    "Onnx",
    "Packed",
    "PackedEvaluator",
    "Rollout",
    "StateEvaluator",
    "Symmetric",
    "Symmetry",
    "Torch",
    "Uniform",
    "evaluate_batch",
    "symmetries_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "cached": ["Cached"],
        "jax_function": ["Jax"],
        "keras_model": ["Keras"],
        "onnx_session": ["Onnx"],
        "symmetry": ["Symmetric", "Symmetry", "symmetries_of"],
        "torch_module": ["Torch"],
    },
)
