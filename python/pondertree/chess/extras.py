"""The optional packages of the chess door."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pondertree.errors import MissingExtraError
from pondertree.extras import install_command, require

#: Before this, a file could have code run even in Keras's safe mode.
OLDEST_KERAS = (3, 12)


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
            + install_command("keras")
        )
    return module


def _chosen_backend() -> str:
    """The backend of Keras's own settings file; it writes "tensorflow" there by itself."""
    home = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        return str(json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"
