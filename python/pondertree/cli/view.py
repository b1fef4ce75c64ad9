"""`pondertree view`: a web page on this machine that shows a search while it runs."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pondertree import games
from pondertree.cli.algorithms import ALGORITHMS, configure, default_evaluator
from pondertree.cli.arguments import Commands, add_command, add_effort
from pondertree.cli.position import Position, read_position
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.game import describe
from pondertree.view.messages import MAX_EXACT
from pondertree.view.parameters import settings_of
from pondertree.view.setup import Algorithm, Setup, Turn, ViewSettings

#: MiB of a tree, unless the page sets another limit: a search without limits grows until it is stopped.
MAX_MEMORY = 1024.0
#: The environment variable of the token: other users of the machine can read a command line, but not its environment.
TOKEN = "PONDERTREE_TOKEN"
TOKEN_HELP = f"token of the address, to keep it after a restart (default: {TOKEN} of the environment, or a new one)"

EXAMPLES = """\
  pondertree view connect4
  pondertree view chess --fen "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
  pondertree view connect4 --player runs/connect4
  pondertree view --player runs/othello
  pondertree view search.tree
  pondertree view mygames:Solitaire --algorithm uct

GAME may also be the file of a tree, which a page or Tree.save has written.

The page is served on this machine alone; its address holds a token that changes
with every start, unless PONDERTREE_TOKEN or --token gives one. Ctrl-C ends the
server."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree view`."""
    parser = add_command(commands, "view", "Look inside a search, on a page in the browser.", EXAMPLES, run)
    add_effort(parser, " of a reply")
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

    game = arguments.game
    setup = setup_of_file(game) if game is not None and is_file(game) else setup_of_game(arguments)
    try:
        serve(setup, arguments.token or secrets.token_urlsafe(24), arguments.port, browser=not arguments.no_browser)
    except KeyboardInterrupt:
        print("stopped")
    return 0


def is_file(game: str) -> bool:
    """Whether GAME is a file; the name of a game comes first, as `./NAME` is then the file."""
    try:
        games.by_name(game)
    except InvalidArgumentError:
        return os.path.isfile(game)
    return False


def setup_of_game(arguments: argparse.Namespace) -> Setup:
    """Returns the setup of a game; by default that of the trained player."""
    if arguments.game is None and arguments.player is not None:
        from pondertree.networks import load_for_one_tree

        about = getattr(load_for_one_tree(arguments.player), "about", None) or {}
        arguments.game = about.get("game")
    position = read_position(arguments.game, arguments.moves, arguments.fen)
    chosen = configure(position, arguments)
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
    return setup_of(position, arguments.fen, algorithms(position, chosen.network), settings)


def setup_of(position: Position, fen: str | None, algorithms: Sequence[Algorithm], settings: ViewSettings) -> Setup:
    """Returns the setup of a position, which other positions of its game may follow."""
    from pondertree import __version__

    def begin(fen: str | None, moves: str) -> Sequence[Turn]:
        return history(read_position(position.game, moves, fen), fen)

    return Setup(history(position, fen), begin, algorithms, settings, __version__)


def setup_of_file(path: str) -> Setup:
    """Returns the setup of a saved tree."""
    import pondertree

    loading: Any = pondertree
    tree: Any = loading.load_tree(path)
    state, result = tree.state, tree.result()
    if not hasattr(state, "legal_actions"):
        raise InvalidArgumentError(
            f"{path}: the file does not hold the states of a game in Python, so that it has no "
            "moves to show: load it with pondertree.load_tree(path, state=...)"
        )
    position = Position(games.name_of_info(describe(state)), state)
    known = algorithms(position, None)
    settings = settings_of(tree._search, known, result.seed)
    setup = setup_of(position, None, known, settings or ViewSettings("uct", {}, result.seed, None, None))
    return replace(setup, history=[(None, position)], tree=tree, is_read_only=settings is None)


def history(position: Position, fen: str | None) -> list[Turn]:
    """Returns the positions that led to a position, each with the action before it."""
    current = read_position(position.game, None, fen)
    played: list[Turn] = [(None, current)]
    for move in position.history:
        action = current.parse(move)
        current = current.play(action)
        played.append((action, current))
    return played


def algorithms(position: Position, network: Any) -> list[Algorithm]:
    """Returns the searches that can be chosen on the page, with a trained player or what else the game has."""
    is_model = hasattr(network, "initial_inference")
    source = "model" if is_model else "evaluator"
    networks = {} if network is None else {f"trained {'model' if is_model else 'player'}": network}
    if network is None:
        with contextlib.suppress(InvalidArgumentError):  # no evaluator comes with this game
            network, name = default_evaluator("alphazero", position)
            networks = {name: network}
    known = []
    for name, one in ALGORITHMS.items():
        if one.search is None or one.game not in (None, position.game):
            continue
        if source in one.players:
            others = {} if is_model else {"playouts": Rollout(), "uniform": Uniform()}
            known.append(Algorithm(name, one.title, one.search, source, networks | others))
        elif one.has_playouts and not is_model:
            known.append(Algorithm(name, one.title, one.search, source, {"playouts": None, **networks}))
        elif not one.players:
            known.append(Algorithm(name, one.title, one.search))
    return known
