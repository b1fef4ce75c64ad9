"""Probes of a method of copying environments: equal results after equal actions, reseedable randomness."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from pondertree.envs.randomness import fingerprint, own_generators, preserved, reseed
from pondertree.random import Random, fold

#: Steps of an environment that a probe compares.
PROBE_STEPS = 32
#: Steps of a line before the snapshot that is compared.
LEAD_STEPS = 6
#: Purpose of the random numbers of a probe, apart from those of searches.
PROBE = 101
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


class Rung(Protocol):
    """A method of copying environments."""

    method: str
    is_exclusive: bool
    """Whether an environment is valid only until the next one is restored."""

    def save(self, env: Any) -> Any:
        """Returns a token of an environment, which may be used further."""
        ...

    def restore(self, token: Any) -> Any:
        """Returns an environment in the saved state, which may be stepped without changing the token."""
        ...

    def keep(self, env: Any) -> Any:
        """Returns a token of a restored environment, which is not used any further."""
        ...

    def generators(self, env: Any) -> list[Any]:
        """Returns the random generators of a restored environment."""
        ...

    def performed(self, env: Any, action: Any, key: int | None) -> None:
        """Is called after every step of a restored environment."""
        ...

    def forget(self) -> None:
        """Drops what is kept of former copies, so that the cost of one can be measured."""
        ...


class ProbeError(Exception):
    """A method of copying that failed its probe; the message says why."""


class Findings(NamedTuple):
    """What a probe found out about a method that passed."""

    is_random: bool
    """Whether steps draw random numbers."""
    drawn: list[Any]
    """Shared generators that steps draw from."""


class _Line(NamedTuple):
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
    return bool(one == other) or repr(one) == repr(other)


def probe(rung: Rung, env: Any, access: Access, shared: Sequence[Any], *, has_natives: bool) -> Findings:
    """Returns the findings about a method of copying; raises `ProbeError` if it fails. `env` is never stepped."""
    return _Probe(rung, access, shared).run(env, has_natives=has_natives)


class _Probe:
    """One probe. Every line of steps starts with the same states of shared generators."""

    def __init__(self, rung: Rung, access: Access, shared: Sequence[Any]) -> None:
        self.rung = rung
        self.access = access
        self.shared = shared
        self.random = Random(0, PROBE)

    def run(self, env: Any, *, has_natives: bool) -> Findings:
        start = self.rung.save(env)
        before = fingerprint(own_generators(env))
        is_random, drawn, steps, failure = False, set[int](), 0, None
        first: _Line | None = None
        middle, rest = start, _Line([], [], None)
        for _ in range(PROBE_STEPS):
            walker = self.rung.restore(start)
            lead = self._line(walker, self.access.first, 1 + self.random.below(LEAD_STEPS))
            first = first or lead
            failure = failure or lead.failure
            if lead.failure is None and len(lead.results):
                middle = self.rung.save(walker)
                states = fingerprint(self.rung.generators(walker)), fingerprint(self.shared)
                rest = self._line(walker, lead.results[-1], PROBE_STEPS // 2)
                failure = failure or rest.failure
                is_random = is_random or fingerprint(self.rung.generators(walker)) != states[0]
                drawn |= self._drawn(states[1])
                self._repeat(middle, rest)
                self._repeat(middle, rest)
            self._repeat(start, lead)
            steps += len(lead.results) + len(rest.results)
            if steps >= PROBE_STEPS:
                break
        if steps == 0:
            raise ProbeError(f"every step of a copy failed: {type(failure).__name__}: {failure}")
        active = [each for index, each in enumerate(self.shared) if index in drawn]
        is_random = is_random or bool(active) or self._is_random(start, active)
        if has_natives:
            self._compare_seeds(start, active)
        if first is not None:
            self._repeat(self.rung.save(env), first)
        if fingerprint(own_generators(env)) != before:
            raise ProbeError("steps of a copy changed the generators of the environment itself")
        return Findings(is_random, active)

    def _line(self, env: Any, result: Any, length: int, actions: Sequence[Any] | None = None) -> _Line:
        """Performs given or random actions."""
        line = _Line([], [], None)
        reseed(self.shared, PROBE)
        for index in range(length):
            action = self._action(env, result) if actions is None else actions[index]
            if action is None:
                break
            line.actions.append(action)
            try:
                result = self.access.step(env, action)
            except Exception as error:
                return line._replace(failure=error)
            self.rung.performed(env, action, None)
            line.results.append(result)
        return line

    def _action(self, env: Any, result: Any) -> Any:
        try:
            return self.access.sample_action(env, result, self.random)
        except Exception as error:
            raise ProbeError(f"no action of a copy could be chosen: {type(error).__name__}: {error}") from error

    def _repeat(self, token: Any, line: _Line) -> None:
        """Raises `ProbeError` unless a restored environment gives the results of a line."""
        again = self._line(self.rung.restore(token), None, len(line.actions), line.actions)
        _compare(line, again, "a copy and its original differ")

    def _drawn(self, before: list[Any]) -> set[int]:
        """Returns the indices of the shared generators that were drawn from since their states were `before`."""
        return {index for index, state in enumerate(fingerprint(self.shared)) if state != before[index]}

    def _is_random(self, token: Any, active: Sequence[Any]) -> bool:
        """Whether reseeding changes results; raises `ProbeError` if equal seeds give different ones."""
        line = self._seeded(token, active, 1, None)
        _compare(line, self._seeded(token, active, 1, line.actions), "copies with equal seeds differ")
        return any(_difference(line, self._seeded(token, active, key, line.actions)) is not None for key in range(2, 6))

    def _seeded(self, token: Any, active: Sequence[Any], key: int, actions: list[Any] | None) -> _Line:
        env = self.rung.restore(token)
        reseed(self.rung.generators(env), fold(PROBE, key))
        return self._line(env, self.access.first, PROBE_STEPS if actions is None else len(actions), actions)

    def _compare_seeds(self, token: Any, active: Sequence[Any]) -> None:
        """Raises `ProbeError` if `reset(seed)` seeds numbers that no generator in Python holds."""
        reset = self.access.reset
        if reset is None:
            return
        for pair in range(SEED_PAIRS):
            starts, lines = [], list[_Line]()
            for seed in (2 * pair, 2 * pair + 1):
                env = self.rung.restore(token)
                reseed(self.shared, PROBE)
                try:
                    starts.append(reset(env, seed))
                except Exception:
                    return
                reseed(own_generators(env), PROBE)
                actions = lines[0].actions if lines else None
                length = PROBE_STEPS if actions is None else len(actions)  # an episode may end earlier
                lines.append(self._line(env, starts[-1], length, actions))
            if same(*starts) and _difference(*lines) is not None:
                raise ProbeError(
                    "its steps are random, and only reset(seed) seeds them: random numbers inside native code can "
                    "neither be found nor reseeded (copies would know them in advance)"
                )


def cost_of(rung: Rung, token: Any) -> float:
    """Returns the seconds per copy of an environment."""
    times = []
    for _ in range(5):
        rung.forget()
        start = time.perf_counter()
        rung.keep(rung.restore(token))
        times.append(time.perf_counter() - start)
    return min(times)


def _compare(line: _Line, again: _Line, what: str) -> None:
    found = _difference(line, again)
    if found is not None:
        raise ProbeError(f"{what} after the same actions: {found}")


def _difference(line: _Line, again: _Line) -> str | None:
    for index, (one, other) in enumerate(zip(line.results, again.results, strict=False)):
        if not same(one, other):
            return f"step {index + 1} gave {one!r:.120} and {other!r:.120}"
    if len(line.results) != len(again.results) or type(line.failure) is not type(again.failure):
        failure = line.failure or again.failure
        return f"step {min(len(line.results), len(again.results)) + 1} raised {type(failure).__name__}: {failure}"
    return None


def probed(rung: Rung, env: Any, access: Access, shared: Sequence[Any], *, has_natives: bool) -> Findings:
    """Runs `probe` and restores the shared generators."""
    with preserved(shared):
        return probe(rung, env, access, shared, has_natives=has_natives)
