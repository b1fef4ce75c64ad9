"""Learned models that violate their contract."""

from __future__ import annotations

from typing import Any

import pytest

import pondertree

PRESETS: list[Any] = [pondertree.MuZero, pondertree.Gumbel]


by_preset = pytest.mark.parametrize("preset", PRESETS, ids=["muzero", "gumbel"])
