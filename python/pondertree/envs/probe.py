"""Probes of a method of copying environments: equal results after equal actions, reseedable randomness."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from pondertree.envs.hidden_numbers import (
    Path,
    assign,
    is_irregular,
    is_large,
    seed_dependent,
    shown_path,
    value_at,
)
from pondertree.envs.randomness import fingerprint, own_generators, preserved, reseed
from pondertree.envs.recording import with_own_arrays
from pondertree.envs.snapshot_method import ProbeError, SnapshotMethod
from pondertree.envs.traversal import module_of, reached
from pondertree.random import Random, fold

#: Steps of an environment that a probe compares.
PROBE_STEPS = 32
#: Steps of a trajectory before the snapshot that is compared.
PREFIX_STEPS = 6
#: Purpose of the random numbers of a probe, apart from those of searches.
PROBE = 101
#: Steps in which a number is watched for irregular values.
DRAWN_STEPS = 6
#: Pairs of seeds that are tried for equal starts.
SEED_PAIRS = 6

Step = Callable[[Any, Any], Any]
"""Performs an action and returns what is compared: nested containers of numbers, text and arrays."""
SampleAction = Callable[[Any, Any, Random], Any]
"""Returns an action for (environment, last result of `Step` or None, random numbers); None if the episode is over."""
Reset = Callable[[Any, int], Any]
"""Resets an environment with a seed and returns what `Step` returns."""


class Access(NamedTuple):
    """How environments of one library are driven."""

    step: Step
    sample_action: SampleAction
    reset: Reset | None = None
    first: Any = None
    """The result that led to the present state, if it is known."""
    accepts_hidden: bool = False
    """Whether what `reset(seed)` seeds apart from generators is accepted."""


class Findings(NamedTuple):
    """What a probe found out about a method that passed."""

    is_random: bool
    """Whether steps draw random numbers."""
    drawn: list[Any]
    """Shared generators that steps draw from."""


class _Trajectory(NamedTuple):
    actions: list[Any]
    results: list[Any]
    failure: BaseException | None
    """What the last action raised, which has no result."""


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal; NaN equals itself."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (np.ndarray, np.generic)) or isinstance(other, (np.ndarray, np.generic)):
        first, second = np.asarray(one), np.asarray(other)
        if first.shape != second.shape:
            return False
        return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc" and second.dtype.kind in "fc"))
    kind, identity = type(one), cast(Any, object.__eq__)
    if kind is type(other) and kind.__eq__ is identity and hasattr(one, "__dict__"):
        return one is other or same(vars(one), vars(other))
    return bool(one == other) or bool(one != one and other != other)


def probe(method: SnapshotMethod, env: Any, access: Access, shared: Sequence[Any], *, has_natives: bool) -> Findings:
    """Returns the findings about a method of copying; raises `ProbeError` if it fails. `env` is never stepped."""
    return _Probe(method, access, shared).run(env, has_natives=has_natives)


class _Probe:
    """One probe. Every trajectory starts with the same states of shared generators."""

    def __init__(self, method: SnapshotMethod, access: Access, shared: Sequence[Any]) -> None:
        self.method = method
        self.access = access
        self.shared = shared
        self.random = Random(0, PROBE)

    def run(self, env: Any, *, has_natives: bool) -> Findings:
        start = self.method.save(env)
        before = fingerprint(own_generators(env))
        is_random, drawn, steps, failure = False, set[int](), 0, None
        first: _Trajectory | None = None
        middle, rest = start, _Trajectory([], [], None)
        for _ in range(PROBE_STEPS):
            env_copy = self.method.restore(start)
            prefix = self._run(env_copy, self.access.first, 1 + self.random.below(PREFIX_STEPS))
            first = first or prefix
            failure = failure or prefix.failure
            if prefix.failure is None and len(prefix.results):
                middle = self.method.save(env_copy)
                states = fingerprint(self.method.generators(env_copy)), fingerprint(self.shared)
                rest = self._run(env_copy, prefix.results[-1], PROBE_STEPS // 2)
                failure = failure or rest.failure
                is_random = is_random or fingerprint(self.method.generators(env_copy)) != states[0]
                drawn |= self._drawn(states[1])
                self._repeat(middle, rest)
                self._repeat(middle, rest)
            self._repeat(start, prefix)
            steps += len(prefix.results) + len(rest.results)
            if steps >= PROBE_STEPS:
                break
        if steps == 0:
            raise ProbeError(f"every step of a copy failed: {type(failure).__name__}: {failure}")
        active = [each for index, each in enumerate(self.shared) if index in drawn]
        is_random = is_random or bool(active) or self._is_random(start, active)
        if not self.access.accepts_hidden:
            self._compare_seeds(start, has_natives=has_natives)
        if first is not None:
            self._repeat(self.method.save(env), first)
        if fingerprint(own_generators(env)) != before:
            raise ProbeError("steps of a copy changed the generators of the environment itself")
        return Findings(is_random, active)

    def _run(self, env: Any, result: Any, length: int, actions: Sequence[Any] | None = None) -> _Trajectory:
        """Performs given or random actions."""
        trajectory = _Trajectory([], [], None)
        reseed(self.shared, PROBE)
        for index in range(length):
            action = self._action(env, result) if actions is None else actions[index]
            if action is None:
                break
            trajectory.actions.append(action)
            try:
                result = with_own_arrays(self.access.step(env, action))
            except Exception as error:
                self.method.failed(env)
                return trajectory._replace(failure=error)
            self.method.performed(env, action, None)
            trajectory.results.append(result)
        return trajectory

    def _action(self, env: Any, result: Any) -> Any:
        try:
            return self.access.sample_action(env, result, self.random)
        except Exception as error:
            raise ProbeError(f"no action of a copy could be chosen: {type(error).__name__}: {error}") from error

    def _repeat(self, token: Any, trajectory: _Trajectory) -> None:
        """Raises `ProbeError` unless a restored environment gives the results of a trajectory."""
        again = self._run(self.method.restore(token), None, len(trajectory.actions), trajectory.actions)
        _compare(trajectory, again, "a copy and its original differ")

    def _drawn(self, before: list[Any]) -> set[int]:
        """Returns the indices of the shared generators that were drawn from since their states were `before`."""
        return {index for index, state in enumerate(fingerprint(self.shared)) if state != before[index]}

    def _is_random(self, token: Any, active: Sequence[Any]) -> bool:
        """Whether reseeding changes results; raises `ProbeError` if equal seeds give different ones."""
        trajectory = self._seeded(token, active, 1, None)
        _compare(trajectory, self._seeded(token, active, 1, trajectory.actions), "copies with equal seeds differ")
        return any(
            _difference(trajectory, self._seeded(token, active, key, trajectory.actions)) is not None
            for key in range(2, 6)
        )

    def _seeded(self, token: Any, active: Sequence[Any], key: int, actions: list[Any] | None) -> _Trajectory:
        env = self.method.restore(token)
        reseed(self.method.generators(env), fold(PROBE, key))
        return self._run(env, self.access.first, PROBE_STEPS if actions is None else len(actions), actions)

    def _compare_seeds(self, token: Any, *, has_natives: bool) -> None:
        """Raises `ProbeError` if `reset(seed)` seeds random numbers of steps that no known generator holds.

        Equal starts that go on differently are that, or a hidden layout. In an environment without compiled parts, the
        attributes tell which (`pondertree.envs.hidden_numbers`).
        """
        if self.access.reset is None:
            return
        is_explained = not has_natives and not self.method.is_exclusive
        for pair in range(SEED_PAIRS):
            one, other = self._started(token, 2 * pair), self._started(token, 2 * pair + 1)
            if one is None or other is None:
                return
            differ = same(one.start, other.start) and _difference(one.trajectory, other.trajectory) is not None
            if is_explained:
                self._search_attributes(token, pair, one, differ=differ)
            elif differ:
                raise ProbeError(
                    "equal starts go on differently after reset with other seeds: its steps draw random numbers inside "
                    "native code, which can neither be found nor reseeded (copies would know them in advance), or its "
                    "layout is hidden, which random=False accepts"
                )
        self.method.forget()

    def _search_attributes(self, token: Any, pair: int, one: _Started, *, differ: bool) -> None:
        reset = self.access.reset
        assert reset is not None, "the caller has checked it"
        envs = [self.method.restore(token), self.method.restore(token)]
        for index, env in enumerate(envs):
            reset(env, 2 * pair + index)
        for path, value in seed_dependent(*envs):
            if not (is_drawn := self._is_drawn(token, 2 * pair, path)) and not (differ and is_large(value)):
                continue
            changed = self._started(token, 2 * pair, one.trajectory.actions, (path, value))
            if changed is not None and _difference(one.trajectory, changed.trajectory) is not None:
                how = "changes irregularly whatever the actions are" if is_drawn else "depends on the seed of reset"
                raise ProbeError(
                    f"{shown_path(path)} {how}, and results depend on it: it looks like the state of a generator of "
                    "its own, which cannot be reseeded (copies would know its numbers in advance). Draw from a "
                    "numpy.random.Generator instead; random=False takes it as a part of the layout"
                )

    def _started(
        self, token: Any, seed: int, actions: list[Any] | None = None, value: tuple[Path, Any] | None = None
    ) -> _Started | None:
        """Returns the steps after a reset, with an attribute set to `value`; None if it fails."""
        reset = self.access.reset
        assert reset is not None, "the caller has checked it"
        env = self.method.restore(token)
        reseed(self.shared, PROBE)
        try:
            start = with_own_arrays(reset(env, seed))
            if value is not None:
                assign(env, *value)
        except Exception:
            return None
        reseed(own_generators(env), PROBE)
        self.random = Random(seed // 2, PROBE)
        length = PROBE_STEPS if actions is None else len(actions)  # an episode may end earlier
        return _Started(start, self._run(env, start, length, actions))

    def _is_drawn(self, token: Any, seed: int, path: Path) -> bool:
        """Whether a number takes the same irregular values after different actions."""
        reset = self.access.reset
        assert reset is not None, "the caller has checked it"
        runs = []
        for run in range(3):
            env = self.method.restore(token)
            reseed(self.shared, PROBE)
            result = reset(env, seed)
            reseed(own_generators(env), PROBE)
            self.random = Random(run, PROBE)
            values = [value_at(env, path)]
            for _ in range(DRAWN_STEPS):
                trajectory = self._run(env, result, 1)
                if not trajectory.results:
                    break
                result = trajectory.results[-1]
                values.append(value_at(env, path))
            runs.append(values)
        least = min(map(len, runs))
        return least >= 4 and all(run[:least] == runs[0][:least] for run in runs) and is_irregular(runs[0][:least])


class _Started(NamedTuple):
    start: Any
    trajectory: _Trajectory


def attribute_fingerprint(env: Any) -> Any:
    """Returns a hash of the plain values in the attributes of an environment, its generators and its classes."""
    values: list[Any] = [fingerprint(own_generators(env))]
    for value in reached(env):
        values.append(_plain(value))
        kind = type(value)
        if module_of(kind).partition(".")[0] not in ("builtins", "numpy", "gymnasium", "pettingzoo"):
            for each in (each for each in kind.__mro__ if module_of(each) == module_of(kind)):
                values.append([_plain(held) for name, held in vars(each).items() if _is_class_state(name, held)])
    return hash(repr(values))


def _is_class_state(name: str, held: Any) -> bool:
    return not name.startswith("_") and isinstance(held, (list, dict, set, np.ndarray))


def _plain(value: Any) -> Any:
    """Returns the numbers and text that an object holds itself."""
    if isinstance(value, np.ndarray):
        return value.shape, None if value.dtype.hasobject else value.tobytes()
    if isinstance(value, Mapping):
        return [(repr(key), entry) for key, entry in value.items() if isinstance(entry, _PLAIN)]
    if isinstance(value, (list, tuple)):
        return [entry for entry in value if isinstance(entry, _PLAIN)]
    if isinstance(value, (set, frozenset)):
        return sorted(repr(entry) for entry in value if isinstance(entry, _PLAIN))
    return [(name, entry) for name, entry in getattr(value, "__dict__", {}).items() if isinstance(entry, _PLAIN)]


_PLAIN = (int, float, complex, str, bytes, np.generic)


def cost_of(method: SnapshotMethod, token: Any) -> float:
    """Returns the seconds per copy of an environment."""
    times = []
    for _ in range(5):
        method.forget()
        start = time.perf_counter()
        method.keep(method.restore(token))
        times.append(time.perf_counter() - start)
    return min(times)


def _compare(trajectory: _Trajectory, again: _Trajectory, what: str) -> None:
    found = _difference(trajectory, again)
    if found is not None:
        raise ProbeError(f"{what} after the same actions: {found}")


def _difference(trajectory: _Trajectory, again: _Trajectory) -> str | None:
    for index, (one, other) in enumerate(zip(trajectory.results, again.results, strict=False)):
        if not same(one, other):
            return f"step {index + 1} gave {one!r:.120} and {other!r:.120}"
    if len(trajectory.results) != len(again.results) or type(trajectory.failure) is not type(again.failure):
        failure = trajectory.failure or again.failure
        return f"step {min(len(trajectory.results), len(again.results)) + 1} raised {type(failure).__name__}: {failure}"
    return None


def probed(method: SnapshotMethod, env: Any, access: Access, shared: Sequence[Any], *, has_natives: bool) -> Findings:
    """Runs `probe` and restores the shared generators."""
    with preserved(shared):
        return probe(method, env, access, shared, has_natives=has_natives)
