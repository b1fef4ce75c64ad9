"""`pondertree view`: a web page on this machine that shows a search while it runs."""

from __future__ import annotations

import argparse
import os
import secrets
from typing import Any

from pondertree import games
from pondertree.cli.algorithms import ALGORITHMS, Configuration, configure, default_evaluator, options_of_game
from pondertree.cli.arguments import Commands, add_command, add_effort
from pondertree.cli.position import Position, read_position
from pondertree.cli.view_setup import algorithms, setup_of
from pondertree.cli.view_tree import setup_of_arguments
from pondertree.errors import InvalidArgumentError, MissingFileError
from pondertree.view.messages import MAX_EXACT
from pondertree.view.setup import Setup, ViewSettings

#: MiB of a tree, unless the page sets another limit: a search without limits grows until it is stopped.
MAX_MEMORY = 1024.0
#: The environment variable of the token: other users of the machine can read a command line, but not its environment.
TOKEN = "PONDERTREE_TOKEN"
TOKEN_HELP = f"token of the address, to keep it after a restart (default: {TOKEN} of the environment, or a new one)"

EXAMPLES = """\
  pondertree view connect4
  pondertree view chess --fen "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"
  pondertree view connect4 --player runs/connect4
  pondertree view --player runs/othello
  pondertree view search.tree
  pondertree view mygames:Solitaire --algorithm uct
  pondertree view mygames:Solitaire --tree search.tree

GAME may also be the file of a tree, which a page or Tree.save has written. A tree
continues as it was saved: --player gives the trained player of its search, and the
game in Python is named beside it, with the moves before the tree was planted.

The page is served on this machine alone; its address holds a token that changes
with every start, unless PONDERTREE_TOKEN or --token gives one (with --port, the
whole address is kept). Ctrl-C ends the server."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree view`."""
    parser = add_command(commands, "view", "Look inside a search, on a page in the browser.", EXAMPLES, run)
    add_effort(parser, " of a reply")
    parser.add_argument("--tree", metavar="FILE", help="a saved tree, with GAME for one of a game in Python")
    parser.add_argument("--port", metavar="N", type=port, help="port of the page (default: 8421, or a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    parser.add_argument("--token", metavar="TEXT", type=token, default=os.environ.get(TOKEN) or None, help=TOKEN_HELP)


def port(text: str) -> int:
    """Parses a port."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 65535, not {text!r}")
    return int(text)


def token(text: str) -> str:
    """Parses a token: long enough not to be guessed, and without characters that an address would quote."""
    if len(text) < 16 or not all(sign.isascii() and (sign.isalnum() or sign in "-_") for sign in text):
        raise argparse.ArgumentTypeError(f"must have at least 16 letters, digits, - and _, also as {TOKEN}")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    from pondertree.view.server import serve

    setup = setup_of_command(arguments)
    try:
        serve(setup, arguments.token or secrets.token_urlsafe(24), arguments.port, browser=not arguments.no_browser)
    except KeyboardInterrupt:
        print("stopped")
    return 0


def setup_of_command(arguments: argparse.Namespace) -> Setup:
    """Returns the setup of a game, or of the file of a tree."""
    game, tree = arguments.game, arguments.tree
    if tree is not None:
        return setup_of_arguments(tree, arguments, has_game=game is not None)
    if game is not None and is_file(game):
        return setup_of_arguments(game, arguments, has_game=False)
    return setup_of_game(arguments)


def is_file(game: str) -> bool:
    """Whether GAME is a file; the name of a game comes first, as `./NAME` is then the file."""
    try:
        games.by_name(game)
    except InvalidArgumentError:
        if os.path.isfile(game):
            return True
        if ":" not in game and (game.endswith(".tree") or os.sep in game):
            raise MissingFileError(f"{game}: there is no such file") from None
    return False


def setup_of_game(arguments: argparse.Namespace) -> Setup:
    """Returns the setup of a game; by default that of the trained player."""
    if arguments.game is None and arguments.player is not None:
        from pondertree.networks import load_for_one_tree

        about = getattr(load_for_one_tree(arguments.player), "about", None) or {}
        arguments.game = about.get("game")
    position = read_position(arguments.game, arguments.moves, arguments.fen)
    chosen = configured(position, arguments)
    if chosen.algorithm == "reference":
        raise InvalidArgumentError("the reference has no tree that can be shown: --algorithm uct has the same results")
    parameters: dict[str, Any] = {"max_memory": MAX_MEMORY, **chosen.options}
    if arguments.threads > 1:
        parameters["threads"] = arguments.threads
    if chosen.max_depth is not None:
        parameters["max_depth"] = chosen.max_depth
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    if seed > MAX_EXACT:
        raise InvalidArgumentError(f"--seed must be at most {MAX_EXACT}: pages have no larger whole numbers")
    settings = ViewSettings(chosen.algorithm, parameters, seed, chosen.simulations, chosen.seconds)
    return setup_of(position, arguments.fen, algorithms(position, chosen.network, player=arguments.player), settings)


def configured(position: Position, arguments: argparse.Namespace) -> Configuration:
    """Returns the search of the options; where the game has no player, playouts are the evaluator, as on the page."""
    one = ALGORITHMS.get(arguments.algorithm)
    if one is None or one.search is None or arguments.player is not None or "evaluator" not in one.players:
        return configure(position, arguments)
    try:
        default_evaluator(arguments.algorithm, position)
    except InvalidArgumentError:
        simulations = arguments.simulations
        if simulations is None and (arguments.seconds is None or one.search.requires_simulation_budget):
            simulations = one.simulations
        limits = simulations, arguments.seconds
        options = options_of_game(arguments.algorithm, position, None)
        return Configuration(arguments.algorithm, one.title, *limits, max_depth=arguments.max_depth, options=options)
    return configure(position, arguments)
