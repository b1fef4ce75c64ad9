"""Builds the documentation site (`make docs`): python scripts/build_docs.py [FOLDER]

Pages link to each other and to sources as in the repository, but a site generator reads one folder: FOLDER/pages
(default target/docs) gets the pages and every file that they link to, in the folders of the repository. Broken links,
anchors and references fail the build. The site is FOLDER/site.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#\s:]+)[^)]*\)")


def linked_files() -> set[Path]:
    """Returns the pages of the site and the files of the repository that they link to, directly or not."""
    waiting = [*ROOT.glob("*.md"), ROOT / "mkdocs.yml", *ROOT.glob("docs/site/*"), *ROOT.glob("docs/**/*.md")]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop().resolve()
        if file.is_file() and file not in found:
            found.add(file)
            if file.suffix == ".md":
                waiting += [file.parent / target for target in LINK.findall(file.read_text(encoding="utf-8"))]
    return found


def main(folder: Path) -> int:
    for made in ("pages", "site"):
        shutil.rmtree(folder / made, ignore_errors=True)
    for file in linked_files():
        copy = folder / "pages" / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    (folder / "pages/mkdocs.yml").replace(folder / "mkdocs.yml")
    return subprocess.call([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "target/docs"))
