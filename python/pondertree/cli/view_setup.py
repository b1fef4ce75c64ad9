"""The setup of a session of `pondertree view`: a position, and the searches that can be chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from pondertree.cli.algorithms import ALGORITHMS, default_evaluator, options_of_game
from pondertree.cli.position import Position, read_position
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Rollout, Uniform
from pondertree.view.setup import Algorithm, Setup, Turn, ViewSettings


def setup_of(position: Position, fen: str | None, algorithms: Sequence[Algorithm], settings: ViewSettings) -> Setup:
    """Returns the setup of a position, which other positions of its game may follow."""
    from pondertree import __version__

    def begin(fen: str | None, moves: str) -> Sequence[Turn]:
        return history(read_position(position.game, moves, fen), fen)

    return Setup(history(position, fen), begin, algorithms, settings, __version__)


def history(position: Position, fen: str | None) -> list[Turn]:
    """Returns the positions that led to a position, each with the action before it."""
    current = read_position(position.game, None, fen)
    played: list[Turn] = [(None, current)]
    for move in position.history:
        action = current.parse(move)
        current = current.play(action)
        played.append((action, current))
    return played


def algorithms(
    position: Position, network: Any, by: str = "trained player", player: str | None = None
) -> list[Algorithm]:
    """Returns the searches that can be chosen on the page, with a player named `by`, or what else the game has.

    `player` names a bundled player, or its file.
    """
    is_model = hasattr(network, "initial_inference")
    source = "model" if is_model else "evaluator"
    networks = {} if network is None else {"trained model" if is_model else by: network}
    if network is None:
        with contextlib.suppress(InvalidArgumentError):  # no evaluator comes with this game
            network, name = default_evaluator("alphazero", position)
            networks = {name: network}
    known = []
    for name, one in ALGORITHMS.items():
        if one.search is None or one.game not in (None, position.game):
            continue
        options = options_of_game(name, position, player)
        if source in one.players:
            others = {} if is_model else {"playouts": Rollout(), "uniform": Uniform()}
            known.append(Algorithm(name, one.title, one.search, source, networks | others, options))
        elif one.has_playouts and not is_model:
            known.append(Algorithm(name, one.title, one.search, source, {"playouts": None, **networks}, options))
        elif not one.players:
            known.append(Algorithm(name, one.title, one.search, parameters=options))
    return known
