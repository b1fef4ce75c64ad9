"""Learned models: what MuZero plans in.

A model is an object with `initial_inference(observations) -> (hidden_state, policy_logits, value)` and
`recurrent_inference(hidden_states, actions) -> (hidden_state, reward, policy_logits, value)`, both for whole batches; a
fifth array `discount` may follow. See `Model` for shapes and whose view they are.

Ready are an adapter for plain functions (`FunctionModel`), and what the search asks a model by: `Inference`, which
checks every answer, and `HiddenPool`, which keeps hidden states on the model's own device. Files of adapters are
imported when they are first named here, and a network library when an adapter is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ponderosa.models.protocol import Model, check_model

if TYPE_CHECKING:
    from ponderosa.models.answers import RootAnswer, StepAnswer
    from ponderosa.models.function import FunctionModel
    from ponderosa.models.inference import Inference
    from ponderosa.models.pool import HiddenPool

__all__ = [
    "FunctionModel",
    "HiddenPool",
    "Inference",
    "Model",
    "RootAnswer",
    "StepAnswer",
    "check_model",
]

_FILES = {
    "FunctionModel": "function",
    "HiddenPool": "pool",
    "Inference": "inference",
    "RootAnswer": "answers",
    "StepAnswer": "answers",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
