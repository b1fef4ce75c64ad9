"""Prints what the named extras and dependency groups of pyproject.toml ask for, one requirement per line.

Usage: python scripts/requirements.py NAME...

pip can install an extra only together with the project, and that would compile the engine;
the Makefile wants the packages first and the engine separately, only when its sources changed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def named_sets(pyproject: dict) -> dict[str, list[str]]:
    """The extras and the dependency groups by their names, which are distinct."""
    extras, groups = pyproject["project"]["optional-dependencies"], pyproject["dependency-groups"]
    if twice := extras.keys() & groups.keys():
        raise ValueError(f"pyproject.toml: both an extra and a dependency group are called {', '.join(sorted(twice))}")
    return extras | groups


def requirements(pyproject: dict, names: Iterable[str]) -> list[str]:
    """The project's own dependencies, then those of `names`; `pondertree[a,b]` stands for the extras a and b."""
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
