"""The MuZero specification's `select_action`: one call from an observation to an action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pondertree.config import AssumedPlayers
from pondertree.errors import InvalidArgumentError
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
    """The action that MuZero's search selects from one observation, without the axis of a batch.

    `network` is a model in our form (`pondertree.models.Model`) or in the specification's, whose `recurrent_inference`
    gives (hidden_state, reward) and whose `prediction` gives (policy, value). `config` is an `MCTSConfig`, or any
    object with some of its fields. `seed` repeats a choice.

    How many players there are says `config.num_players` if it was set, else the network's own `num_players`, else the
    observation if it is a state of a game; otherwise one is assumed, with a `PlayerCountWarning`. `to_play` is whose
    turn it is: 0, or what a state says.
    """
    if isinstance(config, type):
        raise InvalidArgumentError(f"config is the class {config.__name__}: call it to get a configuration")
    known = {name: getattr(config, name) for name in FIELDS if hasattr(config, name)}
    if not known:
        raise InvalidArgumentError(f"config is {shown(config)}: it must be an MCTSConfig, or have its fields")
    if isinstance(known.get("num_players"), AssumedPlayers):
        known["num_players"] = None
    if hasattr(observation, "legal_actions") and callable(getattr(observation, "observation", None)):
        known["num_players"] = known.get("num_players") or observation.num_players
        to_play = observation.to_play if to_play is None else to_play
        observation = observation.observation()
    search = MuZero(network, seed=seed, **known)
    action: int = search.search(
        temperature=temperature,
        add_noise=add_noise,
        observation=observation,
        legal_actions=legal_actions,
        to_play=to_play,
    )
    return action
