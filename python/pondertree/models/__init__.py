"""Learned models: what MuZero plans in.

A model is an object with `initial_inference(observations) -> (hidden_state, policy_logits, value)` and
`recurrent_inference(hidden_states, actions) -> (hidden_state, reward, policy_logits, value)`, both for whole batches; a
fifth array `discount` may follow. See `Model` for shapes and whose view they are.

Ready are adapters (`TorchModel`, `JaxModel`, `FunctionModel` for plain functions, `Parts` for the paper's three
functions, `SeedForm` for the form of the MuZero specification), and what the search asks a model by: `as_model`, which
finds the adapter that is needed, `Inference`, which checks every answer, and `HiddenPool`, which keeps hidden
states on the model's own device. For networks there are `Support`, categorical values and rewards, and `min_max`, the
scale of hidden states.
Files are imported when they are first named here, and a network library when an adapter is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pondertree.models.inference import Model, check_model

if TYPE_CHECKING:
    from pondertree.models.adapters import FunctionModel, Parts, SeedForm
    from pondertree.models.arrays import min_max
    from pondertree.models.inference import Inference
    from pondertree.models.jax_model import JaxModel
    from pondertree.models.pool import HiddenPool
    from pondertree.models.resolve import as_model
    from pondertree.models.responses import RootAnswer, StepAnswer
    from pondertree.models.support import Support
    from pondertree.models.torch_model import TorchModel

__all__ = [
    "FunctionModel",
    "HiddenPool",
    "Inference",
    "JaxModel",
    "Model",
    "Parts",
    "RootAnswer",
    "SeedForm",
    "StepAnswer",
    "Support",
    "TorchModel",
    "as_model",
    "check_model",
    "min_max",
]

_FILES = {
    "FunctionModel": "adapters",
    "HiddenPool": "pool",
    "Inference": "inference",
    "JaxModel": "jax_model",
    "Parts": "adapters",
    "RootAnswer": "responses",
    "SeedForm": "adapters",
    "StepAnswer": "responses",
    "Support": "support",
    "TorchModel": "torch_model",
    "as_model": "resolve",
    "min_max": "arrays",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
