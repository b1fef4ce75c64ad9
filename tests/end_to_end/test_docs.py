"""The documentation: its code runs and prints what it says, its maps name what exists, its pictures can be redrawn."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pondertree
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + sorted(ROOT.glob("docs/*.md"))
PICTURES = sorted(ROOT.glob("docs/images/*.py"))
SOURCES = ("core/src", "bindings/src", "python/pondertree")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """Where its text begins, from 1."""


def blocks_of(page: Path) -> Iterator[Block]:
    language, lines, first = None, [], 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```") and language is None:
            language, lines, first = line[3:].strip(), [], number + 1
        elif line.startswith("```"):
            yield Block(language or "", "\n".join(lines) + "\n", first)
            language = None
        else:
            lines.append(line)
    assert language is None, f"{page.name}: the block before line {first} is never closed"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run_and_print_what_they_say(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page share their names, in order. A `text` block right after one is what it prints."""
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    blocks = list(blocks_of(page))
    for block, following in itertools.zip_longest(blocks, blocks[1:], fillvalue=Block("", "", 0)):
        if block.language != "python":
            continue
        code = compile("\n" * (block.line - 1) + block.text, name_of(page), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, module.__dict__)
        if following.language == "text":
            lines = [line.rstrip() for line in printed.getvalue().splitlines()]
            assert lines == following.text.splitlines(), f"{name_of(page)}, line {following.line}"


CONSOLE = [
    pytest.param(block, id=f"{name_of(page)}:{block.line}")
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "console"
]


@pytest.mark.parametrize("block", CONSOLE)
def test_console_blocks_print_what_they_say(block: Block) -> None:
    """Times and speeds are written as `...`, and compared as such."""
    pytest.importorskip("rich")
    prompt, *expected = block.text.splitlines()
    program, *arguments = shlex.split(prompt.removeprefix("$ "))
    assert program == "pondertree"
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "PYTHONUTF8": "1", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"simulations in [\d.]+ s", "simulations in ... s", done.stdout)
    printed = re.sub(r"[\d,]+ simulations/s", "... simulations/s", printed)
    assert [line.rstrip() for line in printed.strip().splitlines()] == expected


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_a_page_lead_to_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_name_no_place_of_one_machine(page: Path) -> None:
    assert not re.findall(r"(?<![\w./])/(?:home|root|tmp|usr|work)\b", page.read_text(encoding="utf-8"))


@functools.cache
def pictures_of(script: Path) -> dict[str, str]:
    """What a script under docs/images draws, by the name of the file."""
    spec = importlib.util.spec_from_file_location(f"pictures_of_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    try:
        spec.loader.exec_module(module)
        drawn: dict[str, str] = module.pictures()
    finally:
        del sys.modules[spec.name]
    return drawn


@pytest.mark.golden
@pytest.mark.parametrize("script", PICTURES, ids=name_of)
def test_pictures_can_be_drawn_again(script: Path) -> None:
    for name, text in pictures_of(script).items():
        stored = (script.parent / name).read_bytes()
        assert stored == text.encode(), f"{name} has changed: run {name_of(script)} and look at it"


def test_every_picture_is_drawn_by_one_script_and_shown_on_a_page() -> None:
    drawn = [name for script in PICTURES for name in pictures_of(script)]
    assert sorted(drawn) == sorted(picture.name for picture in (ROOT / "docs/images").glob("*.svg"))
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not [name for name in drawn if f"images/{name})" not in text]


def test_the_table_of_presets_is_true() -> None:
    [section] = re.findall(r"^## Searches\n(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert re.findall(r"^\| `(?:pondertree\.)?(\w+)` \|", section, re.M) == [
        "UCT",
        "AlphaZero",
        "MuZero",
        "Gumbel",
        "Hybrid",
    ]
    options = inspect.signature(pondertree.UCT).parameters
    [shared] = re.findall(r"All of them take (.*?);", section)
    assert set(re.findall(r"`(\w+)`", shared)) <= set(options)


def test_speeds_are_the_recorded_ones() -> None:
    [section] = re.findall(r"^## Speed\n(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    quoted = set(re.findall(r"\b[\d.]+x", section))
    assert quoted
    recorded = set(re.findall(r"\b[\d.]+x", (ROOT / "benches/RESULTS.md").read_text("utf-8")))
    assert quoted <= recorded, "the section Speed of README.md quotes an older run"


def source_files() -> set[str]:
    """The sources that git knows, so that a file still being written is not missed; in a copy without git, all."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        listed = subprocess.check_output(
            ["git", "ls-files", *SOURCES], cwd=ROOT, encoding="utf-8", stderr=subprocess.DEVNULL
        )
        files = {ROOT / line for line in listed.splitlines()}
        if files:
            return {path.relative_to(ROOT).as_posix() for path in files if path.exists() and is_source(path)}
    files = {path for source in SOURCES for path in (ROOT / source).rglob("*")}
    return {path.relative_to(ROOT).as_posix() for path in files if is_source(path)}


def is_source(path: Path) -> bool:
    return path.suffix in {".rs", ".py", ".pyi"}


def test_the_map_names_every_source_file_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:core|bindings|python)/[\w./]+\.(?:rs|pyi?))`", text))
    assert not source_files() - named, "not on the map"
    assert not {path for path in named if not (ROOT / path).exists()}, "on the map, but gone"


# --- docs/mathematics.md ------------------------------------------------------------------------------------------


def test_the_preset_of_seed_2() -> None:
    """What the page says of it: c_puct 1.5, noise of 0.25 and alpha 0.3, N(s) over the moves; each can be changed."""
    preset = pondertree.AlphaZero.connect_four(Uniform(), 60, seed=3)
    assert (preset.c_puct, preset.parent_visits) == (1.5, "edges")
    assert (preset.dirichlet_alpha, preset.dirichlet_epsilon) == (0.3, 0.25)
    written = pondertree.AlphaZero(Uniform(), 60, c_puct=1.5, parent_visits="edges", seed=3)
    same = [search.run(ConnectFour(), add_noise=True) for search in (preset, written)]
    assert same[0].visits.tolist() == same[1].visits.tolist()
    assert same[0].root.children[0].prior == same[1].root.children[0].prior
    assert pondertree.AlphaZero.connect_four(Uniform(), c_puct=2.0).c_puct == 2.0
    assert pondertree.AlphaZero.connect_four(Uniform()).num_simulations == 100
