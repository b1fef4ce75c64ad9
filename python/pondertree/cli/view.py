"""`pondertree view`: a web page on this machine that shows a search while it runs."""

from __future__ import annotations

import argparse
import contextlib
import secrets
from typing import Any

from pondertree.chess.hybrid import Hybrid
from pondertree.cli.algorithms import Configuration, configure, default_evaluator
from pondertree.cli.arguments import Commands, add_command, add_effort
from pondertree.cli.position import Position, read_position
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.presets import UCT, AlphaZero, Gumbel, MuZero

EXAMPLES = """\
  pondertree view connect4
  pondertree view chess --fen "6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1"
  pondertree view connect4 --player runs/connect4
  pondertree view mygames:Solitaire --algorithm uct

The page is served on this machine alone; its address holds a token that changes
with every start, unless --token gives one. Ctrl-C ends the server."""


def add_arguments(commands: Commands) -> None:
    """Adds the arguments of `pondertree view`."""
    parser = add_command(commands, "view", "Look inside a search, on a page in the browser.", EXAMPLES, run)
    add_effort(parser, " of a reply")
    parser.add_argument("--port", metavar="N", type=port, help="port of the page (default: 8421, or a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    parser.add_argument("--token", metavar="TEXT", type=token, help="token of the address, to keep it after a restart")


def port(text: str) -> int:
    """Parses a port."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 65535, not {text!r}")
    return int(text)


def token(text: str) -> str:
    """Parses a token: long enough not to be guessed, and without characters that an address would quote."""
    if len(text) < 16 or not all(sign.isascii() and (sign.isalnum() or sign in "-_") for sign in text):
        raise argparse.ArgumentTypeError("must have at least 16 letters, digits, - and _")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit status."""
    from pondertree import __version__
    from pondertree.view.server import serve
    from pondertree.view.setup import Settings, Setup

    position = read_position(arguments.game, arguments.moves, arguments.fen)
    chosen = configure(position, arguments)
    if chosen.algorithm == "reference":
        raise InvalidArgumentError("the reference has no tree that can be shown: --algorithm uct has the same results")
    parameters: dict[str, Any] = {"threads": arguments.threads} if arguments.threads > 1 else {}
    if chosen.max_depth is not None:
        parameters["max_depth"] = chosen.max_depth
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    setup = Setup(
        turns(position, arguments.fen),
        lambda fen, moves: turns(read_position(position.game, moves, fen), fen),
        algorithms(position, chosen),
        Settings(chosen.algorithm, parameters, seed, chosen.simulations, chosen.seconds),
        __version__,
    )
    try:
        serve(setup, arguments.token or secrets.token_urlsafe(24), arguments.port, browser=not arguments.no_browser)
    except KeyboardInterrupt:
        print("stopped")
    return 0


def turns(position: Position, fen: str | None) -> list[Any]:
    """Returns the positions that led to a position, each with the action before it."""
    current = read_position(position.game, None, fen)
    played: list[Any] = [(None, current)]
    for move in position.history:
        action = current.parse(move)
        current = current.play(action)
        played.append((action, current))
    return played


def algorithms(position: Position, chosen: Configuration) -> list[Any]:
    """Returns the searches that can be chosen on the page, with the evaluators that there are."""
    from pondertree.view.setup import Algorithm

    network = chosen.network
    if hasattr(network, "initial_inference"):
        model: dict[str, Any] = {"trained model": network}
        return [
            Algorithm("muzero", "MuZero", MuZero, "model", model),
            Algorithm("gumbel", "Gumbel", Gumbel, "model", model),
            Algorithm("uct", "UCT", UCT),
        ]
    evaluators: dict[str, Any] = {"trained player": network}
    if network is None:
        evaluators = {}
        with contextlib.suppress(InvalidArgumentError):  # no player comes with this game
            default, name = default_evaluator(chosen.algorithm, position)
            evaluators = {name: default}
    others = {"playouts": Rollout(), "uniform": Uniform()}
    known = [
        Algorithm("uct", "UCT", UCT, "evaluator", {"playouts": None, **evaluators}),
        Algorithm("alphazero", "AlphaZero", AlphaZero, "evaluator", evaluators | others),
        Algorithm("gumbel", "Gumbel", Gumbel, "evaluator", evaluators | others),
    ]
    if position.game == "chess":
        known.append(Algorithm("hybrid", "Hybrid", Hybrid))
    return known
