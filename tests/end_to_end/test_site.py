"""The documentation site (`make docs`): builds without warnings, is complete, loads nothing from the network."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("zensical")
pytest.importorskip("mkdocstrings_handlers.python")

ROOT = Path(__file__).parents[2]
API = {path.stem for path in ROOT.glob("docs/api/*.md")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "pages").mkdir()
    for other in ("notes.txt", "pages/removed.md"):
        (folder / other).write_text("# Notes\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/build_docs.py", folder], capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_build_removes_only_what_it_makes(built: Path) -> None:
    assert (built / "notes.txt").exists()
    assert not (built / "pages/removed.md").exists()


def test_site_has_every_page_in_its_navigation(built: Path) -> None:
    """Decisions are listed on a page of their own."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8") + (ROOT / "docs/decisions/README.md").read_text("utf-8")
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benches/RESULTS.md"]:
        name = page.name if page.parent.name == "decisions" else page.relative_to(ROOT).as_posix()
        assert name in navigation, f"{page.name} is neither in mkdocs.yml nor listed in docs/decisions/README.md"
        address = page.relative_to(ROOT).with_suffix(".html").as_posix().replace("README.html", "index.html")
        assert (built / "site" / address).is_file(), f"{address} is missing"


def test_site_loads_nothing_from_the_network(built: Path) -> None:
    pages = list((built / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\"> ]+)", text)
        loaded += re.findall(r"<link\b[^>]*rel=\"?(?:stylesheet|preload|icon)\b[^>]*href=\"?([^\"> ]+)", text)
        assert any("iframe-worker" in address for address in loaded)
        assert not [address for address in loaded if re.match(r"(?:https?:)?//", address)], page.name


def test_api_pages_document_every_public_name(built: Path) -> None:
    """Public names are those of `__all__`; modules have pages of their own."""
    for package in sorted(API):
        module = importlib.import_module("pondertree" if package == "pondertree" else f"pondertree.{package}")
        page = (built / f"site/docs/api/{package}.html").read_text(encoding="utf-8")
        documented = {identifier.rpartition(".")[2] for identifier in re.findall(r'id="(pondertree[\w.]+)"', page)}
        public = {name for name in getattr(module, "__all__", ()) if inspect.getdoc(getattr(module, name))}
        missing = {name for name in public - documented if getattr(getattr(module, name), "__name__", None) == name}
        assert not missing, f"docs/api/{package}.md"
        shown = set(re.findall(rf'id="{re.escape(module.__name__)}\.(\w+)"', page))
        assert shown <= set(getattr(module, "__all__", shown)), f"docs/api/{package}.md shows internals"


def test_api_pages_show_docstrings_of_compiled_classes_and_options_of_presets(built: Path) -> None:
    entries = json.loads((built / "site/search.json").read_text(encoding="utf-8"))["items"]
    texts = {entry["location"]: entry["text"] for entry in entries}
    assert "Returns the state after" in texts["docs/api/games.html#pondertree.games.compiled.ConnectFour.play"]
    assert "max_memory" in texts["docs/api/pondertree.html#pondertree.Gumbel"]


@pytest.mark.parametrize(
    "broken", ["[gone](gone.md)", "[gone](games.md#gone)", "[`gone`][pondertree.gone]", "::: pondertree.gone"]
)
def test_build_fails_on_a_broken_reference(built: Path, broken: str) -> None:
    page = built / "pages/docs/gpu.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(f"{text}\n{broken}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"], cwd=built, capture_output=True, timeout=300
        )
    finally:
        page.write_text(text, encoding="utf-8")
    assert done.returncode != 0
