"""Recorded episodes: the seed and the actions since the last reset, from which an environment can be replayed."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pondertree.errors import InvalidArgumentError

#: Seeds for resets without one are below it.
_SEEDS = 1 << 31


@dataclass(slots=True)
class Episode:
    """An episode so far."""

    arguments: dict[str, Any]
    """The arguments of `reset`, with a seed."""
    actions: list[Any] = field(default_factory=list)
    last: Any = None
    """What the last call of `reset` or `step` returned."""


@dataclass(slots=True)
class Recorder:
    """The record of an environment."""

    is_empty_in_copies: ClassVar[bool] = True
    """Whether a copy of an environment has an object without contents instead: an episode may be long."""

    make: Callable[[], Any] | None = None
    episode: Episode | None = None


class Recording:
    """Methods that record `reset` and `step` of the environment in `env`."""

    env: Any

    def __init__(self, env: Any, make: Callable[[], Any] | None = None) -> None:
        super().__init__(env)  # type: ignore[call-arg]
        self.pondertree_recorder = Recorder(make)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        """Resets the environment, with a new seed if none is given: without one, it could not be replayed."""
        if seed is None:
            seed = secrets.randbelow(_SEEDS)
        arguments = {"seed": seed} if options is None else {"seed": seed, "options": options}
        self.pondertree_recorder.episode = None
        answer = self.env.reset(**arguments)
        self.pondertree_recorder.episode = Episode(arguments, last=answer)
        return answer

    def step(self, action: Any) -> Any:
        """Performs an action."""
        episode = self.pondertree_recorder.episode
        self.pondertree_recorder.episode = None  # a step that raises leaves an unknown state
        answer = self.env.step(action)
        if episode is not None:
            episode.actions.append(action)
            episode.last = answer
            self.pondertree_recorder.episode = episode
        return answer


class _Proxy:
    """An environment in which all but `reset` and `step` is the environment in `env`."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)


@functools.cache
def _recording_class(base: type) -> type:
    return type("Recorded", (Recording, base), {"__module__": __name__})


def record(env: Any, make: Callable[[], Any] | None = None) -> Any:
    """Returns the environment with a record of its episodes, to be used in its place.

    An environment that cannot be copied is then replayed from the seed and actions of its episode. A reset without a
    seed is given one. `make` returns a second environment of the same kind; without it, the specification of `env` or
    the arguments of its constructor (EzPickle) are used.
    """
    if not callable(getattr(env, "reset", None)) or not callable(getattr(env, "step", None)):
        raise InvalidArgumentError(f"record takes an environment with reset and step, not {env!r:.100}")
    return _recording_class(_base_of(env))(env, make)


def _base_of(env: Any) -> type:
    """Returns the class of wrappers in the library of an environment."""
    for each in type(env).__mro__:
        if each.__module__ == "gymnasium.core" and each.__name__ == "Env":
            import gymnasium

            return gymnasium.Wrapper  # type: ignore[no-any-return]
    return _Proxy


def recorder_of(env: Any) -> Recorder | None:
    """Returns the record of an environment or of one of the environments it wraps."""
    while env is not None:
        held = getattr(env, "__dict__", {})
        if "pondertree_recorder" in held:
            found: Recorder = held["pondertree_recorder"]
            return found
        env = held.get("env")
    return None
