"""The number of players of a learned model, and the MuZero specification's configuration, which has it."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from pondertree.errors import InvalidArgumentError, PlayerCountWarning, warn_caller
from pondertree.validation import shown

#: Adapters are unwrapped to this depth to find a model's `num_players`.
MAX_WRAPPED = 4


class AssumedPlayers(int):
    """A default number of players, equal to the plain number and distinguishable from a given one."""

    def __repr__(self) -> str:
        return str(int(self))


@dataclass(slots=True)
class MCTSConfig:
    """The MuZero specification's configuration, for `select_action` and the reference implementation."""

    num_simulations: int = 50
    root_dirichlet_alpha: float = 0.3
    root_exploration_fraction: float = 0.25
    pb_c_base: float = 19652
    pb_c_init: float = 1.25
    discount: float = 0.997
    """The paper has 1 for board games, where a result is worth as much late as early; 0.997 is its value for Atari."""
    num_players: int = AssumedPlayers(1)
    """Not in the specification. With 2, values are for the player to move; unset, the model's own number holds, and
    a `PlayerCountWarning` is issued where the model has none."""


MuZeroConfig = MCTSConfig


def players_of(model: Any) -> int | None:
    """Returns the `num_players` of a model, or of the model inside an adapter; None where neither has one."""
    for _ in range(MAX_WRAPPED):
        declared = getattr(model, "num_players", None)
        if declared is not None:
            try:
                players = operator.index(declared)
            except TypeError:
                players = 0
            if players not in (1, 2):
                raise InvalidArgumentError(
                    f"num_players of the model is {shown(declared)}: learned models support one or two players"
                )
            return players
        model = getattr(model, "model", None)
    return None


def warn_of_unknown_players() -> None:
    """Issues a `PlayerCountWarning`: the number of players is unknown and assumed to be 1."""
    warn_caller(
        "the number of players is unknown: neither num_players= nor the model's own num_players is set. One is "
        "assumed, who maximises the value at every step; in a two-player game, the opponent's moves would be chosen "
        "for that player, too. "
        "Give num_players=1 or num_players=2, or set the attribute on the model.",
        PlayerCountWarning,
    )
