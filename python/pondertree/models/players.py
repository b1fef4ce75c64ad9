"""How many players a learned model plays for: said by the caller, by the model itself, or by nobody."""

from __future__ import annotations

import operator
import sys
import warnings
from typing import Any

from pondertree import check
from pondertree.errors import InvalidArgumentError, PlayerCountWarning

#: Models in adapters are looked into, so deep at most.
MOST_WRAPPED = 4


class AssumedPlayers(int):
    """A number of players that nobody has stated: the default of a setting. It is equal to the plain number."""

    def __repr__(self) -> str:
        return str(int(self))


def players_of(model: Any) -> int | None:
    """What a model says by its own `num_players`, or by that of the model in an adapter; None if it says nothing."""
    for _ in range(MOST_WRAPPED):
        told = getattr(model, "num_players", None)
        if told is not None:
            try:
                players = operator.index(told)
            except TypeError:
                players = 0
            if players not in (1, 2):
                raise InvalidArgumentError(
                    f"num_players of the model is {check.shown(told)}: learned models are for 1 or 2 players"
                )
            return players
        model = getattr(model, "model", None)
    return None


def warn_of_unknown_players() -> None:
    """Warns the caller of this package that one player is assumed."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "pondertree":
        level, frame = level + 1, frame.f_back
    warnings.warn(
        "nothing says how many players there are: neither num_players= nor the model's own num_players. One is "
        "assumed, who wants what is good at every step; in a game of two that plays for the opponent. "
        "Give num_players=1 or num_players=2, or set the attribute on the model.",
        PlayerCountWarning,
        stacklevel=level,
    )
