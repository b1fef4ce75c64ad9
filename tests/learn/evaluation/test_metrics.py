"""The metrics file skips lines that a kill truncated or that are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pondertree.learn.evaluation.metrics import Metrics, read_metrics


def test_metrics_skip_truncated_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [{"kind": "round", "round": number, "step": 0} for number in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "rou')
    assert read_metrics(path) == lines


@pytest.mark.parametrize(
    "damaged",
    [
        '{"kind":"round","round":"x","step":null}',
        '{"kind":"round","round":1,"step":null}',
        '{"kind":"round","round":true,"step":0}',
        '{"kind":3,"round":1,"step":0}',
        '{"kind":"round","round":1}',
        "[1]",
    ],
)
def test_metrics_skip_damaged_line(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "metrics.jsonl"
    line = {"kind": "round", "round": 1, "step": 2}
    path.write_text(f"{damaged}\n{json.dumps(line)}\n")
    metrics = Metrics(path, 1)
    metrics.close()
    assert metrics.lines == read_metrics(path) == [line]
