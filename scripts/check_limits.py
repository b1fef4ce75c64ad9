"""Limits of the architecture, printed and enforced by `make check`: size of the map, and retired identifiers.

Import rules have tools of their own: import-linter for Python (pyproject.toml), `check_layers.py` for Rust.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_ARCHITECTURE_BYTES = 16_000
MAX_ROOT_MODULES = 14
MAX_LINES = 450
#: Identifiers of a former private vocabulary, and what the field calls them (ARCHITECTURE.md, glossary).
RETIRED = {
    "thread pool, worker, parallel_for": "crew hand hands hire dismiss together",
    "simd, vector_math, parallel_vec": "abreast wide elementary ahead",
    "leaf analysis, move ordering, HistoryTable, MoveCategory": "look experience Learned Kind",
    "SearchConfig": "Parts PartsArguments Settings Shared",
    "InferencePipeline, InferenceBuffer, requests, responses": "answers turns model_turns Turns Lane Line questions",
    "DeviceContext, TreeCache, StagingBuffer": "Studio studio Kept First",
    "DeviceOffload": "Grove grove Beside beside elsewhere",
    "export_roots, cancel, import_results, synchronize": "leave stay come_back settle",
    "supports(...)": "NotForLanes",
    "chess_interop, to_state": "door enter open_door door_muzero",
    "the title of a specification; the reference implementation": "SeedForm twin",
    "memory_check, async_evaluation, trainer, game_check": "room examining optimised own_game",
    "writer, search_task, tree_reuse, observation_root, latent_world": "voice thought kept observed imagine",
    "a specific name": "PATIENCE padded",
}
TERMS = {word: term for term, words in RETIRED.items() for word in words.split()}


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, those not yet committed included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).exists()]


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Identifiers of a source file with their lines; comments and string literals are left out."""
    if path.suffix == ".py":
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.NAME:
                    yield token.start[0], token.string
        return
    text = path.read_text(encoding="utf-8")
    plain = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', lambda part: "\n" * part[0].count("\n"), text, flags=re.S)
    # The first rank of a chess board.
    for number, line in enumerate(plain.replace("Rank::First", "").splitlines(), start=1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            yield number, name


def retired_names() -> Iterator[str]:
    """Each use of a retired identifier, in code or as the name of a file."""
    for path in tracked("*.py", "*.pyi", "*.rs", "*.cu", "*.h"):
        where = path.relative_to(ROOT)
        if path.stem in TERMS:
            yield f"{where}: the file's name; the field says {TERMS[path.stem]}"
        for line, name in identifiers(path):
            if name in TERMS:
                yield f"{where}:{line}: {name}; the field says {TERMS[name]}"


def main() -> int:
    """Prints the figures; 1 if a limit is exceeded."""
    size = (ROOT / "ARCHITECTURE.md").stat().st_size
    modules = sorted(path.name for path in (ROOT / "python" / "pondertree").glob("*.py"))
    names = list(retired_names())
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked("*.py", "*.rs")}
    long = {path.relative_to(ROOT): length for path, length in lengths.items() if length > MAX_LINES}
    print(f"ARCHITECTURE.md: {size} bytes (limit {MAX_ARCHITECTURE_BYTES})")
    print(f"modules directly in python/pondertree: {len(modules)} (limit {MAX_ROOT_MODULES})")
    print(f"retired identifiers: {len(names)} (limit 0)")
    print(f"source files over {MAX_LINES} lines: {len(long)} (limit 0)")
    for complaint in [*names, *(f"{path}: {length} lines" for path, length in long.items())]:
        print(complaint, file=sys.stderr)
    return int(size > MAX_ARCHITECTURE_BYTES or len(modules) > MAX_ROOT_MODULES or bool(names) or bool(long))


if __name__ == "__main__":
    raise SystemExit(main())
