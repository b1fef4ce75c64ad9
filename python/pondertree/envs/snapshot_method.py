"""The interface of a method of copying environments."""

from __future__ import annotations

from typing import Any

from pondertree.envs.copying import listed_generators
from pondertree.envs.randomness import own_generators


class ProbeError(Exception):
    """A method of copying that failed its probe; the message says why."""


class SnapshotMethod:
    """A method of copying environments."""

    method: str
    is_exclusive = False
    """Whether an environment is valid only until the next one is restored."""

    def save(self, env: Any) -> Any:
        """Returns a token of an environment, which may be used further."""
        raise NotImplementedError

    def restore(self, token: Any) -> Any:
        """Returns an environment in the saved state, which may be stepped without changing the token."""
        raise NotImplementedError

    def keep(self, env: Any) -> Any:
        """Returns a token of a restored environment, which is not used any further."""
        raise NotImplementedError

    def generators(self, env: Any) -> list[Any]:
        """Returns the random generators of a restored environment."""
        listed = listed_generators(env)
        return own_generators(env) if listed is None else listed

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Is called after every step of a restored environment."""

    def failed(self, env: Any) -> None:
        """Is called after a step of a restored environment that raised."""

    def forget(self) -> None:
        """Drops what is kept of former copies."""
