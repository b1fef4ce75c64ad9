"""Environments of other libraries as games, and games as environments of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.envs.gymnasium_state import from_gymnasium
    from pondertree.envs.recording import record
    from pondertree.envs.wrapping import wrap

__all__ = ["from_gymnasium", "record", "wrap"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gymnasium_state": ["from_gymnasium"],
        "recording": ["record"],
        "wrapping": ["wrap"],
    },
)
