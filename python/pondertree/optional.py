"""Optional packages: imported where they are used; a missing one raises an error that says how to install it."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pondertree.errors import MissingExtraError


def require(module: str, extra: str, what: str) -> Any:
    """Returns the module, or raises an error saying that `what` needs it and how to install the extra that has it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            # It is there, but something it needs is not. Keras takes TensorFlow unless told otherwise.
            hint = "; KERAS_BACKEND=torch or jax chooses another backend" if module == "keras" else ""
            raise MissingExtraError(f"{what} needs {module}, which cannot be imported: {error}{hint}") from error
        raise MissingExtraError(f"{what} needs {module}: {install_command(extra)}") from error


def install_command(extra: str) -> str:
    """The command that installs an extra from wherever this package was installed: a clone or a wheel.

    Pondertree is not on the package index yet, so that no hint may name it there: pip records the origin of what it
    installed (PEP 610, `direct_url.json`), and the command installs the extra from the same origin.
    """
    import json  # not at the top: only an error needs them, and `import pondertree` should be quick
    import shutil
    import sys
    from importlib import metadata
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    first = shutil.which("pip")
    # An environment that is not activated has its own pip, which the shell does not find.
    pip = "pip" if first and Path(first).parent == Path(sys.executable).parent else f'"{sys.executable}" -m pip'
    try:
        origin = json.loads(metadata.distribution("pondertree").read_text("direct_url.json") or "{}")
        url = origin["url"]
        editable = bool(origin.get("dir_info", {}).get("editable", False))
    except (metadata.PackageNotFoundError, OSError, ValueError, KeyError, AttributeError, TypeError):
        url, editable = "", False
    path = Path(url2pathname(urlsplit(url).path)) if isinstance(url, str) and url.startswith("file:") else None
    if path is None or not path.exists():  # `maturin develop` installs from a temporary wheel
        return f'in a clone of Pondertree, {pip} install ".[{extra}]"'
    if editable:
        return f'{pip} install -e "{path}[{extra}]"'
    return f'{pip} install "pondertree[{extra}] @ {url}"'


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
