"""`pondertree search`: searches one position."""

from __future__ import annotations

import argparse
import json
import sys

from pondertree.cli.algorithms import configure
from pondertree.cli.arguments import Commands, add_command, add_effort, count
from pondertree.cli.position import MAX_LISTED, read_position
from pondertree.cli.searcher import EXIT_INTERRUPTED, EngineSearcher, run_search
from pondertree.errors import GameOverError, InvalidArgumentError, UsageError
from pondertree.files import check_writable
from pondertree.game import CHANCE, is_over

EXAMPLES = """\
  pondertree search connect4 --moves "4 4 3" --seconds 2
  pondertree search chess --fen "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
  pondertree search tic-tac-toe --algorithm reference --seed 7
  pondertree search othello --json | python -m json.tool
  pondertree search connect4 --player runs/connect4 --simulations 800
  pondertree search mygames:Solitaire
  pondertree search connect4 --seconds 10 --save connect4.tree

Q is the value of a move for the player to move, from -1 (lost) to +1 (won).
Proven results are shown instead: "win in 3" is a forced win in three plies. The
expected line is the principal variation after the move, up to the first chance
node. Games with more players or with rewards have one value per player."""

TOP = 10


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree search`."""
    parser = add_command(commands, "search", "Search a position and show the statistics of its moves.", EXAMPLES, run)
    add_effort(parser, "")
    parser.add_argument("--top", metavar="K", type=count, help=f"show K moves (default: {TOP}; all with --json)")
    parser.add_argument("--save", metavar="FILE", help="write the tree to a file, which pondertree.load_tree continues")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    # Imported first: a missing rich is reported before a long search.
    from pondertree.cli import output

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    if is_over(position.state):
        raise GameOverError(f"the game is over in this position: there is nothing to search. {position.outcome()}")
    if position.state.to_play == CHANCE:
        raise InvalidArgumentError(
            f"this position is a chance node: add the outcome to --moves: {position.legal_text(MAX_LISTED)}"
        )
    chosen = configure(position, arguments)
    searcher = chosen.start(position, arguments.seed, arguments.threads)
    if arguments.save is not None:
        check_writable(arguments.save, "--save")
        if not isinstance(searcher, EngineSearcher):
            raise UsageError(f"--save: the algorithm {searcher.algorithm} has no tree that can be saved")
    if arguments.json:
        finished = run_search(searcher, chosen.simulations, chosen.seconds)
        json.dump(searcher.report().as_json(arguments.top), sys.stdout, ensure_ascii=False)
        print()
    else:
        console = output.make_console()
        finished = output.watch_and_show(console, searcher, chosen.simulations, chosen.seconds, arguments.top or TOP)
    if arguments.save is not None and isinstance(searcher, EngineSearcher):
        searcher.tree.save(arguments.save)
    if not finished:
        print("interrupted: this is what was found so far", file=sys.stderr)
    return 0 if finished else EXIT_INTERRUPTED
