"""The command `pondertree`.

The arguments are read by argparse. tyro was tried: it writes `{None}|INT` where a number may be left out, answers a
mistake with a box of eight lines where one will do, and would have to be installed before `--help` could say so.
What a command needs beyond NumPy is imported when the command runs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pondertree.cli.arguments import LONGEST_MESSAGE, Parser
from pondertree.errors import GameContractError, PondertreeError
from pondertree.validation import brief

#: An environment variable; where it is set, exceptions of games and those that no command expects keep their traceback.
TRACEBACK = "PONDERTREE_TRACEBACK"
#: How Python writes warnings.
_FORMAT_WARNING = warnings.formatwarning


def parser() -> Parser:
    """The arguments of all commands."""
    from pondertree import __version__
    from pondertree.cli import export, match, play, search, train, tune, uci

    top = Parser(
        prog="pondertree",
        description="Monte Carlo tree search: look into a position, play against the search, let two players meet, "
        "serve a chess program, tune the chess evaluation, or learn a game by self-play.",
        epilog='Examples:\n  pondertree search connect4 --moves "4 4 3"\n  pondertree play tic-tac-toe',
    )
    top.add_argument("--version", action="version", version=f"pondertree {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (search, play, match, uci, tune, train, export):
        command.add_arguments(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit status. Mistakes of the user are one line on stderr and status 2."""
    _open_streams()
    warnings.formatwarning = _format_warning
    try:
        arguments = parser().parse_args(argv)
        # As it was typed, for commands that say how to go on.
        arguments.typed = list(sys.argv[1:] if argv is None else argv)
        status = _run(arguments)
        sys.stdout.flush()
    except PondertreeError as error:
        cause = error.__cause__ if isinstance(error, GameContractError) else None
        if cause is not None and os.environ.get(TRACEBACK):
            raise
        place = "" if cause is None else _place(cause)
        hint = f"{place} ({TRACEBACK}=1 shows the traceback)" if place else ""
        print(f"pondertree: {brief(str(error), LONGEST_MESSAGE)}{hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        from pondertree.cli.searcher import INTERRUPTED

        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on (`| head`). Python would complain again when it flushes at the end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A disk that is full, a file that cannot be read: what was written before stays, and commands go on from there.
        print(f"pondertree: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"pondertree: {_described(error)} ({TRACEBACK}=1 shows the traceback)", file=sys.stderr)
        return 1
    return status


def _open_streams() -> None:
    """Makes all three standard streams usable: one that the caller closed is None, and becomes the null device."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 (for as long as the process lives)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        stream = getattr(sys, name)
        # A terminal that cannot show a sign gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning about what the user gave is one line, as errors are; others, such as deprecations, keep their place."""
    if issubclass(category, UserWarning):
        return f"pondertree: warning: {brief(str(message), LONGEST_MESSAGE)}\n"
    return _FORMAT_WARNING(message, category, filename, lineno, line)


def _run(arguments: Any) -> int:
    """Runs a command. A game of the user's that calls `sys.exit` does not decide how it ends."""
    try:
        status: int = arguments.run(arguments)
    except SystemExit as error:
        raise GameContractError(f"the game or its module called sys.exit({error.code!r})") from error
    return status


def _described(error: Exception) -> str:
    """An exception that no command expects, such as one of a game written by the user, and where it was raised."""
    return brief(" ".join(f"{type(error).__name__}: {error}".split()), LONGEST_MESSAGE) + (
        _place(error) or _place(error, is_ours=True)
    )


def _place(error: BaseException, *, is_ours: bool = False) -> str:
    """Where an exception was raised, as the end of a message: in code of the user, or `is_ours`, anywhere."""
    ours = (str(Path(__file__).parent.parent) + os.sep, importlib.__file__, "<")
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_ours or not frame.filename.startswith(ours)
    ]
    return f", raised by {frames[-1].name} in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
