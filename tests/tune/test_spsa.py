"""SPSA on known objectives, and the settings of the hybrid search."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import pondertree
from pondertree.errors import InvalidArgumentError
from pondertree.tune import tune_search
from pondertree.tune.search_settings import PARAMETERS, compare_by_matches, settings_of
from pondertree.tune.spsa import Parameter, Step, run_spsa

HILL = (
    Parameter(name="one", start=3.0, step=0.5, low=-10.0, high=10.0),
    Parameter(name="two", start=1.0, step=1.2, low=0.1, high=100.0, log=True),
    Parameter(name="three", start=0.0, step=10.0, low=0.0, high=100.0),
)


def strength(values: Sequence[float]) -> float:
    """An objective with its optimum at (0, 5, 40)."""
    return -((values[0] / 2) ** 2) - math.log(values[1] / 5) ** 2 - ((values[2] - 40) / 40) ** 2


def compare(one: Sequence[float], other: Sequence[float], seed: int) -> float:
    """Eight games with random results."""
    expected = 1 / (1 + math.exp(-2 * (strength(one) - strength(other))))
    return float(np.random.default_rng(seed).binomial(8, expected)) / 8


def test_spsa_improves_objective() -> None:
    values, steps = run_spsa(HILL, compare, iterations=300, seed=1)
    start = strength([one.start for one in HILL])
    assert len(steps) == 300
    assert strength(values) > 0.1 * start
    assert values[0] == pytest.approx(0.0, abs=0.8)
    assert 3.0 < values[1] < 8.0
    assert run_spsa(HILL, compare, iterations=300, seed=1)[0] == values
    assert run_spsa(HILL, compare, iterations=300, seed=2)[0] != values


def test_parameters_stay_within_bounds() -> None:
    seen: list[float] = []

    def lower_is_better(one: Sequence[float], other: Sequence[float], seed: int) -> float:
        seen.extend([*one, *other])
        return float(one[0] < other[0])

    values, _ = run_spsa([Parameter(name="x", start=1.0, step=1.0, low=0.0, high=2.0)], lower_is_better, iterations=20)
    assert min(seen) == 0.0
    assert max(seen) <= 2.0
    assert values[0] < 0.2


def test_resumed_spsa_matches_uninterrupted_run(tmp_path: Path) -> None:
    whole = run_spsa(HILL, compare, iterations=30, seed=4)
    path = tmp_path / "spsa.jsonl"

    def stop(steps: list[Step]) -> None:
        if len(steps) == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_spsa(HILL, compare, iterations=30, seed=4, record=path, progress=stop)
    # A truncated last line.
    with open(path, "ab") as file:
        file.write(b'{"number": 11, "sig')
    with pytest.raises(InvalidArgumentError, match="exists already"):
        run_spsa(HILL, compare, iterations=30, seed=4, record=path)
    with pytest.raises(InvalidArgumentError, match="started with seed = 4, not 5"):
        run_spsa(HILL, compare, iterations=30, seed=5, record=path, resume=True)
    assert run_spsa(HILL, compare, iterations=30, seed=4, record=path, resume=True) == whole
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 31
    path.write_bytes(b"".join([*lines[:5], lines[6]]))
    with pytest.raises(InvalidArgumentError, match=r"line 6.*: step 4 is missing"):
        run_spsa(HILL, compare, iterations=30, seed=4, record=path, resume=True)
    for content in (b"something else\n", b"something else"):
        path.write_bytes(content)
        with pytest.raises(InvalidArgumentError, match="not the record of an SPSA run"):
            run_spsa(HILL, compare, iterations=30, seed=4, record=path, resume=True)
        assert path.read_bytes() == content


def test_finished_spsa_can_be_extended(tmp_path: Path) -> None:
    path = tmp_path / "spsa.jsonl"
    _, begun = run_spsa(HILL, compare, iterations=10, seed=4, record=path)
    values, steps = run_spsa(HILL, compare, iterations=25, seed=4, record=path, resume=True)
    assert (len(steps), steps[:10]) == (25, begun)
    # One run or two, with the original schedule.
    other = tmp_path / "other.jsonl"
    run_spsa(HILL, compare, iterations=10, seed=4, record=other)
    run_spsa(HILL, compare, iterations=17, seed=4, record=other, resume=True)
    assert run_spsa(HILL, compare, iterations=25, seed=4, record=other, resume=True) == (values, steps)
    # Existing steps are kept with fewer iterations.
    assert run_spsa(HILL, compare, iterations=5, seed=4, record=other, resume=True) == (values, steps)


def test_tunable_settings_match_hybrid() -> None:
    usual, search = settings_of([one.start for one in PARAMETERS]), pondertree.Hybrid()
    for name, value in usual.items():
        assert getattr(search, name) == (tuple(value) if isinstance(value, list) else value)


def test_settings_are_parsed_and_applied(tmp_path: Path) -> None:
    """With a comparison that favours larger exploration constants."""

    def more_exploration(one: Sequence[float], other: Sequence[float], seed: int) -> float:
        return float(one[1] > other[1])

    found = tune_search(iterations=20, compare=more_exploration, out=tmp_path, seed=1)
    assert found["exploration_constant"] > 1.8
    assert json.loads((tmp_path / "settings.json").read_text()) == found
    assert pondertree.Hybrid(**found).exploration_constant == found["exploration_constant"]
    again = tune_search(iterations=20, compare=more_exploration, out=tmp_path, seed=1, resume=True)
    assert again == found
    with pytest.raises(InvalidArgumentError, match="resume requires out"):
        tune_search(iterations=2, compare=more_exploration, resume=True)
    with pytest.raises(InvalidArgumentError, match="games must be even"):
        tune_search(iterations=2, games=3)


def test_settings_are_compared_by_paired_games() -> None:
    values = [one.start for one in PARAMETERS]
    score = compare_by_matches(simulations=4, games=2, concurrency=1)(values, values, 7)
    assert score in (0.0, 0.25, 0.5, 0.75, 1.0)
