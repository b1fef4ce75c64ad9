"""The verdict on every environment of `scripts/probe_environments.py` whose package is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")


def _script() -> Any:
    path = Path(__file__).parents[2] / "scripts/probe_environments.py"
    spec = importlib.util.spec_from_file_location("probe_environments", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


@pytest.mark.parametrize("case", SCRIPT.ENVIRONMENTS, ids=lambda case: case.name)
def test_verdict_is_right(case: Any) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        if not SCRIPT.installed(case):
            pytest.skip("its package is not installed")
        row = SCRIPT.verdict(case)
    assert row["right"], row


def test_environments_have_traps() -> None:
    """The rows that run here, without those whose packages are missing."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        ran = [case for case in [*SCRIPT.ENVIRONMENTS, *SCRIPT.AGENTS] if SCRIPT.installed(case)]
    assert len(ran) >= 30
    assert sum(bool(case.trap) for case in ran) >= 8
