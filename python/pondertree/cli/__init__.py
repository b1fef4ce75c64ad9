"""The command `pondertree`.

The arguments are read by argparse. tyro was tried: it writes `{None}|INT` where a number may be left out, answers a
mistake with a box of eight lines where one will do, and would have to be installed before `--help` could say so.
What a command needs beyond NumPy is imported when the command runs.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence

from pondertree.check import brief
from pondertree.cli.arguments import LONGEST_MESSAGE, Parser
from pondertree.errors import PondertreeError


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
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign gets a question mark, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        arguments = parser().parse_args(argv)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except PondertreeError as error:
        print(f"pondertree: {brief(str(error), LONGEST_MESSAGE)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(file=sys.stderr)
        from pondertree.cli.thinking import INTERRUPTED

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
    return status
