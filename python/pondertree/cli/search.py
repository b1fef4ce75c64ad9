"""`pondertree search`: look into one position."""

from __future__ import annotations

import argparse
import json
import sys

from pondertree.cli.arguments import Commands, add_command, add_effort, count
from pondertree.cli.position import Position, read_position
from pondertree.cli.thinking import INTERRUPTED, Engine, Reference, Thinker, think
from pondertree.errors import GameOverError, InvalidArgumentError

EXAMPLES = """\
  pondertree search connect4 --moves "4 4 3" --simulations 200k
  pondertree search chess --fen "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1" --seconds 2
  pondertree search tic-tac-toe --algorithm reference --seed 7
  pondertree search othello --json | python -m json.tool
  pondertree search connect4 --player runs/connect4 --simulations 800

Q is the value of a move for the player to move, from -1 (lost) to +1 (won). Where it is proven the table says so:
"win in 3" is a forced win that ends the game three plies from here. The line is what is expected after the move."""

SIMULATIONS = {"uct": 10_000, "reference": 1_000}
#: A trained player sees more with fewer, and each costs more.
PLAYER_SIMULATIONS = 400
TOP = 10


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree search`."""
    parser = add_command(commands, "search", "Search a position, and show what was found.", EXAMPLES, run)
    parser.add_argument(
        "--algorithm",
        choices=list(SIMULATIONS),
        default="uct",
        help="uct: the compiled search (default); reference: its twin in plain Python, the same numbers, much slower",
    )
    add_effort(parser, "default: {uct:,}, for the reference {reference:,}".format(**SIMULATIONS))
    parser.add_argument("--top", metavar="K", type=count, help=f"show K moves (default: {TOP}; all with --json)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Runs it; the exit status."""
    # Asked for first, so that whoever lacks rich hears it before a long search.
    from pondertree.cli import output

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    if position.state.is_terminal:
        raise GameOverError(f"the game is over in this position: there is nothing to search. {position.outcome()}")
    simulations, seconds = arguments.simulations, arguments.seconds
    if simulations is None and seconds is None:
        simulations = SIMULATIONS[arguments.algorithm] if arguments.player is None else PLAYER_SIMULATIONS
    thinker = make_thinker(arguments, position)
    if arguments.json:
        finished = think(thinker, simulations, seconds)
        json.dump(thinker.report().as_json(arguments.top), sys.stdout, ensure_ascii=False)
        print()
    else:
        console = output.make_console()
        finished = output.watch_and_show(console, thinker, simulations, seconds, arguments.top or TOP)
    if not finished:
        print("interrupted: this is what was found so far", file=sys.stderr)
    return 0 if finished else INTERRUPTED


def make_thinker(arguments: argparse.Namespace, position: Position) -> Thinker:
    """The search that was asked for."""
    if arguments.algorithm == "uct":
        return Engine(position, arguments.seed, arguments.threads, arguments.seconds, arguments.player)
    if arguments.player is not None:
        raise InvalidArgumentError("--player is for the compiled search, not for the reference")
    if arguments.threads > 1:
        raise InvalidArgumentError("--threads is for the compiled search: the reference runs in one thread")
    return Reference(position, arguments.seed)
