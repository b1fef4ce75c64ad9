"""The benches run with tiny sizes and without peers; their figures are not checked."""

import json
import os
import platform
import re
import runpy
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pondertree

RUN = Path(__file__).parents[2] / "benches" / "run.py"
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
    assert all(row["peer"] is None for row in found["rows"] if row["peer_name"] != "the scalar form in NumPy")
    assert "pondertree" in found["machine"]["packages"]


def test_one_bench_can_be_named(tmp_path: Path) -> None:
    rows = measure(tmp_path, "perft")["rows"]
    assert {row["bench"] for row in rows} == {"perft"}
    # A bar on an absolute figure needs no peer, one on a ratio does.
    assert {row["passed"] is None for row in rows if row["bar"] is not None} == {False}
    assert {row["passed"] for row in rows if row["bar"] is None} == {None}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("go",), "there is no bench 'go'"),
        (("--record", "uct"), "--record"),
        (("--check", "uct"), "--check"),
        (("--baseline", "old.whl"), "--baseline"),
    ],
)
def test_invalid_arguments_are_reported(args: tuple[str, ...], says: str) -> None:
    done = bench(*args)
    assert done.returncode == 2
    assert says in done.stderr


def test_recorded_matches_are_documented() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "matches.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert len(recorded) > 10
    for match in recorded:
        assert f"| {match['question']} |" in page
        assert f"+{match['wins']} ={match['draws']} -{match['losses']}" in page


def test_recorded_steps_are_documented() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "strength.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert sum("step" in match for match in recorded) > 5
    for match in recorded:
        name = match["step"] if "step" in match else f"{match['default']}, against {match['against']}"
        assert f"| {name} |" in page
        assert f"+{match['wins']} ={match['draws']} -{match['losses']}" in page


def test_gpu_records_are_documented() -> None:
    folder = RUN.parent
    recorded = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert len(recorded["rows"]) > 10
    for row in recorded["rows"]:
        assert f"| {row['case']} | {row['ours']['trees']} |" in page
        assert row["mctx"] or row["bar"] is None
    command = [sys.executable, "-B", "-c", "import gpu_report; print(gpu_report.section(), end='')"]
    assert subprocess.check_output(command, cwd=folder, encoding="utf-8") in page, "the page is not of this record"


#: Replaces the libraries, since tests have no GPU and loading them is slow.
LIBRARIES = {
    "torch": "class cuda:\n    is_available = staticmethod(lambda: True)\n",
    "jax": "def default_backend():\n    return 'gpu'\n",
    "mctx": "",
    "pgx": "",
}


class Gpu:
    """A copy of the GPU's benchmark, whose sides print what was recorded, with what the record has not."""

    def __init__(self, folder: Path) -> None:
        self.benches, self.libraries = folder / "benches", folder / "libraries"
        for made in (self.benches, self.libraries):
            made.mkdir()
        for file in RUN.parent.glob("*.*"):
            if file.is_file():
                shutil.copy(file, self.benches)
        for name, text in LIBRARIES.items():
            (self.libraries / f"{name}.py").write_text(text, encoding="utf-8")
        recorded = json.loads((RUN.parent / "gpu.json").read_text(encoding="utf-8"))
        rows = {row["case"]: row for row in recorded["rows"]}
        solving, self_play = "Connect 4, solving, 1024 x 64", "Connect 4, self-play, 1024 x 64"
        own = {name: row["ours"] for name, row in rows.items()}
        own |= {name: {**own["Connect 4, 1024 x 64"], "case": name} for name in (solving, self_play)}
        self.ours = [{"torch": "2", "device": "a GPU"}, *own.values(), {"case": "agreement", "table": "9 of 9"}]
        self.mctx = [
            {"jax": "1", "mctx": "1", "pgx": "1", "device": "cuda:0"},
            *(line for row in rows.values() for line in row["mctx"]),
        ]

    def files(self) -> list[str]:
        """Returns the options of both sides."""
        for name, lines in (("ours", self.ours), ("mctx", self.mctx)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.benches / f"{name}.txt").write_text(text, encoding="utf-8")
        return ["--ours", str(self.benches / "ours.txt"), "--mctx", str(self.benches / "mctx.txt")]

    def prints(self, script: str, lines: list[dict[str, Any]], then: str = "") -> None:
        """Replaces the script of a side."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        code = f"import os, sys, time\nprint({text!r}, end='', flush=True)\n{then}\n"
        (self.benches / script).write_text(code, encoding="utf-8")

    def start(self, *args: str) -> "subprocess.Popen[str]":
        paths = [str(self.libraries), os.environ.get("PYTHONPATH", "")]
        # Background jobs of a shell ignore SIGINT, which child processes would inherit.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(
                [sys.executable, "-B", str(self.benches / "gpu.py"), *args],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            )
        finally:
            signal.signal(signal.SIGINT, before)

    def run(self, *args: str) -> tuple[int, str, str]:
        """Returns (exit code, stdout, stderr)."""
        process = self.start(*args)
        printed, said = process.communicate(timeout=60)
        return process.returncode, printed, said

    def tree_reuse_case(self) -> tuple[bytes, ...]:
        return tuple((self.benches / name).read_bytes() for name in ("gpu.json", "RESULTS.md"))


@pytest.fixture
def gpu(tmp_path: Path) -> Gpu:
    return Gpu(tmp_path)


def test_gpu_record_merges_two_runs(gpu: Gpu) -> None:
    before = gpu.tree_reuse_case()[1].decode()
    next(line for line in gpu.ours if line.get("case") == "chess, 256 x 64")["rate"] = 712345.678
    code, printed, said = gpu.run(*gpu.files(), "--record", "--note", "On a Monday.")
    assert code == 0, said
    record, page = json.loads(gpu.tree_reuse_case()[0]), gpu.tree_reuse_case()[1].decode()
    assert [row["case"] for row in record["rows"]] == list(runpy.run_path(str(RUN.parent / "gpu_cases.py"))["CASES"])
    assert record["note"] == "On a Monday."
    assert {row["case"]: row["ours"]["rate"] for row in record["rows"]}["chess, 256 x 64"] == 712300.0
    assert printed.strip() in page
    # Other sections are unchanged.
    (head, _), (new_head, _) = (text.split("\n## On one GPU\n") for text in (before, page))
    (_, tail), (_, new_tail) = (text.split("\n## Steps and Elo") for text in (before, page))
    assert (head, tail) == (new_head, new_tail)
    assert page.count("\n## ") == before.count("\n## ")
    code, _, said = gpu.run(*gpu.files(), "--record")
    assert code == 0, said
    assert "note" not in json.loads(gpu.tree_reuse_case()[0])


def test_numbers_of_gpu_record_are_rounded(gpu: Gpu) -> None:
    code, printed, said = gpu.run(*gpu.files())
    assert code == 0, said
    assert "e+0" not in printed
    assert re.search(r"\| 1[12]\d0 ms \|", printed), "mctx with 64 actions: more than a second, as milliseconds"
    number = r"[\d.]+"
    row = rf"\| Connect 4, 256 x 64 \| 512 \| {number}M/s \| {number}M-{number}M \| {number}k/s \| {number}x \|"
    assert re.search(row, printed)
    assert "write (encoding requests)" in printed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda gpu: gpu.ours.pop(3), "ours has nothing of 'Connect 4, 4096 x 64'"),
        (lambda gpu: gpu.ours.pop(), "ours has nothing of 'agreement'"),
        (lambda gpu: gpu.mctx.pop(), "mctx has nothing of 'MuZero, 256 x 50, 4672 actions'"),
        (lambda gpu: gpu.ours[0].update(device="no GPU"), "ours was not measured on a GPU"),
        (lambda gpu: gpu.mctx[0].update(device="TFRT_CPU_0"), "mctx was not measured on a GPU"),
        (lambda gpu: gpu.ours[0].update(small=True), "in full size"),
    ],
)
def test_incomplete_gpu_record_is_rejected(gpu: Gpu, change: Any, says: str) -> None:
    before = gpu.tree_reuse_case()
    change(gpu)
    code, _, said = gpu.run(*gpu.files(), "--record")
    assert (code, gpu.tree_reuse_case()) == (2, before)
    assert says in said


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Go"], "agreement"),
        (["--record", "chess"], "a whole run"),
        (["--record", "--no-peer"], "a whole run"),
        (["--record", "--small"], "a whole run"),
        (["--ours", "here"], "belong together"),
        (["--json", "nowhere/at/all.json"], "cannot be written"),
    ],
)
def test_invalid_gpu_arguments_are_reported_before_measuring(gpu: Gpu, args: list[str], says: str) -> None:
    before = gpu.tree_reuse_case()
    code, _, said = gpu.run(*args)
    assert (code, gpu.tree_reuse_case()) == (2, before)
    assert says in said


@pytest.mark.parametrize(
    ("library", "text", "says"),
    [
        ("torch", LIBRARIES["torch"].replace("True", "False"), "no GPU; --small"),
        ("jax", LIBRARIES["jax"].replace("gpu", "cpu"), "--no-peer"),
        ("mctx", "raise ModuleNotFoundError('No module named mctx')", "No module named mctx: install"),
    ],
)
def test_missing_library_is_reported_before_measuring(gpu: Gpu, library: str, text: str, says: str) -> None:
    (gpu.libraries / f"{library}.py").write_text(text, encoding="utf-8")
    gpu.prints("gpu_ours.py", gpu.ours)
    code, printed, said = gpu.run()
    assert (code, printed) == (2, "")
    assert says in said


@pytest.mark.parametrize(
    "then", ["raise ValueError('no more memory')", "sys.stderr.write('no more memory'); os.abort()"]
)
def test_finished_results_are_printed_after_crash(gpu: Gpu, then: str) -> None:
    before = gpu.tree_reuse_case()
    gpu.prints("gpu_ours.py", gpu.ours[:3], then)
    gpu.prints("gpu_mctx.py", gpu.mctx)
    for options, expected in (([], 1), (["--record"], 2)):
        code, printed, said = gpu.run(*options)
        assert (code, gpu.tree_reuse_case()) == (expected, before)
        assert "| Connect 4, 1024 x 64 | 2048 |" in printed
        assert "no more memory" in said
        assert "gpu_ours.py: Connect 4, 1024 x 64, 2048 trees" in said


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on POSIX")
def test_interrupt_stops_workers_and_prints_finished_results(gpu: Gpu, tmp_path: Path) -> None:
    pid_file = tmp_path / "process"
    gpu.prints("gpu_ours.py", gpu.ours[:2], f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    process = gpu.start("--no-peer")
    assert process.stderr is not None
    assert "Connect 4, 256 x 64" in process.stderr.readline()
    while not (pid_file.exists() and pid_file.read_text()):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "| Connect 4, 256 x 64 | 512 |" in printed
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_small_gpu_bench_runs_on_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-B", str(RUN.parent / "gpu.py"), "--small", "--no-peer"]
    names = ["CONNECT 4, SELF-PLAY", "muzero, 256 x 50, 18", "--json", str(tmp_path / "small.json")]
    done = subprocess.run([*command, *names], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))["rows"]
    assert [row["case"] for row in rows] == ["Connect 4, self-play, 1024 x 64", "MuZero, 256 x 50, 18 actions"]
    assert rows[1]["ours"]["bare_milliseconds"] > 0


def test_rating_matches_expected_points() -> None:
    rating = runpy.run_path(str(RUN.parent / "strength.py"))["rating"]
    # A score of 50 % gives the opponent's Elo, 10 points in 11 give 400 more; symmetric opponents cancel out.
    assert rating([1500], [50], [100])[0] == pytest.approx(1500)
    assert rating([1500], [1000 / 11], [100])[0] == pytest.approx(1900)
    assert rating([1400, 1800], [100 * 10 / 11 - 10, 100 / 11 + 10], [100, 100])[0] == pytest.approx(1600, abs=1)
    # 68 Elo either way after 100 even games.
    assert rating([1500], [50], [100])[1] == pytest.approx(68, abs=1)


def script(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(RUN.parent / name), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_fingerprints_equal_the_recorded_baseline() -> None:
    for words in (["kept Hybrid"], ["noise"]):
        done = script("fingerprints.py", *words)
        assert done.returncode == 0, done.stdout
        assert "all equal" in done.stdout


def test_fingerprints_name_each_case_that_differs(tmp_path: Path) -> None:
    recorded = json.loads((RUN.parent / "baselines" / "fingerprints.json").read_text(encoding="utf-8"))
    names = [name for name in recorded if "UCT tic_tac_toe 0" in name]
    outputs, whole = recorded[names[0]].split()
    altered = {names[0]: f"{outputs[::-1]} {whole}", names[1]: f"{recorded[names[1]].split()[0]} {whole}"}
    (tmp_path / "altered.json").write_text(json.dumps(recorded | altered), encoding="utf-8")
    done = script("fingerprints.py", "UCT tic_tac_toe 0", "--compare", str(tmp_path / "altered.json"))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{names[0]}: visits differ",
        f"{names[1]}: visits equal, values or tree differ",
    ]


def test_paired_ratio_passes_by_median_or_interval_around_1() -> None:
    ratio = runpy.run_path(str(RUN.parent / "paired.py"))["Ratio"].of
    # Fifteen pairs: the 4th and the 12th in order; P(Bin(15, 1/2) <= 3) is 1.8 %.
    assert (ratio(range(1, 16)).low, ratio(range(1, 16)).median, ratio(range(1, 16)).high) == (4, 8, 12)
    assert (ratio(range(1, 6)).low, ratio(range(1, 6)).high) == (1, 5)
    assert ratio([0.98] * 15).passed
    assert not ratio([0.96] * 15).passed
    assert ratio([0.9] * 11 + [1.0] * 4).passed
    assert not ratio([0.9] * 12 + [1.0] * 3).passed


def test_compare_measures_both_sides_of_every_workload() -> None:
    names = ["advance, Othello", "MuZero, 18 actions", "UCT chess, 8 trees, 2 threads"]
    chosen = [argument for name in names for argument in ("--workload", name)]
    done = script("compare.py", sys.executable, "--pairs", "2", "--seconds", "0.001", *chosen)
    assert done.returncode in (0, 1), done.stderr
    for name in names:
        assert re.search(rf"^{re.escape(name)} +([0-9.]+ \[[0-9., ]+\] *){{2}}", done.stdout, re.MULTILINE)


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="machine code for x86-64 Linux")
def test_client_requests_do_nothing_outside_valgrind() -> None:
    done = script("instruction_kernels.py", "UCT Othello", "Gumbel MuZero, 18 actions")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs Valgrind")
def test_instructions_of_one_interpreter_repeat() -> None:
    done = script("instructions.py", sys.executable, sys.executable, "--kernel", "UCT Othello")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[1].split()[-1]) == pytest.approx(1.0, abs=0.002)


def write_wheel(file: Path, **added: str) -> str:
    """Packs the package under test, with text added to modules of its presets."""
    package = Path(pondertree.__file__).parent
    with zipfile.ZipFile(file, "w") as wheel:
        for source in (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            text = added.get(source.stem, "") if source.parent.name == "presets" else ""
            wheel.writestr(f"pondertree/{source.relative_to(package).as_posix()}", source.read_bytes() + text.encode())
    return str(file)


@pytest.mark.slow
def test_gpu_compare_finds_results_that_differ(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    old = write_wheel(tmp_path / "old.whl")
    more_exploration = "MuZero.__init__ = __import__('functools').partialmethod(MuZero.__init__, pb_c_init=9.0)\n"
    new = write_wheel(tmp_path / "new.whl", muzero=more_exploration)
    done = script("gpu_compare.py", "--small", old, new, "MuZero, 256 x 50, 18")
    assert done.returncode == 1, done.stderr
    assert "exact network, AlphaZero chess, solve=True: visits equal in 4 of 4 trees" in done.stdout
    assert re.search(r"exact network, MuZero 18 actions: visits equal in [0-3] of 4 trees", done.stdout)
    assert re.search(r"^MuZero, 256 x 50, 18 actions +[0-9.]+ \[", done.stdout, re.MULTILINE)
