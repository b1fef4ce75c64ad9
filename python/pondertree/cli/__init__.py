"""The command `pondertree`.

Arguments are parsed by argparse: tyro shows optional numbers as `{None}|INT`, reports an error in a box of eight lines,
and would have to be installed even for `--help`. Dependencies beyond NumPy are imported when a command runs.
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

from pondertree.cli.arguments import MAX_MESSAGE_LENGTH, Parser
from pondertree.errors import GameContractError, PondertreeError
from pondertree.validation import brief

#: Environment variable: if set, exceptions of games and unexpected exceptions are raised with their traceback.
TRACEBACK = "PONDERTREE_TRACEBACK"
#: The default formatter of warnings.
_FORMAT_WARNING = warnings.formatwarning


def parser() -> Parser:
    """Returns the parser of all commands."""
    from pondertree import __version__
    from pondertree.cli import export, match, play, search, train, tune, uci, view

    top = Parser(
        prog="pondertree",
        description="Monte Carlo tree search: analyse a position, play against the search, run matches, "
        "serve as a UCI chess engine, tune the chess evaluation, or train a player by self-play.",
        epilog='Examples:\n  pondertree search connect4 --moves "4 4 3"\n  pondertree play tic-tac-toe',
    )
    top.add_argument("--version", action="version", version=f"pondertree {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (search, play, view, match, uci, tune, train, export):
        command.add_arguments(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status; user errors are one line on stderr and status 2."""
    _open_streams()
    warnings.formatwarning = _format_warning
    try:
        arguments = parser().parse_args(argv)
        # The original arguments, for printed resume commands.
        arguments.typed = list(sys.argv[1:] if argv is None else argv)
        status = _run(arguments)
        sys.stdout.flush()
    except PondertreeError as error:
        cause = error.__cause__ if isinstance(error, GameContractError) else None
        if cause is not None and os.environ.get(TRACEBACK):
            raise
        place = "" if cause is None else _place(cause)
        hint = f"{place} ({TRACEBACK}=1 shows the traceback)" if place else ""
        print(f"pondertree: {brief(str(error), MAX_MESSAGE_LENGTH)}{hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        from pondertree.cli.searcher import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`); avoids a second error at the final flush.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A full disk or an unreadable file: files written so far stay valid and can be resumed.
        print(f"pondertree: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"pondertree: {_described(error)} ({TRACEBACK}=1 shows the traceback)", file=sys.stderr)
        return 1
    return status


def _open_streams() -> None:
    """Replaces closed standard streams, which are None, by the null device."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 (open until exit)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        stream = getattr(sys, name)
        # Unencodable characters become question marks instead of exceptions.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Formats a UserWarning as one line, like errors; other warnings keep their location."""
    if issubclass(category, UserWarning):
        return f"pondertree: warning: {brief(str(message), MAX_MESSAGE_LENGTH)}\n"
    return _FORMAT_WARNING(message, category, filename, lineno, line)


def _run(arguments: Any) -> int:
    """Runs a command; a `sys.exit` in a user's game becomes a GameContractError."""
    try:
        status: int = arguments.run(arguments)
    except SystemExit as error:
        raise GameContractError(f"the game or its module called sys.exit({error.code!r})") from error
    return status


def _described(error: Exception) -> str:
    """Describes an unexpected exception, for example of a user's game, with its location."""
    return brief(" ".join(f"{type(error).__name__}: {error}".split()), MAX_MESSAGE_LENGTH) + (
        _place(error) or _place(error, is_ours=True)
    )


def _place(error: BaseException, *, is_ours: bool = False) -> str:
    """Returns the location of an exception as the end of a message: in user code, or with `is_ours` anywhere."""
    ours = (str(Path(__file__).parent.parent) + os.sep, importlib.__file__, "<")
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if is_ours or not frame.filename.startswith(ours)
    ]
    return f", raised by {frames[-1].name} in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
