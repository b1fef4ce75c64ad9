"""Locks in forked processes: a lock held by another thread of the parent would never be released in the child."""

from __future__ import annotations

import os
from collections.abc import Callable


def after_fork_in_child(renew: Callable[[], None]) -> Callable[[], None]:
    """Registers `renew`, which replaces the locks of its module, to run in every forked child. A decorator."""
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=renew)
    return renew
