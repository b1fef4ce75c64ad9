"""Optional packages: imported where they are used, and missed with the words that say how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ponderosa.errors import MissingExtraError


def require(module: str, extra: str, what: str) -> Any:
    """The module, or an error saying that `what` needs it and which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            # It is there, but something it needs is not. Keras takes TensorFlow unless told otherwise.
            hint = "; KERAS_BACKEND=torch or jax chooses another backend" if module == "keras" else ""
            raise MissingExtraError(f"{what} needs {module}, which cannot be imported: {error}{hint}") from error
        raise MissingExtraError(f'{what} needs {module}: pip install "ponderosa[{extra}]"') from error
