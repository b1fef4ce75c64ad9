"""Saved trees on the page of `pondertree view`: with what their files lack, or read-only."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pondertree import games
from pondertree.cli.algorithms import ALGORITHMS, default_evaluator
from pondertree.cli.position import Position, read_position
from pondertree.cli.view_setup import algorithms, setup_of
from pondertree.errors import InvalidArgumentError
from pondertree.evaluators import Uniform
from pondertree.files import read_columns, reading
from pondertree.game import describe
from pondertree.presets import AlphaZero
from pondertree.search.settings import made_with
from pondertree.view.parameters import settings_of
from pondertree.view.setup import Algorithm, Setup, ViewSettings

#: Options that a saved tree has itself, with what they are if they are not given.
OWN = {"algorithm": "auto", "max_depth": None, "seed": None, "threads": 1}
#: Difference of two evaluations of a position by one player, on whatever device.
TOLERANCE = 1e-3


def setup_of_arguments(path: str, arguments: argparse.Namespace, *, has_game: bool) -> Setup:
    """Returns the setup of a saved tree with the options of the command; raises for those that it has itself."""
    own = [name for name, default in OWN.items() if getattr(arguments, name) != default]
    if not has_game:
        own += [name for name in ("moves", "fen") if getattr(arguments, name) is not None]
    if own:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in own)
        raise InvalidArgumentError(
            f"{options}: not for the file of a tree, which continues as it was saved; --simulations, --seconds and "
            "--player may be given"
        )
    first = read_position(arguments.game, arguments.moves, arguments.fen) if has_game else None
    setup = setup_of_file(path, first, arguments.player)
    if arguments.simulations is None and arguments.seconds is None:
        return setup
    limits = {"simulations": arguments.simulations, "seconds": arguments.seconds}
    return replace(setup, settings=replace(setup.settings, **limits))


def setup_of_file(path: str, first: Position | None = None, player: str | None = None) -> Setup:
    """Returns the setup of a saved tree.

    `first` is the position that the tree of a game in Python was planted with; `player` the trained player or model
    that its search had, by default the one that comes with the game.
    """
    import pondertree

    loading: Any = pondertree
    with reading(path, "a saved tree") as file:
        about = read_columns(file)[0]
    given = None if first is None or first.is_compiled else first.state
    tree: Any = loading.load_tree(path, state=given)
    state = tree.state
    if not hasattr(state, "legal_actions"):
        raise InvalidArgumentError(
            f"{path}: the file does not hold the states of a game in Python: pondertree view module:Game --tree {path}"
        )
    name = first.game if given is not None and first is not None else games.name_of_info(describe(state))
    if first is not None and first.game != name:
        raise InvalidArgumentError(f"{path}: the tree is of {name}, not of {first.game}")
    position = Position(name, state)
    lacking = about.get("settings", {}).get("python", [])
    network, by, reason = None, "trained player", ""
    if lacking:
        network, by, reason = _player_of(position, about["settings"], tree.result(), player)
        if network is not None:
            search = made_with(about["settings"], {lacking[0]: network})
            tree = loading.load_tree(path, search, state=given)
    elif player is not None:
        raise InvalidArgumentError("--player: the search of this tree has no trained player or model")
    result = tree.result()
    if about["kind"] == "result":
        reason = "the file is that of a result, which lacks the state of the search: save the tree instead"
    known = algorithms(position, network, by)
    settings = None if reason else settings_of(tree._search, known, result.seed)
    if settings is None:
        reason = reason or "its search has options that this page cannot set; pondertree.load_tree can continue it"
        known, settings = _shown_settings(about.get("settings"), result.seed) or ([], None)
    usual = settings or ViewSettings("uct", {}, result.seed, None, None)
    setup = setup_of(position, None, known or algorithms(position, None), usual)
    return replace(setup, history=[(None, position)], tree=tree, read_only=reason, has_settings=settings is not None)


def _player_of(
    position: Position, settings: Mapping[str, Any], result: Any, player: str | None
) -> tuple[Any, str, str]:
    """Returns evaluator or model of a saved search, its name, and "", or else None, a name, and what is missing."""
    from pondertree.evaluators.protocol import check_player_game
    from pondertree.networks import load_for_one_tree

    lacking = settings["python"]
    objects, name = ", ".join(map(str, lacking)), "trained player"
    reason = f"the file does not hold the {objects} of its search"
    if lacking not in (["evaluator"], ["model"]) or settings["class"] not in ("AlphaZero", "Gumbel", "UCT"):
        if player is not None:
            raise InvalidArgumentError(f"--player: {reason}; pondertree.load_tree(path, search=...) continues it")
        return None, name, f"{reason}; pondertree.load_tree(path, search=...) continues it"
    if player is None:
        try:
            network, name = default_evaluator("alphazero", position)
        except InvalidArgumentError:
            return None, name, f"{reason}: give --player"
    else:
        network = load_for_one_tree(player)
        check_player_game(network, position.info)
    is_model = hasattr(network, "initial_inference")
    if is_model == (lacking == ["model"]) and (is_model or _is_evaluated_by(network, position, result)):
        return network, "trained model" if is_model else name, ""
    if player is not None:
        raise InvalidArgumentError(f"--player: {player} is not the {objects} that this tree was searched with")
    return None, name, f"{reason}: give --player"


def _is_evaluated_by(network: Any, position: Position, result: Any) -> bool:
    """Whether an evaluator gives the root of a tree the value that it has."""
    root = result.root
    if root.nn_value is None:
        return True
    value = AlphaZero(network, num_simulations=1, seed=0).run(position.state).root.nn_value
    return value is not None and bool(abs(value - root.nn_value) <= TOLERANCE)


def _shown_settings(data: Mapping[str, Any] | None, seed: int) -> tuple[list[Algorithm], ViewSettings] | None:
    """Returns the search of a tree that cannot continue, for the form; None if the page does not know it."""
    named = [(name, one) for name, one in ALGORITHMS.items() if one.search is not None]
    found = next(
        ((name, one) for name, one in named if data and getattr(one.search, "__name__", "") == data["class"]), None
    )
    if found is None or data is None:
        return None
    name, one = found
    has_source = bool(one.players) or one.has_playouts
    if not set(data["python"]) <= {"evaluator"} or (one.search is None) or (data["python"] and not has_source):
        return None
    stand_in = Uniform()
    search = made_with(data, {"evaluator": stand_in})
    evaluator = getattr(search, "evaluator", None)
    source = {"not in the file" if evaluator is stand_in else "that of the file": evaluator}
    algorithm = Algorithm(
        name, one.title, one.search, "evaluator" if has_source else None, source if has_source else {}
    )
    settings = settings_of(search, [algorithm], seed)
    return None if settings is None else ([algorithm], settings)
