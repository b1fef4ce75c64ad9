"""Arguments shared by several commands; errors are one line."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pondertree import games
from pondertree.cli.algorithms import ALGORITHM_HELP, ALGORITHMS
from pondertree.validation import brief

#: The private return type of `add_subparsers`.
Commands = Any

#: Maximum characters of a message on stderr.
MAX_MESSAGE_LENGTH = 2000


class Parser(argparse.ArgumentParser):
    """An argparse parser without option abbreviations, with one-line errors."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Prints one line on stderr and exits with status 2."""
        print(f"{self.prog}: {brief(message, MAX_MESSAGE_LENGTH)} (try {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def add_parser(commands: Commands, name: str, summary: str, examples: str, run: Callable[[Any], int]) -> Parser:
    """Adds the parser of a command."""
    parser: Parser = commands.add_parser(name, help=summary, description=summary, epilog=f"Examples:\n{examples}")
    parser.set_defaults(run=run)
    return parser


def add_command(commands: Commands, name: str, summary: str, examples: str, run: Callable[[Any], int]) -> Parser:
    """Adds the parser of a command that takes a position."""
    parser = add_parser(commands, name, summary, examples, run)
    parser.add_argument("game", metavar="GAME", nargs="?", help=f"the game: {games.KNOWN}, or module:Class")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--moves", metavar="MOVES", help='the moves played so far: "4 4 3", "e4 e5 Nf3", "take 1; take 2"'
    )
    start.add_argument("--fen", metavar="FEN", help="a chess position, instead of moves")
    return parser


def add_effort(parser: Parser, per: str) -> Any:
    """Adds the options of a search; returns the mutually exclusive group of limits."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--simulations",
        metavar="N",
        type=count,
        help=f"number of simulations{per} (default: by algorithm, 400 to 100,000)",
    )
    effort.add_argument("--seconds", metavar="S", type=seconds, help=f"time limit{per} instead, in seconds")
    parser.add_argument(
        "--algorithm", metavar="NAME", choices=("auto", *ALGORITHMS), default="auto", help=ALGORITHM_HELP
    )
    parser.add_argument(
        "--max-depth",
        metavar="N",
        type=playout_moves,
        help="uct, reference: cut playouts after N moves, for games that may not end (a cut playout is a draw)",
    )
    parser.add_argument(
        "--player",
        metavar="PLAYER",
        help="search with a trained player: the folder of a training run, a .safetensors or .onnx file, "
        "or a bundled player: connect4, 2048",
    )
    parser.add_argument("--seed", metavar="N", type=seed, help="random seed")
    parser.add_argument("--threads", metavar="N", type=count, default=1, help="threads of the engine (default: 1)")
    return effort


def count(text: str) -> int:
    """Parses a whole number of at least 1, such as `500`, `20k` or `1_000_000`."""
    scale = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    number = _whole(text[:-1] if scale > 1 else text, text) * scale
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    if number >= 1 << 32:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 2**32 - 1, not {text!r}")
    return number


def playout_moves(text: str) -> int:
    """Parses a playout length in moves."""
    number = count(text)
    if number >= 1 << 31:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 2**31 - 1, not {text!r}")
    return number


def seed(text: str) -> int:
    """Parses a seed."""
    number = _whole(text, text)
    if not 0 <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**63 - 1, not {text!r}")
    return number


def seconds(text: str) -> float:
    """Parses a positive number of seconds."""
    return _time(text, "seconds")


def minutes(text: str) -> float:
    """Parses a positive number of minutes."""
    return _time(text, "minutes")


def _time(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise argparse.ArgumentTypeError(f"must be a number of {unit} above 0, not {text!r}")
    return number


def _whole(digits: str, text: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def shell_line(words: Sequence[str]) -> str:
    """Quotes words as a command line for a POSIX shell, or for cmd on Windows."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def resume_command(typed: Sequence[str]) -> list[str]:
    """Returns the command that resumes an interrupted one; `typed` holds its arguments without the program."""
    words = list(typed)
    if "--resume" not in words:
        words.insert(words.index("--") if "--" in words else len(words), "--resume")
    return ["pondertree", *words]
