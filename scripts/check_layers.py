"""Checks the layers of the Rust crate `core`: each folder uses only the folders named here, and no use is cyclic.

Compares the paths `crate::folder` of every file with `LAYERS`. Files directly in `core/src`
(the facade, `fork.rs`) may use every layer; every layer may use `error.rs`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "core" / "src"
#: What each folder may use, directly; the order is from the bottom to the top.
LAYERS = {
    "runtime": [],
    "memory": [],
    "games": ["runtime"],
    "tree": ["memory"],
    "solvers": ["games", "runtime"],
    "chess": ["games", "runtime"],
    "search": ["tree", "games", "solvers", "runtime"],
    "forest": ["search", "tree", "games", "solvers", "runtime"],
}
USE = re.compile(r"\bcrate::(?:\{([^}]*)\}|(\w+))")


def used_layers(text: str) -> Iterator[tuple[int, str]]:
    """Layers that a source file names, with their lines; names of the facade count as a layer that nothing may use."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("//"):
            continue
        for group, name in USE.findall(line):
            for item in (group or name).split(","):
                yield number, item.strip().split("::")[0]


def violations() -> Iterator[str]:
    """Each use of a folder that `LAYERS` does not allow."""
    order = list(LAYERS)
    for layer, below in LAYERS.items():
        for other in below:
            if order.index(other) >= order.index(layer):
                yield f"LAYERS: {layer} uses {other}, which is not below it"
    for folder in sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.glob("*/**/*.rs")}):
        if folder not in LAYERS:
            yield f"core/src/{folder}: a folder without a layer"
            continue
        allowed = {folder, "error", *LAYERS[folder]}
        for path in sorted((SOURCE / folder).rglob("*.rs")):
            for number, used in used_layers(path.read_text(encoding="utf-8")):
                if used not in allowed:
                    yield f"{path.relative_to(SOURCE.parents[1])}:{number}: {folder} may not use {used}"


def main() -> int:
    """Prints the violations; 1 if there are any."""
    found = list(violations())
    for one in found:
        print(one, file=sys.stderr)
    print(f"layers of core: {len(LAYERS)} folders, {len(found)} violations")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
