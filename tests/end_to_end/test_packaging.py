"""Installation and publication: requirement sets, the Makefile's stamps, contents of wheels and sdists."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import pondertree

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BUILT = sorted((ROOT / "dist").glob("*.whl"))


def script(name: str) -> ModuleType:
    """Imports a file of `scripts/`, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


requirements = script("requirements")
smoke = script("smoke_wheel")


def names(listed: list[str]) -> list[str]:
    return [re.split(r"[<>=!\[ ]", requirement)[0] for requirement in listed]


# Requirement sets


def test_demo_installs_only_numpy_rich_and_maturin() -> None:
    assert names(requirements.requirements(PYPROJECT, ["cli", "engine"])) == ["numpy", "rich", "maturin"]


def test_nested_extras_are_resolved_to_packages() -> None:
    development = names(requirements.requirements(PYPROJECT, ["dev"]))
    assert {"torch", "rich", "onnxruntime", "matplotlib", "pytest", "pytest-xdist", "ruff", "maturin"} <= {*development}
    assert "pondertree" not in development
    assert len(development) == len(set(development))


def test_name_of_both_extra_and_group_raises() -> None:
    clash = PYPROJECT | {"dependency-groups": {"cli": ["rich"]}}
    with pytest.raises(ValueError, match="both an extra and a dependency group are called cli"):
        requirements.requirements(clash, ["cli"])


def test_unknown_set_is_reported_with_existing_ones() -> None:
    command = [sys.executable, ROOT / "scripts" / "requirements.py", "cli", "clii"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("no such extra: clii (pyproject.toml has cli, ")


# The Makefile, with an interpreter that only records its arguments

PRETENDER = """#!/bin/sh
case "$*" in
    "-m venv --clear .venv") rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python; [ ! -e fail-venv ] ;;
    "scripts/requirements.py "*) echo "$*" ;;
    "-m pip install --quiet --requirement "*) cat "$6" >>calls; [ ! -e fail ] ;;
    "-m maturin "* | "-m pytest "* | "-m pondertree "* | "examples/demo.py"* | "benches/run.py"*) echo "$*" >>calls ;;
esac
"""
NODE = """#!/bin/sh
case "$1" in
    --version) echo v20.1.0 ;;
    build.mjs) echo "node $*" >>../calls; mkdir -p ../python/pondertree/view/static; touch ../$PAGE ;;
    ci) echo "npm $*" >>../calls; mkdir -p node_modules; [ ! -e ../fail ] ;;
esac
""".replace("$PAGE", "python/pondertree/view/static/index.html")
needs_make = pytest.mark.skipif(
    sys.platform == "win32" or not shutil.which("make") or not shutil.which("cargo"), reason="needs make and cargo"
)


class Clone:
    """A folder with the Makefile and its inputs, whose Python and cargo only append to `calls`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "Cargo.toml", "scripts/requirements.py", "scripts/check_tools.sh"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        for name in ("core/src", "bindings/src", "tools"):
            (folder / name).mkdir(parents=True)
        (folder / "core/src/lib.rs").touch()
        for name in ("package.json", "package-lock.json", "build.mjs", "src/main.ts"):
            (folder / "web" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "web" / name).touch()
        cargo = "#!/bin/sh\necho cargo 1.999.0\n"
        for tool, text in (("python", PRETENDER), ("cargo", cargo), ("node", NODE), ("npm", NODE)):
            (folder / "tools" / tool).write_text(text)
            (folder / "tools" / tool).chmod(0o755)

    def make(self, *arguments: str, status: int = 0) -> list[str]:
        """Runs make and returns the recorded calls, abbreviated."""
        (self.folder / "calls").write_text("")
        outside = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "EXTRAS", "ARGS")}
        done = subprocess.run(
            ["make", f"PYTHON={self.folder / 'tools/python'}", *arguments],
            cwd=self.folder,
            env=outside | {"PATH": f"{self.folder / 'tools'}{os.pathsep}{outside['PATH']}"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode != 0) == (status != 0), done.stdout + done.stderr
        calls = (self.folder / "calls").read_text().splitlines()
        short = {"scripts/requirements.py": "install", "-m maturin develop --profile": "compile", "-m pytest": "pytest"}
        for long, word in short.items():
            calls = [f"{word}{call.removeprefix(long)}" if call.startswith(long) else call for call in calls]
        return [call.removesuffix(" --quiet") if call.startswith("compile") else call for call in calls]

    def touch(self, name: str) -> None:
        """Sets a file's modification time after all targets."""
        latest = max(path.stat().st_mtime_ns for path in (self.folder / ".venv").glob(".*-*")) + 1_000_000_000
        os.utime(self.folder / name, ns=(latest, latest))


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


DEMO = ["install cli engine", "compile develop", "examples/demo.py"]


@needs_make
def test_demo_installs_small_set_and_compiles_once(clone: Clone) -> None:
    assert clone.make("demo") == DEMO
    assert clone.make("demo") == ["examples/demo.py"]


@needs_make
def test_demo_and_test_share_environment_and_engine(clone: Clone) -> None:
    clone.make("demo")
    first, second = clone.make("test")
    assert first == "install dev"
    assert second.startswith("pytest --numprocesses auto")
    assert "--durations 10" in second
    assert clone.make("demo") == ["examples/demo.py"]


@needs_make
def test_test_before_demo_adds_no_second_engine(clone: Clone) -> None:
    assert clone.make("test")[:2] == ["install dev", "compile develop"]
    assert clone.make("demo") == ["install cli engine", "examples/demo.py"]


@needs_make
def test_failed_install_is_repeated_by_next_make(clone: Clone) -> None:
    (clone.folder / "fail").touch()
    assert clone.make("demo", status=2) == DEMO[:1]
    (clone.folder / "fail").unlink()
    assert clone.make("demo") == DEMO


@needs_make
def test_interrupted_environment_is_recreated(clone: Clone) -> None:
    """The interpreter exists, and pip may be partly installed."""
    (clone.folder / "fail-venv").touch()
    assert clone.make("demo", status=2) == []
    assert (clone.folder / ".venv/bin/python").exists()
    (clone.folder / ".venv/half").touch()
    (clone.folder / "fail-venv").unlink()
    assert clone.make("demo") == DEMO
    assert not (clone.folder / ".venv/half").exists()


@needs_make
def test_environment_without_interpreter_is_recreated(clone: Clone) -> None:
    clone.make("demo")
    (clone.folder / ".venv/bin/python").unlink()
    assert clone.make("demo") == DEMO


@needs_make
def test_view_builds_the_page_when_its_sources_change(clone: Clone) -> None:
    setup, page = ["install cli engine web", "compile develop"], ["node build.mjs"]
    packages = ["npm ci --silent --no-audit --no-fund"]
    assert clone.make("view") == [*setup, *packages, *page, "-m pondertree view connect4"]
    assert clone.make("view", "ARGS=chess --no-browser") == ["-m pondertree view chess --no-browser"]
    later = (clone.folder / "python/pondertree/view/static/index.html").stat().st_mtime_ns + 1_000_000_000
    os.utime(clone.folder / "web/src/main.ts", ns=(later, later))
    assert clone.make("view") == [*page, "-m pondertree view connect4"]


@needs_make
def test_failed_install_of_the_page_is_repeated(clone: Clone) -> None:
    clone.make("demo")
    (clone.folder / "fail").touch()
    clone.make("view", status=2)
    (clone.folder / "fail").unlink()
    assert "npm ci --silent --no-audit --no-fund" in clone.make("view")


@needs_make
def test_changed_rust_is_compiled_and_changed_pyproject_installed(clone: Clone) -> None:
    clone.make("demo")
    clone.touch("core/src/lib.rs")
    assert clone.make("demo") == DEMO[1:]
    clone.touch("pyproject.toml")
    assert clone.make("demo") == DEMO


@needs_make
def test_bench_uses_release_engine_and_next_demo_recompiles(clone: Clone) -> None:
    clone.make("demo")
    assert clone.make("bench") == ["install dev", "compile release", "benches/run.py"]
    assert clone.make("bench") == ["benches/run.py"]
    assert clone.make("demo") == DEMO[1:]


@needs_make
def test_other_extras_have_separate_stamp(clone: Clone) -> None:
    assert clone.make("test", "EXTRAS=dev  python-chess")[0] == "install dev python-chess"
    assert clone.make("test", "EXTRAS=dev")[0] == "install dev"
    assert clone.make("test", "EXTRAS=dev python-chess")[0].startswith("pytest")


# Metadata


def test_rust_and_python_versions_are_equal() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    assert cargo == pondertree.__version__ == metadata.version("pondertree")


def test_stable_abi_matches_oldest_python() -> None:
    dependency = tomllib.loads((ROOT / "bindings/Cargo.toml").read_text(encoding="utf-8"))["dependencies"]["pyo3"]
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    assert f"abi3-py{oldest.replace('.', '')}" in dependency["features"]
    assert f"cp{oldest.replace('.', '')}-abi3" in smoke.WHEEL_NAME.pattern


# Contents of distributions


def a_wheel(folder: Path, leave_out: str = "", add: str = "", tag: str = "") -> Path:
    """Writes a wheel with the files of a real one, all empty."""
    platform = "manylinux_2_28_x86_64"
    about = "pondertree-0.1.0.dist-info/"
    listed = [*smoke.python_files(), "pondertree/_core.abi3.so", *(f"pondertree/{path}" for path in smoke.DATA)]
    listed += [about + path for path in ("METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE")]
    path = folder / f"pondertree-0.1.0-cp311-abi3-{platform}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in [*listed, add] if add else listed:
            if name != leave_out:
                archive.writestr(name, "")
        archive.writestr(about + "WHEEL", f"Wheel-Version: 1.0\nTag: {tag or f'cp311-abi3-{platform}'}\n")
    return path


def test_complete_wheel_is_accepted(tmp_path: Path) -> None:
    assert smoke.check_wheel(a_wheel(tmp_path)) == "manylinux_2_28_x86_64"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            {"leave_out": "pondertree/networks/pretrained/connect4.safetensors"},
            "lacks 1 files, such as pondertree/networks/",
        ),
        ({"leave_out": "pondertree/_core.abi3.so"}, "lacks 1 files, such as pondertree/_core.abi3.so"),
        ({"leave_out": "pondertree/uci/__init__.py"}, "lacks 1 files, such as pondertree/uci/__init__.py"),
        ({"add": "pondertree/__pycache__/x.pyc"}, "do not belong there, such as pondertree/__pycache__/x.pyc"),
        ({"add": "tests/test_x.py"}, "outside of the package: tests/test_x.py"),
        ({"tag": "cp311-abi3-linux_x86_64"}, "unlike its name"),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_faulty_wheel_is_rejected(tmp_path: Path, fault: dict[str, str], message: str) -> None:
    with pytest.raises(smoke.BadDistributionError, match=re.escape(message)):
        smoke.check_wheel(a_wheel(tmp_path, **fault))


@pytest.mark.parametrize("tag", ["cp311-cp311-manylinux_2_28_x86_64", "cp311-abi3-linux_x86_64"])
def test_wheel_with_narrow_or_generic_tag_is_rejected(tmp_path: Path, tag: str) -> None:
    renamed = a_wheel(tmp_path).rename(tmp_path / f"pondertree-0.1.0-{tag}.whl")
    with pytest.raises(smoke.BadDistributionError, match="is not called pondertree-VERSION-cp311-abi3-PLATFORM"):
        smoke.check_wheel(renamed)


@pytest.mark.skipif(not BUILT, reason="there is no wheel in dist/: make wheel")
@pytest.mark.parametrize("wheel", BUILT, ids=lambda path: path.name)
def test_built_wheels_are_complete(wheel: Path) -> None:
    sources = [ROOT / "pyproject.toml", *(ROOT / "python" / name for name in smoke.python_files())]
    if wheel.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        pytest.skip("older than the sources: make wheel")
    assert smoke.check_wheel(wheel).startswith(("manylinux_2_28_", "macosx_", "win_"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("maturin")
    if not shutil.which("cargo"):
        pytest.skip("needs cargo")
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (made,) = folder.iterdir()
    return made


def test_sdist_contains_build_inputs(sdist: Path) -> None:
    smoke.check_sdist(sdist)


def rewritten(
    sdist: Path, folder: Path, leave_out: str = "", add: str = "", replace: tuple[str, str] = ("", "")
) -> Path:
    """Writes a copy of an sdist with one fault."""
    top = sdist.name.removesuffix(".tar.gz") + "/"
    with tarfile.open(sdist) as source, tarfile.open(folder / sdist.name, "w:gz", compresslevel=1) as target:
        for member in source.getmembers():
            data = source.extractfile(member)
            assert data is not None
            text = data.read()
            if member.name == top + "Cargo.lock":
                text = text.replace(replace[0].encode(), replace[1].encode()) if replace[0] else text
                member.size = len(text)
            if member.name != top + leave_out:
                target.addfile(member, io.BytesIO(text))
        if add:
            target.addfile(tarfile.TarInfo(top + add), io.BytesIO())
    return folder / sdist.name


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"leave_out": "core/src/lib.rs"}, "lacks 1 files, such as core/src/lib.rs"),
        ({"leave_out": "Cargo.lock"}, "lacks 1 files, such as Cargo.lock"),
        ({"leave_out": "python/pondertree/gpu/kernels/step.cu"}, "such as python/pondertree/gpu/kernels/step.cu"),
        ({"add": "python/pondertree/_core.abi3.so"}, "has compiled files: python/pondertree/_core.abi3.so"),
        ({"add": "target/release/x"}, "do not belong there, such as target/release/x"),
        (
            {"replace": ("registry+https://github.com/rust-lang/crates.io-index", "sparse+https://mirror.example/")},
            "mirror",
        ),
    ],
    ids=["no source", "no lock file", "no kernel", "a compiled module", "build outputs", "a lock file of a mirror"],
)
def test_faulty_sdist_is_rejected(sdist: Path, tmp_path: Path, fault: dict[str, str], message: str) -> None:
    with pytest.raises(smoke.BadDistributionError, match=re.escape(message)):
        smoke.check_sdist(rewritten(sdist, tmp_path, **fault))


def test_smoke_rejects_package_from_source_tree() -> None:
    """A smoke test that imports the source tree would not test the wheel."""
    if not Path(pondertree.__file__).is_relative_to(ROOT):
        pytest.skip("the package is not used from the clone")
    command = [sys.executable, ROOT / "scripts" / "smoke_wheel.py", "--installed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "imported from the sources" in done.stderr


def test_smoke_rejects_folder_without_distributions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke.main([str(tmp_path)]) == 1
    assert "no wheel and no sdist" in capsys.readouterr().err
