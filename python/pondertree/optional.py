"""Imports on demand: names of a package, and optional packages, whose error says how to install them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pondertree.errors import MissingExtraError


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package that imports names on first access.

    `names` lists the names by the module below the package that defines them; those of "" are themselves modules.
    """
    modules = {name: module for module, defined in names.items() for name in defined}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = import_module(f"{package}.{modules[name] or name}")
        if modules[name]:
            found = getattr(found, name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(sys.modules[package].__all__)


def require(module: str, extra: str, what: str) -> Any:
    """Returns the module; raises `MissingExtraError` with the command that installs the extra if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            # The module is there, but not one of its own requirements. Keras takes TensorFlow by default.
            hint = "; KERAS_BACKEND=torch or jax chooses another backend" if module == "keras" else ""
            raise MissingExtraError(f"{what} needs {module}, which cannot be imported: {error}{hint}") from error
        raise MissingExtraError(f"{what} needs {module}: {install_command(extra)}") from error


def install_command(extra: str) -> str:
    """Returns the command that installs an extra from the origin of this installation: a clone or a wheel.

    Pondertree is not on the package index yet: pip records the origin of an installation (PEP 610, `direct_url.json`),
    and the command names it.
    """
    import shutil  # imported here, since `import pondertree` should be fast
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    first = shutil.which("pip")
    # The shell does not find the pip of an environment that is not activated.
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


#: Older versions execute code from files even in safe mode.
OLDEST_KERAS = (3, 12)


def python_chess() -> Any:
    """Returns python-chess, whose module is `chess`."""
    return require("chess", "python-chess", "ChessGame")


def torch() -> Any:
    """Returns PyTorch."""
    return require("torch", "torch", "this network")


def keras() -> Any:
    """Returns Keras, with an installed backend unless the user has chosen one."""
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
    """Returns the backend of Keras's configuration file, which Keras creates with "tensorflow"."""
    home = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras")
    try:
        return str(json.loads((home / "keras.json").read_text(encoding="utf-8")).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"
