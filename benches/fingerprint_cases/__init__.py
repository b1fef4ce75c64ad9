"""The searches of `fingerprints.py`: every preset, compiled and Python games, evaluators and models, and their options.

Each case is a function that writes what it computes to a `Transcript`. Only public names are used, so that the same
files run against other versions of the package.
"""

from __future__ import annotations

from fingerprint_cases.case import Case
from fingerprint_cases.chance import chance_cases
from fingerprint_cases.entry_points import entry_point_cases
from fingerprint_cases.knowledge import hybrid_cases
from fingerprint_cases.models import model_cases
from fingerprint_cases.priors import alphazero_cases, gumbel_cases
from fingerprint_cases.torch_adapters import torch_cases
from fingerprint_cases.trees import forest_cases, large_cases, reuse_cases, trace_cases
from fingerprint_cases.uct import uct_cases

GROUPS = (
    uct_cases,
    alphazero_cases,
    gumbel_cases,
    model_cases,
    hybrid_cases,
    large_cases,
    reuse_cases,
    forest_cases,
    trace_cases,
    torch_cases,
    entry_point_cases,
    chance_cases,
)


def cases() -> dict[str, Case]:
    """All cases by name."""
    found: dict[str, Case] = {}
    for name, case in (pair for group in GROUPS for pair in group()):
        if name in found:
            raise ValueError(f"two cases are called {name!r}")
        found[name] = case
    return found
