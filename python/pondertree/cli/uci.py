"""`pondertree uci`: the engine for chess programs, on standard input and output. It needs NumPy alone."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

from pondertree.cli.arguments import Commands, Parser
from pondertree.errors import InvalidArgumentError

SUMMARY = "Run as a UCI engine, for chess programs."
EXAMPLES = """\
  pondertree uci
  pondertree uci --option Threads=4 --option Hash=1024 --option "Move Overhead=100"
  printf 'position startpos moves e2e4\\ngo movetime 1000\\n' | pondertree uci

Chess programs start it by themselves: give them this command. docs/chess.md explains every option."""

#: Longer lines are thrown away: no game is as long.
LONGEST_LINE = 4 << 20


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree uci`."""
    parser: Parser = commands.add_parser("uci", help=SUMMARY, description=SUMMARY, epilog=f"Examples:\n{EXAMPLES}")
    parser.set_defaults(run=run)
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set an option before the first command, as setoption would; may be given several times",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs it until `quit` or the end of the input; the exit status."""
    from pondertree.uci.options import Options
    from pondertree.uci.session import Session
    from pondertree.uci.writer import LineWriter

    options = Options()
    for given in arguments.option:
        name, separator, value = given.partition("=")
        if not separator:
            raise InvalidArgumentError(f"--option must be NAME=VALUE, not {given!r}")
        options.set(name.strip(), value.strip())

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the encoding of the pipe lacks must not pass for a pipe that is closed.
        sys.stdout.reconfigure(errors="backslashreplace")

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    session = Session(LineWriter(write, closed=_leave), options)
    at_end = False
    try:
        for line, arrived in lines(sys.stdin.buffer):
            if line is None:
                session.writer.info_string(f"a line of more than {LONGEST_LINE} bytes was thrown away")
            elif not session.handle(line, arrived):
                break
        else:
            at_end = True
    finally:
        came_back = session.close(finish=at_end)
    if not came_back:
        # An evaluator hangs: the interpreter would wait for it, or stumble over it.
        _leave()
    return 0


def lines(stream: BinaryIO) -> Iterator[tuple[str | None, float]]:
    """The lines of a stream and when each came; None for one that is too long. Bytes that are no text are replaced."""
    is_rest = False
    while raw := stream.readline(LONGEST_LINE):
        arrived = time.perf_counter()
        is_cut = not raw.endswith(b"\n") and len(raw) == LONGEST_LINE
        if not is_rest and not is_cut:
            yield raw.decode("utf-8", errors="replace"), arrived
        elif is_rest and not is_cut:
            yield None, arrived
        is_rest = is_cut


def _leave() -> None:
    """Ends the process where nobody listens any more, from whichever thread."""
    os._exit(0)
