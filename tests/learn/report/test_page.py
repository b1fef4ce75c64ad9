"""The HTML page of a run: self-contained, reproducible, and written without matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.learning import small

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from pondertree.learn import train
from pondertree.learn.report.page import report_html, write_report
from pondertree.learn.report.summary import Summary


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    train(small(out, steps=12, evaluation={"games": 2, "uct_simulations": (5,), "simulations": 4}))
    return out


def test_report_without_matplotlib_leaves_no_plots_folder(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("metrics.jsonl", "config.toml", "run.json"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path, complaint = write_report(tmp_path)
    assert path.exists()
    assert "no plots" in complaint
    assert not (tmp_path / "plots").exists()


def test_report_is_one_self_contained_page(trained: Path) -> None:
    pytest.importorskip("matplotlib")
    path, complaint = write_report(trained)
    text = path.read_text()
    assert not complaint
    assert text.count("<figure><svg") == 4
    assert "score against UCT 5" in text
    assert "<title>Training run: tic-tac-toe</title>" in text
    assert "<h1>Training run: tic-tac-toe</h1>" in text
    for config, title in (("game = 'a<b'", "Training run: a&lt;b"), ("game = ", "Training run"), ("", "Training run")):
        assert f"<title>{title}</title>" in report_html(Summary([], [], [], [], config), [])
    assert "http://" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    assert sorted(one.name for one in (trained / "plots").glob("*.png")) == [
        "calibration.png",
        "elo.png",
        "games.png",
        "loss.png",
    ]
    # Drawing is reproducible.
    assert write_report(trained)[0].read_text() == text
