"""Prints the requirements of extras and dependency groups of pyproject.toml, one per line.

Usage: python scripts/requirements.py NAME...

pip installs an extra only with the project, which would compile the engine; the Makefile installs the packages first
and compiles the engine separately, only when its sources have changed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def named_sets(pyproject: dict) -> dict[str, list[str]]:
    """Returns the extras and the dependency groups by name."""
    extras, groups = pyproject["project"]["optional-dependencies"], pyproject["dependency-groups"]
    if twice := extras.keys() & groups.keys():
        raise ValueError(f"pyproject.toml: both an extra and a dependency group are called {', '.join(sorted(twice))}")
    return extras | groups


def requirements(pyproject: dict, names: Iterable[str]) -> list[str]:
    """Returns the project's dependencies, then those of `names`; `pondertree[a,b]` expands to the extras a and b."""
    project, sets = pyproject["project"], named_sets(pyproject)
    own = re.compile(re.escape(project["name"]) + r"\[([^\]]+)\]$")
    found = dict.fromkeys(project["dependencies"])
    for name in names:
        for requirement in sets[name]:
            nested = own.match(requirement.replace(" ", ""))
            found |= dict.fromkeys(requirements(pyproject, nested[1].split(",")) if nested else [requirement])
    return list(found)


if __name__ == "__main__":
    pyproject = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    known = named_sets(pyproject)
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        sys.exit(f"no such extra: {', '.join(unknown)} (pyproject.toml has {', '.join(known)})")
    print("\n".join(requirements(pyproject, sys.argv[1:])))
