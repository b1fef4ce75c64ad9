"""The groups of learning, and the networks, are used through their public surfaces."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import pondertree

SOURCE = Path(pondertree.__file__).parent
GROUPS = [
    *(f"pondertree.learn.{path.parent.name}" for path in sorted(SOURCE.glob("learn/*/__init__.py"))),
    "pondertree.networks",
]


def imports_past_a_surface(text: str, own: str) -> list[str]:
    """Returns the modules inside groups, other than that of the module `own`, that a source text imports."""

    def is_hidden_module(package: str, name: str) -> bool:
        if package not in GROUPS:
            return False
        folder = SOURCE.parent / package.replace(".", "/")
        surface = (folder / "__init__.py").read_text(encoding="utf-8").split("__all__ = [")[1].split("]")[0]
        return f'"{name}"' not in surface and ((folder / name).is_dir() or (folder / f"{name}.py").is_file())

    found = []
    for node in ast.walk(ast.parse(text)):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            package = node.module or ""
            modules += [f"{package}.{alias.name}" for alias in node.names if is_hidden_module(package, alias.name)]
        for module in modules:
            found += [module for group in GROUPS if module.startswith(f"{group}.") and not own.startswith(f"{group}.")]
    return found


def test_production_code_imports_groups_by_their_surfaces() -> None:
    assert len(GROUPS) == 10
    for path in SOURCE.rglob("*.py"):
        own = "pondertree." + path.relative_to(SOURCE).as_posix().removesuffix(".py").replace("/", ".")
        assert imports_past_a_surface(path.read_text(encoding="utf-8"), own) == [], own


def test_import_past_a_surface_is_found() -> None:
    text = "from pondertree.learn.data.shards import read_shard\nimport pondertree.networks.loading\n"
    submodule = "from pondertree.networks import loading, load"
    assert imports_past_a_surface(submodule, "pondertree.cli.train") == ["pondertree.networks.loading"]
    assert imports_past_a_surface(text, "pondertree.cli.train") == [
        "pondertree.learn.data.shards",
        "pondertree.networks.loading",
    ]
    assert imports_past_a_surface(text, "pondertree.learn.data.replay") == ["pondertree.networks.loading"]


@pytest.mark.parametrize("group", GROUPS)
def test_surface_is_documented_and_complete(group: str) -> None:
    pytest.importorskip("torch")
    surface = importlib.import_module(group)
    assert surface.__doc__
    assert len(set(surface.__all__)) == len(surface.__all__)
    for name in surface.__all__:
        assert getattr(surface, name) is not None, name
