"""Writes docs/specifications.md from the lists in tests/specifications/*.toml.

Usage: python scripts/specifications.py

Each list answers one document, line by line. A row quotes one line and names what implements it and the test that
proves it. `make test` compares the page with the lists, the lists with the code, and, where the documents are at hand,
the lists with the documents.
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

Pondertree implements five documents: AlphaZero chess, MuZero chess, PUCT mathematics, UCT and Hybrid chess. The tables
below quote every signature, default, formula, step and example of them, one row each, and name what implements it: a
Python name, or `file::name` for Rust. {total} rows: {met} met, {different} deliberately different.

A row is *met* if the quoted line holds as written, except for import lines. It is *different* where the document
contradicts itself, contradicts another of the five, or does not work as written; then the row says what is different
and why. No document has proven results (`solve=True`): `pondertree.chess.MCTS` does without them by default, other
searches with `solve=False`.

This page is written by `python scripts/specifications.py` from the lists in `tests/specifications`, which also name
the line of the document and the test of each row. Tests compare page, lists and code, and with
`PONDERTREE_SPECIFICATIONS` set to the folder of the documents the lists with the documents: every line of them is
answered by a row, or is listed there as no requirement, with the reason.

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
    """The lines of the document that this row answers; the quote is from the first."""
    quote: str
    name: tuple[str, ...]
    """What implements it: dotted Python names, or `path/to/file.rs::name`."""
    status: str
    """"met" or "different"."""
    what_and_why: str
    """Of a different row; empty if it is met."""
    test: str
    """The pytest node that proves it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its rows."""

    title: str
    file: str
    list: Path
    rows: tuple[Row, ...]
    not_requirements: tuple[tuple[range, str], ...]
    """Lines that ask for nothing, and the reason."""

    def count(self, status: str) -> int:
        """Rows with a status."""
        return sum(row.status == status for row in self.rows)


def lines_of(written: int | str) -> range:
    """`19`, or `"19-22"` with both ends included."""
    first, _, last = str(written).partition("-")
    return range(int(first), int(last or first) + 1)


def read_row(row: dict[str, Any]) -> Row:
    """A row as the list has it. A key that is missing or unknown is a KeyError or a TypeError."""
    row = {"what_and_why": "", **row}
    return Row(lines=lines_of(row.pop("lines")), name=tuple(row.pop("name")), **row)


def read_list(path: Path) -> Document:
    """The list of one document."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    skipped = [
        (lines_of(written), entry["reason"]) for entry in content["not_requirements"] for written in entry["lines"]
    ]
    return Document(content["title"], content["document"], path, tuple(map(read_row, content["rows"])), tuple(skipped))


def read_lists() -> list[Document]:
    """The lists of all documents, in the documents' order."""
    return sorted(map(read_list, LISTS.glob("*.toml")), key=lambda document: document.file)


def code(text: str, limit: int = 100) -> str:
    """A code span for a cell of a table, shortened at a word."""
    if len(text) > limit:
        text = text[: text.rindex(" ", 0, limit - 2)] + " …"
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(document: Document) -> str:
    """The rows of a document, as Markdown."""
    lines = [f"## {document.title}", "", "| section | quote | name | status |", "|---|---|---|---|"]
    for row in document.rows:
        names = " ".join(code(name) for name in row.name)
        status = row.status if row.status == "met" else f"different: {row.what_and_why}"
        lines.append(f"| {row.section.replace('|', '')} | {code(row.quote)} | {names} | {status} |")
    return "\n".join(lines) + "\n"


def page(documents: list[Document]) -> str:
    """The whole page."""
    totals = {status: sum(document.count(status) for document in documents) for status in ("met", "different")}
    text = INTRODUCTION.format(total=sum(totals.values()), **totals)
    for one in documents:
        cells = (one.title, f"`{one.file}`", len(one.rows), one.count("met"), one.count("different"))
        text += "| " + " | ".join(map(str, cells)) + " |\n"
    return text + "\n" + "\n".join(map(table, documents))


if __name__ == "__main__":
    PAGE.write_text(page(read_lists()), encoding="utf-8")
