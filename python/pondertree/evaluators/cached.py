"""A cache of evaluations."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.evaluators.batch import Packed, take_rows
from pondertree.evaluators.dispatch import (
    Arrays,
    Rows,
    Wrapper,
    as_evaluator,
    call_observations,
    call_packed,
    call_states,
    can_take_packed,
    has_observations,
    has_states,
    observation_keys,
    packed_keys,
)
from pondertree.forks import after_fork_in_child

Entry = tuple[NDArray[np.float32] | None, NDArray[Any]]


class Cached(Wrapper):
    """An LRU cache around an evaluator.

    Positions repeat by transposition, in trees that are built anew after every move, and in parallel games. The cache
    holds the last `size` positions, keyed by a 128-bit digest of packed observation and legal actions; for evaluators
    of states, by the states, which must be hashable. A position that occurs twice in a batch is evaluated once. For
    chess an entry takes about half a KiB; without a packed form, 19 KiB.

    Searches are the same as without the cache if outputs depend on the position alone. (`Rollout` draws new numbers
    each time, so caching would change it. The last bits of a network's outputs may depend on the batch size.)

    A change of the inner evaluator's `version` (an attribute; 0 if missing) clears the cache: change it whenever
    weights change, or call `clear()`. `hits` and `misses` count positions. Thread-safe. Copies and pickles are empty.
    """

    # A wrapper has the forms of the evaluator inside: these are set only if it has them.
    evaluate: Callable[[NDArray[np.float32]], Arrays]
    evaluate_states: Callable[[Sequence[Any]], Arrays]
    evaluate_packed: Callable[[Packed], Arrays]

    def __init__(self, evaluator: Any, size: int = 100_000) -> None:
        evaluator = as_evaluator(evaluator)
        self.evaluator = evaluator
        self.size = validation.count(size, "size")
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._version = self.version
        self._lock = threading.Lock()
        _CACHES.add(self)
        if can_take_packed(evaluator):
            self.evaluate_packed = self._evaluate_packed
        if has_states(evaluator):
            self.evaluate_states = self._evaluate_states
        if has_observations(evaluator):
            self.evaluate = self._evaluate

    def __getstate__(self) -> dict[str, Any]:
        # Locks cannot be pickled, and sending entries costs more than evaluating again.
        return {**self.__dict__, "_lock": None, "_entries": OrderedDict(), "hits": 0, "misses": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._version = self.version
        _CACHES.add(self)

    def clear(self) -> None:
        """Removes all entries and resets the counts."""
        with self._lock:
            self._entries.clear()
            self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Cached({self.evaluator!r}, size={self.size})"

    def _evaluate(self, observations: NDArray[np.float32]) -> Arrays:
        def evaluate_rows(rows: Rows) -> list[Entry]:
            return _split(call_observations(self.evaluator, observations[rows]))

        return _concatenated(self._entries_of(observation_keys(observations), evaluate_rows), np.stack)

    def _evaluate_states(self, states: Sequence[Any]) -> Arrays:
        def evaluate_rows(rows: Rows) -> list[Entry]:
            return _split(call_states(self.evaluator, [states[row] for row in rows]))

        return _concatenated(self._entries_of(list(states), evaluate_rows), np.stack)

    def _evaluate_packed(self, packed: Packed) -> Arrays:
        def evaluate_rows(rows: Rows) -> list[Entry]:
            part = packed if len(rows) == len(packed) else take_rows(packed, rows)
            return _split(call_packed(self.evaluator, part), part.legal_offsets)

        return _concatenated(self._entries_of(packed_keys(packed), evaluate_rows), np.concatenate)

    def _entries_of(self, keys: list[Any], evaluate_rows: Callable[[Rows], list[Entry]]) -> list[Entry]:
        """Returns the entry of each key; `evaluate_rows` evaluates rows that are missing."""
        version = self.version
        with self._lock:
            if version != self._version:
                self._entries.clear()
                self._version = version
            found = {key: self._entries[key] for key in keys if key in self._entries}
            for key in found:
                self._entries.move_to_end(key)
            first_rows = {key: row for row, key in reversed(list(enumerate(keys))) if key not in found}
            self.hits += len(keys) - len(first_rows)
            self.misses += len(first_rows)
        if first_rows:
            # Outside the lock: an evaluation takes long, and may use the cache itself.
            missing = sorted(first_rows, key=first_rows.__getitem__)
            fresh = dict(zip(missing, evaluate_rows(np.array([first_rows[key] for key in missing])), strict=True))
            found |= fresh
            with self._lock:
                if version == self._version:
                    self._keep(fresh)
        return [found[key] for key in keys]

    def _keep(self, fresh: dict[Any, Entry]) -> None:
        # The engine refuses invalid numbers; cached, they would be refused even after the network is fixed.
        if not all(_is_valid(entry) for entry in fresh.values()):
            return
        self._entries.update(fresh)
        while len(self._entries) > self.size:
            self._entries.popitem(last=False)


def _split(answer: Arrays, offsets: NDArray[np.int64] | None = None) -> list[Entry]:
    """Splits outputs into one entry per row, copied so that no entry keeps its batch alive."""
    policy, values = answer
    if offsets is not None:
        # In packed form, a uniform policy (None) is materialised: rows differ in length.
        policy = np.zeros(offsets[-1], dtype=np.float32) if policy is None else policy
        parts: Iterable[Any] = (policy[begin:end] for begin, end in pairwise(offsets.tolist()))
    else:
        parts = repeat(None, len(values)) if policy is None else policy
    return [(None if part is None else part.copy(), np.array(row)) for part, row in zip(parts, values, strict=True)]


def _concatenated(entries: list[Entry], join: Callable[[Any], NDArray[np.float32]]) -> Arrays:
    values = np.array([row for _, row in entries])
    written = [policy for policy, _ in entries if policy is not None]
    if not written:
        return None, values
    even = np.zeros_like(written[0])
    return join([even if policy is None else policy for policy, _ in entries]), values


def _is_valid(entry: Entry) -> bool:
    policy, value = entry
    if not np.isfinite(value).all():
        return False
    return policy is None or bool((policy < np.inf).all() and (policy > -np.inf).any())


#: Every cache of this process.
_CACHES: weakref.WeakSet[Cached] = weakref.WeakSet()


@after_fork_in_child
def _renew_locks() -> None:
    for cache in _CACHES:
        cache._lock = threading.Lock()
