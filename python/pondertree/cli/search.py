"""`pondertree search`: look into one position."""

from __future__ import annotations

import argparse
import json
import sys

from pondertree.cli.algorithms import configure
from pondertree.cli.arguments import Commands, add_command, add_effort, count
from pondertree.cli.position import read_position
from pondertree.cli.searcher import INTERRUPTED, think
from pondertree.errors import GameOverError
from pondertree.game import is_over

EXAMPLES = """\
  pondertree search connect4 --moves "4 4 3" --seconds 2
  pondertree search chess --fen "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
  pondertree search tic-tac-toe --algorithm reference --seed 7
  pondertree search othello --json | python -m json.tool
  pondertree search connect4 --player runs/connect4 --simulations 800
  pondertree search mygames:Solitaire

Q is the value of a move for the player to move, from -1 (lost) to +1 (won).
Where a result is proven the table says so: "win in 3" is a forced win that ends
the game three plies from here. The line is what is expected after the move.
A game of your own may have any number of players, and rewards; then there is
one value for each player."""

TOP = 10


def add_arguments(commands: Commands) -> None:
    """The arguments of `pondertree search`."""
    parser = add_command(commands, "search", "Search a position, and show what was found.", EXAMPLES, run)
    add_effort(parser, "")
    parser.add_argument("--top", metavar="K", type=count, help=f"show K moves (default: {TOP}; all with --json)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Runs it; the exit status."""
    # Asked for first, so that whoever lacks rich hears it before a long search.
    from pondertree.cli import output

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    if is_over(position.state):
        raise GameOverError(f"the game is over in this position: there is nothing to search. {position.outcome()}")
    chosen = configure(
        position,
        arguments.algorithm,
        arguments.player,
        arguments.simulations,
        arguments.seconds,
        max_depth=arguments.max_depth,
    )
    thinker = chosen.start(position, arguments.seed, arguments.threads)
    if arguments.json:
        finished = think(thinker, chosen.simulations, chosen.seconds)
        json.dump(thinker.report().as_json(arguments.top), sys.stdout, ensure_ascii=False)
        print()
    else:
        console = output.make_console()
        finished = output.watch_and_show(console, thinker, chosen.simulations, chosen.seconds, arguments.top or TOP)
    if not finished:
        print("interrupted: this is what was found so far", file=sys.stderr)
    return 0 if finished else INTERRUPTED
