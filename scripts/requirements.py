"""Print what the named extras of pyproject.toml ask for, one requirement per line.

Usage: python scripts/requirements.py EXTRA...

pip can install an extra only together with the project, and that would compile the engine;
the Makefile wants the packages first and the engine separately, only when its sources changed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(project: dict, extras: Iterable[str]) -> list[str]:
    """The project's own dependencies, then those of `extras`; `name[a,b]` stands for the extras a and b."""
    own = re.compile(re.escape(project["name"]) + r"\[([^\]]+)\]$")
    found = dict.fromkeys(project["dependencies"])
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            nested = own.match(requirement.replace(" ", ""))
            found |= dict.fromkeys(requirements(project, nested[1].split(",")) if nested else [requirement])
    return list(found)


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    unknown = [extra for extra in sys.argv[1:] if extra not in project["optional-dependencies"]]
    if unknown:
        known = ", ".join(project["optional-dependencies"])
        sys.exit(f"no such extra: {', '.join(unknown)} (pyproject.toml has {known})")
    print("\n".join(requirements(project, sys.argv[1:])))
