"""Generates docs/specifications.md from the lists in tests/specifications/*.toml.

Usage: python scripts/specifications.py

Each list covers one document, line by line. A row quotes one line and names its implementation and its test.
`make test` compares the page with the lists, the lists with the code, and, if the documents are available, the lists
with the documents.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LISTS = ROOT / "tests/specifications"
PAGE = ROOT / "docs/specifications.md"

INTRODUCTION = """\
# Specifications

Traceability of the five specifications that Pondertree implements: AlphaZero chess, MuZero chess, PUCT mathematics, UCT
and Hybrid chess. Each row quotes a signature, default, formula, step or example and names its implementation: a Python
name, or `file::name` for Rust. {total} rows: {met} met, {different} deliberately different.

A row is *met* if the quoted line holds as written, except for import lines. It is *different* where the document
contradicts itself or another of the five, or does not work as written; the row then states the difference and the
reason. No document has proven results (`solve=True`): `pondertree.chess.MCTS` omits them by default, other searches
with `solve=False`.

`python scripts/specifications.py` generates this page from the lists in `tests/specifications`, which also contain the
line of the document and the test of each row. Tests compare page, lists and code, and, with `PONDERTREE_SPECIFICATIONS`
set to the folder of the documents, the lists with the documents: every line is covered by a row, or is listed as no
requirement, with the reason.

| document | file | rows | met | different |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement of a document."""

    id: str
    section: str
    """The heading above the quoted line."""
    lines: range
    """The lines of the document covered by this row; the quote is from the first."""
    quote: str
    name: tuple[str, ...]
    """The implementation: dotted Python names, or `path/to/file.rs::name`."""
    status: str
    """"met" or "different"."""
    what_and_why: str
    """The difference and its reason; empty if the row is met."""
    test: str
    """The pytest node that verifies it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its rows."""

    title: str
    file: str
    list: Path
    rows: tuple[Row, ...]
    not_requirements: tuple[tuple[range, str], ...]
    """Lines without a requirement, and the reason."""

    def count(self, status: str) -> int:
        """Returns the number of rows with a status."""
        return sum(row.status == status for row in self.rows)


def lines_of(written: int | str) -> range:
    """Parses `19` or `"19-22"`, both ends included."""
    first, _, last = str(written).partition("-")
    return range(int(first), int(last or first) + 1)


def read_row(row: dict[str, Any]) -> Row:
    """Converts a row of a list. Missing and unknown keys raise KeyError and TypeError."""
    row = {"what_and_why": "", **row}
    return Row(lines=lines_of(row.pop("lines")), name=tuple(row.pop("name")), **row)


def read_list(path: Path) -> Document:
    """Reads the list of one document."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    skipped = [
        (lines_of(written), entry["reason"]) for entry in content["not_requirements"] for written in entry["lines"]
    ]
    return Document(content["title"], content["document"], path, tuple(map(read_row, content["rows"])), tuple(skipped))


def read_lists() -> list[Document]:
    """Reads all lists, ordered by document."""
    return sorted(map(read_list, LISTS.glob("*.toml")), key=lambda document: document.file)


def code(text: str, limit: int = 100) -> str:
    """Returns a code span for a table cell, truncated at a word."""
    if len(text) > limit:
        text = text[: text.rindex(" ", 0, limit - 2)] + " …"
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(document: Document) -> str:
    """Returns the rows of a document as a Markdown table."""
    lines = [f"## {document.title}", "", "| section | quote | name | status |", "|---|---|---|---|"]
    for row in document.rows:
        names = " ".join(code(name) for name in row.name)
        status = row.status if row.status == "met" else f"different: {row.what_and_why}"
        lines.append(f"| {row.section.replace('|', '')} | {code(row.quote)} | {names} | {status} |")
    return "\n".join(lines) + "\n"


def page(documents: list[Document]) -> str:
    """Returns the whole page."""
    totals = {status: sum(document.count(status) for document in documents) for status in ("met", "different")}
    text = INTRODUCTION.format(total=sum(totals.values()), **totals)
    for one in documents:
        cells = (one.title, f"`{one.file}`", len(one.rows), one.count("met"), one.count("different"))
        text += "| " + " | ".join(map(str, cells)) + " |\n"
    return text + "\n" + "\n".join(map(table, documents))


if __name__ == "__main__":
    PAGE.write_text(page(read_lists()), encoding="utf-8")
