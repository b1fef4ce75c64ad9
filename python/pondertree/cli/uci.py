"""`pondertree uci`: the UCI engine on standard input and output. Requires NumPy only."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

from pondertree.cli.arguments import Commands, add_parser
from pondertree.errors import InvalidArgumentError

SUMMARY = "Run as a UCI chess engine."
EXAMPLES = """\
  pondertree uci
  pondertree uci --option Threads=4 --option Hash=1024 --option "Move Overhead=100"
  printf 'position startpos moves e2e4\\ngo movetime 1000\\n' | pondertree uci

Configure this command as an engine in a chess GUI. docs/chess.md explains every option."""

#: Longer lines are discarded.
MAX_LINE_LENGTH = 4 << 20


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree uci`."""
    parser = add_parser(commands, "uci", SUMMARY, EXAMPLES, run)
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a UCI option at the start; repeatable",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs until `quit` or the end of the input and returns the exit status."""
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
        # An unencodable character must not be mistaken for a closed pipe.
        sys.stdout.reconfigure(errors="backslashreplace")

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    session = Session(LineWriter(write, closed=_exit), options)
    at_end = False
    try:
        for line, arrived in lines(sys.stdin.buffer):
            if line is None:
                session.writer.info_string(f"a line of more than {MAX_LINE_LENGTH} bytes was thrown away")
            elif not session.handle(line, arrived):
                break
        else:
            at_end = True
    finally:
        has_ended = session.close(finish=at_end)
    if not has_ended:
        # A hanging evaluator would block the interpreter's shutdown.
        _exit()
    return 0


def lines(stream: BinaryIO) -> Iterator[tuple[str | None, float]]:
    """Yields lines and their arrival times; None for an overlong line. Invalid UTF-8 is replaced."""
    is_rest = False
    while raw := stream.readline(MAX_LINE_LENGTH):
        arrived = time.perf_counter()
        is_cut = not raw.endswith(b"\n") and len(raw) == MAX_LINE_LENGTH
        if not is_rest and not is_cut:
            yield raw.decode("utf-8", errors="replace"), arrived
        elif is_rest and not is_cut:
            yield None, arrived
        is_rest = is_cut


def _exit() -> None:
    """Ends the process immediately, from any thread."""
    os._exit(0)
