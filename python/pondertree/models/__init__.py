"""Learned models, in which MuZero plans.

A model is an object with `initial_inference(observations) -> (hidden_state, policy_logits, value)` and
`recurrent_inference(hidden_states, actions) -> (hidden_state, reward, policy_logits, value)`, both for whole batches; a
fifth array `discount` may follow. See `Model` for shapes and perspectives.

Adapters: `TorchModel`, `JaxModel`, `FunctionModel` for plain functions, `ComposedModel` for the paper's functions,
`SpecificationModel` for the interface of the MuZero specification; `as_model` selects one. The search calls a model
through `Inference`, which validates every output, and keeps hidden states in `HiddenPool`, on the model's device. For
networks there are `Support`, categorical values and rewards, and `min_max`, the scaling of hidden states.

Modules are imported on first access here, network libraries when an adapter is constructed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.models.protocol import Model, check_model
from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.models.adapters import ComposedModel, FunctionModel, SpecificationModel
    from pondertree.models.arrays import min_max
    from pondertree.models.inference import Inference
    from pondertree.models.jax_model import JaxModel
    from pondertree.models.pool import HiddenPool
    from pondertree.models.resolve import as_model
    from pondertree.models.responses import InitialOutput, RecurrentOutput
    from pondertree.models.support import Support
    from pondertree.models.torch_model import TorchModel

__all__ = [
    "ComposedModel",
    "FunctionModel",
    "HiddenPool",
    "Inference",
    "InitialOutput",
    "JaxModel",
    "Model",
    "RecurrentOutput",
    "SpecificationModel",
    "Support",
    "TorchModel",
    "as_model",
    "check_model",
    "min_max",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "arrays": ["min_max"],
        "inference": ["Inference"],
        "jax_model": ["JaxModel"],
        "pool": ["HiddenPool"],
        "resolve": ["as_model"],
        "responses": ["InitialOutput", "RecurrentOutput"],
        "support": ["Support"],
        "torch_model": ["TorchModel"],
        "adapters": ["ComposedModel", "FunctionModel", "SpecificationModel"],
    },
)
