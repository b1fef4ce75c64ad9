"""Install hints: commands that work, and none that install a package of that name from the index. Lazy names."""

import ast
import inspect
import json
import re
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest

from pondertree.optional import install_command

ROOT = Path(__file__).parents[1]
TEXTS = [
    path
    for folder in ("python", "docs", "examples", "scripts", "benches", ".github")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".md", ".sh", ".yml", ".pyi") and ".venv" not in path.parts
] + [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
#: The project as the argument of an installer and without an origin: the index would decide what is installed.
FROM_INDEX = re.compile(
    r"(?:pip3? install|uv add|uv pip install|pipx install|cargo (?:add|install)|npm install)\b[^\n`]*?"
    r"""[ \t"']ponder(?:tree|osa)(?:\[[^\]]*\])?["']?(?!\S)(?!\s*@)"""
)


class Installed:
    """A stand-in for the installed distribution."""

    def __init__(self, origin: object) -> None:
        self._text = json.dumps(origin) if origin is not None else None

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


def with_origin(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
    monkeypatch.setattr("shutil.which", lambda name: str(Path(sys.executable).with_name(name)))


def test_install_command_names_the_wheel_it_came_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "pondertree-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    wheel.touch()
    with_origin(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert install_command("cli") == f'pip install "pondertree[cli] @ {wheel.as_uri()}"'


def test_install_command_names_an_editable_clone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    with_origin(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": True}})
    assert install_command("torch") == f'pip install -e "{clone}[torch]"'


@pytest.mark.parametrize(
    "origin", [None, {}, {"url": "https://example.org/x.whl"}, {"url": "file:///not/there.whl"}, {"url": 1}, [], "text"]
)
def test_install_command_falls_back_to_a_clone(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    with_origin(monkeypatch, origin)
    assert install_command("train") == 'in a clone of Pondertree, pip install ".[train]"'


def test_install_command_names_the_interpreter_unless_its_pip_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    with_origin(monkeypatch, None)
    for found in (None, "/somewhere/bin/pip"):
        monkeypatch.setattr("shutil.which", lambda name, found=found: found)
        assert install_command("cli") == f'in a clone of Pondertree, "{sys.executable}" -m pip install ".[cli]"'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip install pondertree", True),
        ('pip install --upgrade "pondertree[torch]"', True),
        ("pip install 'ponderosa[train,envs]'", True),
        ("cargo add pondertree", True),
        ("pip install .", False),
        ('pip install "pondertree[torch] @ file:///x/pondertree.whl"', False),
        ("pip install dist/pondertree-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl", False),
    ],
)
def test_pattern_finds_commands_that_ask_the_index(text: str, found: bool) -> None:
    assert bool(FROM_INDEX.search(text)) is found


def test_no_hint_or_document_installs_the_project_from_an_index() -> None:
    assert len(TEXTS) > 300
    guilty = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in TEXTS
        for match in FROM_INDEX.finditer(path.read_text(encoding="utf-8"))
    ]
    assert guilty == []


def test_every_hinted_extra_exists() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    hints = re.compile(r"""install_command\(["']([a-z-]+)["']\)|pip install ["']\.\[([a-z,-]+)\]""")
    found = {
        extra
        for path in TEXTS
        for match in hints.finditer(path.read_text(encoding="utf-8"))
        for extra in (match[1] or match[2]).split(",")
    }
    assert found
    assert found <= set(known)


LAZY = [path for path in (ROOT / "python").rglob("__init__.py") if "= lazy_names(" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_lazy_names_are_those_that_type_checkers_see(path: Path) -> None:
    package = import_module(".".join(path.parent.relative_to(ROOT / "python").parts))
    modules = inspect.getclosurevars(package.__getattr__).nonlocals["modules"]
    body = ast.parse(path.read_text("utf-8")).body
    checked = next(node for node in body if isinstance(node, ast.If)).body
    imported = {alias.name: node.module for node in checked if isinstance(node, ast.ImportFrom) for alias in node.names}
    named = {name: f"{package.__name__}.{module}".rstrip(".") for name, module in modules.items()}
    assert named == imported
    assert len(set(package.__all__)) == len(package.__all__)
    eager = {alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(modules) <= set(package.__all__) <= set(modules) | eager | {"__version__"}
