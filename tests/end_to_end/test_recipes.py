"""The recipes of CONTRIBUTING.md, followed in one copy of the repository, which is compiled once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
RECIPES = Path("tests", "support", "recipes")
#: The files that recipes add, and their content.
ADDED = {
    "core/src/games/three_row.rs": RECIPES / "three_row.rs",
    "core/src/search/score/linear_puct.rs": RECIPES / "linear_puct.rs",
    "python/pondertree/evaluators/linear_network.py": RECIPES / "linear_network.py",
    "python/pondertree/reference/linear_puct.py": RECIPES / "linear_puct.py",
}
#: Tests over the registries of games and rules, which the added ones must pass, too.
OVER_REGISTRIES = ("tests/games/test_board_svg.py", "tests/search/test_engine_config.py")
#: The name of cargo's library.
LIBRARY = {"linux": "lib_core.so", "darwin": "lib_core.dylib"}.get(sys.platform)


def hunks_of(page: str) -> Iterator[tuple[str, str, str]]:
    """The hunks of all `diff` blocks: file, old lines, new lines. A hunk begins with `@@` and has no line numbers."""
    for block in page.split("```diff\n")[1:]:
        file = ""
        for part in block.split("```", 1)[0].split("@@\n"):
            lines = part.splitlines()
            named = [line[4:] for line in lines if line.startswith("--- ")]
            body = [line for line in lines if not line.startswith("--- ")]
            if body:
                old, new = ("".join(f"{line[1:]}\n" for line in body if line[:1] != mark) for mark in "+-")
                yield file, old, new
            file = named[0] if named else file


def follow(recipes: str, copy: Path) -> None:
    """Applies the hunks of a page to a copy of the repository."""
    for file, old, new in hunks_of(recipes):
        text = (copy / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"CONTRIBUTING.md: {file} has these lines {text.count(old)} times:\n{old}"
        (copy / file).write_text(text.replace(old, new), encoding="utf-8")


def compile_engine(copy: Path) -> None:
    """Compiles the engine of a copy in the profile `develop`; dependencies that are compiled already are reused."""
    target = copy / "target"
    ignored = shutil.ignore_patterns("incremental", "lib_core*", "*pondertree*")
    try:
        shutil.copytree(ROOT / "target" / "develop", target / "develop", ignore=ignored)
    except OSError:  # there is none, or a build in progress changes it
        shutil.rmtree(target, ignore_errors=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable}
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "develop", "--package", "pondertree-bindings"]
    for _ in range(2):
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        shutil.rmtree(target)  # a build may have changed it while it was copied
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    module = f"_core.abi3{Path(sysconfig.get_config_var('EXT_SUFFIX')).suffix}"
    shutil.copy(target / "develop" / str(LIBRARY), copy / "python" / "pondertree" / module)
    shutil.rmtree(target)


def copy_repository(copy: Path) -> None:
    """Copies the files of the working tree, ignored ones excepted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(command, cwd=ROOT, text=True).split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="builds on Linux and macOS")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the files of a clone")
def test_recipes_of_contributing_work(tmp_path: Path) -> None:
    copy_repository(tmp_path)
    follow(PAGE.read_text(encoding="utf-8"), tmp_path)
    for added, content in ADDED.items():
        assert not (tmp_path / added).exists()
        shutil.copy(ROOT / content, tmp_path / added)
    compile_engine(tmp_path)
    checks = [str(path.relative_to(ROOT)) for path in sorted((ROOT / RECIPES).glob("check_*.py"))]
    command = [sys.executable, "-m", "pytest", "-n", "0", *checks, *OVER_REGISTRIES]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "python")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hunk_without_its_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one\ntwo\n", encoding="utf-8")
    follow("```diff\n--- file\n@@\n one\n+new\n two\n```\n", tmp_path)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "one\nnew\ntwo\n"
    with pytest.raises(AssertionError, match="file has these lines 0 times"):
        follow("```diff\n--- file\n@@\n one\n-two\n```\n", tmp_path)
