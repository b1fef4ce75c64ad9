"""The ablation bench (`benches/ablation.py`): its features exist, and it measures and records."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pondertree import _core

ROOT = Path(__file__).parents[2]
BENCHES = ROOT / "benches"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the bench loads shared objects of Linux")


def bench(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(folder / "run.py"), "ablation", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_every_feature_switches_something_and_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    defined = set(tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))["features"])
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "core" / "src").rglob("*.rs"))
    assert set(re.findall(r'feature = "(ablate-[a-z0-9-]+)"', sources)) == defined
    measured = {name for each in runpy.run_path(str(BENCHES / "ablation.py"))["MECHANISMS"] for name in each.features}
    assert measured == defined | {"rayon"}


def test_ablation_measures_and_records(tmp_path: Path) -> None:
    libraries, benches = tmp_path / "libraries", tmp_path / "benches"
    libraries.mkdir()
    shutil.copytree(BENCHES, benches, ignore=shutil.ignore_patterns(".venv*", "out"))
    (tmp_path / "python").symlink_to(ROOT / "python")
    for name in ("ours", "noise-batches", "masks"):
        # Equal engines: the figures mean nothing.
        shutil.copy(str(_core.__file__), libraries / f"{name}.so")
    file = str(tmp_path / "rows.json")
    options = ["--built", str(libraries), "--tiny", "--threads", "2", "--json", file]
    done = bench(benches, *options, "--only", "^(Dirichlet|score masks /)", "--workload", r"trees x (4|8), noise")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 8
    assert all(len(row["wall"]) == len(row["cpu"]) == 1 and row["wall"][0] > 0 for row in rows)
    assert bench(benches, "--record", file).returncode == 0
    page = (benches / "RESULTS.md").read_text(encoding="utf-8")
    assert "| score masks | scores in memory | 4 |" in page
    assert bench(benches, "--record", file).returncode == 0
    assert (benches / "RESULTS.md").read_text(encoding="utf-8") == page


def test_recorded_ablation_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHES)
    section = runpy.run_path(str(BENCHES / "ablation.py"))["section"]()
    assert section in (BENCHES / "RESULTS.md").read_text(encoding="utf-8")
