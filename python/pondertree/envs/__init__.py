"""Environments of other libraries as games."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.envs.openspiel import from_openspiel
    from pondertree.envs.openspiel_bot import as_openspiel_bot
    from pondertree.envs.openspiel_compiled import openspiel_actions

__all__ = ["as_openspiel_bot", "from_openspiel", "openspiel_actions"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "openspiel": ["from_openspiel"],
        "openspiel_bot": ["as_openspiel_bot"],
        "openspiel_compiled": ["openspiel_actions"],
    },
)
