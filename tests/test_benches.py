"""The benches run: tiny sizes, no peers, nothing installed. Their numbers are not looked at."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).parents[1] / "benches" / "run.py"
NAMES = ("uct", "alphazero", "muzero", "hybrid", "memory", "roots", "perft", "python_game")


def bench(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", str(RUN), *args], capture_output=True, text=True, check=False, timeout=120
    )


def measure(folder: Path, *names: str) -> dict[str, Any]:
    file = folder / "rows.json"
    done = bench("--tiny", "--no-peers", "--json", str(file), *names)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_all_benches_run_without_peers(tmp_path: Path) -> None:
    found = measure(tmp_path)
    assert {row["bench"] for row in found["rows"]} == set(NAMES)
    assert all(row["ours"] is not None or row["measured"] is not None for row in found["rows"])
    assert all(row["peer"] is None for row in found["rows"])
    assert "ponderosa" in found["machine"]["packages"]


def test_one_bench_can_be_named(tmp_path: Path) -> None:
    rows = measure(tmp_path, "perft")["rows"]
    assert {row["bench"] for row in rows} == {"perft"}
    # A bar on our own number is judged without a peer, a ratio is not.
    assert {row["passed"] is None for row in rows if row["bar"] is not None} == {False}
    assert {row["passed"] for row in rows if row["bar"] is None} == {None}


@pytest.mark.parametrize(("args", "says"), [(("go",), "there is no bench 'go'"), (("--record", "uct"), "--record")])
def test_mistakes_are_named(args: tuple[str, ...], says: str) -> None:
    done = bench(*args)
    assert done.returncode == 2
    assert says in done.stderr


def test_recorded_matches_are_on_the_page() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "matches.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert len(recorded) > 10
    for match in recorded:
        assert f"| {match['question']} |" in page
        assert f"+{match['wins']} ={match['draws']} -{match['losses']}" in page


def test_recorded_steps_are_on_the_page() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "strength.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert sum("step" in match for match in recorded) > 5
    for match in recorded:
        name = match["step"] if "step" in match else f"{match['default']}, against {match['against']}"
        assert f"| {name} |" in page
        assert f"+{match['wins']} ={match['draws']} -{match['losses']}" in page


def test_what_was_recorded_on_a_gpu_is_on_the_page() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert len(recorded["rows"]) > 10
    for row in recorded["rows"]:
        assert f"| {row['case']} | {row['ours']['trees']} |" in page
        assert row["mctx"]


def test_a_rating_is_where_the_points_are_expected() -> None:
    rating = runpy.run_path(str(RUN.parent / "strength.py"))["rating"]
    # Even against one opponent; 10 points in 11 are 400 Elo; opponents on both sides balance.
    assert rating([1500], [50], [100])[0] == pytest.approx(1500)
    assert rating([1500], [1000 / 11], [100])[0] == pytest.approx(1900)
    assert rating([1400, 1800], [100 * 10 / 11 - 10, 100 / 11 + 10], [100, 100])[0] == pytest.approx(1600, abs=1)
    # 68 Elo either way after 100 even games.
    assert rating([1500], [50], [100])[1] == pytest.approx(68, abs=1)
