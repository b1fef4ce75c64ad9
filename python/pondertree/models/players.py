"""How many players a learned model has: by the setting, by the model itself, or assumed."""

from __future__ import annotations

import operator
from typing import Any

from pondertree import validation
from pondertree.errors import InvalidArgumentError, PlayerCountWarning, warn_caller

#: Models in adapters are looked into, so deep at most.
MOST_WRAPPED = 4


class AssumedPlayers(int):
    """The default number of players, as opposed to a given one. It is equal to the plain number."""

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
                    f"num_players of the model is {validation.shown(told)}: learned models are for 1 or 2 players"
                )
            return players
        model = getattr(model, "model", None)
    return None


def warn_of_unknown_players() -> None:
    """Warns the caller of this package that one player is assumed."""
    warn_caller(
        "nothing says how many players there are: neither num_players= nor the model's own num_players. One is "
        "assumed, who maximises the value at every step; in a two-player game that plays for the opponent, too. "
        "Give num_players=1 or num_players=2, or set the attribute on the model.",
        PlayerCountWarning,
    )
