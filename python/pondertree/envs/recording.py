"""Recorded episodes: the seed and the actions since the last reset, from which an environment can be replayed."""

from __future__ import annotations

import copy
import functools
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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


class Recorder:
    """The record of an environment, which its copies share and do not change."""

    def __init__(self, owner: Any = None, make: Callable[[], Any] | None = None) -> None:
        self.make = make
        self.episode: Episode | None = None
        self._owner = None if owner is None else weakref.ref(owner)

    def belongs_to(self, env: Any) -> bool:
        """Whether this is the record of `env`, and not of what it was copied from."""
        return self._owner is not None and self._owner() is env

    def __reduce__(self) -> Any:
        return Recorder, (None, self.make)  # a copied or pickled environment has no record


class Recording:
    """Methods that record `reset` and `step` of the environment in `env`."""

    env: Any

    def __init__(self, env: Any, make: Callable[[], Any] | None = None) -> None:
        super().__init__(env)  # type: ignore[call-arg]
        self.pondertree_recorder = Recorder(self, make)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        """Resets the environment, with a new seed if none is given: without one, it could not be replayed."""
        if seed is None:
            seed = secrets.randbelow(_SEEDS)
        arguments = {"seed": seed} if options is None else {"seed": seed, "options": options}
        recorder = self.pondertree_recorder
        if not recorder.belongs_to(self):
            return self.env.reset(**arguments)
        recorder.episode = None
        recorded = copy.deepcopy(arguments)
        answer = self.env.reset(**arguments)
        recorder.episode = Episode(recorded, last=with_own_arrays(answer))
        return answer

    def step(self, action: Any) -> Any:
        """Performs an action."""
        recorder = self.pondertree_recorder
        if not recorder.belongs_to(self):
            return self.env.step(action)
        episode = recorder.episode
        recorder.episode = None  # a step that raises leaves an unknown state
        recorded = with_own_arrays(action)
        answer = self.env.step(action)
        if episode is not None:
            episode.actions.append(recorded)
            episode.last = with_own_arrays(answer)
            recorder.episode = episode
        return answer


def with_own_arrays(value: Any) -> Any:
    """Returns a value with copies of its arrays and containers: environments and callers may change theirs in place."""
    if isinstance(value, np.ndarray):
        return copy.deepcopy(value)
    if type(value) is tuple or type(value) is list:
        return type(value)([with_own_arrays(each) for each in value])
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(with_own_arrays(each) for each in value)
    if type(value) is dict:
        return {name: with_own_arrays(each) for name, each in value.items()}
    return value


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
    the arguments of its constructor (EzPickle) are used. `env` is the outermost wrapper: none may be put around the
    result.
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
    """Returns the record of an environment; raises `InvalidArgumentError` if wrappers lie around the recorded one."""
    outermost = env
    while env is not None:
        held = getattr(env, "__dict__", {})
        found: Recorder | None = held.get("pondertree_recorder")
        if found is not None:
            if env is not outermost:
                raise InvalidArgumentError(
                    f"{type(outermost).__name__} is outside pondertree.envs.record(...), so that replays would leave "
                    "it out: record the outermost wrapper, env = record(Wrapper(env))"
                )
            return found if found.belongs_to(env) else None
        env = held.get("env")
    return None
