"""A short run of `scripts/fuzz_inputs.py`: hostile inputs raise typed errors, without hangs or crashes."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pondertree.errors import InvalidArgumentError
from pondertree.games import Chess

ROOT = Path(__file__).parents[2]
#: Inputs per kind; each stream of `uci_program` starts a process.
INPUTS = {
    "arguments": 150,
    "games": 250,
    "evaluators": 150,
    "models": 200,
    "fens": 150,
    "uci": 50,
    "uci_program": 3,
    "command_line": 80,
}


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "fuzz_inputs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("kind", INPUTS)
def test_hostile_inputs_raise_typed_errors(kind: str) -> None:
    done = fuzz("--kind", kind, "--inputs", str(INPUTS[kind]), "--seed", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(rf"^{kind} +(\d+) +(\d+) +(\d+) +0 +0 +0$", done.stdout, re.MULTILINE)
    assert counts is not None, done.stdout
    inputs, good, typed = map(int, counts.groups())
    assert inputs == INPUTS[kind] == good + typed
    assert good > 0, "every input was refused: the fuzzer does not reach what lies behind the checks"


def test_every_kind_has_short_form() -> None:
    [kinds] = re.findall(r"--kind \{([^}]*)\}", fuzz("--help").stdout)[:1]
    assert set(kinds.split(",")) == set(INPUTS)


def test_only_argument_exceptions_count_as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    hostile = importlib.import_module("hostile")

    def raising(error: Exception, depth: int) -> object:
        if depth == 0:
            raise error
        return raising(error, depth - 1)

    typed: list[Callable[[], object]] = [
        lambda: raising(TypeError("seed must be an int"), 0),
        lambda: Chess(fen=3),  # type: ignore[arg-type]
        lambda: range(hostile.Raising()),
        lambda: raising(hostile.deliberate(KeyError), 3),
    ]
    for call in typed:
        with pytest.raises(InvalidArgumentError):
            hostile.named(call, ["seed", "fen"])
    untyped = [(TypeError("seed"), 2), (TypeError("other"), 0), (KeyError("__len__"), 0), (ValueError("seed"), 0)]
    for error, depth in untyped:
        with pytest.raises(type(error)) as raised:
            hostile.named(functools.partial(raising, error, depth), ["seed", "fen"])
        assert raised.value is error
