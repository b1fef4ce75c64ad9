"""The methods of copying environments: a copy of all attributes, those of ALE and MuJoCo, the user's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pondertree.envs.copying import Copier, Memo
from pondertree.envs.snapshot_method import ProbeError, SnapshotMethod

Given = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]
"""The user's `(save(env) -> token, restore(env, token))`."""


def layers_of(env: Any) -> list[Any]:
    """Returns the wrappers of an environment, the outermost first, and the environment itself."""
    layers = [env]
    while (inner := getattr(layers[-1], "__dict__", {}).get("env")) is not None:
        layers.append(inner)
    return layers


class Copying(SnapshotMethod):
    """Copies all attributes of an environment and its wrappers."""

    def __init__(self, method: str = "copy", shared: tuple[Any, ...] = ()) -> None:
        self.method = method
        self._copier = Copier(shared=shared)
        self._shared = shared

    def check(self, env: Any) -> None:
        """Raises `CannotCopyError` if a part of the environment has no copy."""
        self._copier.check(env)

    def leave_out_generators(self) -> None:
        """Makes copies without random generators, so that a draw raises."""
        self._copier = Copier(without_generators=True, shared=self._shared)

    def save(self, env: Any) -> Any:
        """Returns a copy."""
        return self._copier.copy(env)

    def restore(self, token: Any) -> Any:
        """Returns a copy."""
        return self._copier.copy(token)

    def keep(self, env: Any) -> Any:
        """Returns the environment itself."""
        return env


class Ale(SnapshotMethod):
    """Copies Atari environments: the emulator's own states, and the attributes of everything around it."""

    method = "ale"
    is_exclusive = True

    def __init__(self, ale: Any) -> None:
        """`ale` is an emulator that nothing else uses."""
        self._ale = ale
        self._copier = Copier(shared=(ale,))

    def save(self, env: Any) -> Any:
        """Returns the state of the emulator, with its random numbers, and a copy of the rest."""
        ale = layers_of(env)[-1].ale
        return ale.cloneState(include_rng=True), self._copier.copy(env, {id(ale): self._ale})

    def restore(self, token: Any) -> Any:
        """Returns a copy around the emulator."""
        state, env = token
        copied = self._copier.copy(env)
        self._ale.restoreState(state)
        return copied

    def keep(self, env: Any) -> Any:
        """Returns the state of the emulator and the environment."""
        return self._ale.cloneState(include_rng=True), env


class Pair(SnapshotMethod):
    """Copies by the user's functions, into one instance; the attributes of wrappers are copied beside them."""

    method = "given"
    is_exclusive = True

    def __init__(self, given: Given, instance: Any) -> None:
        self._save, self._restore = given
        self._env = instance
        self._layers = layers_of(instance)
        self._copier = Copier(shared=tuple(self._layers))

    def save(self, env: Any) -> Any:
        """Returns the user's token, and the attributes of the wrappers."""
        layers = layers_of(env)
        if [type(each) for each in layers] != [type(each) for each in self._layers]:
            raise ProbeError("the second instance of the environment has other wrappers")
        replaced: Memo = {id(old): new for old, new in zip(layers, self._layers, strict=True)}
        return self._save(env), [self._copier.copy(vars(layer), replaced) for layer in layers[:-1]]

    def restore(self, token: Any) -> Any:
        """Returns the instance."""
        given, attributes = token
        for layer, held in zip(self._layers, attributes, strict=False):
            layer.__dict__.update(self._copier.copy(held))
        self._restore(self._env, given)
        return self._env

    def keep(self, env: Any) -> Any:
        """Returns the same as `save`."""
        return self.save(env)
