"""Locks in forked processes: a thread that held one in the parent is not there to release it in the child."""

from __future__ import annotations

import os
from collections.abc import Callable


def after_fork_in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """Has `renew`, which replaces locks of its module by new ones, called in every forked child. A decorator."""
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=renew)
    return renew
