"""Installed versions of the package to compare, each given as a wheel or a Python interpreter.

A wheel is installed with this interpreter's version of NumPy into a virtual environment beside this file, cached by
the wheel's hash.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
#: One thread in NumPy's libraries; no hash randomisation.
SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Side:
    """An installed version of the package."""

    python: Path
    environment: dict[str, str]


def side(given: Path | None) -> Side:
    """Returns the environment of a wheel (created if missing), of an interpreter, or of this one (None)."""
    environment = os.environ | SINGLE_THREADED
    if given is None:
        return Side(Path(sys.executable), environment)
    # Each side imports what is installed beside its interpreter.
    environment.pop("PYTHONPATH", None)
    if given.suffix != ".whl":
        if not os.access(given, os.X_OK):
            raise FileNotFoundError(f"{given} is neither a wheel nor an interpreter")
        return Side(given, environment)
    return Side(_installed(given), environment)


def _installed(wheel: Path) -> Path:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    folder = HERE / f".venv-wheel-{digest[:12]}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    numpy = f"numpy=={version('numpy')}"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != numpy:
        print(f"making {folder.name}: {wheel.name}, {numpy}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", numpy, str(wheel)]
        subprocess.run(pip, check=True)
        stamp.write_text(numpy, encoding="utf-8")
    return python
