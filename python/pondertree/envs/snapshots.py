"""Snapshots of environments: the first method of copying that passes its probe.

The methods, in order: the user's own pair of functions, those of ALE and MuJoCo, a copy of all attributes, and the
replay of a recorded episode.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pondertree.envs.copying import CannotCopyError
from pondertree.envs.generators import RandomDrawError
from pondertree.envs.methods import Ale, Copying, Given, Pair, layers_of
from pondertree.envs.probe import (
    Access,
    Findings,
    Reset,
    SampleAction,
    Step,
    attribute_fingerprint,
    cost_of,
    probed,
)
from pondertree.envs.randomness import (
    has_natives,
    preserved,
    reseed,
    shared_generators,
    undrawn,
    watched_generators,
)
from pondertree.envs.recording import Recorder, recorder_of, with_own_arrays
from pondertree.envs.replaying import Replay, fresh_instances
from pondertree.envs.snapshot_method import ProbeError, SnapshotMethod
from pondertree.errors import SnapshotError


class LiveEnvironment:
    """A restored environment of an exclusive method, or the token of its state while another one is restored."""

    __slots__ = ("__weakref__", "env", "token")

    def __init__(self, env: Any) -> None:
        self.env = env
        self.token: Any = None


class Snapshots:
    """A method of copying an environment that passed its probe.

    Several threads may use it: `lock` is held from `restore` to `keep`. It does nothing unless the method is exclusive.
    """

    def __init__(
        self, method: SnapshotMethod, access: Access, findings: Findings, cost: float, watched: list[Any]
    ) -> None:
        """`watched` are shared generators that no step of the probe drew from."""
        self._method = method
        self._access = access
        self._watched = watched
        self.cost = cost
        """Seconds per copy, as probed."""
        self.is_random = findings.is_random
        """Whether steps draw random numbers: they need a key then."""
        self._drawn = findings.drawn
        self.is_exclusive = method.is_exclusive
        """Whether a restored environment is valid only until the next one is restored."""
        self.lock: AbstractContextManager[Any] = threading.RLock() if method.is_exclusive else nullcontext()
        self._live: weakref.ref[LiveEnvironment] | None = None

    @property
    def method(self) -> str:
        """How environments are copied: "given", "ale", "mujoco", "copy" or "replay"."""
        return self._method.method

    def save(self, env: Any) -> Any:
        """Returns a token of an environment, which may be used further."""
        return self._method.save(env)

    def restore(self, token: Any) -> Any:
        """Returns an environment in the saved state; it may be stepped (by `perform`) without changing the token.

        If snapshots are exclusive, it is valid until the next one is restored, unless it is held by `live`.
        """
        live = None if self._live is None else self._live()
        if live is not None:
            live.token, live.env = self._method.keep(live.env), None
        self._live = None
        return self._method.restore(token)

    def live(self, env: Any) -> Any:
        """Returns what stands for a restored environment that is stepped further: `resumed` gives it back."""
        if not self.is_exclusive or env is None or isinstance(env, LiveEnvironment):
            return env
        held = LiveEnvironment(env)
        self._live = weakref.ref(held)
        return held

    def resumed(self, live: Any) -> Any:
        """Returns the environment of `live`, restored if others were restored in the meantime."""
        if not isinstance(live, LiveEnvironment):
            return live
        if live.env is None:
            live.env = self.restore(live.token)
            live.token = None
            self._live = weakref.ref(live)
        return live.env

    def keep(self, env: Any) -> Any:
        """Returns a token of a restored environment, which is not used any further: cheaper than `save`."""
        return self._method.keep(env)

    def perform(self, env: Any, action: Any, key: int | None = None) -> Any:
        """Performs an action in a restored environment; returns the result of `step`.

        `key` (64 bits) seeds all random numbers of the step. Raises `RandomDrawError` if one is drawn although the
        probe saw none.
        """
        try:
            result = self._performed(env, action, key)
            self._method.performed(env, action, key)
        except BaseException:
            self._method.failed(env)
            raise
        return result

    def _performed(self, env: Any, action: Any, key: int | None) -> Any:
        watched = self._watched
        if self.is_random and key is not None:
            reseed(self._method.generators(env), key)
        elif not self.is_random:
            watched = [*watched, *self._method.generators(env)]
        if not watched and not self._drawn:
            return self._access.step(env, action)
        with preserved(self._drawn), undrawn(watched):
            if key is not None:
                reseed(self._drawn, ~key)
            return self._access.step(env, action)


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
    makes steps random whatever the probe finds; `random=False` accepts an environment whose steps depend on the seed of
    `reset` by more than its generators, such as one with a hidden layout.
    """
    access = Access(step, sample_action, reset, with_own_arrays(first), accepts_hidden=random is False)
    recorder = recorder_of(env)
    natives = has_natives(env)
    shared = shared_generators(env)
    before = attribute_fingerprint(env)
    reasons: dict[str, str] = {}
    for method in _methods(env, given, recorder, access, reasons):
        try:
            if isinstance(method, Copying):
                method.check(env)
                _try_on_another(method, env, recorder, access, shared)
            findings = probed(method, env, access, shared, has_natives=natives)
        except (ProbeError, CannotCopyError) as error:
            reasons[method.method] = str(error)
        except RandomDrawError:
            reasons[method.method] = "a copy without generators drew a random number"
        except Exception as error:
            reasons[method.method] = f"{type(error).__name__}: {error}"
        else:
            return _found(method, env, access, findings._replace(is_random=findings.is_random or bool(random)), shared)
        if attribute_fingerprint(env) != before:
            raise SnapshotError(
                f"{name} shares its state with its copies, and the probe of a copy changed it: reset it, and pass "
                f"snapshot=(save(env) -> token, restore(env, token)) (tried: {reasons[method.method]})",
                reasons,
            )
        if method.method == "given":
            break
    raise _refusal(name, reasons, recorder)


def _found(method: SnapshotMethod, env: Any, access: Access, findings: Findings, shared: list[Any]) -> Snapshots:
    if isinstance(method, Copying) and not findings.is_random:
        method.leave_out_generators()
    drawn = {id(each) for each in findings.drawn}
    watched = [each for each in watched_generators(env, shared) if id(each) not in drawn]
    return Snapshots(method, access, findings, cost_of(method, method.save(env)), watched)


def _try_on_another(
    method: SnapshotMethod, env: Any, recorder: Recorder | None, access: Access, shared: list[Any]
) -> None:
    """Probes a copy of another instance first, if one can be made: bad copies would change what `env` shares."""
    if access.reset is None:
        return
    for other in fresh_instances(env, None if recorder is None else recorder.make):
        try:
            with preserved(shared):
                first = with_own_arrays(access.reset(other, 0))
        except Exception:
            continue
        probed(method, other, access._replace(first=first), shared, has_natives=False)
        return


def _methods(
    env: Any, given: Given | None, recorder: Recorder | None, access: Access, reasons: dict[str, str]
) -> Iterator[SnapshotMethod]:
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


def _refusal(name: str, reasons: dict[str, str], recorder: Recorder | None) -> SnapshotError:
    tried = "; ".join(f"{method}: {reason}" for method, reason in reasons.items())
    advice = "pass snapshot=(save(env) -> token, restore(env, token))"
    if recorder is None:
        advice += ", or env = pondertree.envs.record(env) before env.reset(), so that episodes can be replayed"
    if "native code" in reasons.get("ale", ""):
        advice = "make it with repeat_action_probability=0, or " + advice
    return SnapshotError(f"{name} cannot be copied for a search ({tried}). What helps: {advice}", reasons)
