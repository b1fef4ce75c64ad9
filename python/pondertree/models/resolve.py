"""Adapts what a user passes as a model to `Model`."""

from __future__ import annotations

from typing import Any

from pondertree.models.protocol import Model, check_model, is_specification_form


def as_model(given: Any) -> Model:
    """Returns the model itself if it implements `Model`, else wrapped in an adapter.

    A PyTorch module, or an object with such modules as attributes, goes into `TorchModel`; another object with a method
    `prediction`, as in the MuZero specification, into `SpecificationModel`. Raises if the methods are missing.
    """
    check_model(given)
    model: Model = given
    if getattr(given, "sends_actions", False):
        return model
    from pondertree.models.torch_model import TorchModel, torch_modules

    if torch_modules(given):
        return TorchModel(given)
    if is_specification_form(given):
        from pondertree.models.adapters import SpecificationModel

        return SpecificationModel(given)
    return model
