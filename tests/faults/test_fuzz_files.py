"""A short run of `scripts/fuzz_files.py`, and the harness of the fuzzers itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("pyarrow")

SCRIPTS = Path(__file__).parents[2] / "scripts"

#: A fuzzer whose inputs have every outcome.
EVERY_OUTCOME = """
import os, sys
import numpy as np
from fuzzing import main
from pondertree.errors import StorageError

def make(numbers):
    which = numbers.randrange(7)
    def call():
        if which == 1: raise StorageError("x")
        if which == 2: raise KeyError("x")
        if which == 3: os.abort()
        while which == 4: pass
        if which == 5: np.ones(10**12)
        if which == 6: sys.exit(0)
        print("what is printed is no outcome")
    return call

raise SystemExit(main({"one": make, "two": make}, None))
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, (str(SCRIPTS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600)


def table(output: str) -> dict[str, list[int]]:
    """Returns the counts of each kind: inputs, ok, typed, untyped, hang, crash."""
    lines = [line.split() for line in output.splitlines()]
    head = lines.index(["kind", "inputs", "ok", "typed", "untyped", "hang", "crash"])
    return {name: [int(count) for count in counts] for name, *counts in lines[head + 1 :]}


@pytest.mark.slow
def test_harness_counts_every_outcome(tmp_path: Path) -> None:
    script = tmp_path / "every_outcome.py"
    script.write_text(EVERY_OUTCOME)
    ran = run(str(script), "--inputs", "14", "--seconds", "1", "--seed", "4")
    assert ran.returncode == 1, ran.stderr
    counts = table(ran.stdout)
    assert list(counts) == ["one", "two"]
    for inputs, *outcomes in counts.values():
        assert inputs == sum(outcomes) == 14
    assert all(count > 0 for count in map(sum, zip(*counts.values(), strict=True)))
    for said in ("KeyError: 'x'", "MemoryError", "SystemExit", "Timeout (", "Aborted"):
        assert said in ran.stdout
    # An input is reproduced by its number alone.
    again = run(str(script), "--kind", "two", "--seconds", "1", "--seed", "4", "--first", "5", "--inputs", "9")
    first = run(str(script), "--kind", "two", "--seconds", "1", "--seed", "4", "--inputs", "5")
    sums = [one + other for one, other in zip(table(again.stdout)["two"], table(first.stdout)["two"], strict=True)]
    assert sums == counts["two"]


def test_failure_of_fuzzer_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("from fuzzing import main\nraise SystemExit(main({'kind': lambda numbers: 1 / 0}, None))\n")
    ran = run(str(script), "--inputs", "3")
    assert ran.returncode == 1
    assert "the fuzzer failed at ('kind', 0)" in ran.stderr
    assert "ZeroDivisionError" in ran.stderr


@pytest.mark.slow
def test_hostile_files_and_paths_raise_typed_errors() -> None:
    ran = run(str(SCRIPTS / "fuzz_files.py"), "--inputs", "12", "--seconds", "60")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    counts = table(ran.stdout)
    assert set(counts) >= {"player", "checkpoint", "shard", "record", "config", "weights", "positions", "pgn", "tree"}
    for kind, (inputs, _, typed, *findings) in counts.items():
        assert (inputs, findings) == (12, [0, 0, 0]), kind
        assert typed > 0, kind
