"""Environments and games of other libraries as games, and games as environments of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.envs.gymnasium_state import from_gymnasium
    from pondertree.envs.openspiel.bot import as_openspiel_bot
    from pondertree.envs.openspiel.compiled import openspiel_actions
    from pondertree.envs.openspiel.states import from_openspiel
    from pondertree.envs.outward import as_gymnasium, as_pettingzoo
    from pondertree.envs.pettingzoo import from_pettingzoo
    from pondertree.envs.recording import record
    from pondertree.envs.wrapping import wrap

__all__ = [
    "as_gymnasium",
    "as_openspiel_bot",
    "as_pettingzoo",
    "from_gymnasium",
    "from_openspiel",
    "from_pettingzoo",
    "openspiel_actions",
    "record",
    "wrap",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gymnasium_state": ["from_gymnasium"],
        "openspiel.bot": ["as_openspiel_bot"],
        "openspiel.compiled": ["openspiel_actions"],
        "openspiel.states": ["from_openspiel"],
        "outward": ["as_gymnasium", "as_pettingzoo"],
        "pettingzoo": ["from_pettingzoo"],
        "recording": ["record"],
        "wrapping": ["wrap"],
    },
)
