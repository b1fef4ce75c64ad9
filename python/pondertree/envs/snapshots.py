"""Snapshots of environments: the first method of copying that passes its probe.

The methods, in order: the user's own pair of functions, those of ALE and MuJoCo, a copy of all attributes, and the
replay of a recorded episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pondertree.envs.copying import CannotCopyError, Copier, Memo
from pondertree.envs.generators import RandomDrawError
from pondertree.envs.probe import Access, Findings, ProbeError, Reset, Rung, SampleAction, Step, cost_of, probed
from pondertree.envs.randomness import has_natives, own_generators, preserved, reseed, shared_generators
from pondertree.envs.recording import Recorder, recorder_of
from pondertree.envs.replaying import Replay, fresh_instances, new_instance
from pondertree.errors import SnapshotError

Given = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]
"""The user's `(save(env) -> token, restore(env, token))`."""


def layers_of(env: Any) -> list[Any]:
    """Returns the wrappers of an environment, the outermost first, and the environment itself."""
    layers = [env]
    while (inner := getattr(layers[-1], "__dict__", {}).get("env")) is not None:
        layers.append(inner)
    return layers


class Snapshots:
    """A method of copying an environment that passed its probe. One thread at a time may use it."""

    def __init__(self, rung: Rung, access: Access, findings: Findings, cost: float) -> None:
        self._rung = rung
        self._access = access
        self.cost = cost
        """Seconds per copy, as probed."""
        self.is_random = findings.is_random
        """Whether steps draw random numbers: they need a key then."""
        self._drawn = findings.drawn
        self.is_exclusive = rung.is_exclusive
        """Whether a restored environment is valid only until the next one is restored."""
        self.serial = 0
        """The number of environments restored, if they are exclusive."""

    @property
    def method(self) -> str:
        """How environments are copied: "given", "ale", "mujoco", "copy" or "replay"."""
        return self._rung.method

    def save(self, env: Any) -> Any:
        """Returns a token of an environment, which may be used further."""
        return self._rung.save(env)

    def restore(self, token: Any) -> Any:
        """Returns an environment in the saved state; it may be stepped (by `perform`) without changing the token.

        If snapshots are exclusive, it is valid until the next one is restored.
        """
        self.serial += self.is_exclusive
        return self._rung.restore(token)

    def keep(self, env: Any) -> Any:
        """Returns a token of a restored environment, which is not used any further: cheaper than `save`."""
        return self._rung.keep(env)

    def perform(self, env: Any, action: Any, key: int | None = None) -> Any:
        """Performs an action in a restored environment; returns the result of `step`.

        `key` (64 bits) seeds all random numbers of the step.
        """
        if not self.is_random or key is None:
            result = self._access.step(env, action)
        else:
            reseed(self._rung.generators(env), key)
            if self._drawn:
                with preserved(self._drawn):
                    reseed(self._drawn, ~key)
                    result = self._access.step(env, action)
            else:
                result = self._access.step(env, action)
        self._rung.performed(env, action, key)
        return result

    def advance(self, token: Any, action: Any, key: int | None = None) -> tuple[Any, Any]:
        """Returns (environment after an action, result of `step`)."""
        env = self.restore(token)
        return env, self.perform(env, action, key)


def find_snapshots(
    env: Any,
    name: str,
    *,
    step: Step,
    sample_action: SampleAction,
    given: Given | None = None,
    reset: Reset | None = None,
    first: Any = None,
    random: bool | None = None,
) -> Snapshots:
    """Returns the first method of copying `env` that passes its probe; `env` is never stepped or changed.

    `name` is that of the environment in messages. `step(env, action)` returns all that a search reads, for comparison;
    `sample_action(env, result, random)` returns an action, or None at the end of an episode; `reset(env, seed)` returns
    what `step` does. `first` is the result that led to the present state, if it is known. `random=True`
    makes steps random whatever the probe finds.
    """
    access = Access(step, sample_action, reset, first)
    recorder = recorder_of(env)
    natives = has_natives(env)
    shared = shared_generators(env)
    reasons: dict[str, str] = {}
    for rung in _rungs(env, given, recorder, access, reasons):
        try:
            if isinstance(rung, Copying):
                rung.check(env)
                _try_on_another(rung, env, recorder, access, shared)
            findings = probed(rung, env, access, shared, has_natives=natives)
        except (ProbeError, CannotCopyError) as error:
            reasons[rung.method] = str(error)
        except RandomDrawError:
            reasons[rung.method] = "a copy without generators drew a random number"
        except Exception as error:
            reasons[rung.method] = f"{type(error).__name__}: {error}"
        else:
            if random:
                findings = findings._replace(is_random=True)
            if isinstance(rung, Copying):
                rung.adapt(env, is_random=findings.is_random)
            return Snapshots(rung, access, findings, cost_of(rung, rung.save(env)))
        if rung.method == "given":
            break
    raise _refusal(name, reasons, recorder)


def _try_on_another(rung: Rung, env: Any, recorder: Recorder | None, access: Access, shared: list[Any]) -> None:
    """Probes a copy of another instance first, if one can be made: bad copies would change what `env` shares."""
    if access.reset is None:
        return
    other = new_instance(env, None if recorder is None else recorder.make)
    if other is None:
        return
    try:
        with preserved(shared):
            first = access.reset(other, 0)
    except Exception:
        return
    probed(rung, other, access._replace(first=first), shared, has_natives=False)


def _rungs(
    env: Any, given: Given | None, recorder: Recorder | None, access: Access, reasons: dict[str, str]
) -> Iterator[Rung]:
    """Yields the methods to probe; those that cannot be tried have their reason in `reasons`."""
    if given is not None:
        for instance in fresh_instances(env):
            yield Pair(given, instance)
        reasons.setdefault("given", "no second instance of the environment could be made to restore into")
        return
    inner = layers_of(env)[-1]
    if hasattr(getattr(inner, "ale", None), "cloneState"):
        for instance in fresh_instances(inner):
            yield Ale(instance.ale)
            break
    model, data = getattr(inner, "model", None), getattr(inner, "data", None)
    if type(model).__name__ == "MjModel" and type(data).__name__ == "MjData":
        yield Copying("mujoco", (model,))
    yield Copying()
    if recorder is None:
        reasons["replay"] = "the episode was not recorded"
    elif recorder.episode is None:
        reasons["replay"] = "the environment was not reset since pondertree.envs.record"
    else:
        for instance in fresh_instances(env, recorder.make):
            yield Replay(recorder, instance, access)
        reasons.setdefault("replay", "no second instance of the environment could be made: record(env, make=...)")


class Copying:
    """Copies all attributes of an environment and its wrappers."""

    is_exclusive = False

    def __init__(self, method: str = "copy", shared: tuple[Any, ...] = ()) -> None:
        self.method = method
        self._copier = Copier(shared=shared)
        self._shared = shared
        self._lists_generators = False
        self._newest: Any = None

    def check(self, env: Any) -> None:
        """Raises `CannotCopyError` if a part of the environment has no copy."""
        self._copier.check(env)

    def adapt(self, env: Any, *, is_random: bool) -> None:
        """Adapts copies to the findings of the probe.

        Without randomness, they have no random generators, and a draw raises. With it, the copier lists them if it
        finds all.
        """
        if not is_random:
            self._copier = Copier(sealed=True, shared=self._shared)
        else:
            copied = self._copier.copy(env)
            listed = {id(each) for each in self._copier.generators}
            self._lists_generators = listed == {id(each) for each in own_generators(copied)}

    def save(self, env: Any) -> Any:
        """Returns a copy."""
        return self._copier.copy(env)

    def restore(self, token: Any) -> Any:
        """Returns a copy."""
        self._newest = self._copier.copy(token)
        return self._newest

    def keep(self, env: Any) -> Any:
        """Returns the environment itself."""
        return env

    def generators(self, env: Any) -> list[Any]:
        """Returns the generators of the copy."""
        return self._copier.generators if self._lists_generators and env is self._newest else own_generators(env)

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""


class Ale:
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

    def generators(self, env: Any) -> list[Any]:
        """Returns the generators around the emulator."""
        return own_generators(env)

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""


class Pair:
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

    def generators(self, env: Any) -> list[Any]:
        """Returns the generators of the instance."""
        return own_generators(env)

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""


def _refusal(name: str, reasons: dict[str, str], recorder: Recorder | None) -> SnapshotError:
    tried = "; ".join(f"{method}: {reason}" for method, reason in reasons.items())
    advice = "pass snapshot=(save(env) -> token, restore(env, token))"
    if recorder is None:
        advice += ", or env = pondertree.envs.record(env) before env.reset(), so that episodes can be replayed"
    if "native code" in reasons.get("ale", ""):
        advice = "make it with repeat_action_probability=0, or " + advice
    return SnapshotError(f"{name} cannot be copied for a search ({tried}). What helps: {advice}", reasons)
