"""Helpers of the tests of forests: compiled and Python games alike."""

from __future__ import annotations

from typing import Any

from tests.support.search_helpers import PythonGame


def made(state: Any, wrap: bool) -> Any:
    return PythonGame(state) if wrap else state
