"""Whether a trained player is asked about the game that it learned. Needs no PyTorch: what the file tells is enough."""

from __future__ import annotations

from typing import Any

from pondertree import games
from pondertree.errors import InvalidArgumentError
from pondertree.game import COMPILED, GameInfo


def check_own_game(player: Any, info: GameInfo) -> None:
    """Refuses a player of `pondertree.load` that learned another game; whatever is no such player passes.

    Games are told apart by their number of actions, and compiled ones by their names and the shape of observations: a
    game written in Python may be known by another name where it was learned.
    """
    about = getattr(player, "about", None)
    if not isinstance(about, dict):
        return
    learned, asked = str(about.get("game", "")), _common_name(info)
    network = about.get("network")
    network = network if isinstance(network, dict) else {}
    actions, shape = network.get("num_actions"), network.get("shape")
    are_compiled = learned in games.BY_NAME and info.compiled
    if (are_compiled and learned != asked) or (learned and actions not in (None, info.num_actions)):
        raise InvalidArgumentError(f"this is a player of {learned}, not of {asked}")
    seen = list(games.BY_NAME[asked]().observation().shape) if info.compiled else shape
    if actions not in (None, info.num_actions) or shape not in (None, seen):
        raise InvalidArgumentError(
            f"this player is not one of {asked}: it has {actions} actions and observations of shape {shape}, "
            f"the game {info.num_actions} and {seen}"
        )


def _common_name(info: GameInfo) -> str:
    """How commands call a game."""
    if not info.compiled:
        return info.name
    return next((name for name, kind in games.BY_NAME.items() if COMPILED[kind] == info.name), info.name)
