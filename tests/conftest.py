"""Shared configuration: hypothesis profiles, and the markers of folders."""

import os
from pathlib import Path

import hypothesis
import pytest

TESTS = Path(__file__).parent
MARKERS = {"faults": "fault", "golden": "golden", "oracle": "oracle"}

# The profile dev draws new examples in each run and prints how to reproduce a failure; ci draws the same ones.
# No deadlines: tests also run on loaded machines.
hypothesis.settings.register_profile("dev", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in MARKERS:
            item.add_marker(getattr(pytest.mark, MARKERS[folder]))
