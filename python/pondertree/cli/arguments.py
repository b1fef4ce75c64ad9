"""Reading arguments: what several commands share, with mistakes answered in one line."""

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

#: What argparse calls the thing `add_subparsers` gives back.
Commands = Any

#: Characters of a message on stderr; a longer one is cut.
LONGEST_MESSAGE = 2000


class Parser(argparse.ArgumentParser):
    """An argparse parser without abbreviations of options, whose complaints are one line."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """One line on stderr, and status 2."""
        print(f"{self.prog}: {brief(message, LONGEST_MESSAGE)} (try {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def add_command(commands: Commands, name: str, summary: str, examples: str, run: Callable[[Any], int]) -> Parser:
    """The parser of one command."""
    parser: Parser = commands.add_parser(name, help=summary, description=summary, epilog=f"Examples:\n{examples}")
    parser.set_defaults(run=run)
    parser.add_argument(
        "game", metavar="GAME", nargs="?", help=f"the game: {', '.join(games.BY_NAME)}, or module:Class"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--moves", metavar="MOVES", help='the moves played so far: "4 4 3", "e4 e5 Nf3", "take 1; take 2"'
    )
    start.add_argument("--fen", metavar="FEN", help="a chess position, instead of moves")
    return parser


def add_effort(parser: Parser, per: str) -> Any:
    """How long to search, and with what; the group of options of which one says how long."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--simulations",
        metavar="N",
        type=count,
        help=f"how many simulations{per} (default: by the algorithm, 400 to 100,000)",
    )
    effort.add_argument("--seconds", metavar="S", type=seconds, help=f"search for so long{per} instead")
    parser.add_argument("--algorithm", metavar="NAME", choices=ALGORITHMS, default="auto", help=ALGORITHM_HELP)
    parser.add_argument(
        "--max-depth",
        metavar="N",
        type=playout_moves,
        help="uct, reference: cut playouts after N moves, for games that may not end (a cut playout is a draw)",
    )
    parser.add_argument(
        "--player",
        metavar="PLAYER",
        help="search with a trained player: the folder of a training, a .safetensors or .onnx file, "
        "or one that comes with the package: connect4",
    )
    parser.add_argument("--seed", metavar="N", type=seed, help="repeat the random numbers of an earlier search")
    parser.add_argument("--threads", metavar="N", type=count, default=1, help="threads of the engine (default: 1)")
    return effort


def count(text: str) -> int:
    """A whole number of at least 1; `20k` and `1_000_000` are understood."""
    scale = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    number = _whole(text[:-1] if scale > 1 else text, text) * scale
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    if number >= 1 << 32:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 2**32 - 1, not {text!r}")
    return number


def playout_moves(text: str) -> int:
    """A number of moves of a playout."""
    number = count(text)
    if number >= 1 << 31:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 2**31 - 1, not {text!r}")
    return number


def seed(text: str) -> int:
    """A seed."""
    number = _whole(text, text)
    if not 0 <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**63 - 1, not {text!r}")
    return number


def seconds(text: str) -> float:
    """A time above 0."""
    return _time(text, "seconds")


def minutes(text: str) -> float:
    """A longer time above 0."""
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
    """A command line that the shell splits into these words again: a POSIX shell, or cmd on Windows."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def resuming(typed: Sequence[str]) -> list[str]:
    """The command that goes on with what another one began: the same with --resume. `typed` lacks the program."""
    words = list(typed)
    if "--resume" not in words:
        words.insert(words.index("--") if "--" in words else len(words), "--resume")
    return ["pondertree", *words]
