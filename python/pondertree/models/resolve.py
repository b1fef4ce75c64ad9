"""What was given as a model, as one in our form."""

from __future__ import annotations

from typing import Any

from pondertree.models.inference import Model, check_model, is_seed_form


def as_model(given: Any) -> Model:
    """The model in our form: as it is if it has that, else in the adapter it needs.

    A module of PyTorch, or an object with such modules as attributes, goes into `TorchModel`; another one with
    `prediction`, which is how the seed's form is known, into `SeedForm`. Anything without the methods is refused.
    """
    check_model(given)
    if getattr(given, "sends_actions", False):
        return _is_model(given)
    from pondertree.models.torch_model import TorchModel, torch_modules

    if torch_modules(given):
        return _is_model(TorchModel(given))
    if is_seed_form(given):
        from pondertree.models.adapters import SeedForm

        return SeedForm(given)
    return _is_model(given)


def _is_model(given: Any) -> Model:
    model: Model = given
    return model
