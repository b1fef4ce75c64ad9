"""The short form of `scripts/fuzz_inputs.py`: hostile inputs of every kind raise typed errors, none hangs or dies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Inputs of each kind; a program is started for each of the streams of `uci_program`.
INPUTS = {
    "arguments": 150,
    "games": 250,
    "evaluators": 250,
    "models": 250,
    "fens": 150,
    "uci": 80,
    "uci_program": 3,
    "command_line": 80,
}


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "scripts" / "fuzz_inputs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@pytest.mark.parametrize("kind", INPUTS)
def test_hostile_inputs_raise_typed_errors(kind: str) -> None:
    done = fuzz("--kind", kind, "--inputs", str(INPUTS[kind]), "--seed", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(rf"^{kind} +(\d+) +(\d+) +(\d+) +0 +0 +0$", done.stdout, re.MULTILINE)
    assert counts is not None, done.stdout
    inputs, good, typed = map(int, counts.groups())
    assert inputs == INPUTS[kind] == good + typed
    assert good > 0, "every input was refused: the fuzzer does not reach what lies behind the checks"


def test_every_kind_has_a_short_form() -> None:
    [kinds] = re.findall(r"--kind \{([^}]*)\}", fuzz("--help").stdout)[:1]
    assert set(kinds.split(",")) == set(INPUTS)
