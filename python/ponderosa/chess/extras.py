"""Optional packages: imported where they are used, and missed with the words that say how to get them."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ponderosa.errors import MissingExtraError

#: Before this, a file could have code run even in Keras's safe mode.
OLDEST_KERAS = (3, 12)


def require(module: str, extra: str, what: str) -> Any:
    """The module, or an error saying that `what` needs it and which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise MissingExtraError(f"{what} needs {module}, which cannot be imported: {error}") from error
        raise MissingExtraError(f'{what} needs {module}: pip install "ponderosa[{extra}]"') from error


def python_chess() -> Any:
    """python-chess, under the name it is installed by."""
    return require("chess", "python-chess", "ChessGame")


def torch() -> Any:
    """PyTorch."""
    return require("torch", "torch", "this network")


def keras() -> Any:
    """Keras, on a backend that is there if nobody has chosen one."""
    if "keras" not in sys.modules and "KERAS_BACKEND" not in os.environ and _chosen_backend() == "tensorflow":
        installed = [name for name in ("tensorflow", "torch", "jax") if find_spec(name) is not None]
        if installed:
            os.environ["KERAS_BACKEND"] = installed[0]
    module = require("keras", "keras", "a .keras file")
    if tuple(int(part) for part in module.__version__.split(".")[:2]) < OLDEST_KERAS:
        raise MissingExtraError(
            f"a .keras file needs Keras {OLDEST_KERAS[0]}.{OLDEST_KERAS[1]} or newer, not {module.__version__}: "
            'pip install --upgrade "ponderosa[keras]"'
        )
    return module


def _chosen_backend() -> str:
    """The backend of Keras's own settings file; it writes "tensorflow" there by itself."""
    home = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        return str(json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"
