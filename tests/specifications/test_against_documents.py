"""The lists of requirements: they agree with the code, with docs/specifications.md and with the documents.

The documents are not part of the repository. PONDERTREE_SPECIFICATIONS names their folder; without it the comparison
with them is skipped and everything else is checked.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.specifications import examples

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("PONDERTREE_SPECIFICATIONS", "")

_spec = importlib.util.spec_from_file_location("specifications", ROOT / "scripts/specifications.py")
assert _spec is not None
assert _spec.loader is not None
script: Any = importlib.util.module_from_spec(_spec)
sys.modules["specifications"] = script  # dataclasses look their module up
_spec.loader.exec_module(script)

DOCUMENTS = script.read_lists()
ROWS = [row for document in DOCUMENTS for row in document.rows]

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.list.stem)
needs_documents = pytest.mark.skipif(
    not FOLDER, reason="PONDERTREE_SPECIFICATIONS is not set to the folder of the documents"
)

# --- The lists and the code ---------------------------------------------------------------------------------------


def test_five_documents_are_listed() -> None:
    assert [document.title for document in DOCUMENTS] == [
        "AlphaZero chess",
        "MuZero chess",
        "PUCT mathematics",
        "UCT",
        "Hybrid chess",
    ]


def test_ids_are_unique() -> None:
    assert [row_id for row_id, count in Counter(row.id for row in ROWS).items() if count > 1] == []


def test_each_row_has_a_test_of_its_own() -> None:
    assert [test for test, count in Counter(row.test for row in ROWS).items() if count > 1] == []


def test_rows_are_met_or_different_for_a_reason() -> None:
    for row in ROWS:
        assert row.status in ("met", "different"), row.id
        assert bool(row.what_and_why) == (row.status == "different"), row.id
        assert "\n" not in row.quote + row.what_and_why, row.id
        assert 0 < len(row.quote) <= 130, row.id


@functools.cache
def names_in(path: str) -> frozenset[str]:
    """The functions and types that a Rust file defines."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return frozenset(re.findall(r"\b(?:fn|struct|enum|trait|static|type|const(?!\s+fn))\s+(\w+)", text))


def resolves(name: str) -> bool:
    """Whether `path/to/file.rs::name` is defined there, or a dotted Python name can be imported."""
    path, _, item = name.partition("::")
    if "/" in path:
        return (ROOT / path).exists() and item in names_in(path)
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                # Fields of a dataclass without a default are known to the class by their annotation only.
                return any(part in getattr(each, "__annotations__", {}) for each in found.__mro__)
            found = getattr(found, part)
        return True
    return False


def test_every_specified_name_is_importable() -> None:
    assert [(row.id, name) for row in ROWS for name in row.name if not resolves(name)] == []
    assert all(row.name for row in ROWS)


def test_named_tests_are_collected() -> None:
    files = sorted({row.test.partition("::")[0] for row in ROWS})
    options = ["-o", "addopts=", "--import-mode=importlib", "--collect-only", "-q", "-p", "no:cacheprovider"]
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert collected.returncode == 0, collected.stdout + collected.stderr
    nodes = set(collected.stdout.splitlines())
    functions = {node.partition("[")[0] for node in nodes}
    assert [row.test for row in ROWS if row.test not in nodes | functions] == []


#: Tests of the modules of `pondertree.specifications`, which need no row.
MODULE_TESTS = {"test_mcts_search.py", "test_muzero_document.py", "test_playout.py", "test_select_action.py"}


def test_every_specification_test_verifies_a_row() -> None:
    """No test is left over when a row changes."""
    named = {row.test.partition("[")[0] for row in ROWS}
    files = {path.name: path for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)}
    assert files.keys() > MODULE_TESTS
    for path in (files[name] for name in sorted(files.keys() - MODULE_TESTS)):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        assert [test for test in tests if f"tests/specifications/{path.name}::{test}" not in named] == [], path.name


def test_page_is_written_from_the_lists() -> None:
    written = script.PAGE.read_text(encoding="utf-8")
    assert written == script.page(DOCUMENTS), "run python scripts/specifications.py"


# --- The lists and the documents ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a document."""

    number: int
    text: str
    headings: tuple[str, ...]
    """The headings above it, the nearest one last; of a heading, including itself."""
    is_heading: bool

    @property
    def is_structure(self) -> bool:
        """Blank lines, fences, rules of tables, imports and lines of closing brackets."""
        text = self.text.strip()
        return bool(re.fullmatch(r"[})\];,]*|```.*|\|[-|]+\||(from|import|use) .*", text))


def lines_of(document: Any) -> list[Statement]:
    """The lines of a document with their sections.

    Headings begin with #. In Hybrid chess the first block of code is never closed; numbered lines are headings there.
    """
    found, is_code = [], False
    above: list[tuple[int, str]] = []
    for number, text in enumerate((Path(FOLDER) / document.file).read_text(encoding="utf-8").splitlines(), start=1):
        if text.startswith("```"):
            is_code = not is_code
        level = heading_level(text, is_code)
        if level:
            above = [(each, title) for each, title in above if each < level]
            above.append((level, text.lstrip("#").strip()))
        found.append(Statement(number, text, tuple(title for _, title in above), level > 0))
    return found


def heading_level(text: str, is_code: bool) -> int:
    """1 for #, 2 for ##, ...; 0 for what is no heading."""
    if not is_code:
        return len(text) - len(text.lstrip("#"))
    numbered = re.match(r"((?:\d+\.)+) \w", text)
    return 1 + numbered[1].count(".") if numbered else 0


@needs_documents
@each_document
def test_quotes_are_in_their_lines_and_sections(document: Any) -> None:
    lines = {line.number: line for line in lines_of(document)}
    for row in document.rows:
        assert any(row.quote in lines[number].text for number in row.lines), row.id
        assert {lines[number].headings[-1] for number in row.lines} == {row.section}, row.id
        assert not any(lines[number].is_heading for number in row.lines), row.id


def unanswered(document: Any) -> Iterator[str]:
    """The lines that no row answers and that are not listed as no requirement."""
    answered = {number for row in document.rows for number in row.lines}
    skipped = {number for lines, _ in document.not_requirements for number in lines}
    lines = lines_of(document)
    sections = {heading for line in lines if line.number in answered for heading in line.headings}
    for line in lines:
        if line.number in answered | skipped or line.is_structure:
            continue
        if not line.is_heading or line.headings[-1] not in sections:
            yield f"{document.file}:{line.number}: {line.text}"


@needs_documents
@each_document
def test_every_line_is_answered_by_a_row_or_is_no_requirement(document: Any) -> None:
    assert list(unanswered(document)) == []


@needs_documents
@each_document
def test_lines_that_are_no_requirement_are_not_answered_too(document: Any) -> None:
    answered = {number for row in document.rows for number in row.lines}
    lines = {line.number: line for line in lines_of(document)}
    for skipped, reason in document.not_requirements:
        assert reason
        for number in skipped:
            assert number not in answered, f"{document.file}:{number}"
            assert not lines[number].is_structure, f"{document.file}:{number}"


EXAMPLES = {name: value for name, value in vars(examples).items() if isinstance(value, examples.Example)}


@needs_documents
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_the_documents(name: str) -> None:
    example = EXAMPLES[name]
    lines = (Path(FOLDER) / example.document).read_text(encoding="utf-8").splitlines()
    assert [lines[number - 1].rstrip() for number in example.lines] == example.text.splitlines()
