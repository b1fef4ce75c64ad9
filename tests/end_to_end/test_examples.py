"""Example scripts run and are short. (`examples/games` are tested as games.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_robot_example_reaches_flag() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "muzero.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for name in ("MuZero", "Gumbel"):
        assert f"{name}: right right right down down, paid +1" in done.stdout
    assert "Exact is 0.815" in done.stdout


def test_async_service_example_is_faster_with_leaves_in_flight() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "async_service.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    most = [int(re.findall(r"at most (\d+) requests", line)[0]) for line in lines[:3]]
    assert most[:2] == [1, 16]
    assert 16 < most[2] <= 32
    # Loaded machines reach less than 13 and 29.
    assert min(float(number) for number in re.findall(r"\d+\.\d", lines[3])) > 3


@pytest.mark.slow
def test_stable_baselines_learns_against_search() -> None:
    pytest.importorskip("sb3_contrib", reason="MaskablePPO is in sb3-contrib")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "train_against_search.py"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    untrained, trained = (float(re.findall(rf"{what}: (0\.\d+)", done.stdout)[0]) for what in ("agent", "steps"))
    # It is 0.13 and 0.46; training is not reproducible bit for bit on other CPUs.
    assert untrained < 0.25
    assert trained > untrained + 0.15


def test_examples_have_less_than_hundred_lines() -> None:
    for path in EXAMPLES.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 100, path.name
