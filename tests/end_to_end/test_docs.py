"""Documentation: code blocks run and print the text after them, links and paths exist, pictures are reproducible."""

from __future__ import annotations

import ast
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
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pondertree
from pondertree.evaluators import Uniform
from pondertree.games import ConnectFour

ROOT = Path(__file__).parents[2]
DEVELOPER_PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/decisions/*.md"))]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "benches/RESULTS.md", *sorted(ROOT.glob("docs/**/*.md"))]  # of the site
PICTURES = sorted(ROOT.glob("docs/images/*.py"))


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block of a page."""

    language: str
    text: str
    line: int
    """The line of its first text line, from 1."""


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
    assert language is None, f"{page.name}: the block at line {first} is not closed"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_print_the_text_block_after_them(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page run in order in one namespace."""
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


def docstring_examples() -> Iterator[Any]:
    """Indented blocks of docstrings that import what they use, which the API pages show as examples."""
    for path in sorted((ROOT / "python/pondertree").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                lines = (ast.get_docstring(node) or "").splitlines()
                code = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
                if re.search(r"^(?:from|import) ", code, re.M):
                    yield pytest.param(code, id=f"{name_of(path)}:{getattr(node, 'name', 'module')}")


@pytest.mark.slow
@pytest.mark.parametrize("code", list(docstring_examples()))
def test_examples_in_docstrings_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer games than they name, and without the training, which test_learn_loop.py tests."""
    pytest.importorskip("torch")
    pytest.importorskip("chess")
    monkeypatch.chdir(tmp_path)
    code = code.replace("self_play(1000", "self_play(8").replace("\ntrain(", "\nprint(")
    exec(compile(code, "<docstring>", "exec", dont_inherit=True), {"__name__": "example"})


CONSOLE = [
    pytest.param(block, id=f"{name_of(page)}:{block.line}")
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "console"
]


@pytest.mark.parametrize("block", CONSOLE)
def test_console_blocks_print_their_output(block: Block) -> None:
    """Times and speeds are replaced by `...` on both sides."""
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
def test_linked_files_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_anchors_of_links_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    missing = [
        (file, anchor) for file, anchor in links if anchor not in anchors_of(page.parent / file if file else page)
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_contain_no_absolute_paths(page: Path) -> None:
    assert not re.findall(r"(?<![\w./])/(?:home|root|tmp|usr|work)\b", page.read_text(encoding="utf-8"))


@functools.cache
def pictures_of(script: Path) -> dict[str, str]:
    """Returns the pictures of a script under docs/images by file name."""
    spec = importlib.util.spec_from_file_location(f"pictures_of_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses resolve annotations there
    try:
        spec.loader.exec_module(module)
        drawn: dict[str, str] = module.pictures()
    finally:
        del sys.modules[spec.name]
    return drawn


@pytest.mark.golden
@pytest.mark.parametrize("script", PICTURES, ids=name_of)
def test_pictures_are_reproduced_by_their_script(script: Path) -> None:
    for name, text in pictures_of(script).items():
        stored = (script.parent / name).read_bytes()
        assert stored == text.encode(), f"{name} differs: run {name_of(script)} and check the picture"


def test_pictures_have_one_script_and_are_shown_on_a_page() -> None:
    drawn = [name for script in PICTURES for name in pictures_of(script)]
    assert sorted(drawn) == sorted(picture.name for picture in (ROOT / "docs/images").glob("*.svg"))
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert not [name for name in drawn if f"images/{name})" not in text]


def test_readme_preset_table_matches_public_names() -> None:
    [section] = re.findall(r"^## Searches\n(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    listed = re.findall(r"^\| `(?:pondertree\.)?(\w+)` \|", section, re.M)
    assert sorted(listed) == sorted([*pondertree.presets.__all__, "Hybrid"])
    options = inspect.signature(pondertree.UCT).parameters
    [shared] = re.findall(r"All of them take (.*?);", section)
    assert set(re.findall(r"`(\w+)`", shared)) <= set(options)


def test_readme_speeds_match_recorded_results() -> None:
    [section] = re.findall(r"^## Speed\n(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    quoted = set(re.findall(r"\b[\d.]+x", section))
    assert quoted
    recorded = set(re.findall(r"\b[\d.]+x", (ROOT / "benches/RESULTS.md").read_text("utf-8")))
    assert quoted <= recorded, "section Speed of README.md quotes another run"


# --- Developer documentation --------------------------------------------------------------------------------------

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:core|bindings|python|tests|docs|scripts|benches|examples|\.github|\.ci)/[\w./-]+|\w+\.md)`")


def section(title: str) -> str:
    [text] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", ARCHITECTURE, re.M | re.S)
    return str(text)


def table_rows(text: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return lines[1:]


def test_architecture_is_below_its_size_limit() -> None:
    assert len(ARCHITECTURE.encode()) < 16_000


def test_glossary_has_at_most_25_terms() -> None:
    terms = [row[0] for row in table_rows(section("Glossary"))]
    assert 15 <= len(terms) <= 25
    assert len(set(terms)) == len(terms)


def test_change_table_names_a_path_for_each_required_change() -> None:
    rows = table_rows(section("To change X, touch Y"))
    assert [row[0] for row in rows] == [
        "a compiled game",
        "a game in Python",
        "a scoring rule",
        "a search option or rule parameter",
        "a preset",
        "an evaluator backend",
        "a learned-model backend",
        "a way to copy environments",
        "a UCI option",
        "root noise",
        "a training target",
        "a CLI command",
    ]
    assert all(PATH.search(row[1]) for row in rows)


@pytest.mark.parametrize("page", DEVELOPER_PAGES, ids=name_of)
def test_paths_on_developer_pages_exist(page: Path) -> None:
    named = PATH.findall(page.read_text(encoding="utf-8"))
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/decisions/0*.md")), ids=name_of)
def test_decisions_have_the_same_sections_and_are_listed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Decision", "Measurement", "Consequences"]
    number, title = re.match(r"# (\d{3}): (.+)\n", text).groups()
    assert page.name.startswith(number)
    assert f"| [{number}]({page.name}) | {title} |" in (page.parent / "README.md").read_text(encoding="utf-8")


def diagram_layers(root: str) -> list[list[str]]:
    """The folders of each line of the layer diagram below a root."""
    [diagram] = re.findall(rf"^{root}/\n(.*?)(?:\n\n|```)", section("Layers"), re.M | re.S)
    names = [re.split(r"  +", line.strip())[0] for line in diagram.splitlines()]
    return [name.split(" | ") for name in names if name != "(modules)"]


@pytest.mark.parametrize("root", ["python/pondertree", "core/src"])
def test_layer_diagram_names_every_folder(root: str) -> None:
    folders = [path.name for path in (ROOT / root).iterdir() if any(path.glob("*.rs")) or any(path.glob("*.py"))]
    assert sorted(itertools.chain.from_iterable(diagram_layers(root))) == sorted(folders)


def test_layer_diagram_matches_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    layers = [
        [name for name in layer.split(" | ") if (ROOT / "python/pondertree" / name).is_dir()]
        for layer in contract["layers"]
    ]
    assert [sorted(layer) for layer in diagram_layers("python/pondertree")] == [
        sorted(layer) for layer in layers if layer
    ]


def test_identifiers_of_the_glossary_and_drawings_exist() -> None:
    """Each names a class or function of the sources."""
    sources = [path for root in ("python/pondertree", "core/src", "bindings/src") for path in (ROOT / root).rglob("*")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources if path.suffix in {".py", ".rs"})
    named = {name for row in table_rows(section("Glossary")) for name in re.findall(r"`(\w+)`", row[0])}
    named |= set(re.findall(r"^([a-z]+(?:_[a-z]+)?) +(?:<-|-->)", section("GPU-resident trees"), re.M)) | {
        "exchange",
        "supports",
    }
    assert len(named) > 12
    assert not [
        name for name in sorted(named) if not re.search(rf"\b(?:class|struct|enum|trait|type|def|fn) {name}\b", code)
    ]


def test_files_in_data_flow_drawings_exist() -> None:
    named = re.findall(r"(?<![\w/])(search/[\w/]+(?:\.rs|/))", section("UCT inside the engine"))
    assert len(named) > 4
    assert not [path for path in named if not (ROOT / "core/src" / path).exists()]


def test_architecture_lists_no_files() -> None:
    """Outside the change table, it names folders and not every file of them."""
    rest = ARCHITECTURE.replace(section("To change X, touch Y"), "")
    assert len(re.findall(r"\w\.(?:rs|pyi?|cu|h)\b", rest)) <= 10


# --- docs/mathematics.md ------------------------------------------------------------------------------------------


def test_connect_four_preset_has_the_values_of_the_puct_specification() -> None:
    """c_puct 1.5, noise of 0.25 with alpha 0.3, N(s) over the edges; each can be overridden."""
    preset = pondertree.AlphaZero.connect_four(Uniform(), 60, seed=3)
    assert (preset.c_puct, preset.parent_visits) == (1.5, "edges")
    assert (preset.dirichlet_alpha, preset.dirichlet_epsilon) == (0.3, 0.25)
    written = pondertree.AlphaZero(Uniform(), 60, c_puct=1.5, parent_visits="edges", seed=3)
    same = [search.run(ConnectFour(), add_noise=True) for search in (preset, written)]
    assert same[0].visits.tolist() == same[1].visits.tolist()
    assert same[0].root.children[0].prior == same[1].root.children[0].prior
    assert pondertree.AlphaZero.connect_four(Uniform(), c_puct=2.0).c_puct == 2.0
    assert pondertree.AlphaZero.connect_four(Uniform()).num_simulations == 100
