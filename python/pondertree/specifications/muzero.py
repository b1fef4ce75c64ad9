"""MuZero: `select_action`, one call from an observation to an action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree.errors import InvalidArgumentError
from pondertree.models.players import AssumedPlayers
from pondertree.presets import MuZero
from pondertree.validation import shown

FIELDS = (
    "num_simulations",
    "pb_c_base",
    "pb_c_init",
    "discount",
    "root_dirichlet_alpha",
    "root_exploration_fraction",
    "num_players",
)


def select_action(
    network: Any,
    config: Any,
    observation: Any,
    legal_actions: Sequence[int],
    temperature: float = 1.0,
    add_noise: bool = True,
    *,
    to_play: int | None = None,
    seed: int | None = None,
) -> int:
    """Returns the action that MuZero's search selects for one observation, an array without a batch axis.

    `network` is a `pondertree.models.Model`, or has the specification's form, whose `recurrent_inference` returns
    (hidden_state, reward) and whose `prediction` returns (policy, value). `config` is an `MCTSConfig`, or any object
    with some of its fields. The same `seed` selects the same action.

    The number of players is `config.num_players` if it is set, else the network's own `num_players`, else that of the
    observation if it is a state of a game; otherwise it is assumed to be 1, with a `PlayerCountWarning`. `to_play` is
    the player to move: by default 0, or that of a state.
    """
    if isinstance(config, type):
        raise InvalidArgumentError(f"config is the class {config.__name__}: call it to get a configuration")
    given = {name: getattr(config, name) for name in FIELDS if hasattr(config, name)}
    if not given:
        raise InvalidArgumentError(f"config is {shown(config)}: it must be an MCTSConfig, or have its fields")
    if isinstance(given.get("num_players"), AssumedPlayers):
        given["num_players"] = None
    if hasattr(observation, "legal_actions") and callable(getattr(observation, "observation", None)):
        given["num_players"] = given.get("num_players") or observation.num_players
        to_play = observation.to_play if to_play is None else to_play
        observation = observation.observation()
    search = MuZero(network, seed=seed, **given)
    action: int = search.search(
        temperature=temperature,
        add_noise=add_noise,
        observation=observation,
        legal_actions=legal_actions,
        to_play=to_play,
    )
    return action
