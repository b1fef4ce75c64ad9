"""Checks the distributions of `make wheel` (names, contents, sizes), then installs and tests them in clean
environments.

Usage: python scripts/smoke_wheel.py [--auditwheel] [--python PYTHON]... FILE_OR_FOLDER...
       python scripts/smoke_wheel.py --installed

A wheel for this platform is installed by each PYTHON (default: the running one) without a Rust compiler on the PATH; an
sdist is built and installed by pip with build isolation. Wheels for other platforms are only inspected. --installed
tests the package of the running interpreter; the environments run this.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: `requires-python` is ">=3.11"; by the stable ABI one wheel serves all later versions.
WHEEL_NAME = re.compile(
    r"pondertree-(?P<version>[^-]+)-cp311-abi3-"
    r"(?P<platform>manylinux_2_28_(x86_64|aarch64)|macosx_\d+_\d+_(x86_64|arm64)|win_(amd64|arm64))\.whl"
)
#: Data files that the package or type checkers read, besides the Python sources.
DATA = (
    "py.typed",
    "_core.pyi",
    "networks/pretrained/2048.safetensors",
    "networks/pretrained/connect4.safetensors",
    "gpu/kernels/step.cu",
    "gpu/kernels/layout.h",
    *(f"view/static/{name}" for name in ("index.html", "app.js", "painter.js", "app.css", "icon.svg", "LICENSES.txt")),
)
#: Path components that must not be in a distribution.
JUNK = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv[^/]*|target|dist|\.DS_Store|\.hypothesis|[^/]*_cache)(/|$)|\.py[co]$"
)
#: For comparison: a wheel was 5.6 MB, 4 MB of which were the bundled player.
LARGEST = 12_000_000

CARGO_REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
TOOLS_OF_RUST = ("cargo", "rustc", "rustup")


class BadDistributionError(Exception):
    """Raised for a wheel or sdist that must not be published."""


def must(condition: bool, message: str) -> None:
    if not condition:
        raise BadDistributionError(message)


def python_files() -> list[str]:
    """Returns the Python sources, relative to the folder `python`."""
    folder = ROOT / "python"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))


def check_names(file: Path, names: Iterable[str], wanted: Iterable[str]) -> None:
    """Checks that all required files are present and no foreign ones."""
    present = set(names)
    missing = sorted(set(wanted) - present)
    must(not missing, f"{file.name} lacks {len(missing)} files, such as {', '.join(missing[:5])}")
    junk = sorted(name for name in present if JUNK.search(name))
    must(not junk, f"{file.name} has {len(junk)} files that do not belong there, such as {', '.join(junk[:5])}")
    must(file.stat().st_size < LARGEST, f"{file.name} has {file.stat().st_size:,} bytes, more than {LARGEST:,}")


def check_wheel(wheel: Path) -> str:
    """Checks name, tag and contents of a wheel; returns its platform tag."""
    name = WHEEL_NAME.fullmatch(wheel.name)
    must(name is not None, f"{wheel.name} is not called pondertree-VERSION-cp311-abi3-PLATFORM.whl")
    assert name is not None
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = f"pondertree-{name['version']}.dist-info/"
        module = "pondertree/_core.pyd" if name["platform"].startswith("win") else "pondertree/_core.abi3.so"
        data = [f"pondertree/{path}" for path in DATA]
        described = [about + path for path in ("METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE")]
        check_names(wheel, names, [*python_files(), *data, *described, module])
        outside = sorted(path for path in names if not path.startswith(("pondertree/", about)))
        must(not outside, f"{wheel.name} installs files outside of the package: {', '.join(outside[:5])}")
        tags = re.findall(r"^Tag: (.+)$", archive.read(about + "WHEEL").decode(), re.MULTILINE)
    must(tags == [f"cp311-abi3-{name['platform']}"], f"{wheel.name} has the tags {tags}, unlike its name")
    return name["platform"]


def check_sdist(sdist: Path) -> None:
    """Checks that an sdist has all build inputs, and a Cargo.lock with sources from crates.io alone."""
    with tarfile.open(sdist) as archive:
        folder = sdist.name.removesuffix(".tar.gz") + "/"
        names = [member.name.removeprefix(folder) for member in archive.getmembers() if member.isfile()]
        rust = [path for part in ("core/src", "bindings/src") for path in (ROOT / part).rglob("*") if path.is_file()]
        tops = ["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO"]
        manifests = ["core/Cargo.toml", "bindings/Cargo.toml"]
        sources = [path.relative_to(ROOT).as_posix() for path in rust]
        package = [f"python/{path}" for path in python_files()] + [f"python/pondertree/{path}" for path in DATA]
        check_names(sdist, names, [*tops, *manifests, *sources, *package])
        compiled = sorted(name for name in names if name.endswith((".so", ".pyd", ".dll", ".dylib")))
        must(not compiled, f"{sdist.name} has compiled files: {', '.join(compiled)}")
        lock = archive.extractfile(folder + "Cargo.lock")
        assert lock is not None
        origins = set(re.findall(r'^source = "(.+)"$', lock.read().decode(), re.MULTILINE))
    must(origins == {CARGO_REGISTRY}, f"Cargo.lock of {sdist.name} names {sorted(origins)}, not {CARGO_REGISTRY} alone")


def check_symbols(wheel: Path, tag: str) -> None:
    """Checks the glibc symbol versions of the module by auditwheel."""
    said = run([sys.executable, "-m", "auditwheel", "show", str(wheel)])
    tag_found = re.search(r'platform\s+tag:\s+"([^"]+)"', said)
    must(tag_found is not None and tag_found[1] == tag, f"auditwheel says of {wheel.name}:\n{said}")


def run(command: Sequence[str], *, text: str | None = None, path: str | None = None, folder: Path | None = None) -> str:
    """Runs a command, which must succeed, and returns its output."""
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if path is not None:
        outside["PATH"] = path
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", env=outside, cwd=folder, timeout=1800, check=False
    )
    must(done.returncode == 0, f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def path_without_rust() -> str:
    """Returns the PATH without Rust compilers, which installing a wheel must not need."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(f for f in folders if not any(shutil.which(tool, path=f) for tool in TOOLS_OF_RUST))


def fits(tag: str) -> bool:
    """Returns whether a wheel with this platform tag runs on this machine."""
    machine = platform.machine()
    ours = {"linux": "manylinux", "darwin": "macosx", "win32": "win"}.get(sys.platform, "?")
    return tag.startswith(ours) and tag.endswith(machine.lower())


def install_and_try(file: Path, python: str) -> None:
    """Installs and tests a wheel (plain, then with the extra cli) or an sdist (with cli) in clean environments."""
    wheel = file.suffix == ".whl"
    path = path_without_rust() if wheel else None
    with tempfile.TemporaryDirectory(prefix="pondertree-smoke-") as scratch:
        folder = Path(scratch)
        run([python, "-m", "venv", str(folder / "venv")], folder=folder)
        inside = str(folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for extra in ("", "[cli]") if wheel else ("[cli]",):
            run([*pip, f"{file.resolve()}{extra}"], path=path, folder=folder)
            tried = run([inside, "-I", str(Path(__file__).resolve()), "--installed"], path=path, folder=folder)
            print(tried, end="", flush=True)


def try_installed() -> None:
    """Tests the installed package: a search, UCI, the command and the bundled player."""
    import pondertree
    from pondertree.games import Chess, ConnectFour

    here = Path(pondertree.__file__).resolve()
    must(not here.is_relative_to(ROOT / "python"), f"pondertree was imported from the sources: {here}")

    first, again = (pondertree.UCT(num_simulations=10_000, seed=1).run(ConnectFour()) for _ in range(2))
    must(first.move == "4" and first.visits.tolist() == again.visits.tolist(), f"UCT found {first.move}")
    mate = pondertree.Hybrid(seed=1).run(Chess("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"))
    must((mate.move, mate.proven) == ("a1a6", 1), f"Hybrid found {mate.move}, proven {mate.proven}")
    did = ["search"]

    script = Path(sys.executable).with_name("pondertree.exe" if os.name == "nt" else "pondertree")
    output = run([str(script), "uci"], text="uci\nisready\nposition startpos moves e2e4\ngo nodes 200\nquit\n")
    must("id name Pondertree" in output and "uciok" in output and "readyok" in output, f"UCI answered\n{output}")
    must(re.search(r"^bestmove [a-h][1-8][a-h][1-8]", output, re.MULTILINE) is not None, f"UCI answered\n{output}")
    did.append("UCI")

    must(f"pondertree {pondertree.__version__}" in run([str(script), "--version"]), "--version is another one")
    command = [str(script), "search", "connect4", "--moves", "4 4 3", "--simulations", "2000", "--seed", "1"]
    if importlib.util.find_spec("rich") is None:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
        hinted = done.returncode == 2 and "[cli]" in done.stderr and "Traceback" not in done.stderr
        must(hinted, f"without rich, the command said\n{done.stdout}{done.stderr}")
        did.append("the command's hint")
    else:
        must("best move  2" in run(command), f"{' '.join(command)} printed another move")
        must(json.loads(run([*command, "--json"]))["simulations"] == 2000, "--json has no 2000 simulations")
        did.append("command")

    player = pondertree.load("connect4")
    opening = pondertree.AlphaZero(player, num_simulations=64, seed=1).run(ConnectFour())
    must(opening.move == "4", f"the bundled player opens with {opening.move}, not in the middle")
    did.append("load")
    version = platform.python_version()
    print(f"  Python {version}, {platform.machine()}, pondertree {pondertree.__version__}: {', '.join(did)}")


def files_in(given: Sequence[Path]) -> list[Path]:
    """Returns the wheels and sdists among files and in folders."""
    inside = [file for path in given for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return [file for file in inside if file.name.endswith((".whl", ".tar.gz"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--installed", action="store_true", help="try the package of this interpreter")
    parser.add_argument("--auditwheel", action="store_true", help="compare glibc symbols with the platform tag")
    parser.add_argument("--python", action="append", help="an interpreter to install with (may be repeated)")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE_OR_FOLDER")
    given = parser.parse_args(arguments)
    try:
        if given.installed:
            try_installed()
            return 0
        files = files_in(given.files)
        must(bool(files), f"no wheel and no sdist in {', '.join(map(str, given.files)) or 'nothing'}")
        for file in files:
            begun = time.perf_counter()
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB", flush=True)
            if file.suffix == ".whl":
                tag = check_wheel(file)
                if given.auditwheel and tag.startswith("manylinux"):
                    check_symbols(file, tag)
                if not fits(tag):
                    print("  for another platform: contents checked, not installed")
                    continue
            else:
                check_sdist(file)
            for python in given.python or [sys.executable]:
                install_and_try(file, python)
            print(f"  {time.perf_counter() - begun:.0f} s", flush=True)
    except BadDistributionError as error:
        print(f"smoke_wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
