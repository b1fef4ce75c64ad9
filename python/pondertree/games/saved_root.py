"""Roots and games of saved trees as plain data: compiled states are replayed from their start, never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree._core import restore
from pondertree.errors import InvalidArgumentError
from pondertree.game import COMPILED, GameInfo, describe
from pondertree.validation import shown

#: The properties of a game that its states determine.
_GAME = ("name", "num_actions", "num_players", "zero_sum", "has_rewards")


def root_data(state: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Returns a root as (plain data, columns); None for a state of a game in Python, which a file cannot hold."""
    if type(state) in COMPILED:
        _, (name, start, actions) = state.__reduce__()
        return {"class": name, "start": start, "actions": np.frombuffer(actions, "<u2").tolist()}, {}
    to_data = getattr(state, "root_data", None)
    return (None, {}) if to_data is None else to_data()


def compiled_root(data: Mapping[str, Any]) -> Any:
    """Returns the compiled state of `root_data`."""
    actions = np.array([validation.whole_number(action, "root", most=65535) for action in data["actions"]], "<u2")
    start = data["start"]
    return restore(
        validation.text(data["class"], "root"),
        None if start is None else validation.text(start, "root"),
        actions.tobytes(),
    )


def game_data(info: GameInfo) -> dict[str, Any]:
    """Returns a game as plain data."""
    return {
        **{name: getattr(info, name) for name in _GAME},
        "is_learned_model": info.is_learned_model,
        "has_categories": info.move_categories is not None,
    }


def game_of(data: Mapping[str, Any], state: Any) -> GameInfo:
    """Returns the game of `game_data`; that of `state`, a state or None, must be the same."""
    info = GameInfo(
        validation.text(data["name"], "name"),
        False,
        validation.whole_number(data["num_actions"], "num_actions", least=1, most=65535),
        validation.whole_number(data["num_players"], "num_players", least=1, most=255),
        validation.flag(data["zero_sum"], "zero_sum"),
        validation.flag(data["has_rewards"], "has_rewards"),
        # The moves of an unknown state have numbers alone, as those of a model.
        is_learned_model=validation.flag(data["is_learned_model"], "is_learned_model") or state is None,
    )
    if state is None or info.is_learned_model:
        return info
    found = describe(state)
    for name in _GAME:
        given, saved = getattr(found, name), getattr(info, name)
        if given != saved:
            raise InvalidArgumentError(
                f"the given state has {name}={shown(given)}, the game of the tree {shown(saved)}"
            )
    return found
