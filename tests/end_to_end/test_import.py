"""`import pondertree` loads NumPy alone, in less than twice its time."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import numpy
before = set(sys.modules)
import pondertree
news = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
print(",".join(name for name in news if name not in sys.stdlib_module_names and name != "numpy"))
print(",".join(name for name in ("rich", "tyro", "chess", "torch", "pyspiel", "hypothesis") if name in sys.modules))
"""

TIMES = """
import time
begun = time.perf_counter()
import numpy
middle = time.perf_counter()
import pondertree
print(middle - begun, time.perf_counter() - middle)
"""


def python(text: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split("\n")


def test_import_loads_only_numpy() -> None:
    news, unwanted, *_ = python(LOADED)
    assert news == "pondertree"
    assert unwanted == ""


def test_import_time_below_twice_numpy() -> None:
    """Returns the minimum of three runs, since other load only adds."""
    times = [tuple(map(float, python(TIMES)[0].split())) for _ in range(3)]
    numpy, ours = min(n for n, _ in times), min(p for _, p in times)
    assert ours < 2 * numpy + 0.1, f"numpy {numpy:.3f} s, pondertree {ours:.3f} s"
