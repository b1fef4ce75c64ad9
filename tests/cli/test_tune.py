"""`pondertree tune`: output, files, errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support.tuning import drawn_by

from pondertree.chess import Pesto
from pondertree.cli import main
from pondertree.match import read_player
from pondertree.optional import install_command

pytest.importorskip("rich")


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "positions.npz"
    drawn_by(Pesto(), 600, per_game=2).save(path)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert main(["tune", *arguments]) == status
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_tune_weights_writes_weights(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "tuned")
    text, err = run(capsys, data, "--out", out, "--start", "material", "--iterations", "4", "--plots", "none")
    assert err == ""
    assert "510 positions to learn from, 90 held back, of 300 games" in text
    assert sorted(os.listdir(out)) == ["checkpoint.npz", "positions.npz", "report.json", "report.txt", "weights.json"]
    assert Path(out, "report.txt").read_text(encoding="utf-8") == text
    tuned = Pesto.from_file(f"{out}/weights.json")
    assert tuned != Pesto()
    assert read_player(f"hybrid:evaluator=pesto:{out}/weights.json").name
    # Weights of an earlier run as the start.
    again = [data, "--out", str(tmp_path / "again"), "--start", f"{out}/weights.json", "--plots", "none", "--json"]
    found = json.loads(run(capsys, *again, "--iterations", "2", "--keep-scale")[0])
    assert found["scale"] == {"before": tuned.scale, "after": tuned.scale}
    assert run(capsys, *again, status=2)[1].startswith("pondertree: out: ")


def test_tune_weights_writes_plots_or_names_package(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = run(capsys, data, "--out", str(tmp_path / "tuned"), "--iterations", "2")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert f"no plots: drawing plots needs matplotlib: {install_command('viz')}" in err
    else:
        assert (tmp_path / "tuned" / "tables.png").exists()


def test_tune_self_play_writes_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "tuned")
    small = ["--self-play", "4", "--simulations", "4", "--concurrency", "1", "--out", out, "--plots", "none"]
    found = json.loads(run(capsys, *small, "--data-only", "--json")[0])
    assert found["games"] == 4
    assert sorted(os.listdir(out)) == ["games.jsonl", "positions.npz"]
    assert run(capsys, *small, status=2)[1].endswith("continue it (resume), or give another name\n")
    assert "of 4 games" in run(capsys, *small, "--resume", "--iterations", "2")[0]


def test_tune_search_runs_spsa(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "settings")
    small = ["--search", "--iterations", "2", "--games", "2", "--simulations", "2", "--concurrency", "1", "--out", out]
    found = json.loads(run(capsys, *small, "--json")[0])
    assert json.loads(Path(out, "settings.json").read_text()) == found
    assert run(capsys, *small, status=2)[1].count("\n") == 1
    assert json.loads(run(capsys, *small, "--resume")[0]) == found


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give FILES with positions, or --self-play N"),
        (["none.epd"], "'none.epd' cannot be read"),
        (["x.pgn", "--start", "none.json"], "--start: 'none.json' cannot be read"),
        (["x.pgn", "--regularisation", "-1"], "regularisation must be at least 0.0"),
        (["--self-play", "3"], "num_games must be even"),
        (["--search", "x.pgn"], "--search plays its own games"),
    ],
)
def test_invalid_arguments_print_one_line(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run(capsys, *arguments, "--out", str(tmp_path / "out"), status=2)
    assert out == ""
    assert err.startswith("pondertree: ")
    assert text in err
    assert err.count("\n") == 1


def test_unusable_data_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.epd").write_text("nothing 1-0\n")
    (tmp_path / "file").write_text("")
    _, err = run(capsys, str(tmp_path / "bad.epd"), "--out", str(tmp_path / "out"), status=2)
    assert "there are no positions to learn from (1 skipped, 0 not quiet; the first: " in err
    (tmp_path / "weights.json").write_text('{"format": "pondertree-pesto"')
    _, err = run(capsys, "--start", str(tmp_path / "weights.json"), "--out", str(tmp_path / "out"), status=2)
    assert "is not a file of weights" in err
    _, err = run(capsys, "x.pgn", "--out", str(tmp_path / "file" / "below"), status=2)
    assert "cannot be made" in err
