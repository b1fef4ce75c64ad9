"""Commands to be typed next, quoted for the shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence


def shell_line(words: Sequence[str]) -> str:
    """A command line that the shell splits into these words again: a POSIX shell, or cmd on Windows."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def resuming(typed: Sequence[str]) -> list[str]:
    """The command that goes on with what another one began: the same with --resume. `typed` lacks the program."""
    words = list(typed)
    if "--resume" not in words:
        words.insert(words.index("--") if "--" in words else len(words), "--resume")
    return ["pondertree", *words]
