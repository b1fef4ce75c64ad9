"""The report of a fit: text, JSON, calibration, plots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.tuning import drawn_by

from pondertree.chess import Pesto
from pondertree.errors import MissingExtraError
from pondertree.tune import FitOptions, Report, draw_plots, material_only, tune
from pondertree.tune.features import features_of
from pondertree.tune.report import calibration

TRUTH = Pesto(scale=200.0)


@pytest.fixture(scope="module")
def report() -> Report:
    return tune(drawn_by(TRUTH, 4000, per_game=2), material_only(), FitOptions(iterations=12))


def test_report_has_errors_before_and_after_rounding(report: Report) -> None:
    assert report.after["held_back"].log < report.rescaled["held_back"].log <= report.before["held_back"].log + 0.01
    assert report.after["train"].log < report.before["train"].log
    assert report.after["train"].log == pytest.approx(report.fitted["train"].log, abs=1e-4)
    assert report.tuned.phase_weights == Pesto().phase_weights
    assert report.counts["games"] == 2000
    assert report.counts["train"] + report.counts["held_back"] == 4000


def test_report_text_matches_data(report: Report) -> None:
    text = str(report)
    assert "4,000" not in text
    assert "3,400 positions to learn from, 600 held back, of 2,000 games; 0 skipped" in text
    assert "queen_value" in text
    assert "king_squares" in text
    data = json.loads(json.dumps(report.as_json()))
    assert data["changes"]["queen_value"]["before"] == [900.0, 900.0]
    assert data["changes"]["queen_value"]["after"] == [float(number) for number in report.tuned.queen_value]
    assert set(data["errors"]) == {"before", "rescaled", "fitted", "after"}
    assert len(data["history"]) == data["steps"] == 12


def test_calibration_bins_match_results() -> None:
    """The weights that generated the results are calibrated."""
    buckets = calibration(features_of(drawn_by(TRUTH, 12_000), TRUTH), TRUTH)
    assert sum(bucket.count for bucket in buckets) == 12_000
    for bucket in buckets:
        if bucket.count > 500:
            assert bucket.actual == pytest.approx(bucket.predicted, abs=0.07)


def test_plots_are_written(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for ending in ("png", "svg"):
        paths = draw_plots(report, tmp_path, ending)
        assert [path.name for path in paths] == [f"{name}.{ending}" for name in ("error", "calibration", "tables")]
        assert all(path.stat().st_size > 1000 for path in paths)


def test_missing_matplotlib_error_names_package(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[viz\]"):
        draw_plots(report, tmp_path)
