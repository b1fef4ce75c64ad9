"""Environments of other libraries as games."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.envs.openspiel.bot import as_openspiel_bot
    from pondertree.envs.openspiel.compiled import openspiel_actions
    from pondertree.envs.openspiel.states import from_openspiel

__all__ = ["as_openspiel_bot", "from_openspiel", "openspiel_actions"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "openspiel.states": ["from_openspiel"],
        "openspiel.bot": ["as_openspiel_bot"],
        "openspiel.compiled": ["openspiel_actions"],
    },
)
